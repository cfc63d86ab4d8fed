//! The network of a call's children: a proxy for each, and variables that lead there.

use std::sync::Arc;

use warren_egress::Connector;
use warren_egress::proxy::{Outcome, Proxy, Refused, Report, Settings, Sink};
use warren_model::Target;
use warren_process::{PROXY_ADDRESS, ProxyStart};

use crate::plugin::audit::{Trail, Unrecorded};
use crate::plugin::grants::ProcessGrant;

/// Variables with which programs find a proxy. Some read them in one case only.
const VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// What of the network a child gets; none: nothing.
pub(super) fn start(
    grant: &ProcessGrant,
    connector: &Connector,
    trail: Option<Trail>,
) -> Option<ProxyStart> {
    if grant.network.is_empty() || grant.unconfined {
        return None;
    }
    let settings = Settings {
        endpoints: grant.network.clone(),
        limits: grant.network_limits.clone(),
        connector: connector.clone(),
        sink: Arc::new(Log(trail)),
    };
    Some(ProxyStart::new(move |socket| {
        Proxy::serve(socket, settings)
    }))
}

/// The variables for a child that has a proxy. All hosts go through it: `NO_PROXY` is empty.
pub(super) fn variables() -> Vec<(String, String)> {
    let proxy = format!("http://{PROXY_ADDRESS}");
    let lead = VARIABLES.map(|name| (name.to_owned(), proxy.clone()));
    let except = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
    lead.into_iter().chain(except).collect()
}

/// Tells the audit log and the host's own.
struct Log(Option<Trail>);

impl Sink for Log {
    fn opening(&self, target: &Target) -> Result<(), Refused> {
        let trail = self.0.as_ref();
        trail
            .map_or(Ok(()), |trail| trail.connecting(target))
            .map_err(|Unrecorded| Refused)
    }

    fn ended(&self, report: &Report) {
        if let Some(trail) = &self.0 {
            // It is over; when that cannot be recorded, the call fails.
            let _ = trail.connected(report);
        }
        let (target, code) = (report.target.as_str(), report.outcome.code());
        let (sent, received) = (report.sent_bytes, report.received_bytes);
        match &report.outcome {
            Outcome::Ended => tracing::debug!(target, sent, received, "a child used the network"),
            Outcome::Denied(why) | Outcome::Failed(why) => {
                tracing::info!(target, code, why, "a child did not get to a server");
            }
            Outcome::Cut(why) => tracing::info!(
                target,
                code,
                why,
                sent,
                received,
                "a connection of a child was ended"
            ),
        }
    }
}

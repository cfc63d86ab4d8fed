//! The network of a call's children: a proxy for each, and variables that lead there.

use std::sync::Arc;

use warren_egress::Connector;
use warren_egress::proxy::{Outcome, Proxy, Refused, Report, Settings, Sink};
use warren_model::Target;
use warren_process::{PROXY_ADDRESS, ProxyStart};

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
pub(super) fn start(grant: &ProcessGrant, connector: &Connector) -> Option<ProxyStart> {
    if grant.network.is_empty() || grant.unconfined {
        return None;
    }
    let settings = Settings {
        endpoints: grant.network.clone(),
        limits: grant.network_limits.clone(),
        connector: connector.clone(),
        sink: Arc::new(Log),
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

/// Tells the host's log.
struct Log;

impl Sink for Log {
    fn opening(&self, _: &Target) -> Result<(), Refused> {
        Ok(())
    }

    fn ended(&self, report: &Report) {
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

//! Servers that are granted and asked for.

use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};
use warren_model::{Endpoint, Endpoints, Target, WebScheme};

/// An endpoint of a grant, and what a program asks for: a URL, or `host:port`.
pub fn endpoint(data: &[u8]) {
    let Some((granted, asked)) = super::split(data) else {
        return;
    };
    let granted = match granted.parse::<Endpoint>() {
        Ok(endpoint) => {
            let printed = endpoint.to_string();
            assert_eq!(printed.parse().as_ref(), Ok(&endpoint), "{printed}");
            assert!(!printed.contains(['@', '\\', '?', '#']), "{printed}");
            Some(endpoint)
        }
        Err(error) => {
            no_password(granted, &error.to_string());
            None
        }
    };
    for target in [
        Target::from_url(asked),
        Target::from_authority(WebScheme::Https, asked),
    ] {
        match target {
            Ok(target) => check_target(asked, &target, granted.as_ref()),
            Err(error) => no_password(asked, &error.to_string()),
        }
    }
}

fn check_target(asked: &str, target: &Target, granted: Option<&Endpoint>) {
    let printed = target.to_string();
    assert_eq!(Target::from_url(&printed).as_ref(), Ok(target), "{printed}");
    let authority = target.authority();
    let again = Target::from_authority(target.scheme, &authority);
    assert_eq!(again.as_ref(), Ok(target), "{authority}");
    assert!(!printed.contains('@'), "{printed}");
    // A client that parses as browsers do goes to the same server, or nowhere.
    if asked.contains("://")
        && let Ok(url) = Url::parse(asked)
        && matches!(url.scheme(), "http" | "https")
    {
        assert_eq!(url.scheme(), target.scheme.as_str(), "{asked:?}");
        assert_eq!(url.port_or_known_default(), Some(target.port), "{asked:?}");
        let host = url.host().map(|host| plain(host.to_owned()));
        assert_eq!(host.as_ref(), Some(&target.host), "{asked:?}");
        assert!(
            url.username().is_empty() && url.password().is_none(),
            "{asked:?}"
        );
    }
    let exact = Endpoint::exact(target.clone());
    assert!(exact.matches(target));
    assert_eq!(exact.to_string().parse().as_ref(), Ok(&exact));
    let inner = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let metadata = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
    if let Some(granted) = granted {
        let list = Endpoints::new(vec![granted.clone()]);
        let permit = list.permit(target);
        assert_eq!(permit.is_some(), granted.matches(target));
        // Nothing stays of it within an empty list, and all of it within itself.
        assert!(list.clone().within(Vec::new()).permit(target).is_none());
        assert_eq!(list.within(vec![exact.clone()]).permit(target), permit);
        if let Some(permit) = permit
            && *granted != exact
        {
            // Inside is only who was named.
            assert!(
                !permit.may_connect(inner),
                "{granted} gives {target} at {inner}"
            );
        }
    }
    let named = Endpoints::new(vec![exact])
        .permit(target)
        .expect("it is itself");
    let is_name = matches!(target.host, Host::Domain(_));
    assert!(!is_name || !named.may_connect(metadata), "{target}");
    assert!(Endpoints::default().permit(target).is_none());
}

/// As `Target` says it: an address of IPv4 in IPv6 is IPv4, a name has no dot at its end.
fn plain(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
        Host::Ipv6(address) => address
            .to_ipv4_mapped()
            .map_or(Host::Ipv6(address), Host::Ipv4),
        host => host,
    }
}

fn no_password(text: &str, error: &str) {
    let Some((login, _)) = text.rsplit_once('@') else {
        return;
    };
    if let Some((_, password)) = login.rsplit_once(':')
        && password.len() > 12
        && password.bytes().any(|b| b.is_ascii_digit())
    {
        let repeated = text.matches(password).count() > 1;
        assert!(repeated || !error.contains(password), "{error}");
    }
}

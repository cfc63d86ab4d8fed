//! Which addresses belong to the public internet, and which are never meant by a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is reachable by anyone, so that talking to it gives no reach that a stranger
/// lacks. Loopback, private, link-local (with the metadata services), shared, reserved and
/// multicast addresses are not, in whatever form IPv6 wraps them.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether an address is only of the link it is on, where metadata services are, in whatever form
/// IPv6 wraps it.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => inner.is_link_local(),
            // The unique local address is one of the metadata services.
            None => {
                address.is_unicast_link_local()
                    || address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
            }
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(address) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is given out; Teredo, documentation and benchmarking are holes in it.
    (first & 0xe000) == 0x2000
        && !(first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        && first != 0x3fff
}

/// The IPv4 address behind a mapped, compatible, NAT64 or 6to4 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let join = |high: u16, low: u16| {
        let ([p, q], [r, s]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(p, q, r, s)
    };
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => {
            Some(join(high, low))
        }
        (0x2002, ..) => Some(join(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn inner_addresses_are_not_public() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "203.0.113.9",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "64:ff9b:1::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn outer_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "140.82.112.3",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}

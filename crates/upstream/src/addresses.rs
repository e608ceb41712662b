//! Which addresses an upstream may have. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Inside: this machine or a private network. The operator may allow these.
    Inside(&'static str),
    /// Never an MCP server: refused whatever the operator allows.
    Never(&'static str),
}

impl Refusal {
    /// What the address is, after "is".
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Inside(what) | Self::Never(what) => what,
        }
    }
}

/// Whether an address may be connected to, given what the operator allows.
pub(crate) fn check(address: IpAddr, allow_private: bool) -> Result<(), Refusal> {
    let refusal = match address {
        IpAddr::V4(v4) => refusal_v4(v4),
        IpAddr::V6(v6) => refusal_v6(v6),
    };
    match refusal {
        None => Ok(()),
        Some(Refusal::Inside(_)) if allow_private => Ok(()),
        Some(refusal) => Err(refusal),
    }
}

/// IANA's registry of special addresses, and what clouds put beside it.
fn refusal_v4(address: Ipv4Addr) -> Option<Refusal> {
    use Refusal::{Inside, Never};
    Some(match address.octets() {
        [169, 254, 169, 254 | 253]
        | [169, 254, 170, 2 | 23]
        | [168, 63, 129, 16]
        | [100, 100, 100, 200] => Never("a cloud's metadata address"),
        [0, ..] => Never("an address of \"this network\""),
        [127, ..] => Inside("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Inside("a private address"),
        [100, 64..=127, ..] => Inside("a carrier's private address"),
        [169, 254, ..] => Inside("a link-local address"),
        [192, 0, 0, _] | [198, 18 | 19, ..] => Inside("a reserved address"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Never("an address for documents"),
        [192, 88, 99, _] => Never("a 6to4 relay address"),
        [224..=239, ..] => Never("a multicast address"),
        [240..=255, ..] => Never("a reserved address"),
        _ => return None,
    })
}

/// Only global unicast (`2000::/3`) can be public, and not all of it is.
fn refusal_v6(address: Ipv6Addr) -> Option<Refusal> {
    use Refusal::{Inside, Never};
    let segments = address.segments();
    Some(match segments {
        _ if address == Ipv6Addr::LOCALHOST => Inside("a loopback address"),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254 | 0x0023]
        | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254]
        | [0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe] => Never("a cloud's metadata address"),
        [0xfc00..=0xfdff, ..] => Inside("a private address"),
        [0xfe80..=0xfebf, ..] => Inside("a link-local address"),
        [0xff00..=0xffff, ..] => Never("a multicast address"),
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            Never("an IPv4 address in IPv6 form")
        }
        [0x0064, 0xff9b, ..] => Never("a NAT64 address"),
        [0x2002, ..] => Never("a 6to4 address"),
        [0x2001, 0x0000, ..] => Never("a Teredo address"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => Never("an address for documents"),
        [0x2001, 0x0000..=0x01ff, ..] => Never("a reserved address"),
        [0x2000..=0x3fff, ..] => return None,
        _ => Never("a reserved address"),
    })
}

/// Ports that speak something else, where an HTTP request could do harm (Fetch standard, "bad port").
#[rustfmt::skip]
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

pub(crate) fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_ports_are_found() {
        assert!(BAD_PORTS.is_sorted());
        assert!(is_bad_port(0) && is_bad_port(25) && is_bad_port(10_080));
        assert!(!is_bad_port(80) && !is_bad_port(443) && !is_bad_port(8_080));
    }

    #[test]
    fn addresses_are_sorted() {
        let public = "8.8.8.8 1.1.1.1 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 192.0.1.1 \
            198.17.0.1 223.255.255.255 2606:4700::1111 2a00:1450::1 2001:200::1 2003::1";
        let inside = "127.0.0.1 127.255.255.255 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 \
            100.64.0.1 169.254.1.1 192.0.0.8 198.18.0.1 ::1 fc00::1 fd12:3456::1 fe80::1 \
            febf::1";
        let never = "0.0.0.0 0.1.2.3 169.254.169.254 169.254.170.2 169.254.170.23 \
            fd00:ec2::23 fd20:ce::254 fe80::a9fe:a9fe 100.100.100.200 168.63.129.16 192.0.2.1 \
            198.51.100.7 203.0.113.9 192.88.99.1 224.0.0.1 239.255.255.255 240.0.0.1 \
            255.255.255.255 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::ffff:0:10.0.0.1 \
            64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 2001:10::1 \
            3fff::1 fd00:ec2::254 fec0::1 ff02::1 100::1 4000::1 5f00::1";
        let read = |text: &str| text.parse::<IpAddr>().expect(text);
        for text in public.split_whitespace() {
            assert_eq!(check(read(text), false), Ok(()), "{text}");
        }
        for text in inside.split_whitespace() {
            assert!(matches!(check(read(text), false), Err(Refusal::Inside(_))), "{text}");
            assert_eq!(check(read(text), true), Ok(()), "{text}");
        }
        for text in never.split_whitespace() {
            assert!(matches!(check(read(text), false), Err(Refusal::Never(_))), "{text}");
            assert!(matches!(check(read(text), true), Err(Refusal::Never(_))), "{text}");
        }
    }
}

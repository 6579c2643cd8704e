//! The SSRF guard: which addresses are permitted. The public internet, and what the operator has named. Never this
//! machine or its network, whatever the address looks like.
//!
//! Two checks, because one alone has a hole: the host in an address, which may be an IP in any spelling, and every
//! address that a name resolves to, at the moment a connection is made (`transport.rs`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use url::{Host, Url};

use crate::transport::Route;

/// What the operator lets requests reach besides the public internet: `host`, `host:port` or `*.domain`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(Arc<[Allowed]>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowed {
    host: AllowedHost,
    /// Any, when it names none.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedHost {
    Address(IpAddr),
    Name(String),
    /// Every name below this domain, not the domain itself.
    Below(String),
}

/// An entry of the allow-list that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no host; expected one like \"127.0.0.1:9000\", \"[::1]:9000\", \"api.internal\" or \"*.internal.example\""
)]
pub struct BadHost(String);

impl AllowList {
    /// Reads the operator's entries.
    pub fn new<'e>(entries: impl IntoIterator<Item = &'e String>) -> Result<Self, BadHost> {
        let entries = entries.into_iter().map(|entry| entry.parse());
        Ok(Self(entries.collect::<Result<_, _>>()?))
    }

    /// One server that the operator named by its address.
    pub fn only(url: &Url) -> Self {
        let host = url.host().map(|host| match host {
            Host::Domain(name) => AllowedHost::Name(bare(name).into()),
            Host::Ipv4(address) => AllowedHost::Address(address.into()),
            Host::Ipv6(address) => AllowedHost::Address(address.into()),
        });
        let port = url.port_or_known_default();
        Self(host.map(|host| Allowed { host, port }).into_iter().collect())
    }

    fn holds(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.iter().any(|allowed| {
            allowed.port.is_none_or(|only| only == port)
                && match (&allowed.host, host) {
                    (AllowedHost::Address(IpAddr::V4(address)), Host::Ipv4(host)) => address == host,
                    (AllowedHost::Address(IpAddr::V6(address)), Host::Ipv6(host)) => address == host,
                    (AllowedHost::Name(name), Host::Domain(host)) => name == bare(host),
                    (AllowedHost::Below(domain), Host::Domain(host)) => bare(host)
                        .strip_suffix(domain.as_str())
                        .is_some_and(|front| front.ends_with('.') && front.len() > 1),
                    // An allowed address is that address written out: a name that leads there may lead elsewhere.
                    (AllowedHost::Address(_), _) | (AllowedHost::Name(_) | AllowedHost::Below(_), _) => false,
                }
        })
    }
}

impl FromStr for Allowed {
    type Err = BadHost;
    fn from_str(entry: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(entry.into());
        let (below, rest) = match entry.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, entry),
        };
        if rest.contains(['/', '@', '?', '#', '*', '\\', ' ']) {
            return Err(bad());
        }
        // A scheme without a usual port keeps every port that is written.
        let bracketed = match rest.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => rest.to_owned(),
        };
        let url = Url::parse(&format!("http://{bracketed}/")).map_err(|_| bad())?;
        let written = bracketed.rsplit(']').next().unwrap_or_default();
        let port = match written.rsplit_once(':') {
            Some((_, port)) => Some(port.parse().map_err(|_| bad())?),
            None => None,
        };
        let host = match (url.host().ok_or_else(bad)?, below) {
            (Host::Domain(name), true) => AllowedHost::Below(bare(name).into()),
            (Host::Domain(name), false) => AllowedHost::Name(bare(name).into()),
            (Host::Ipv4(address), false) => AllowedHost::Address(address.into()),
            (Host::Ipv6(address), false) => AllowedHost::Address(address.into()),
            (Host::Ipv4(_) | Host::Ipv6(_), true) => return Err(bad()),
        };
        Ok(Self { host, port })
    }
}

/// A name without the dot that may end it.
fn bare(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// The host and port of an address that HTTP can be spoken with; the error says why not.
pub(crate) fn parts(url: &Url) -> Result<(Host<&str>, u16), String> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(format!(
            "{scheme}: addresses are not asked; expected https:// or http://"
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user name in it is not asked; use a header".into());
    }
    match (url.host(), url.port_or_known_default()) {
        (Some(host), Some(port)) => Ok((host, port)),
        (None, _) | (_, None) => Err("the address names no host".into()),
    }
}

/// How a request to this address may travel; the error says why it may not.
pub(crate) fn check(url: &Url, allow: &AllowList) -> Result<Route, String> {
    let (host, port) = parts(url)?;
    if allow.holds(&host, port) {
        return Ok(Route::Direct);
    }
    let public = match host {
        Host::Domain(name) => !is_local_name(bare(name)),
        Host::Ipv4(address) => is_public(address.into()),
        Host::Ipv6(address) => is_public(address.into()),
    };
    if !public {
        return Err(format!(
            "{host} is not on the public internet; \"{host}:{port}\" in the setting outside.allow would allow it"
        ));
    }
    if !is_web_port(port) {
        return Err(format!(
            "port {port} belongs to another service; \"{host}:{port}\" in the setting outside.allow would allow it"
        ));
    }
    Ok(Route::Public)
}

/// Names that mean this machine or its network wherever they are resolved.
fn is_local_name(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(
        last,
        "localhost" | "local" | "internal" | "localdomain" | "intranet" | "lan" | ""
    )
}

/// Ports above the reserved ones that are known for something else than HTTP.
const OTHER_PORTS: [u16; 27] = [
    1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566,
    6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 11211, 27017,
];

fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443) || (port >= 1024 && !OTHER_PORTS.contains(&port))
}

/// Whether an address is somebody else's, on the internet: not this machine, its network, a cloud's own services, or a
/// range that is reserved.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Azure's services for its machines, the one such address outside of the reserved ranges.
const AZURE_WIRE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(address: Ipv4Addr) -> bool {
    let reserved = match address.octets() {
        // This network; private; shared by a provider; this machine; link-local, where clouds keep their metadata.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] => {
            true
        }
        // Protocols; documentation; 6to4 relays; measurements.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            true
        }
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !reserved && address != AZURE_WIRE
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        // An IPv4 address in IPv6 clothes: mapped, or through NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4, which nobody needs any more, carries one as well; Teredo and other protocols; documentation.
        [0x2002, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All that was ever given out. Unique local, link-local, multicast and the rest lie outside.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// A name leads to no public address.
#[derive(Debug, thiserror::Error)]
#[error(
    "the name leads to no address on the public internet; its host in the setting outside.allow would allow it"
)]
pub(crate) struct NotPublic;

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str]) -> AllowList {
        AllowList::new(&entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>()).unwrap()
    }

    fn reach(url: &str, entries: &[&str]) -> Result<Route, String> {
        check(
            &Url::parse(url).map_err(|error| error.to_string())?,
            &allow(entries),
        )
    }

    /// Addresses of this machine, its network and its cloud, in every spelling that a parser takes.
    const HOSTILE: &[&str] = &[
        "http://127.0.0.1/",
        "http://127.1/",
        "http://127.255.255.254/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0177.0.0.1/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0x7f.0x0.0x0.0x1/",
        "http://%31%32%37.0.0.1/",
        "http://127。0。0。1/",
        "http://①②⑦.0.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://168.63.129.16/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.0.0.192/",
        "http://192.168.1.1/",
        "http://198.18.0.1/",
        "http://203.0.113.9/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::]/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::127.0.0.1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "http://[2001:db8::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[100::1]/",
        "http://[3fff::1]/",
        "http://localhost/",
        "http://LOCALHOST/",
        "http://localhost./",
        "http://a.localhost/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "https://user@example.com/",
        "https://example.com:pass@127.0.0.1/",
        "https://example.com@127.0.0.1/",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:6379/",
        "http://example.com:6667/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com:70/",
        "data:text/plain,hello",
        "http://[fe80::1%25eth0]/",
        "http://[v1.fe80::a+en1]/",
        "http://127.0.0.1\u{0}.example.com/",
    ];

    #[test]
    fn no_spelling_of_an_inner_address_gets_through() {
        let through: Vec<_> = HOSTILE.iter().filter(|url| reach(url, &[]).is_ok()).collect();
        assert!(through.is_empty(), "{through:?}");
    }

    #[test]
    fn the_public_internet_is_open() {
        for url in [
            "https://example.com/",
            "http://example.com:8080/",
            "https://example.com:8443/",
            "http://93.184.215.14/",
            "http://172.32.0.1/",
            "http://100.128.0.1/",
            "http://[2606:4700::1111]/",
            "http://[64:ff9b::5db8:d70e]/",
            "http://[::ffff:93.184.215.14]/",
            "https://münchen.example/",
        ] {
            assert_eq!(reach(url, &[]), Ok(Route::Public), "{url}");
        }
    }

    #[test]
    fn the_operator_opens_hosts_ports_and_domains_and_nothing_beside_them() {
        let entries = [
            "127.0.0.1:9000",
            "[::1]:80",
            "*.internal.example",
            "box.lan",
            "10.1.2.3",
            "LOCALHOST:7",
        ];
        for url in [
            "http://127.0.0.1:9000/",
            "http://2130706433:9000/",
            "http://[::1]/",
            "http://a.internal.example/",
            "http://a.b.internal.example.:22/",
            "http://box.lan:5432/",
            "http://10.1.2.3/",
            "http://localhost:7/",
        ] {
            assert_eq!(reach(url, &entries), Ok(Route::Direct), "{url}");
        }
        for url in [
            "http://127.0.0.1:9001/",
            "http://127.0.0.2:9000/",
            "http://[::1]:81/",
            "http://[::ffff:127.0.0.1]:9000/",
            "http://localhost:9000/",
            "http://a.box.lan/",
            "http://10.1.2.4/",
            "http://user@10.1.2.3/",
        ] {
            assert!(reach(url, &entries).is_err(), "{url}");
        }
        // Outside of the list, but a public name: the resolver has the last word.
        for url in ["http://internal.example/", "http://evilinternal.example/"] {
            assert_eq!(reach(url, &entries), Ok(Route::Public), "{url}");
        }
    }

    #[test]
    fn an_entry_that_says_nothing_is_refused() {
        for entry in [
            "",
            "*",
            "*.",
            "http://a/",
            "a/b",
            "user@a",
            "a:port",
            "*.10.0.0.1",
            "a:99999",
            "a b",
        ] {
            assert!(entry.parse::<Allowed>().is_err(), "{entry:?}");
        }
    }
}

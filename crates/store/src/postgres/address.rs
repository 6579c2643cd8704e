//! Where the database is, and how the connection to it is protected.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::hosts::Hosts;

/// Address of a PostgreSQL database, with the password that it may need. Prints without its user and password.
///
/// A URL as `libpq` takes it: `postgres://user:password@host:5432,other:5432/database?sslmode=verify-full`. Of several
/// hosts the one that takes writes is used, whichever that is at the time. Clones share what is known of the hosts.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) protection: Protection,
    shown: String,
}

/// How much is checked of the server before it is told anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protection {
    /// The connection is not encrypted, or is if the server can, without a look at its certificate.
    Unchecked,
    /// The certificate is for the host, and of an authority that the machine trusts.
    Platform,
    /// The certificate is of an authority in this file; `names` also asks for the host's name in it.
    Authorities { names: bool, file: PathBuf },
}

/// How long a connection to one host may take.
const CONNECT: Duration = Duration::from_secs(5);
/// A peer that is silent for so long is asked whether it is there, so many times, so far apart.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Why a text is no address. The text may hold a password, so it is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an address like postgres://user:password@host:5432/database: {0}")]
pub struct BadAddress(String);

impl PostgresAddress {
    /// Whether a text means to be such an address.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }
}

impl FromStr for PostgresAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        if !Self::is_meant(text) {
            return Err(BadAddress(
                "it begins with neither postgres:// nor postgresql://".into(),
            ));
        }
        // The driver would take what is behind the first for the host: look it up, and print it.
        let before_parameters = text.split('?').next().unwrap_or_default();
        if before_parameters.matches('@').count() > 1 {
            return Err(BadAddress(
                "it has more than one @, write those in the user and the password as %40".into(),
            ));
        }
        let (text, asked) = take_parameters(text)?;
        let parse = |text: &str| text.parse().map_err(|error| BadAddress(reason(&error)));
        let whole: Config = parse(&text)?;
        if whole.get_hosts().is_empty() {
            return Err(BadAddress("it names no host".into()));
        }
        let mut each = per_host(&text)
            .map(|text| parse(&text))
            .collect::<Result<Vec<Config>, _>>()?;
        if each.len() != whole.get_hosts().len() {
            // Some are in a parameter: the driver tries them in turn.
            each = vec![whole.clone()];
        }
        let (ssl_mode, protection) = protection(&asked)?;
        for config in &mut each {
            set_up(config, ssl_mode);
        }
        Ok(Self {
            hosts: Arc::new(Hosts::new(each)),
            protection,
            shown: show(&whole),
        })
    }
}

/// The same address for each of its hosts alone.
fn per_host(text: &str) -> impl Iterator<Item = String> {
    let begin = text.find("://").map_or(0, |at| at + 3);
    let begin = text[begin..].find('@').map_or(begin, |at| begin + at + 1);
    let end = text[begin..].find(['/', '?']).map_or(text.len(), |at| begin + at);
    let (before, hosts, after) = (&text[..begin], &text[begin..end], &text[end..]);
    hosts.split(',').map(move |host| format!("{before}{host}{after}"))
}

fn set_up(config: &mut Config, ssl_mode: SslMode) {
    if config.get_target_session_attrs() == TargetSessionAttrs::Any {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if config.get_application_name().is_none() {
        config.application_name("toolgate");
    }
    let (idle, interval, retries) = KEEP_ALIVE;
    config
        .ssl_mode(ssl_mode)
        .connect_timeout(CONNECT)
        .keepalives_idle(idle)
        .keepalives_interval(interval)
        .keepalives_retries(retries)
        .tcp_user_timeout(UNACKNOWLEDGED);
}

/// Parameters that are ours to read, because the driver knows fewer values.
#[derive(Default)]
struct Asked {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
}

fn take_parameters(text: &str) -> Result<(String, Asked), BadAddress> {
    let mut asked = Asked::default();
    let Some((address, parameters)) = text.split_once('?') else {
        return Ok((text.to_owned(), asked));
    };
    let mut rest = Vec::new();
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => asked.sslmode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => asked.sslrootcert = Some(decode(value)?),
            _ => rest.push(parameter),
        }
    }
    let text = match rest.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", rest.join("&")),
    };
    Ok((text, asked))
}

/// Replaces `%2F` and the like.
fn decode(value: &str) -> Result<String, BadAddress> {
    let bad = || BadAddress("the value of sslrootcert is not percent-encoded text".into());
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next().ok_or_else(bad)?, rest.next().ok_or_else(bad)?];
        let digits = std::str::from_utf8(&digits).map_err(|_| bad())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

fn protection(asked: &Asked) -> Result<(SslMode, Protection), BadAddress> {
    let file = asked.sslrootcert.as_ref().map(PathBuf::from);
    let of = |names, file| Protection::Authorities { names, file };
    let protection = match (asked.sslmode.as_deref().unwrap_or("prefer"), file) {
        ("prefer", None) => (SslMode::Prefer, Protection::Unchecked),
        ("disable", None) => (SslMode::Disable, Protection::Unchecked),
        ("require", None) => (SslMode::Require, Protection::Unchecked),
        // As libpq does: with authorities at hand, their signature is checked.
        ("require" | "verify-ca", Some(file)) => (SslMode::Require, of(false, file)),
        ("verify-full", Some(file)) => (SslMode::Require, of(true, file)),
        ("verify-full", None) => (SslMode::Require, Protection::Platform),
        ("verify-ca", None) => {
            return Err(BadAddress(
                "sslmode=verify-ca needs sslrootcert, or use sslmode=verify-full".into(),
            ));
        }
        ("prefer" | "disable", Some(_)) => {
            return Err(BadAddress(
                "sslrootcert is for sslmode require, verify-ca or verify-full".into(),
            ));
        }
        (other, _) => {
            let known = "disable, prefer, require, verify-ca or verify-full";
            return Err(BadAddress(format!("sslmode is {other:?}, expected {known}")));
        }
    };
    Ok(protection)
}

/// The driver's reason without what it quotes.
fn reason(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let words = source.unwrap_or_else(|| error.to_string());
    words.split('`').step_by(2).collect::<Vec<_>>().join("…")
}

fn show(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> Result<PostgresAddress, BadAddress> {
        text.parse()
    }

    #[test]
    fn an_address_prints_without_its_password() {
        let address = read("postgres://anna:geheim@db1,db2:6432/tools?sslmode=disable").unwrap();
        assert!(format!("{address} {address:?}").starts_with("postgres://db1:5432,db2:6432/tools "));
        for (config, port) in address.hosts.each.iter().zip([5432, 6432]) {
            assert_eq!(config.get_password(), Some("geheim".as_bytes()));
            assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
            assert_eq!((config.get_hosts().len(), config.get_ports()), (1, &[port][..]));
            assert_eq!(config.get_dbname(), Some("tools"));
        }
    }

    #[test]
    fn each_host_of_an_address_is_reached_by_itself() {
        let ports = |text: &str| {
            let address = read(text).unwrap();
            let each = address.hosts.each.iter();
            each.map(|config| config.get_ports().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(ports("postgres://db"), [[5432]]);
        assert_eq!(
            ports("postgres://anna@[::1]:1,[::2]:2?application_name=a,b"),
            [[1], [2]]
        );
        assert_eq!(ports("postgres://a,b/x"), [[5432], [5432]]);
        // In a parameter, the driver knows best.
        assert_eq!(ports("postgres://a:1/x?host=b&port=2"), [[1, 2]]);
    }

    #[test]
    fn a_bad_address_is_not_repeated() {
        for text in [
            "postgres://anna:geheim@db/x?sslmode=geheim&y",
            "postgres://anna:geheim@db:geheim/x",
            "mysql://anna:geheim@db",
            "postgres://anna:geheim@db/x?geheim=1",
            "postgres:///geheim",
            "postgres://anna:ge@heim@db/x",
            "postgres://anna:ge@geheim/x@db/y",
        ] {
            let words = read(text).expect_err(text).to_string();
            assert!(
                !words.contains("geheim") || text.contains("sslmode=geheim"),
                "{words}"
            );
        }
    }

    #[test]
    fn an_at_sign_in_a_password_is_written_as_its_code() {
        let address = read("postgres://anna:ge%40heim@db/x?application_name=a@b").unwrap();
        assert_eq!(address.hosts.each[0].get_password(), Some("ge@heim".as_bytes()));
        let words = read("postgres://anna:ge@heim@db/x").unwrap_err().to_string();
        assert!(words.contains("%40"), "{words}");
    }

    #[test]
    fn how_much_of_a_certificate_is_checked_follows_sslmode() {
        let protection = |parameters: &str| read(&format!("postgres://db/x{parameters}")).unwrap().protection;
        let of = |names, path: &str| Protection::Authorities {
            names,
            file: Path::new(path).to_owned(),
        };
        assert_eq!(protection(""), Protection::Unchecked);
        assert_eq!(protection("?sslmode=require"), Protection::Unchecked);
        assert_eq!(
            protection("?sslmode=require&sslrootcert=%2Fca.pem"),
            of(false, "/ca.pem")
        );
        assert_eq!(protection("?sslmode=verify-full&sslrootcert=ca"), of(true, "ca"));
        assert_eq!(
            protection("?application_name=x&sslmode=verify-full"),
            Protection::Platform
        );
        assert!(read("postgres://db/x?sslmode=verify-ca").is_err());
    }
}

//! What a package asks the sandbox for. Nothing that is not named here is given to its code.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use url::{Host, Url};

/// Most permissions of one package.
pub const PERMISSIONS_MAX: usize = 64;
/// Longest permission.
pub const PERMISSION_CHARS_MAX: usize = 270;

const FETCH: &str = "fetch:";
const STORAGE: &str = "storage";

/// What a package asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Hosts that its code may send requests to.
    pub fetch: Vec<HostPattern>,
    /// Whether it may keep values between calls.
    pub storage: bool,
}

impl Permissions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.fetch.is_empty() && !self.storage
    }
    /// Whether a request to this address is asked for.
    pub fn allows_fetch(&self, url: &Url) -> bool {
        self.fetch.iter().any(|pattern| pattern.matches(url))
    }
    /// The permissions as a package writes them.
    pub fn written(&self) -> Vec<String> {
        let fetch = self.fetch.iter().map(|pattern| format!("{FETCH}{pattern}"));
        fetch.chain(self.storage.then(|| STORAGE.to_owned())).collect()
    }
    /// Adds one permission as a package writes it.
    pub(crate) fn add(&mut self, written: &str) -> Result<(), String> {
        if written == STORAGE {
            let again = std::mem::replace(&mut self.storage, true);
            return match again {
                false => Ok(()),
                true => Err(twice(written)),
            };
        }
        let Some(host) = written.strip_prefix(FETCH) else {
            return Err(format!(
                "there is no permission {written:?}; there are \"storage\" and \"fetch:HOST\" as in \"fetch:api.example.com\""
            ));
        };
        let pattern: HostPattern = host.parse().map_err(|bad: BadHostPattern| bad.to_string())?;
        if self.fetch.contains(&pattern) {
            return Err(twice(written));
        }
        self.fetch.push(pattern);
        Ok(())
    }
}

fn twice(written: &str) -> String {
    format!("{written:?} is asked for twice; leave one of them out")
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(out)
    }
}

/// A host (`api.example.com`), or every host below a domain (`*.example.org`, which is not `example.org` itself). Any
/// port; which ports and addresses may be reached at all is decided by the gateway's outbound policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    host: Host<String>,
    below: bool,
}

/// A text that is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHostPattern {
    /// It does not name a host.
    #[error(
        "{0:?} is no host; expected one like \"api.example.com\", or \"*.example.com\" for all below it, without scheme, port and path"
    )]
    NoHost(String),
    /// It names one in another form than the one that requests are compared with.
    #[error("{seen:?} is another way to write {canonical:?}; write that")]
    NotCanonical {
        /// The text that was given.
        seen: String,
        /// The same host as a URL has it.
        canonical: String,
    },
    /// It would allow nearly everything.
    #[error("{0:?} is too wide; name at least two labels after the star, as in \"*.example.com\"")]
    TooWide(String),
}

impl FromStr for HostPattern {
    type Err = BadHostPattern;
    fn from_str(written: &str) -> Result<Self, BadHostPattern> {
        let no_host = || BadHostPattern::NoHost(written.to_owned());
        let (name, below) = match written.strip_prefix("*.") {
            Some(domain) => (domain, true),
            None => (written, false),
        };
        if written.chars().count() > PERMISSION_CHARS_MAX || name.is_empty() {
            return Err(no_host());
        }
        let host = Host::parse(name).map_err(|_| no_host())?;
        let canonical = host.to_string();
        if canonical != name {
            let star = if below { "*." } else { "" };
            return Err(BadHostPattern::NotCanonical {
                seen: written.to_owned(),
                canonical: format!("{star}{canonical}"),
            });
        }
        if let Host::Domain(domain) = &host {
            let is_label = |label: &str| {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                !label.is_empty() && label.bytes().all(allowed)
            };
            if !domain.split('.').all(is_label) {
                return Err(no_host());
            }
        }
        match (&host, below) {
            (Host::Domain(domain), true) if !domain.contains('.') => {
                Err(BadHostPattern::TooWide(written.to_owned()))
            }
            (Host::Ipv4(_) | Host::Ipv6(_), true) => Err(no_host()),
            (Host::Domain(_), _) | (Host::Ipv4(_) | Host::Ipv6(_), false) => Ok(Self { host, below }),
        }
    }
}

impl HostPattern {
    /// Whether the host of `url` is meant.
    pub fn matches(&self, url: &Url) -> bool {
        match (&self.host, url.host()) {
            (Host::Domain(own), Some(Host::Domain(host))) => {
                // A trailing dot names the same host.
                let host = host.strip_suffix('.').unwrap_or(host);
                match self.below {
                    true => host
                        .strip_suffix(own.as_str())
                        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                    false => host == own,
                }
            }
            (Host::Ipv4(own), Some(Host::Ipv4(host))) => *own == host,
            (Host::Ipv6(own), Some(Host::Ipv6(host))) => *own == host,
            (Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_), _) => false,
        }
    }
    /// Whether every host below a domain is meant.
    pub fn is_wide(&self) -> bool {
        self.below
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.below { "*." } else { "" };
        write!(out, "{star}{}", self.host)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

//! Where a remote agent is spoken to, and in which form of the protocol.

use serde::{Deserialize, Serialize};
use toolgate_a2a::card::Interface;
use toolgate_a2a::{Dialect, VERSION, VERSION_03};
use url::Url;

/// An interface of a remote agent that this client speaks. Stored with every task, so that a task is asked about where
/// it was begun, whatever the card says by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    /// Base address.
    pub url: String,
    pub binding: Binding,
    pub version: Version,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether the agent streams.
    pub streams: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Binding {
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    #[serde(rename = "HTTP+JSON")]
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    #[serde(rename = "1.0")]
    V1,
    #[serde(rename = "0.3")]
    V03,
}

impl Version {
    pub fn dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::V1,
            Self::V03 => Dialect::V03,
        }
    }

    /// As the header `A2A-Version` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => VERSION,
            Self::V03 => VERSION_03,
        }
    }
}

impl Endpoint {
    /// The interface of a card that is spoken best: 1.0 before 0.3, JSON-RPC before REST. REST of 0.3 has another wire
    /// form, which is not spoken. The error says which interfaces there are.
    ///
    /// Only an interface at the origin of `at` counts: a card must not choose who gets the headers of the configuration.
    pub fn choose(interfaces: &[Interface], streams: bool, at: &Url) -> Result<Self, String> {
        let mut spoken: Vec<Self> = interfaces
            .iter()
            .filter_map(|interface| Self::of(interface, streams))
            .collect();
        if spoken.is_empty() {
            let there: Vec<String> = interfaces
                .iter()
                .map(|interface| format!("{} {}", interface.binding, interface.version))
                .collect();
            return Err(format!(
                "its card offers {}, and this gateway speaks JSONRPC 1.0 and 0.3 and HTTP+JSON 1.0",
                there.join(", ")
            ));
        }
        spoken.sort_by_key(|endpoint| {
            (
                endpoint.version == Version::V03,
                endpoint.binding == Binding::Rest,
            )
        });
        let elsewhere = spoken[0].url.clone();
        let here = |endpoint: &Self| Url::parse(&endpoint.url).is_ok_and(|url| url.origin() == at.origin());
        spoken.into_iter().find(here).ok_or_else(|| {
            format!(
                "its card sends callers to {elsewhere:?}, which is another origin than {}; give that address as the url",
                at.origin().ascii_serialization()
            )
        })
    }

    fn of(interface: &Interface, streams: bool) -> Option<Self> {
        let version = match interface.version.split('.').next()? {
            "1" => Version::V1,
            "0" if interface.version.starts_with(VERSION_03) || interface.version.starts_with("0.2") => {
                Version::V03
            }
            _ => return None,
        };
        let binding = match (interface.binding.as_str(), version) {
            ("JSONRPC", _) => Binding::JsonRpc,
            ("HTTP+JSON", Version::V1) => Binding::Rest,
            _ => return None,
        };
        Some(Self {
            url: interface.url.clone(),
            binding,
            version,
            tenant: interface.tenant.clone(),
            streams,
        })
    }

    /// The address itself, as JSON-RPC is posted to.
    pub fn address(&self) -> Result<Url, String> {
        Url::parse(&self.url).map_err(|_| "its card names an address that is none".to_owned())
    }

    /// An address of the REST binding: `steps` under the base address, each one step of the path.
    pub fn rest_address(&self, steps: &[&str], verb: &str) -> Result<Url, String> {
        let mut url = self.address()?;
        let tenant = self.tenant.as_deref();
        {
            let mut path = url
                .path_segments_mut()
                .map_err(|()| "its card names an address that is none")?;
            path.pop_if_empty().extend(tenant).extend(steps);
        }
        // A colon in a path is written as it is; only the ids in front of it are encoded.
        let path = format!("{}{verb}", url.path());
        url.set_path(&path);
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(url: &str, binding: &str, version: &str) -> Interface {
        Interface {
            url: url.into(),
            binding: binding.into(),
            version: version.into(),
            tenant: None,
        }
    }

    fn chosen(interfaces: &[(&str, &str, &str)]) -> Result<(String, Binding, Version), String> {
        let interfaces: Vec<Interface> = interfaces
            .iter()
            .map(|(url, binding, version)| interface(url, binding, version))
            .collect();
        let at = "https://a.test/base".parse().unwrap();
        let endpoint = Endpoint::choose(&interfaces, true, &at)?;
        Ok((endpoint.url, endpoint.binding, endpoint.version))
    }

    #[test]
    fn the_newest_version_is_spoken_and_json_rpc_before_rest() {
        let rest = ("https://a.test/rest", "HTTP+JSON", "1.0");
        let old = ("https://a.test/old", "JSONRPC", "0.3.0");
        let new = ("https://a.test/new", "JSONRPC", "1.0");
        let grpc = ("a.test:1", "GRPC", "1.0");
        assert_eq!(chosen(&[grpc, old, rest, new]).unwrap().0, new.0);
        assert_eq!(chosen(&[grpc, old, rest]).unwrap().1, Binding::Rest);
        assert_eq!(chosen(&[old]).unwrap().2, Version::V03);
        assert!(chosen(&[grpc]).unwrap_err().contains("GRPC 1.0"));
        assert!(chosen(&[("https://a.test/v1", "HTTP+JSON", "0.3.0")]).is_err());
    }

    #[test]
    fn a_card_does_not_choose_who_gets_the_headers() {
        let elsewhere = ("https://evil.test/", "JSONRPC", "1.0");
        let words = chosen(&[elsewhere]).unwrap_err();
        assert!(words.contains("https://evil.test/"), "{words}");
        let here = ("https://a.test/", "JSONRPC", "0.3");
        assert_eq!(chosen(&[elsewhere, here]).unwrap().0, here.0);
    }

    #[test]
    fn ids_are_one_step_of_a_path() {
        let endpoint = Endpoint {
            url: "https://a.test/base/".into(),
            binding: Binding::Rest,
            version: Version::V1,
            tenant: Some("t/1".into()),
            streams: false,
        };
        let address = endpoint.rest_address(&["tasks", "../a b"], ":cancel").unwrap();
        assert_eq!(
            address.as_str(),
            "https://a.test/base/t%2F1/tasks/..%2Fa%20b:cancel"
        );
    }
}

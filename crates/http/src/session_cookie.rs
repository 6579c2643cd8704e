//! The cookie of a session: when it counts, and how it is set. A browser adds cookies to requests that other pages make,
//! so a cookie alone proves nothing: what counts is where the request comes from, and for what changes something also a
//! token that only the gateway's own pages know.

use http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Method, StatusCode, Uri};
use toolgate_access::{Access, AccessError, Credentials, Session, ShownSession};

use crate::edge::is_this_machine;
use crate::problem::Refusal;

/// Carries the token that unsafe requests of a session need.
pub const CSRF_TOKEN: HeaderName = HeaderName::from_static("x-toolgate-csrf");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Where a session counts: the REST door and the chat door. Protocols for programs have keys.
const PLACES: [&str; 3] = ["/v1/", "/api/", "/metrics"];

/// How a session's cookie is set.
#[derive(Debug, Clone)]
pub struct SessionCookie {
    name: String,
    is_secure: bool,
    /// Origin of the address that users reach the gateway at.
    origin: Option<String>,
}

impl SessionCookie {
    /// The cookie of a gateway on this port that users reach at `public_url`. It is sent over https only when that is how
    /// they reach it. With the port in its name two gateways on one machine do not take each other's: cookies know no
    /// ports.
    pub fn new(port: u16, public_url: Option<&str>) -> Self {
        let url = public_url.and_then(|url| url.parse::<Uri>().ok());
        let is_secure = url
            .as_ref()
            .is_some_and(|url| url.scheme() == Some(&Scheme::HTTPS));
        let origin = url.as_ref().and_then(|url| {
            Some(format!(
                "{}://{}",
                url.scheme_str()?,
                url.authority()?.as_str().to_lowercase()
            ))
        });
        Self {
            name: match is_secure {
                true => "__Host-toolgate-session".into(),
                false => format!("toolgate-session-{port}"),
            },
            is_secure,
            origin,
        }
    }

    /// Sets the cookie, for so many seconds.
    pub fn set(&self, value: &str, seconds: u64) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = &self.name;
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::try_from(text).expect("a cookie of ours is ASCII")
    }

    /// Removes the cookie.
    pub fn clear(&self) -> HeaderValue {
        self.set("", 0)
    }

    /// The cookie's value, where it counts. One that comes from another page is as good as none.
    pub(crate) fn shown<'a>(&self, parts: &'a Parts) -> Option<&'a str> {
        let path = parts.uri.path();
        if !PLACES.iter().any(|place| path.starts_with(place)) || self.is_foreign(parts) {
            return None;
        }
        let cookies = parts.headers.get_all(COOKIE).iter();
        let pairs = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|all| all.split(';'));
        let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
        let value = named.find(|(name, _)| *name == self.name).map(|(_, value)| value);
        value.filter(|value| !value.is_empty())
    }

    /// The session of a request's cookie, where the cookie counts and the session has not ended.
    pub async fn session(&self, access: &Access, parts: &Parts) -> Result<Option<Session>, AccessError> {
        let Some(cookie) = self.shown(parts) else {
            return Ok(None);
        };
        match access.principal(Credentials::Session(cookie.into())).await {
            Ok(who) => Ok(who.session.map(|shown| shown.session.clone())),
            Err(AccessError::Unauthenticated(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Refuses an unsafe request that does not come from a page of the gateway.
    pub fn check_origin(&self, parts: &Parts) -> Result<(), Refusal> {
        // Every browser sends one of the two with what a page does to change something.
        let is_told = parts.headers.contains_key(ORIGIN) || parts.headers.contains_key(SEC_FETCH_SITE);
        match is_told && !self.is_foreign(parts) {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "CSRF",
                "a session works from the gateway's own pages only: origin or sec-fetch-site must say so",
            )),
        }
    }

    /// Refuses a request of a session that could come from another page.
    pub(crate) fn check(&self, parts: &Parts, shown: &ShownSession) -> Result<(), Refusal> {
        if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        self.check_origin(parts)?;
        let token = parts.headers.get(CSRF_TOKEN).map(HeaderValue::as_bytes);
        match shown.is_csrf_token(token.unwrap_or_default()) {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "CSRF",
                "a session needs its token in x-toolgate-csrf for what changes something; GET /v1/session tells it",
            )),
        }
    }

    fn is_foreign(&self, parts: &Parts) -> bool {
        let site = parts.headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        // `same-site` is another port or another name: not ours. `none` is what a person typed.
        let by_site = site.is_some_and(|site| site != b"same-origin" && site != b"none");
        let origin = parts.headers.get(ORIGIN);
        by_site || origin.is_some_and(|origin| !self.is_own(origin, parts))
    }

    /// Whether an origin is where this request was sent.
    fn is_own(&self, origin: &HeaderValue, parts: &Parts) -> bool {
        let Ok(origin) = origin.to_str().map(str::to_lowercase) else {
            return false;
        };
        if self.origin.as_ref() == Some(&origin) {
            return true;
        }
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let own = host(&parts.headers, &parts.uri);
        let is_host = own
            .as_ref()
            .is_some_and(|own| own.as_str().eq_ignore_ascii_case(authority));
        // Where users come by https, a page that came by http may be anybody's; on this machine nobody is between.
        is_host
            && (scheme == "https" || (scheme == "http" && (!self.is_secure || is_this_machine(own.as_ref()))))
    }
}

fn host(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let header = headers.get(HOST).and_then(|host| host.to_str().ok());
    header
        .and_then(|host| host.parse().ok())
        .or_else(|| uri.authority().cloned())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn counts(cookie: &SessionCookie, path: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(path).header(
            "cookie",
            "a=b; toolgate-session-8787=x; __Host-toolgate-session=y",
        );
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        cookie.shown(&request.body(()).unwrap().into_parts().0).is_some()
    }

    #[test]
    fn a_cookie_counts_from_the_gateways_own_pages_alone() {
        let cookie = SessionCookie::new(8787, None);
        let counts = |headers: &[(&str, &str)]| counts(&cookie, "/v1/runs", headers);
        let host = ("host", "127.0.0.1:8787");
        assert!(counts(&[host]), "a program, or a person who types the address");
        assert!(counts(&[host, ("origin", "http://127.0.0.1:8787")]));
        assert!(counts(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(counts(&[host, ("sec-fetch-site", "none")]));
        for origin in [
            "http://127.0.0.1:3000",
            "http://localhost:8787",
            "https://evil.example",
            "null",
            "x",
        ] {
            assert!(!counts(&[host, ("origin", origin)]), "{origin}");
        }
        for site in ["same-site", "cross-site", "?"] {
            assert!(!counts(&[host, ("sec-fetch-site", site)]), "{site}");
        }
        // A name that was made to lead here is not where the cookie was set, and gets nothing by lying.
        assert!(!counts(&[host, ("origin", "http://evil.example:8787")]));
    }

    #[test]
    fn a_cookie_counts_for_rest_and_chat_alone() {
        let cookie = SessionCookie::new(8787, None);
        for path in ["/v1/runs", "/api/chat", "/metrics", "/v1/mcp/servers"] {
            assert!(counts(&cookie, path, &[]), "{path}");
        }
        for path in ["/mcp", "/mcp/files", "/a2a/default", "/", "/v1"] {
            assert!(!counts(&cookie, path, &[]), "{path}");
        }
    }

    #[test]
    fn behind_https_a_page_that_came_by_http_is_foreign() {
        let cookie = SessionCookie::new(8787, Some("https://Gate.example/"));
        let counts = |headers: &[(&str, &str)]| counts(&cookie, "/v1/runs", headers);
        assert!(counts(&[
            ("host", "gate.example"),
            ("origin", "https://gate.example")
        ]));
        // A proxy may ask by another name.
        assert!(counts(&[
            ("host", "10.0.0.1:8787"),
            ("origin", "https://gate.example")
        ]));
        assert!(!counts(&[
            ("host", "gate.example"),
            ("origin", "http://gate.example")
        ]));
        assert!(counts(&[
            ("host", "127.0.0.1:8787"),
            ("origin", "http://127.0.0.1:8787")
        ]));
        let set = cookie.set("v", 5);
        let set = set.to_str().unwrap();
        assert!(
            set.starts_with("__Host-toolgate-session=v; Path=/;") && set.ends_with("; Secure"),
            "{set}"
        );
    }

    #[test]
    fn without_https_the_cookie_is_named_by_port_and_never_readable_by_scripts() {
        let set = SessionCookie::new(8787, None).set("v", 5);
        assert_eq!(
            set.to_str().unwrap(),
            "toolgate-session-8787=v; Path=/; Max-Age=5; HttpOnly; SameSite=Strict"
        );
    }
}

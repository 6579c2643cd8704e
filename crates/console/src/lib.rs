//! The web console: the files of `packages/console/dist`, built into the binary, and how they are sent. Knows nothing of
//! runs or sessions: what the console shows it asks over HTTP like any other client.
//!
//! Start with [`respond`]; then `encoding` (which compressed form is sent).

mod encoding;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use encoding::Encoding;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Whether the binary has the console, or only a page that says how to build it.
pub const HAS_CONSOLE: bool = IS_BUILT;

/// Nothing but what the gateway itself serves may run, be shown or be asked: whatever a tool's output brings along stays
/// text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// Addresses of the gateway's protocols: what is missing there is told in their words, never by a page.
const NOT_PAGES: [&str; 8] = [
    "/v1",
    "/api",
    "/mcp",
    "/a2a",
    "/metrics",
    "/healthz",
    "/readyz",
    "/openapi.json",
];
const PAGE: &str = "/index.html";

/// An embedded file.
struct File {
    path: &'static str,
    /// Hash of the bytes.
    hash: u64,
    identity: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// The answer to a request that no route of the gateway takes: a file of the console, or its page where a browser asks
/// for one. None when it is nothing of the console's.
pub fn respond(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
    answer(FILES, method, path, headers)
}

fn answer(
    files: &'static [File],
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Option<Response<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) || is_of_protocol(path) {
        return None;
    }
    let named = |path: &str| files.iter().find(|file| file.path == path);
    let file = match path {
        "/" => named(PAGE)?,
        path => match named(path) {
            Some(file) => file,
            // A missing script must be an error and not a page, or an old tab fails in a way that nobody understands.
            None if accepts_page(headers) && !path.starts_with("/assets/") => named(PAGE)?,
            None => return None,
        },
    };
    Some(file.send(method, headers))
}

fn is_of_protocol(path: &str) -> bool {
    let is_at = |place: &&str| {
        let rest = path.strip_prefix(*place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    NOT_PAGES.iter().any(is_at) || path.starts_with("/.well-known/")
}

fn accepts_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    accepts.any(|value| value.contains("text/html"))
}

impl File {
    fn send(&self, method: &Method, headers: &HeaderMap) -> Response<Bytes> {
        let etag = self.etag();
        let mut response = Response::new(Bytes::new());
        self.describe(response.headers_mut(), &etag);
        if headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .any(|known| names(known, &etag))
        {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        let (bytes, encoding) = self.encoded(headers);
        let sent = response.headers_mut();
        if let Some(encoding) = encoding {
            sent.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        sent.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type()));
        sent.insert(CONTENT_LENGTH, bytes.len().into());
        if *method == Method::GET {
            *response.body_mut() = Bytes::from_static(bytes);
        }
        response
    }

    fn describe(&self, headers: &mut HeaderMap, etag: &HeaderValue) {
        let caching = match self.is_named_by_content() {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        for (name, value) in [
            (CACHE_CONTROL, caching),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
            (VARY, "accept-encoding"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(ETAG, etag.clone());
    }

    fn encoded(&self, headers: &HeaderMap) -> (&'static [u8], Option<Encoding>) {
        let accepted = encoding::accepted(headers.get_all(ACCEPT_ENCODING));
        let forms = [(Encoding::Brotli, self.brotli), (Encoding::Gzip, self.gzip)];
        let best = forms.into_iter().find_map(|(encoding, bytes)| {
            let bytes = bytes.filter(|_| accepted.contains(&encoding))?;
            Some((bytes, Some(encoding)))
        });
        best.unwrap_or((self.identity, None))
    }

    /// The same for every form: a weak one.
    fn etag(&self) -> HeaderValue {
        HeaderValue::try_from(format!("W/\"{:016x}\"", self.hash)).expect("digits are ASCII")
    }

    /// Whether the name holds a hash of the content, as the bundler writes it: another content has another name.
    fn is_named_by_content(&self) -> bool {
        const HASH_CHARS: usize = 8;
        let Some(name) = self.path.strip_prefix("/assets/") else {
            return false;
        };
        let stem = name.split('.').next().unwrap_or_default();
        let hash = stem
            .len()
            .checked_sub(HASH_CHARS + 1)
            .and_then(|at| stem.get(at..));
        hash.is_some_and(|hash| {
            let mut chars = hash.chars();
            chars.next() == Some('-') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        })
    }

    fn media_type(&self) -> &'static str {
        match self.path.rsplit('.').next().unwrap_or_default() {
            "html" => "text/html; charset=utf-8",
            "js" | "mjs" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "json" | "map" => "application/json",
            "webmanifest" => "application/manifest+json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "woff2" => "font/woff2",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}

/// Whether one of the names in `if-none-match` is this one.
fn names(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let etag = text(etag);
    let strong = |name: &str| name.trim().trim_start_matches("W/").to_owned();
    text(known)
        .split(',')
        .any(|name| name.trim() == "*" || strong(name) == strong(&etag))
}

#[cfg(test)]
mod tests;

//! An archive in a bucket of an S3-compatible server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use toolgate_egress::{BodyLimit, Client, Egress, Policy, Proxy, Request};
use toolgate_engine::clock::Clock;
use toolgate_engine::retention::{Archive, ArchiveError, ArchiveObject};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::time::Time;
use url::Url;

use crate::signature::{Signed, Signer, encode_path};
use crate::{Object, Target, hex};

/// Time for one object.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a refusal that are read for its code.
const REFUSAL_BYTES: usize = 4096;

/// Where the bucket is, and who writes to it.
#[derive(Debug, Clone, PartialEq)]
pub struct S3Settings {
    /// Address of the server, such as `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: Url,
    /// Name of the bucket, which is named in the path.
    pub bucket: String,
    /// What the names of objects begin with; empty or with a slash at its end.
    pub prefix: String,
    /// Region that requests are signed for.
    pub region: String,
    /// Id of the access key.
    pub access_key: String,
    /// The secret of the access key.
    pub secret_key: Secret,
}

/// An archive in a bucket.
#[derive(Clone)]
pub struct S3Archive(Arc<Bucket>);

struct Bucket {
    settings: S3Settings,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl S3Archive {
    /// Objects in this bucket. The address is the operator's, so it may lead inside.
    pub fn new(settings: S3Settings, egress: &Egress, clock: Arc<dyn Clock>) -> Self {
        let policy = Policy {
            redirects_max: 0,
            timeout: Some(TIMEOUT),
            ..Policy::trusted(Proxy::Environment)
        };
        Self(Arc::new(Bucket {
            settings,
            client: egress.client(policy),
            clock,
        }))
    }
}

impl Archive for S3Archive {
    fn begin(&self, name: &str) -> Box<dyn ArchiveObject> {
        Box::new(Object::new(name, self.0.clone()))
    }
}

#[async_trait]
impl Target for Bucket {
    async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), ArchiveError> {
        let failed = |why: String| ArchiveError(format!("{name}: {why}"));
        let request = self.request(name, content).map_err(failed)?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| failed(error.to_string()))?;
        if response.status.is_success() {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&response.body);
        let code = body
            .split("<Code>")
            .nth(1)
            .and_then(|rest| rest.split('<').next());
        Err(failed(format!(
            "the bucket answers {} {}",
            response.status.as_u16(),
            code.unwrap_or_default()
        )))
    }
}

impl Bucket {
    fn request(&self, name: &str, content: Vec<u8>) -> Result<Request, String> {
        let S3Settings {
            endpoint,
            bucket,
            prefix,
            region,
            access_key,
            secret_key,
        } = &self.settings;
        let below = endpoint.path().trim_end_matches('/');
        let path = format!("{below}{}", encode_path(&format!("/{bucket}/{prefix}{name}")));
        let mut url = endpoint.clone();
        url.set_path(&path);
        let host = match (endpoint.host_str(), endpoint.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return Err("the endpoint names no host".into()),
        };
        let payload = hex(digest(&SHA256, &content).as_ref());
        let time = compact(self.clock.now());
        let signed = [
            ("content-type", "application/gzip"),
            ("host", host.as_str()),
            ("x-amz-content-sha256", payload.as_str()),
            ("x-amz-date", time.as_str()),
        ];
        let signer = Signer {
            access_key,
            secret_key: secret_key.expose(),
            region,
        };
        let authorization = signer.authorization(&Signed {
            method: "PUT",
            path: &path,
            query: "",
            headers: &signed,
            payload: &payload,
            time: &time,
        });
        let mut headers = HeaderMap::new();
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| "a setting has control characters".to_owned())
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
        headers.insert(HeaderName::from_static("x-amz-content-sha256"), value(&payload)?);
        headers.insert(HeaderName::from_static("x-amz-date"), value(&time)?);
        headers.insert(AUTHORIZATION, value(&authorization)?);
        Ok(Request {
            method: Method::PUT,
            url,
            headers,
            body: Some(content.into()),
            limit: BodyLimit::Cut(REFUSAL_BYTES),
        })
    }
}

/// A time as signatures have it: `20130524T000000Z`.
fn compact(time: Time) -> String {
    let text = time.to_string();
    let whole = text.split('.').next().unwrap_or(&text);
    let digits = whole.chars().filter(|c| *c != '-' && *c != ':');
    digits.chain(std::iter::once('Z')).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::Router;
    use axum::body::Bytes;
    use axum::extract::State;
    use axum::http::{HeaderMap, StatusCode, Uri};
    use axum::routing::put;
    use toolgate_engine::clock::SystemClock;

    use super::*;

    type Seen = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

    /// Checks what S3 checks: payload hash, signed headers as they were received, signature.
    async fn take(
        State(seen): State<Seen>,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> (StatusCode, String) {
        let header = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let payload = hex(digest(&SHA256, &body).as_ref());
        if header("x-amz-content-sha256") != payload {
            return (
                StatusCode::BAD_REQUEST,
                "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>".into(),
            );
        }
        let names = ["content-type", "host", "x-amz-content-sha256", "x-amz-date"];
        let signed: Vec<(&str, &str)> = names.map(|name| (name, header(name))).into();
        let signer = Signer {
            access_key: "id",
            secret_key: "right",
            region: "eu-test-1",
        };
        let expected = signer.authorization(&Signed {
            method: "PUT",
            path: uri.path(),
            query: "",
            headers: &signed,
            payload: &payload,
            time: header("x-amz-date"),
        });
        if header("authorization") != expected {
            return (
                StatusCode::FORBIDDEN,
                "<Error><Code>SignatureDoesNotMatch</Code></Error>".into(),
            );
        }
        seen.lock().unwrap().push((uri.path().to_owned(), body.to_vec()));
        (StatusCode::OK, String::new())
    }

    async fn archive(secret: &str) -> (S3Archive, Seen, tokio::task::JoinHandle<()>) {
        let seen = Seen::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .route("/{*path}", put(take))
            .with_state(seen.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let settings = S3Settings {
            endpoint: format!("http://{address}").parse().unwrap(),
            bucket: "kept".into(),
            prefix: "gate/".into(),
            region: "eu-test-1".into(),
            access_key: "id".into(),
            secret_key: Secret::new(secret.to_owned()),
        };
        let archive = S3Archive::new(settings, &Egress::new(), Arc::new(SystemClock));
        (archive, seen, server)
    }

    #[tokio::test]
    async fn an_object_is_put_with_a_signature_that_the_server_accepts() {
        let (archive, seen, server) = archive("right").await;
        let mut object = archive.begin("proj_1/run $1.jsonl.gz");
        object.write(b"{}\n");
        let archived = object.finish().await.unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].0, "/kept/gate/proj_1/run%20%241.jsonl.gz");
        assert_eq!(archived.hash, hex(digest(&SHA256, &seen[0].1).as_ref()));
        server.abort();
    }

    #[tokio::test]
    async fn a_refusal_is_an_error_that_names_its_code_and_no_secret() {
        let (archive, seen, server) = archive("wrong-secret").await;
        let error = archive
            .begin("a.jsonl.gz")
            .finish()
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("403 SignatureDoesNotMatch"), "{error}");
        assert!(!error.contains("wrong-secret"), "{error}");
        assert!(seen.lock().unwrap().is_empty());
        server.abort();
    }

    #[test]
    fn times_are_written_without_marks_and_milliseconds() {
        assert_eq!(compact(Time(1_369_353_600_123)), "20130524T000000Z");
    }
}

//! AWS Signature Version 4 for one request whose payload is hashed.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;

use crate::hex;

/// Who signs, and for which region.
pub(crate) struct Signer<'a> {
    pub(crate) access_key: &'a str,
    pub(crate) secret_key: &'a str,
    pub(crate) region: &'a str,
}

/// What is signed.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    /// Percent-encoded, see [`encode_path`].
    pub(crate) path: &'a str,
    /// Canonical: sorted and encoded; empty when there is none.
    pub(crate) query: &'a str,
    /// Names in lower case, sorted, `host` and `x-amz-date` among them.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// SHA-256 of the body, in hex.
    pub(crate) payload: &'a str,
    /// Time of the request, such as `20130524T000000Z`.
    pub(crate) time: &'a str,
}

impl Signer<'_> {
    /// The value of `Authorization`.
    pub(crate) fn authorization(&self, request: &Signed<'_>) -> String {
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let headers = request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}:{}\n", value.trim()))
            .collect();
        let canonical = format!(
            "{}\n{}\n{}\n{headers}\n{names}\n{}",
            request.method, request.path, request.query, request.payload
        );
        let day = &request.time[..8];
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
            request.time,
            hex(digest(&SHA256, canonical.as_bytes()).as_ref())
        );
        let first = format!("AWS4{}", self.secret_key);
        let parts = [day, self.region, "s3", "aws4_request", &to_sign];
        let signature = parts
            .iter()
            .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={}",
            self.access_key,
            hex(&signature)
        )
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text).as_ref().to_vec()
}

/// A path with everything encoded but letters, digits, `-._~` and slashes.
pub(crate) fn encode_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(byte.into());
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The examples of "Signature Calculations for the Authorization Header" in the documentation of Amazon S3.
#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
    const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

    fn check(
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        payload: &str,
        signature: &str,
    ) {
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let path = encode_path(path);
        let authorization = signer.authorization(&Signed {
            method,
            path: &path,
            query,
            headers,
            payload,
            time: DATE.1,
        });
        assert!(
            authorization.ends_with(&format!("Signature={signature}")),
            "{authorization}"
        );
        assert!(authorization.contains("AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"));
    }

    #[test]
    fn a_get_with_a_range_is_signed_as_documented() {
        let headers = [
            HOST,
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            DATE,
        ];
        let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        check("GET", "/test.txt", "", &headers, EMPTY, signature);
    }

    #[test]
    fn a_put_of_an_object_is_signed_as_documented() {
        let payload = hex(digest(&SHA256, b"Welcome to Amazon S3.").as_ref());
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            HOST,
            ("x-amz-content-sha256", payload.as_str()),
            DATE,
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        check("PUT", "/test$file.text", "", &headers, &payload, signature);
    }

    #[test]
    fn a_query_is_signed_as_documented() {
        let headers = [HOST, ("x-amz-content-sha256", EMPTY), DATE];
        let signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
        check("GET", "/", "lifecycle=", &headers, EMPTY, signature);
    }
}

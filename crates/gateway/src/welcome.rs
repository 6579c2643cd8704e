//! What a person is told at the first start.

use std::fmt;

use toolgate_kernel::agent::Secret;

/// What was made and has to be shown now or never.
#[derive(Default)]
pub struct Fresh {
    /// The secret key.
    pub secret_key: Option<Secret>,
    /// The public key.
    pub public_key: Option<Secret>,
    /// What signs users' tokens.
    pub jwt_secret: Option<Secret>,
}

impl Fresh {
    /// Nothing was made.
    pub fn is_empty(&self) -> bool {
        self.secret_key.is_none() && self.public_key.is_none() && self.jwt_secret.is_none()
    }
}

/// What a person needs who has just started the gateway for the first time.
pub struct Welcome<'a> {
    /// What was made.
    pub fresh: &'a Fresh,
    /// Where the gateway listens.
    pub url: &'a str,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fresh, url } = self;
        writeln!(out, "\nKeys of the project `default`. They are shown this once:")?;
        for (what, made) in [
            ("secret key", &fresh.secret_key),
            ("public key", &fresh.public_key),
            ("JWT secret", &fresh.jwt_secret),
        ] {
            if let Some(made) = made {
                writeln!(out, "  {what}  {}", made.expose())?;
            }
        }
        let Some(key) = fresh.secret_key.as_ref().map(Secret::expose) else {
            return Ok(());
        };
        writeln!(out, "\nConsole\n  {url}/#key={key}")?;
        writeln!(out, "\nFirst message")?;
        writeln!(out, "  curl -N {url}/v1/runs -H 'authorization: Bearer {key}' \\")?;
        writeln!(
            out,
            "    -H 'content-type: application/json' -H 'accept: text/event-stream' \\"
        )?;
        writeln!(
            out,
            "    -d '{{\"message\": \"Use lookup_order for my order A-1042.\"}}'"
        )
    }
}

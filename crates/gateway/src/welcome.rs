//! What a start prints: keys when they are made, and a link to the console each time.

use std::fmt;

use toolgate_kernel::agent::Secret;

/// Keys that were generated at this start; they can be shown only now, because only hashes are stored.
#[derive(Default)]
pub struct Fresh {
    /// The secret key, if it was generated.
    pub secret_key: Option<Secret>,
    /// The public key, if it was generated.
    pub public_key: Option<Secret>,
    /// The secret that signs users' JWTs, if it was generated.
    pub jwt_secret: Option<Secret>,
}

impl Fresh {
    /// Whether no key was generated.
    pub fn is_empty(&self) -> bool {
        self.secret_key.is_none() && self.public_key.is_none() && self.jwt_secret.is_none()
    }
}

/// The message for a person who has started the gateway for the first time.
pub struct Welcome<'a> {
    /// The generated keys.
    pub fresh: &'a Fresh,
    /// URL that the gateway listens on.
    pub url: &'a str,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fresh, url } = self;
        writeln!(out, "\nKeys of the project `default`. They are not shown again:")?;
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
        writeln!(out, "\nFirst message")?;
        writeln!(out, "  curl {url}/v1/runs -H 'authorization: Bearer {key}' \\")?;
        writeln!(
            out,
            "    -H 'content-type: application/json' -H 'prefer: wait=30' \\"
        )?;
        writeln!(
            out,
            "    -d '{{\"message\": \"Use lookup_order for my order A-1042.\"}}'"
        )
    }
}

/// What is printed in place of a link where there is no page that it could lead to.
pub const NO_CONSOLE: &str =
    "\nThis binary was built without the console, `make console` before the build adds it.\n\n";

/// Where the console is.
pub struct ConsoleLink {
    /// URL that people reach the gateway at.
    pub url: String,
    /// A fresh login code; none where nobody has to sign in.
    pub code: Option<String>,
}

impl fmt::Display for ConsoleLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        match &self.code {
            // Behind `#`, which no browser sends: the code reaches no log and no proxy.
            Some(code) => writeln!(
                out,
                "\nConsole (the link works once, within 15 minutes; `toolgate login` makes another)\n  {url}/login#code={code}\n"
            ),
            None => writeln!(out, "\nConsole\n  {url}/\n"),
        }
    }
}

//! One mail, handed to the operator's server (RFC 5321).

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Mailboxes};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use serde::Deserialize;
use serde_json::Value;
use toolgate_kernel::agent::Secret;
use toolgate_kernel::time::Time;

use super::deliver::Undelivered;

/// Timeout of the server, for each step and in total.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(40);
/// Most characters of a server's reply that are kept.
const REASON_CHARS_MAX: usize = 300;

/// Encryption of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// STARTTLS; nothing is sent to a server that does not offer it.
    #[default]
    Starttls,
    /// TLS from the start.
    Tls,
    /// No encryption.
    None,
}

impl Security {
    fn port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Tls => 465,
            Self::None => 25,
        }
    }
}

/// Settings of outgoing mail.
#[derive(Debug, Clone, PartialEq)]
pub struct MailSettings {
    /// Host name of the server.
    pub host: String,
    /// Port; by default the usual one of the encryption.
    pub port: Option<u16>,
    /// Encryption.
    pub security: Security,
    /// User name and password.
    pub login: Option<(String, Secret)>,
    /// Sender, as `Name <address>`.
    pub from: String,
    /// Recipients.
    pub to: Vec<String>,
}

/// Why the settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum BadMail {
    /// An address is invalid.
    #[error("{0:?} is no mail address; expected one like \"ops@example.com\" or \"Ops <ops@example.com>\"")]
    Address(String),
    /// There is no recipient.
    #[error("there is nobody to write to")]
    Nobody,
    /// A password would be sent without encryption.
    #[error("a password needs tls or starttls; only this machine may be told one without")]
    Bare,
    /// TLS cannot be set up for this host name.
    #[error("TLS with {host}: {cause}")]
    Tls {
        /// Host name of the server.
        host: String,
        /// Cause of the failure.
        cause: lettre::transport::smtp::Error,
    },
}

/// A mail server with sender and recipients.
#[derive(Clone)]
pub struct Mail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    password: Option<Secret>,
    from: Mailbox,
    to: Mailboxes,
}

impl Mail {
    /// Checks the settings. Opens no connection yet.
    pub fn new(settings: MailSettings) -> Result<Self, BadMail> {
        let MailSettings {
            host,
            port,
            security,
            login,
            from,
            to,
        } = settings;
        let address = |text: &String| {
            text.parse::<Mailbox>()
                .map_err(|_| BadMail::Address(text.clone()))
        };
        let here = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        match security {
            Security::None if login.is_some() && !here => return Err(BadMail::Bare),
            _ if to.is_empty() => return Err(BadMail::Nobody),
            _ => {}
        }
        let parameters = || {
            TlsParameters::new(host.clone()).map_err(|cause| BadMail::Tls {
                host: host.clone(),
                cause,
            })
        };
        let tls = match security {
            Security::Starttls => Tls::Required(parameters()?),
            Security::Tls => Tls::Wrapper(parameters()?),
            Security::None => Tls::None,
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host.as_str())
            .port(port.unwrap_or(security.port()))
            .tls(tls)
            .timeout(Some(STEP_TIMEOUT));
        if let Some((name, password)) = &login {
            builder = builder.credentials(Credentials::new(name.clone(), password.expose().to_owned()));
        }
        Ok(Self {
            transport: builder.build(),
            password: login.map(|(_, password)| password),
            from: address(&from)?,
            to: to.iter().map(address).collect::<Result<_, _>>()?,
        })
    }

    /// Sends a mail; its id becomes the `Message-ID`, so that receivers recognise a repeated one.
    pub(super) async fn send(&self, id: &str, payload: &Value, written: Time) -> Result<(), Undelivered> {
        let message = self.message(id, payload, written).map_err(Undelivered::Ever)?;
        match tokio::time::timeout(TIMEOUT, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_permanent() => Err(Undelivered::Ever(self.reason(&error))),
            Ok(Err(error)) => Err(Undelivered::Yet(self.reason(&error))),
            Err(_) => Err(Undelivered::Yet(format!(
                "the mail server took longer than {TIMEOUT:?}"
            ))),
        }
    }

    fn message(&self, id: &str, payload: &Value, written: Time) -> Result<Message, String> {
        let data = &payload["data"];
        let text = |name: &str| data[name].as_str().filter(|text| !text.is_empty());
        let title = one_line(text("title").unwrap_or_default());
        let body = text("body").unwrap_or(&title);
        let signed = format!("{body}\n\n-- \nThe agent {}", text("agent").unwrap_or_default());
        let millis = Duration::from_millis(written.0.try_into().unwrap_or_default());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(title)
            .date(UNIX_EPOCH + millis)
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .header(Generated)
            .header(ContentType::TEXT_PLAIN);
        for to in self.to.iter() {
            builder = builder.to(to.clone());
        }
        builder.body(signed).map_err(|error| error.to_string())
    }

    /// The server's reply, without secrets.
    fn reason(&self, error: &lettre::transport::smtp::Error) -> String {
        let mut words = one_line(&error.to_string());
        if let Some(password) = &self.password {
            words = words.replace(password.expose(), "***");
        }
        words.chars().take(REASON_CHARS_MAX).collect()
    }
}

/// Removes line breaks, against header injection.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Header that stops automatic replies (RFC 3834).
#[derive(Clone)]
struct Generated;

impl Header for Generated {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }
    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".into())
    }
}

impl fmt::Debug for Mail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Mail")
            .field("from", &self.from)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

//! A mail server that speaks RFC 5321 line by line, on a free loopback port, without TLS.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// A mail server that accepts a connection when the test asks it to.
pub struct MailServer {
    listener: TcpListener,
}

/// Commands and mail of one connection.
#[derive(Debug, Default)]
pub struct Heard {
    /// The commands, as received.
    pub commands: Vec<String>,
    /// The lines of the mail, as received: dot-stuffed.
    pub mail: Vec<String>,
}

impl Heard {
    /// Value of a header of the mail.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let head = self.mail.iter().take_while(|line| !line.is_empty());
        head.filter_map(|line| line.strip_prefix(name)).collect()
    }
    /// Number of commands with this prefix.
    pub fn said(&self, verb: &str) -> usize {
        self.commands.iter().filter(|line| line.starts_with(verb)).count()
    }
}

impl MailServer {
    /// Listens on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self { listener }
    }

    /// Address that it listens on.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("an address").port()
    }

    /// Serves one connection to its end. A command with the prefix in `refusal` gets the reply in
    /// `refusal`.
    pub async fn serve(&self, refusal: Option<(&str, &str)>) -> Heard {
        let mut heard = Heard::default();
        let (connection, _) = self.listener.accept().await.expect("a connection");
        let (reader, mut writer) = connection.into_split();
        let mut lines = BufReader::new(reader).lines();
        let mut say = async |words: &str| {
            let words = format!("{words}\r\n");
            writer.write_all(words.as_bytes()).await.is_ok()
        };
        let mut goes_on = say("220 mx.example.com ESMTP").await;
        // A closed connection ends the conversation.
        while goes_on && let Ok(Some(line)) = lines.next_line().await {
            let refused = refusal.filter(|(command, _)| line.starts_with(command));
            let verb = line
                .split([' ', ':'])
                .next()
                .unwrap_or_default()
                .to_ascii_uppercase();
            heard.commands.push(line);
            goes_on = match (refused, verb.as_str()) {
                (Some((_, answer)), _) => say(answer).await,
                (None, "EHLO") => say("250-mx.example.com\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN").await,
                (None, "AUTH") => say("235 2.7.0 welcome").await,
                (None, "MAIL" | "RCPT" | "RSET" | "NOOP") => say("250 2.1.0 fine").await,
                (None, "DATA") => {
                    say("354 go on").await;
                    while let Ok(Some(line)) = lines.next_line().await
                        && line != "."
                    {
                        heard.mail.push(line);
                    }
                    say("250 2.0.0 queued").await
                }
                (None, "QUIT") => {
                    say("221 2.0.0 bye").await;
                    false
                }
                (None, _) => say("500 5.5.1 what?").await,
            };
        }
        heard
    }
}

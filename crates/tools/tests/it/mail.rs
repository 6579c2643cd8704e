//! Notifications by mail, against a server that speaks RFC 5321 line by line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use toolgate_kernel::agent::Secret;
use toolgate_tools::notify::{BadMail, Mail, MailSettings, Security};

use crate::notify::{DAY, deliveries, kept};
use crate::world::{PASSWORD, World, mail, on_every_store};

/// What a server was told, and the mail it took.
#[derive(Debug, Default)]
struct Heard {
    commands: Vec<String>,
    /// Its lines as they came, with the dots that were put before dots.
    mail: Vec<String>,
}

impl Heard {
    fn header(&self, name: &str) -> Vec<&str> {
        let head = self.mail.iter().take_while(|line| !line.is_empty());
        head.filter_map(|line| line.strip_prefix(name)).collect()
    }
    fn said(&self, verb: &str) -> usize {
        self.commands.iter().filter(|line| line.starts_with(verb)).count()
    }
}

/// Serves one connection. A command that begins with the first of `refusal` is answered with the second.
async fn serve(listener: &TcpListener, refusal: Option<(&str, &str)>) -> Heard {
    let (connection, _) = listener.accept().await.unwrap();
    let (reader, mut writer) = connection.into_split();
    let mut lines = BufReader::new(reader).lines();
    let mut heard = Heard::default();
    writer.write_all(b"220 mx.example.com ESMTP\r\n").await.unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        heard.commands.push(line.clone());
        let verb = line
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        let refused = refusal.filter(|(command, _)| line.starts_with(command));
        let answer = match (refused, verb.as_str()) {
            (Some((_, answer)), _) => answer,
            (None, "EHLO") => "250-mx.example.com\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
            (None, "AUTH") => "235 2.7.0 welcome",
            (None, "MAIL" | "RCPT" | "RSET" | "NOOP") => "250 2.1.0 fine",
            (None, "DATA") => "354 go on",
            (None, "QUIT") => "221 2.0.0 bye",
            (None, _) => "500 5.5.1 what?",
        };
        writer
            .write_all(format!("{answer}\r\n").as_bytes())
            .await
            .unwrap();
        match (refused, verb.as_str()) {
            (None, "DATA") => {
                while let Some(line) = lines.next_line().await.unwrap().filter(|line| line != ".") {
                    heard.mail.push(line);
                }
                writer.write_all(b"250 2.0.0 queued\r\n").await.unwrap();
            }
            (_, "QUIT") => break,
            _ => {}
        }
    }
    heard
}

/// A new process that works off what an older one queued, with a server that refuses this.
async fn worked_off(world: &World, refusal: Option<(&str, &str)>) -> Heard {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let deliveries = deliveries(world, None, Some(Mail::new(mail(port)).unwrap()));
    tokio::join!(serve(&listener, refusal), deliveries.work_off()).0
}

async fn notify(world: &World, title: &str, body: &str) -> Value {
    let input = json!({"title": title, "body": body, "channels": ["mail"]});
    world.call("ada", "sendNotification", input).await.unwrap()
}

on_every_store! {
    async fn a_mail_is_handed_over_after_logging_in(world) {
        let told = notify(world, "Tea", "It is ready.\n.\nReally.").await;
        assert_eq!(told, json!({"success": true, "sent": [], "queued": ["mail"]}));
        let heard = worked_off(world, None).await;
        assert_eq!(kept(world).await, [] as [Value; 0]);
        let login = BASE64.encode(format!("\0gate\0{PASSWORD}"));
        assert!(heard.commands[0].starts_with("EHLO "), "{heard:?}");
        let rest: Vec<&str> = heard.commands[1..].iter().map(|line| line.split(" BODY").next().unwrap()).collect();
        let login = format!("AUTH PLAIN {login}");
        assert_eq!(rest, [&login, "MAIL FROM:<gate@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<zoe@example.com>", "DATA", "QUIT"]);
        assert_eq!(heard.header("Subject: "), ["Tea"]);
        assert_eq!(heard.header("From: "), ["Toolgate <gate@example.com>"]);
        assert_eq!(heard.header("Auto-Submitted: "), ["auto-generated"]);
        // A dot alone would end the mail.
        let body: Vec<&String> = heard.mail.iter().skip_while(|line| !line.is_empty()).collect();
        assert_eq!(body, ["", "It is ready.", "..", "Really.", "", "-- ", "The agent ada"]);
    }

    async fn a_refusal_for_now_is_tried_again_and_stays_the_same_mail(world) {
        notify(world, "Tea", "").await;
        let first = worked_off(world, Some(("RCPT", "451 4.3.0 come back later"))).await;
        assert_eq!(first.mail, [""; 0]);
        let waiting = &kept(world).await[0];
        assert_eq!((&waiting["attempts"], &waiting["waits"]), (&json!(1), &json!(true)));
        assert!(waiting["error"].as_str().unwrap().contains("451"), "{waiting}");
        world.clock.jump(DAY);
        let second = worked_off(world, None).await;
        assert_eq!(kept(world).await, [] as [Value; 0]);
        let ids = second.header("Message-ID: ");
        assert!(ids[0].starts_with("<call_") && ids[0].ends_with("_mail@example.com>"), "{ids:?}");
    }

    async fn a_refusal_for_ever_is_laid_aside_until_somebody_asks(world) {
        notify(world, "Tea", "").await;
        worked_off(world, Some(("RCPT", "550 5.1.1 nobody here"))).await;
        let dead = &kept(world).await[0];
        assert_eq!((&dead["attempts"], &dead["waits"], &dead["channel"]), (&json!(1), &json!(false), &json!("mail")));
        assert!(dead["error"].as_str().unwrap().contains("550"), "{dead}");
        world.clock.jump(DAY);
        let laid_aside = world.outbox.list(crate::world::project(), None, None, 10).await.unwrap();
        world.outbox.retry(crate::world::project(), &laid_aside[0].id).await.unwrap().unwrap();
        assert_eq!(worked_off(world, None).await.said("DATA"), 1);
        assert_eq!(kept(world).await, [] as [Value; 0]);
    }
}

#[tokio::test]
async fn words_of_a_model_stay_in_their_place() {
    let world = World::in_memory().await;
    let title = "Tea\r\nBcc: eve@example.com\r\n\r\nboo\u{2028}x\0";
    notify(
        &world,
        title,
        "one\r\n.\r\nMAIL FROM:<eve@example.com>\r\nQUIT\r\n",
    )
    .await;
    let heard = worked_off(&world, None).await;
    assert_eq!(heard.header("Subject: "), ["Tea Bcc: eve@example.com boo x"]);
    assert_eq!((heard.header("Bcc").len(), heard.header("To: ").len()), (0, 1));
    assert_eq!(
        (heard.said("MAIL"), heard.said("RCPT"), heard.said("QUIT")),
        (1, 2, 1)
    );
    assert!(
        heard.mail.contains(&"MAIL FROM:<eve@example.com>".to_owned()),
        "{heard:?}"
    );

    notify(&world, "Käse: 東京 \"=?utf-8?q?x?=\"", "schön").await;
    let heard = worked_off(&world, None).await;
    assert!(heard.header("Subject: ")[0].is_ascii());
    assert!(
        heard.mail.iter().all(|line| line.is_ascii() && line.len() <= 998),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_password_is_told_to_nobody_but_the_server() {
    let world = World::in_memory().await;
    notify(&world, "Tea", "").await;
    let answer = format!("535 5.7.8 {PASSWORD} is wrong");
    let heard = worked_off(&world, Some(("AUTH", &answer))).await;
    assert_eq!(heard.said("MAIL"), 0);
    let kept = kept(&world).await;
    let error = kept[0]["error"].as_str().unwrap();
    assert!(
        error.contains("*** is wrong") && !error.contains(PASSWORD),
        "{error}"
    );
    let shown = format!("{:?} {:?}", mail(1), Mail::new(mail(1)).unwrap());
    assert!(!shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_told_nothing() {
    let world = World::in_memory().await;
    notify(&world, "Tea", "").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = MailSettings {
        security: Security::Starttls,
        ..mail(listener.local_addr().unwrap().port())
    };
    let deliveries = deliveries(&world, None, Some(Mail::new(settings).unwrap()));
    let heard = tokio::join!(serve(&listener, None), deliveries.work_off()).0;
    assert_eq!(
        (heard.said("EHLO"), heard.said("AUTH"), heard.said("MAIL")),
        (1, 0, 0),
        "{heard:?}"
    );
    assert_eq!(kept(&world).await[0]["waits"], true);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let check = |change: fn(&mut MailSettings), words: &str| {
        let mut settings = mail(25);
        change(&mut settings);
        let error: BadMail = Mail::new(settings).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check(
        |settings| settings.from = "nobody".into(),
        "\"nobody\" is no mail address",
    );
    check(
        |settings| settings.to.push("a@b\r\nRCPT TO:<c@d>".into()),
        "is no mail address",
    );
    check(|settings| settings.to.clear(), "nobody to write to");
    check(
        |settings| settings.host = "mail.example.com".into(),
        "needs tls or starttls",
    );
    let mut open = mail(25);
    open.login = Some(("gate".into(), Secret::new(PASSWORD)));
    assert!(Mail::new(open).is_ok());
}

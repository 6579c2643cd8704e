//! Notifications by mail, against a server that speaks RFC 5321 line by line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use toolgate_kernel::agent::Secret;
use toolgate_testkit::mail_server::{Heard, MailServer};
use toolgate_tools::notify::{BadMail, Mail, MailSettings, Security};

use crate::notify::{DAY, deliveries, kept};
use crate::world::{PASSWORD, World, mail, on_every_store};

/// A new process that works off what an older one queued, with a server that refuses this.
async fn worked_off(world: &World, refusal: Option<(&str, &str)>) -> Heard {
    let server = MailServer::start().await;
    let deliveries = deliveries(world, None, Some(Mail::new(mail(server.port())).unwrap()));
    tokio::join!(server.serve(refusal), deliveries.work_off()).0
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

    async fn a_refusal_for_ever_is_dead_lettered_until_somebody_asks(world) {
        notify(world, "Tea", "").await;
        worked_off(world, Some(("RCPT", "550 5.1.1 nobody here"))).await;
        let dead = &kept(world).await[0];
        assert_eq!((&dead["attempts"], &dead["waits"], &dead["channel"]), (&json!(1), &json!(false), &json!("mail")));
        assert!(dead["error"].as_str().unwrap().contains("550"), "{dead}");
        world.clock.jump(DAY);
        let dead_lettered = world.outbox.list(crate::world::project(), None, None, 10).await.unwrap();
        world.outbox.retry(crate::world::project(), &dead_lettered[0].id).await.unwrap().unwrap();
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
    let server = MailServer::start().await;
    let settings = MailSettings {
        security: Security::Starttls,
        ..mail(server.port())
    };
    let deliveries = deliveries(&world, None, Some(Mail::new(settings).unwrap()));
    let heard = tokio::join!(server.serve(None), deliveries.work_off()).0;
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

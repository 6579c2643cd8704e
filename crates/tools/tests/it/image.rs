//! `image-generator`: an image of a server's becomes a file of the space.

use serde_json::{Value, json};
use toolgate_kernel::agent::Secret;
use toolgate_kernel::call::ErrorCode;
use toolgate_tools::{Images, OutboundSettings};

use crate::server::{Server, TOKEN, call, context, json_answer, parse, run, toolkit_in, typed, world};

/// The first bytes of a PNG, and the same as text.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const PNG_TEXT: &str = "iVBORw0KGgpyZXN0";

/// A server that gives the image itself, or its address when the prompt asks for that.
async fn studio() -> Server {
    Server::start(|asked, _| {
        if asked.target == "/picture" {
            return typed(200, "text/html", PNG);
        }
        let host = asked.header("host");
        match serde_json::from_str::<Value>(&asked.body).unwrap()["prompt"]
            .as_str()
            .unwrap()
        {
            "by address" => json_answer(200, &json!({"data": [{"url": format!("http://{host}/picture")}]})),
            "inside" => json_answer(200, &json!({"data": [{"url": "http://169.254.169.254/"}]})),
            "no image" => json_answer(200, &json!({"data": [{"b64_json": "PGh0bWw+"}]})),
            "refused" => json_answer(
                400,
                &json!({"error": {"message": format!("bad key {}", asked.header("authorization"))}}),
            ),
            _ => json_answer(
                200,
                &json!({"created": 1_700_000_000, "data": [{"b64_json": PNG_TEXT}]}),
            ),
        }
    })
    .await
}

fn operators(server: &Server) -> OutboundSettings {
    OutboundSettings {
        images: Images {
            base_url: Some(server.url("/v1").parse().unwrap()),
            key: Some(Secret::new("the-operators-key")),
            model: Some("painter".into()),
        },
        ..OutboundSettings::default()
    }
}

#[tokio::test]
async fn an_image_is_kept_and_can_be_read() {
    for prompt in ["a tide", "by address"] {
        let server = studio().await;
        let toolkit = toolkit_in(operators(&server));
        let told = run(
            &toolkit,
            "image-generator",
            json!({"size": "512x512"}),
            json!({ "prompt": prompt }),
        )
        .await
        .unwrap();
        let path = format!("images/{}.png", call());
        let url = format!("/v1/spaces/{}/files/{path}", context().space);
        assert_eq!(
            told,
            json!({"url": url, "path": path, "version": 1, "mediaType": "image/png"})
        );
        let asked = &server.asked()[0];
        assert_eq!(asked.target, "/v1/images/generations");
        assert_eq!(asked.header("authorization"), "Bearer the-operators-key");
        let expected = json!({"model": "painter", "prompt": prompt, "n": 1, "size": "512x512"});
        assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), expected);
        // Made again, the call is answered without another image.
        let again = parse(&toolkit, "image-generator", json!({"size": "512x512"})).await;
        let again = toolkit
            .run(&again, &json!({ "prompt": prompt }).into(), &context())
            .await;
        assert_eq!(again.unwrap().output().unwrap().to_value(), told);
        let generated = server.asked().into_iter().filter(|asked| asked.method == "POST");
        assert_eq!(generated.count(), 1);
        let read = parse(&toolkit, "prebuilt", json!({"action": "vfs_read"})).await;
        let mut another = context();
        another.call.number += 1;
        let file = toolkit
            .run(&read, &json!({ "path": path }).into(), &another)
            .await
            .unwrap()
            .output()
            .unwrap()
            .to_value();
        assert!(file.to_string().contains(PNG_TEXT), "{file}");
    }
}

#[tokio::test]
async fn a_tool_with_an_address_of_its_own_brings_its_own_key() {
    let server = studio().await;
    let own = async |key: Value| {
        let mut operators = operators(&studio().await);
        operators.allow = world(&[&server]).allow;
        operators.secrets = world(&[]).secrets;
        let execution = json!({"baseUrl": server.url("/own"), "apiKey": key, "model": "mine"});
        run(
            &toolkit_in(operators),
            "image-generator",
            execution,
            json!({"prompt": "x"}),
        )
        .await
        .unwrap();
        server.asked().last().unwrap().header("authorization").to_owned()
    };
    assert_eq!(own(Value::Null).await, "");
    assert_eq!(own(json!("${secret.TOKEN}")).await, format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn what_is_no_image_is_not_kept() {
    let server = studio().await;
    let toolkit = toolkit_in(operators(&server));
    for (prompt, code, words) in [
        (
            "inside",
            ErrorCode::PermissionDenied,
            "not on the public internet",
        ),
        ("no image", ErrorCode::ExecutionFailed, "is no image"),
        ("refused", ErrorCode::ExecutionFailed, "bad key Bearer [key]"),
    ] {
        let failed = run(
            &toolkit,
            "image-generator",
            json!({}),
            json!({ "prompt": prompt }),
        )
        .await
        .unwrap_err();
        assert_eq!(failed.code, code);
        assert!(failed.message.contains(words), "{failed}");
    }
    let foreign = json!({"baseUrl": server.url("/v1")});
    let failed = run(&toolkit, "image-generator", foreign, json!({"prompt": "x"}))
        .await
        .unwrap_err();
    assert_eq!(
        failed.code,
        ErrorCode::PermissionDenied,
        "an agent reaches no inner address of its own choice"
    );
}

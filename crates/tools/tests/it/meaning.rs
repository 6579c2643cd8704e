//! A server of embeddings that knows two meanings.

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Words that mean an animal, words that mean a machine.
const MEANINGS: [&[&str]; 2] = [&["feline", "kitten", "cat", "sofa"], &["engine", "wheels", "car"]];

pub struct MeaningServer {
    port: u16,
    serving: JoinHandle<()>,
}

impl MeaningServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                answer(connection).await;
            }
        });
        Self { port, serving }
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub async fn stop(self) {
        self.serving.abort();
        // It ends by being cancelled, which is what was asked for.
        let _ = self.serving.await;
    }
}

/// Reads one request and answers it.
async fn answer(mut connection: TcpStream) {
    let body = crate::wire::request(&mut connection).await.1;
    let asked: Value = serde_json::from_str(&body).unwrap();
    let texts = asked["input"].as_array().unwrap().iter().enumerate();
    let data: Vec<Value> = texts
        .map(|(index, text)| {
            let text = text.as_str().unwrap();
            let vector =
                MEANINGS.map(|words| words.iter().filter(|word| text.contains(**word)).count() as f64);
            json!({"index": index, "embedding": [vector[0], vector[1], 0.1]})
        })
        .collect();
    crate::wire::reply(&mut connection, 200, &json!({"data": data}).to_string()).await;
}

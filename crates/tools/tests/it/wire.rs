//! As much HTTP as a server in a test needs: one request per connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head and the body of a request.
pub async fn request(connection: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return (head.to_owned(), body.to_owned());
            }
        }
        let mut part = [0; 8192];
        let read = connection.read(&mut part).await.unwrap();
        assert!(read > 0, "the request ended early");
        bytes.extend_from_slice(&part[..read]);
    }
}

/// Answers and closes.
pub async fn reply(connection: &mut TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    connection
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
}

//! Bytes that an honest client never sends, to the binary's own socket.

use std::time::Duration;

use serde_json::json;
use sluice_testkit::{FakeServer, Sluice};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::{Agent, World, setup};

/// What the socket answers to these bytes, until it closes or is silent for a moment.
async fn said(sluice: &Sluice, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(sluice.address()).await.expect("it listens");
    stream.write_all(bytes).await.expect("written");
    let mut answer = Vec::new();
    let mut chunk = [0; 4_096];
    while let Ok(Ok(count)) = timeout(Duration::from_millis(500), stream.read(&mut chunk)).await {
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(agent: &Agent, more: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{more}",
        agent.path, agent.bearer
    )
}

#[tokio::test]
async fn a_request_has_one_length_and_one_reading() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {}}})
    .to_string();
    let length = body.len();
    let chunked = format!("{length:x};ext=\"a\"\r\n{body}\r\n0\r\n\r\n");
    let ask = async |more: &str, body: &str| {
        let answer =
            said(&world.sluice, format!("{}\r\n{body}", head(&agent, more)).as_bytes()).await;
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    // Honest forms, in both codings, pass.
    assert_eq!(ask(&format!("content-length: {length}\r\n"), &body).await, "200");
    assert_eq!(ask("transfer-encoding: chunked\r\n", &chunked).await, "200");
    let before = upstream.calls_of("echo");
    for more in [
        format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"),
        format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"),
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n".to_owned(),
        format!("content-length: {length}\r\ncontent-length: 0\r\n"),
        format!("content-length: {length}, 0\r\n"),
        format!("content-length: +{length}\r\n"),
        format!("content-length : {length}\r\n"),
        "content-length: -1\r\n".to_owned(),
        "content-length: 99999999999999999999999\r\n".to_owned(),
        "transfer-encoding: gzip\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n".to_owned(),
        "transfer-encoding: xchunked\r\n".to_owned(),
        format!("x-a: b\r\n content-length: 0\r\ncontent-length: {length}\r\n"),
        format!("x-a\0: b\r\ncontent-length: {length}\r\n"),
        format!("x a: b\r\ncontent-length: {length}\r\n"),
    ] {
        let status = ask(
            &more,
            if more.to_ascii_lowercase().contains("transfer") { &chunked } else { &body },
        )
        .await;
        assert!(status.starts_with('4'), "{more:?}: {status:?}");
    }
    for broken in ["zz\r\n", "ffffffffffffffffff\r\nx", "5\r\nhello", "-1\r\n\r\n"] {
        let status = ask("transfer-encoding: chunked\r\n", broken).await;
        assert!(status.is_empty() || status.starts_with('4'), "{broken:?}: {status:?}");
    }
    assert_eq!(upstream.calls_of("echo"), before, "none of these ran");
    world.sluice.stop().await;
}

#[tokio::test]
async fn odd_request_lines_and_heads_without_end_are_refused() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    let server = agent.path.trim_start_matches("/mcp/").to_owned();
    let encoded = server.replace('-', "%2d");
    for (line, status) in [
        (format!("POST /mcp/{encoded} HTTP/1.1"), "401"),
        (format!("POST /mcp/{server}%2F HTTP/1.1"), "401"),
        (format!("POST /mcp/x%2F..%2F{server} HTTP/1.1"), "401"),
        (format!("POST /mcp/../mcp/{server} HTTP/1.1"), "404"),
        (format!("POST //mcp/{server} HTTP/1.1"), "404"),
        (format!("POST http://evil.example/mcp/{server} HTTP/1.1"), "421"),
        (format!("TRACE /mcp/{server} HTTP/1.1"), "405"),
        (format!("PURGE /mcp/{server} HTTP/1.1"), "405"),
        ("POST * HTTP/1.1".to_owned(), "4"),
        ("\u{1}\u{2} / HTTP/1.1".to_owned(), "4"),
        (format!("POST /mcp/{server} HTTP/9.9"), "4"),
    ] {
        let rest = head(&agent, "content-length: 0\r\nconnection: close\r\n");
        let (_, rest) = rest.split_once("\r\n").expect("a line");
        let answer = said(&world.sluice, format!("{line}\r\n{rest}\r\n").as_bytes()).await;
        let found = answer.split(' ').nth(1).unwrap_or_default();
        assert!(found.starts_with(status), "{line:?}: {answer}");
    }
    let many = (0..300).fold(String::new(), |head, n| head + &format!("x-{n}: y\r\n"));
    for more in [format!("x-a: {}\r\n", "y".repeat(100_000)), many] {
        let answer = said(&world.sluice, head(&agent, &format!("{more}\r\n")).as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(upstream.calls_of("echo"), 0);
    world.sluice.stop().await;
}

/// Half a head, and then nothing: the connection does not stay.
#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let sluice = setup().with("SLUICE_HEADER_TIMEOUT", "1s").serve().await;
    let mut stream = TcpStream::connect(sluice.address()).await.expect("it listens");
    stream.write_all(b"POST /mcp/x HTTP/1.1\r\nhost: loc").await.expect("written");
    let mut rest = Vec::new();
    let closed = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "it is still open");
    sluice.stop().await;
}

//! Bytes that an honest client never sends, to the binary's own socket.

use std::time::Duration;

use serde_json::json;
use sluice_testkit::{FakeServer, Sluice};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::{Agent, World, setup};

/// What the socket answers to these bytes, until it closes or has told the answer's status.
async fn said(sluice: &Sluice, bytes: &[u8]) -> String {
    talk(sluice, bytes, false).await
}

/// The same; `ends`: nothing more comes, and the socket knows that.
async fn talk(sluice: &Sluice, bytes: &[u8], ends: bool) -> String {
    let (mut from, mut to) =
        TcpStream::connect(sluice.address()).await.expect("it listens").into_split();
    // What is refused before its end need not be taken.
    let writing = async {
        to.write_all(bytes).await.ok();
        if ends {
            to.shutdown().await.ok();
        }
    };
    let mut answer = Vec::new();
    let reading = async {
        let mut chunk = [0; 4_096];
        while let Ok(count) = from.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..count]);
            if count == 0 || answer.len() >= "HTTP/1.1 200 ".len() {
                break;
            }
        }
    };
    let both = timeout(Duration::from_secs(30), async { tokio::join!(writing, reading) }).await;
    assert!(both.is_ok(), "no answer and no end: {:?}", String::from_utf8_lossy(bytes));
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
        let coded = format!("{}\r\n{broken}", head(&agent, "transfer-encoding: chunked\r\n"));
        let answer = talk(&world.sluice, coded.as_bytes(), true).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{broken:?}: {answer:?}");
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
    assert_eq!(upstream.calls_of("echo"), 0);
    world.sluice.stop().await;
}

/// 64 KiB, or what comes in one piece with them, and 100 headers.
#[tokio::test]
async fn a_head_has_bounds_and_beyond_them_is_431() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let ends = format!("connection: close\r\ncontent-length: {}\r\n", body.len());
    let ask = async |more: &str| {
        let request = format!("{}\r\n{body}", head(&agent, &format!("{ends}{more}")));
        let answer = said(&world.sluice, request.as_bytes()).await;
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let one = |size: usize| format!("x-a: {}\r\n", "y".repeat(size));
    let many =
        |count: usize| (0..count).fold(String::new(), |all, n| all + &format!("x-{n}: y\r\n"));
    assert_eq!(ask(&one(60 * 1024)).await, "200");
    // Where the end of the head comes in the piece that is over the bound, it is still read.
    assert_eq!(ask(&one(200 * 1024)).await, "431");
    assert_eq!(ask(&one(1 << 20)).await, "431");
    // `head` and `ends` have six.
    assert_eq!(ask(&many(100 - 6)).await, "200");
    assert_eq!(ask(&many(101 - 6)).await, "431");
    assert_eq!(ask(&many(3_000)).await, "431");
    world.sluice.stop().await;
}

/// Nothing, half a head, half of HTTP/2's preface, and then silence: the connection does not stay.
#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let sluice = setup().with("SLUICE_HEADER_TIMEOUT", "1s").serve().await;
    for begun in ["", "P", "PR", "PRI * HTTP/2.0\r\n", "POST /mcp/x HTTP/1.1\r\nhost: loc"] {
        let mut stream = TcpStream::connect(sluice.address()).await.expect("it listens");
        stream.write_all(begun.as_bytes()).await.expect("written");
        let mut rest = Vec::new();
        let closed = timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{begun:?} is still open");
    }
    sluice.stop().await;
}

/// Both versions of HTTP on one address, the second begun in pieces too.
#[tokio::test]
async fn http_2_is_spoken_where_a_client_begins_with_it() {
    let sluice = setup().serve().await;
    let stream = TcpStream::connect(sluice.address()).await.expect("it listens");
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, io).await.expect("it shakes hands");
    tokio::spawn(connection);
    for (path, status) in [("/healthz", 200), ("/mcp/x", 401)] {
        let request = ::http::Request::get(format!("http://localhost{path}"));
        let request =
            request.body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.version()), (status, ::http::Version::HTTP_2));
    }
    let mut pieces = TcpStream::connect(sluice.address()).await.expect("it listens");
    for piece in ["PR", "I * HTTP/2.0\r\n\r\nSM", "\r\n\r\n\0\0\0\u{4}\0\0\0\0\0"] {
        pieces.write_all(piece.as_bytes()).await.expect("written");
        pieces.flush().await.expect("sent");
    }
    let mut frame = [0; 9];
    pieces.read_exact(&mut frame).await.expect("its settings come");
    assert_eq!(frame[3], 4, "a SETTINGS frame");
    drop((sender, pieces));
    sluice.stop().await;
}

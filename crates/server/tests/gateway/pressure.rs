//! Clients that take nothing and clients that leave, at the binary's own socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::db::{FreshDatabase, until_transactions_end};
use sluice_testkit::{Behaviour, FakeServer, RedisServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::spread::shared;
use crate::world::{Agent, World, passed, setup};

const SOON: Duration = Duration::from_secs(20);
const EVENTS: usize = 800;
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// 64 KiB.
fn event() -> String {
    let text = "x".repeat(64 * 1024);
    format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{text}\"}}\n\n"
    )
}

/// The head and body of a request.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length
                .lines()
                .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}

/// A connection to the gateway on which a request was sent, and nothing is read.
async fn asked(world: &World, agent: &Agent, method: &str, body: &Value, http: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(64 * 1024).expect("a size");
    let mut stream = socket.connect(world.sluice.address()).await.expect("it listens");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let more = if body.contains("2026-07-28") {
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n"
    } else {
        ""
    };
    let head = format!(
        "{method} {} HTTP/{http}\r\nhost: localhost\r\nauthorization: {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{more}content-length: {}\r\n\r\n{body}",
        agent.path,
        agent.bearer,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    stream
}

fn call(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// Waits until the server has been let send nothing for a second. A machine that is busy for so long makes
/// this return too soon, and the test no stricter.
async fn held_up(sent: &AtomicUsize) -> usize {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = sent.load(Ordering::Relaxed);
        if now == before && now > 0 {
            return now;
        }
        before = now;
    }
}

#[tokio::test]
async fn what_a_client_does_not_take_stays_at_the_server_and_comes_whole_when_it_does() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        // Once the gateway has had a look at the server's tools itself.
        let mut stream = loop {
            let (mut stream, _) = listener.accept().await.expect("the gateway comes");
            if request(&mut stream).await.is_some_and(|asked| asked.contains("tools/call")) {
                break stream;
            }
        };
        stream.write_all(HEAD.as_bytes()).await.expect("taken");
        for _ in 0..EVENTS {
            stream.write_all(event().as_bytes()).await.expect("taken");
            count.fetch_add(1, Ordering::Relaxed);
        }
        let done = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
        stream.write_all(done.as_bytes()).await.expect("taken");
    });
    let world = World::start(setup()).await;
    let agent = world.unread("notes", json!({"upstream_url": url})).await;
    let mut client = asked(&world, &agent, "POST", &call("echo"), "1.0").await;
    let taken = held_up(&sent).await;
    // What the sockets hold on both ways, of 50 MiB.
    assert!(taken < EVENTS / 2, "{taken} of {EVENTS} events were taken from the server");
    let mut answer = Vec::new();
    timeout(Duration::from_mins(2), client.read_to_end(&mut answer))
        .await
        .expect("it goes on")
        .expect("whole");
    let answer = String::from_utf8(answer).expect("ASCII");
    assert_eq!(answer.matches("notifications/message").count(), EVENTS);
    assert!(answer.ends_with("\"result\":{\"content\":[]}}\n\n"));
    world.sluice.stop().await;
}

#[tokio::test]
async fn when_a_client_leaves_its_server_is_let_go_at_once_whatever_it_waited_for() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let (tell, mut told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let Some(asked) = request(&mut stream).await else { return };
                // Not the gateway's own look at the server's tools.
                if asked.contains("initialize") || asked.contains("server/discover") {
                    return;
                }
                if !asked.contains("\"silent\"") {
                    stream.write_all(HEAD.as_bytes()).await.ok();
                    stream.write_all(b": hello\n\n").await.ok();
                }
                tell.send("came").ok();
                // Until the gateway closes its side.
                while matches!(stream.read(&mut [0; 64]).await, Ok(count) if count > 0) {}
                tell.send("let go").ok();
            });
        }
    });
    let world = World::start(setup()).await;
    let agent = world.unread("notes", json!({"upstream_url": url})).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params":
        {"_meta": meta, "notifications": {"toolsListChanged": true}}});
    for (method, body) in [
        ("POST", call("silent")),
        ("POST", call("streams")),
        ("POST", listen),
        ("GET", Value::Null),
    ] {
        let client = asked(&world, &agent, method, &body, "1.1").await;
        let mut next = async || timeout(SOON, told.recv()).await;
        assert_eq!(next().await, Ok(Some("came")), "{method} {body}");
        drop(client);
        // Nothing but the client's end ends it before the server's five minutes are over.
        assert_eq!(next().await, Ok(Some("let go")), "{method} {body}");
    }
    world.sluice.stop().await;
}

/// Calls that a server takes its time for hold no connection of the database.
#[tokio::test]
async fn calls_in_flight_hold_nothing_of_the_database() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = FakeServer::start().await;
    upstream.on_call("echo", Behaviour::Held("done".to_owned()));
    let world = World::start(shared(database.url(), &redis.url())).await;
    let limit = json!({"counter": "c", "window": "hour", "max": 1_000});
    let policy = json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}}});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    let before = upstream.seen().len();
    let calls = (0..50).map(|number| agent.call(&world.sluice, "echo", json!({"n": number})));
    let meanwhile = async {
        timeout(SOON, upstream.arrived(before + 50)).await.expect("all are with the server");
        until_transactions_end(database.url()).await;
        world.must(Method::GET, "/servers", Value::Null, 200).await;
        upstream.release(50);
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), meanwhile);
    assert!(answers.iter().all(passed));
    world.sluice.stop().await;
    database.remove().await;
}

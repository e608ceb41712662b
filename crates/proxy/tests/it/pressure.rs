//! Time and memory: a slow client costs no memory, a slow server no client that waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use sluice_proxy::ProxyOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gateway::{ALLOW_ALL, Gateway, Grant, Setup, call};
use crate::stage::{Received, Stage, Wire, text_result};

const SOON: Duration = Duration::from_secs(10);

/// Sends a request and reads nothing of the answer.
async fn unread(gateway: &Gateway, grant: &Grant, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).await.expect("it listens");
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        grant.path(),
        grant.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    stream
}

#[tokio::test]
async fn what_a_slow_client_does_not_take_stays_at_the_server() {
    let sent = Arc::new(AtomicUsize::new(0));
    let (count, blocked) = (Arc::clone(&sent), Arc::new(tokio::sync::Notify::new()));
    let tell = Arc::clone(&blocked);
    let stage = Stage::start(move |_, mut wire: Wire| {
        let (count, tell) = (Arc::clone(&count), Arc::clone(&tell));
        async move {
            wire.events().await;
            let event = format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{}\"}}\n\n", "x".repeat(64 * 1024));
            for _ in 0..4_000 {
                // A write that has to wait means that nobody takes more.
                match timeout(Duration::from_millis(500), wire.raw(&event)).await {
                    Ok(()) => count.fetch_add(event.len(), Ordering::Relaxed),
                    Err(_) => break,
                };
            }
            tell.notify_one();
            wire.gone().await;
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let stream = unread(&gateway, &grant, &call("1", "echo", "{}")).await;
    timeout(Duration::from_secs(30), blocked.notified()).await.expect("the server is held up");
    let taken = sent.load(Ordering::Relaxed);
    // The sockets' own buffers on both sides, and little more, of 256 MiB.
    assert!(taken < 24 << 20, "{taken} bytes were taken from the server");
    drop(stream);
}

#[tokio::test]
async fn an_answer_that_waits_for_its_client_counts_until_it_was_taken() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        wire.raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
            .await;
        wire.raw(text_result(&received.id(), &"x".repeat(12 << 20))).await;
    })
    .await;
    let options = ProxyOptions { max_held_bytes: 16 << 20, ..ProxyOptions::default() };
    let gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = call("1", "echo", "{}");
    // What fits is held and sent with its length; what does not fit streams by.
    let length = |head: &str| head.to_ascii_lowercase().contains("content-length");
    let mut slow = unread(&gateway, &grant, &body).await;
    let mut begun = vec![0; 1_024];
    slow.read_exact(&mut begun).await.expect("it begins");
    assert!(length(&String::from_utf8_lossy(&begun)));
    let second = grant.post(&gateway, &[], &body).await;
    assert!(second.header("content-length").is_empty(), "the first is held still");
    assert_eq!(second.body.len(), text_result("1", &"x".repeat(12 << 20)).len());
    drop(slow);
    let free = async {
        while grant.post(&gateway, &[], &body).await.header("content-length").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, free).await.expect("the first is let go with its connection");
}

/// The clock of the gateway and of the stage is the test's: 45 s pass without a wait.
#[tokio::test]
async fn a_healthy_call_may_be_silent_for_45_seconds() {
    for in_stream in [false, true] {
        let stage = Stage::start(move |received: Received, mut wire: Wire| async move {
            if in_stream {
                wire.events().await;
            }
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(45)).await;
            tokio::time::resume();
            let result = text_result(&received.id(), "done");
            if in_stream {
                wire.raw(format!("data: {result}\n\n")).await;
            } else {
                wire.json(&result).await;
            }
        })
        .await;
        let gateway = Gateway::start().await;
        let grant = gateway.grant(&stage.url(), ALLOW_ALL);
        let answer = grant.call(&gateway, "1", "slow", "{}").await;
        assert!(answer.text().contains("done"), "{}", answer.text());
    }
}

#[tokio::test]
async fn each_server_has_its_own_patience_in_silence_and_in_all() {
    for (idle, total, passes, code) in [
        (300, 3_600, 299, ""),
        (300, 3_600, 320, "upstream_timeout"),
        (60, 20, 21, "upstream_timeout"),
        (60, 0, 50, ""),
    ] {
        let stage = Stage::start(move |received: Received, mut wire: Wire| async move {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(passes)).await;
            tokio::time::resume();
            wire.text(&received.id(), "done").await;
        })
        .await;
        let gateway = Gateway::start().await;
        let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
            record.server.settings.idle_timeout_s = idle;
            record.server.settings.total_timeout_s = total;
        });
        let answer = grant.call(&gateway, "1", "echo", "{}").await;
        let told = answer.json()["error"]["data"]["code"].as_str().unwrap_or_default().to_owned();
        assert_eq!(told, code, "{idle} {total} {passes}: {}", answer.text());
    }
}

#[tokio::test]
async fn progress_keeps_a_call_alive_beyond_the_bound_on_silence() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        wire.events().await;
        for _ in 0..4 {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(200)).await;
            tokio::time::resume();
            wire.raw("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n").await;
            // Lets the other side take it before time goes on.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        wire.raw(format!("data: {}\n\n", text_result(&received.id(), "done"))).await;
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    assert!(grant.call(&gateway, "1", "echo", "{}").await.text().contains("done"));
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_the_request() {
    let stage = Stage::start(|_, wire: Wire| async move { wire.cut() }).await;
    let options =
        ProxyOptions { request_timeout: Duration::from_millis(200), ..ProxyOptions::default() };
    let mut gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let mut stream = unread(&gateway, &grant, "").await;
    drop(stream);
    stream = TcpStream::connect(gateway.address).await.expect("it listens");
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"jsonrpc\"",
        grant.path(),
        grant.token
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut answer = vec![0; 4_096];
    let read = timeout(SOON, stream.read(&mut answer)).await.expect("in time").expect("an answer");
    assert!(
        answer[..read].starts_with(b"HTTP/1.1 408 "),
        "{}",
        String::from_utf8_lossy(&answer[..read])
    );
    let mut codes = Vec::new();
    while codes.len() < 2 {
        codes.push(gateway.record().await.code.as_str());
    }
    assert_eq!((codes, stage.count()), (vec!["malformed", "malformed"], 0));
}

#[tokio::test]
async fn a_grant_has_only_so_many_streams_and_gets_them_back() {
    let stage = Stage::start(|_, mut wire: Wire| async move {
        wire.events().await;
        wire.raw(": hello\n\n").await;
        wire.gone().await;
    })
    .await;
    let options = ProxyOptions { max_open_per_grant: 2, ..ProxyOptions::default() };
    let gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let sibling = gateway.sibling(&grant);
    let open = async |grant: &Grant| {
        let mut get = grant.open(&gateway, Method::GET, &[], "").await;
        if get.status == 200 {
            get.piece().await;
        }
        get
    };
    let (one, two) = (open(&grant).await, open(&grant).await);
    let third = open(&grant).await;
    assert_eq!((one.status.as_u16(), two.status.as_u16(), third.status.as_u16()), (200, 200, 429));
    let posted = grant.call(&gateway, "1", "echo", "{}").await;
    assert_eq!((posted.status.as_u16(), posted.header("retry-after")), (429, "1"));
    assert_eq!(open(&sibling).await.status, 200, "another grant has its own");
    drop(one);
    let free = async {
        while open(&grant).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, free).await.expect("a closed stream gives its place back");
}

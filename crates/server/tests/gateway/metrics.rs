//! `/metrics` and `/docs/metrics`: what the list in the code says, and true figures.

use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};
use sluice_domain::metrics::{self, Kind};
use sluice_testkit::mcp_server::{Behaviour, tool};
use sluice_testkit::{FakeServer, Sluice, http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::world::{World, passed, setup};

async fn read(at: &Sluice) -> String {
    at.send(Method::GET, "/metrics", &[], "").await.text()
}

/// The value of the sample with exactly this name and these labels.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {sample}: {text}"))
}

/// Fails where `/metrics` says anything that is not in the list.
fn hold_list(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        let family = metrics::ALL.iter().map(|family| family.meta()).find(|meta| {
            let rest = name.strip_prefix(meta.name);
            rest.is_some_and(|rest| match meta.kind {
                Kind::Histogram => ["_bucket", "_sum", "_count"].contains(&rest),
                Kind::Counter | Kind::Gauge => rest.is_empty(),
            })
        });
        let meta = family.unwrap_or_else(|| panic!("not in the list: {line}"));
        let told = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty());
        for label in told {
            let (key, value) = label.split_once('=').expect("a label");
            let known = meta.labels.iter().any(|one| {
                one.name == key && one.values.iter().any(|word| value == format!("\"{word}\""))
            });
            assert!(known || key == "le", "{line}");
        }
    }
}

#[tokio::test]
async fn metrics_say_what_the_list_says_and_count_what_happened() {
    let upstream = FakeServer::start().await;
    upstream.tools(["plain", "limited"].map(|name| tool(name, "Read a note")).to_vec());
    let world = World::start(setup()).await;
    let at = &world.sluice;
    let policy = json!({"version": "1", "default": "allow", "tools": {
        "limited": {"limits": [{"counter": "two", "window": "hour", "max": 2}]}}});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    for tool in ["plain", "plain", "limited", "limited"] {
        assert!(passed(&agent.call(at, tool, json!({})).await), "{tool}");
    }
    assert!(!passed(&agent.call(at, "limited", json!({})).await));
    let text = read(at).await;
    hold_list(&text);
    let is = |sample: &str, expected: f64| {
        assert_eq!(value(&text, sample).to_bits(), expected.to_bits(), "{sample}: {text}");
    };
    is("sluice_requests_total{outcome=\"allowed\",code=\"allowed\"}", 4.0);
    is("sluice_requests_total{outcome=\"limited\",code=\"rate_limited\"}", 1.0);
    is("sluice_gateway_seconds_count{method=\"call\"}", 5.0);
    is("sluice_upstream_seconds_count{method=\"call\"}", 4.0);
    is("sluice_limits_seconds_count", 3.0);
    is("sluice_counters", 1.0);
    is("sluice_limits_up{store=\"memory\"}", 1.0);
    is("sluice_security_events_total{kind=\"bad_token\"}", 0.0);
    is("sluice_log_waiting{log=\"security\"}", 0.0);
    assert!(value(&text, "sluice_upstream_answers_total{answer=\"2xx\"}") >= 4.0, "{text}");
    assert!(value(&text, "sluice_upstream_connections") >= 1.0, "{text}");
    assert!(value(&text, "sluice_upstream_connected_total") >= 1.0, "{text}");
    for pool in ["read", "write"] {
        let of = |used: &str| {
            value(&text, &format!("sluice_database_connections{{pool=\"{pool}\",use=\"{used}\"}}"))
        };
        assert!(of("busy") + of("idle") + of("free") >= 1.0, "{text}");
    }
    assert!(value(&text, "sluice_resident_bytes") > 1e6 && value(&text, "sluice_open_files") > 5.0);
    assert!(!text.contains("sluice_redis_"), "there is none: {text}");
    world.sluice.stop().await;
}

/// A server whose answer to a call begins at once and goes on when it is told to; it has no other answers.
async fn begins(listener: TcpListener, go_on: Arc<Notify>) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut request = Vec::new();
        while !String::from_utf8_lossy(&request).contains("\"method\"") {
            assert!(stream.read_buf(&mut request).await.expect("a request") > 0);
        }
        if !String::from_utf8_lossy(&request).contains("tools/call") {
            let none = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(none).await.expect("an answer");
            continue;
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("the head");
        go_on.notified().await;
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": []}});
        return stream
            .write_all(format!("data: {answer}\n\n").as_bytes())
            .await
            .expect("it goes on");
    }
}

#[tokio::test]
async fn what_a_stream_takes_is_its_servers_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let go_on = Arc::new(Notify::new());
    let serving = tokio::spawn(begins(listener, Arc::clone(&go_on)));
    let world = World::start(setup()).await;
    let agent = world.unread("slow", json!({"upstream_url": url})).await;
    let headers = [
        ("authorization", agent.bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}});
    let at = world.sluice.address();
    let opened = http::open(at, Method::POST, &agent.path, &headers, call.to_string()).await;
    let opened = opened.expect("the answer begins");
    assert_eq!(opened.status, 200);
    // The least that must be counted as the server's time and not as the gateway's.
    tokio::time::sleep(Duration::from_millis(300)).await;
    go_on.notify_one();
    opened.whole().await.expect("the answer ends");
    serving.await.expect("it served");
    world.calls("", 1).await;
    let text = read(&world.sluice).await;
    assert!(value(&text, "sluice_upstream_seconds_sum{method=\"call\"}") >= 0.3, "{text}");
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_counted_by_what_failed() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    upstream.instead(Some(Behaviour::Raw(503, "text/plain", String::new())));
    agent.call(&world.sluice, "echo", Value::Null).await;
    drop(upstream);
    agent.call(&world.sluice, "echo", Value::Null).await;
    let text = read(&world.sluice).await;
    let five = value(&text, "sluice_upstream_answers_total{answer=\"5xx\"}");
    let gone: f64 = ["unreachable", "cut"]
        .map(|word| value(&text, &format!("sluice_upstream_answers_total{{answer=\"{word}\"}}")))
        .iter()
        .sum();
    assert!(five >= 1.0 && gone >= 1.0, "{text}");
    world.sluice.stop().await;
}

#[tokio::test]
async fn the_page_of_metrics_has_a_row_for_each() {
    let sluice = setup().serve().await;
    let page = sluice.send(Method::GET, "/docs/metrics.md", &[], "").await.text();
    for family in metrics::ALL {
        let meta = family.meta();
        let labels: Vec<String> =
            meta.labels.iter().map(|label| format!("`{}`", label.name)).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let (name, kind, help) = (meta.name, meta.kind.as_str(), meta.help);
        let row = format!("\n| `{name}` | {kind} | {labels} | {help} |\n");
        assert!(page.contains(&row), "{row}: {page}");
    }
    let page = sluice.send(Method::GET, "/docs/metrics", &[], "").await.text();
    assert!(page.contains("sluice_gateway_seconds") && page.contains("<table"), "{page}");
    sluice.stop().await;
}

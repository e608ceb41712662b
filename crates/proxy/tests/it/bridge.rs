//! Upstreams that speak only HTTP+SSE, seen through Streamable HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use sluice_domain::Transport;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::gateway::{ALLOW_ALL, Gateway, Grant, call};
use crate::stage::{Received, Stage, Wire, text_result};

type Streams = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<String>>>>;

/// A server of 2024-11-05: a stream that names an endpoint, and answers on it.
pub(crate) async fn old_server(endpoint: &'static str) -> Stage {
    let streams: Streams = Arc::default();
    Stage::start(move |received: Received, wire: Wire| {
        old(Arc::clone(&streams), received, wire, endpoint)
    })
    .await
}

async fn old(streams: Streams, received: Received, mut wire: Wire, endpoint: &'static str) {
    if received.method == "GET" {
        let (send, mut messages) = mpsc::unbounded_channel();
        let name = streams.lock().len().to_string();
        streams.lock().insert(name.clone(), send);
        wire.events().await;
        wire.raw(format!("event: endpoint\ndata: {}\n\n", endpoint.replace("NAME", &name))).await;
        while let Some(message) = messages.recv().await {
            if message == "end" {
                return;
            }
            wire.raw(format!("event: message\ndata: {message}\n\n")).await;
        }
        return;
    }
    if received.path == "/mcp" {
        return wire.answer("404 Not Found", &[], "Cannot POST /mcp").await;
    }
    let stream =
        received.path.split('=').next_back().and_then(|name| streams.lock().get(name).cloned());
    let Some(stream) = stream else { return wire.answer("404 Not Found", &[], "no session").await };
    wire.answer("202 Accepted", &[], "Accepted").await;
    let id = received.id();
    match (received.rpc().as_str(), received.tool().as_str()) {
        ("initialize", _) => {
            stream.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2024-11-05","capabilities":{{}},"serverInfo":{{"name":"old","version":"1"}}}}}}"#)).ok();
        }
        ("tools/list", _) => {
            stream.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"echo"}},{{"name":"purge"}}]}}}}"#)).ok();
        }
        ("tools/call", "slow") => {
            for n in 1..=2 {
                stream.send(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{n}}}}}"#)).ok();
            }
            stream.send(text_result(&id, "slow done")).ok();
        }
        ("tools/call", "other") => {
            stream.send("end".to_owned()).ok();
        }
        ("tools/call", "read_note") => {
            stream.send(text_result(&id, &"x".repeat(3_000_000))).ok();
        }
        ("tools/call", "delete_note") => {}
        ("tools/call", _) => {
            stream.send(text_result(&id, &received.path)).ok();
        }
        ("notifications/initialized", _) => {
            stream.send(r#"{"jsonrpc":"2.0","id":"r-1","method":"roots/list"}"#.to_owned()).ok();
        }
        _ => {}
    }
}

pub(crate) fn grant(gateway: &Gateway, stage: &Stage, transport: Transport) -> Grant {
    let policy = r#"{"version":"1","default":"allow","hide":["purge"]}"#;
    gateway.grant_with(&stage.url(), policy, |record| record.server.settings.transport = transport)
}

#[tokio::test]
async fn an_old_server_works_through_the_new_transport() {
    let stage = old_server("/messages?session=NAME").await;
    let gateway = Gateway::start().await;
    for transport in [Transport::Auto, Transport::Sse] {
        let grant = grant(&gateway, &stage, transport);
        let one = grant.initialize(&gateway).await;
        let two = grant.initialize(&gateway).await;
        assert!(!one.is_empty() && one != two && !one.contains("sse"));
        let session = [("mcp-session-id", one.as_str())];
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert_eq!(
            grant.post(&gateway, &session, list).await.text(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"}]}}"#
        );
        let mut paths = Vec::new();
        for id in [&one, &two] {
            let answer =
                grant.post(&gateway, &[("mcp-session-id", id)], &call("\"7\"", "echo", "{}")).await;
            assert_eq!(answer.json()["id"], "7");
            paths.push(answer.json()["result"]["content"][0]["text"].clone());
        }
        assert_ne!(paths[0], paths[1]);
        assert_eq!(grant.post(&gateway, &[], &call("1", "echo", "{}")).await.status, 400);
        let ended =
            grant.open(&gateway, Method::DELETE, &session, "").await.whole().await.expect("whole");
        assert_eq!(ended.status, 200);
        assert_eq!(grant.post(&gateway, &session, list).await.status, 404);
    }
}

#[tokio::test]
async fn progress_comes_on_the_answers_stream_and_requests_on_the_sessions_own() {
    let stage = old_server("/messages?session=NAME").await;
    let gateway = Gateway::start().await;
    let grant = grant(&gateway, &stage, Transport::Sse);
    let id = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", id.as_str())];
    let body = call("1", "slow", "{}")
        .replace("\"arguments\"", "\"_meta\":{\"progressToken\":\"t\"},\"arguments\"");
    let text = grant.post(&gateway, &session, &body).await.text();
    let places: Vec<_> = ["\"progress\":1", "\"progress\":2", "slow done"]
        .iter()
        .map(|part| text.find(part))
        .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    let mut get = grant.open(&gateway, Method::GET, &session, "").await;
    assert_eq!(get.status, 200);
    let second =
        grant.open(&gateway, Method::GET, &session, "").await.whole().await.expect("whole");
    assert_eq!(second.status, 409);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(grant.post(&gateway, &session, note).await.status, 202);
    let asked = timeout(Duration::from_secs(5), get.piece())
        .await
        .expect("soon")
        .expect("open")
        .expect("whole");
    assert!(String::from_utf8_lossy(&asked).contains("roots/list"));
    let reply = r#"{"jsonrpc":"2.0","id":"r-1","result":{"roots":[]}}"#;
    assert_eq!(grant.post(&gateway, &session, reply).await.status, 202);
    assert_eq!(stage.log().last().expect("one").text(), reply);
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_not_followed_and_a_lost_stream_is_a_lost_session() {
    for elsewhere in [
        "http://169.254.169.254/x?NAME",
        "//evil.example/NAME",
        "\\\\evil.example\\NAME",
        "http://user@127.0.0.1/NAME",
        "http://127.0.0.1:9/NAME",
        "http://[::ffff:127.0.0.1]/NAME",
        "https:/messages?NAME",
        "javascript:alert(1)//NAME",
        "data:,NAME",
    ] {
        let stage = old_server(elsewhere).await;
        let gateway = Gateway::start().await;
        let grant = grant(&gateway, &stage, Transport::Sse);
        let answer = grant.post(&gateway, &[], &crate::gateway::initialize()).await;
        assert_eq!(answer.json()["error"]["data"]["code"], "upstream_not_mcp", "{elsewhere}");
    }
    let stage = old_server("/messages?session=NAME").await;
    let gateway = Gateway::start().await;
    let grant = grant(&gateway, &stage, Transport::Sse);
    let id = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", id.as_str())];
    let answer = grant.post(&gateway, &session, &call("5", "other", "{}")).await;
    assert_eq!(
        (answer.json()["id"].as_i64(), answer.json()["error"]["data"]["code"].as_str()),
        (Some(5), Some("upstream_cut"))
    );
    assert_eq!(grant.post(&gateway, &session, &call("6", "echo", "{}")).await.status, 404);
}

#[tokio::test]
async fn a_modern_probe_is_told_to_fall_back() {
    let stage = old_server("/messages?session=NAME").await;
    let gateway = Gateway::start().await;
    let grant = grant(&gateway, &stage, Transport::Sse);
    let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let answer = grant.post(&gateway, &headers, discover).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["error"]["code"].as_i64()),
        (400, Some(-32000))
    );
    assert_eq!(stage.count(), 0);
    let plain = gateway.grant(&stage.url(), ALLOW_ALL);
    assert_eq!(plain.post(&gateway, &headers, discover).await.status, 404);
}

#[tokio::test]
async fn the_older_transport_is_tried_where_the_specification_says_so() {
    let table = [
        ("400 Bad Request", "text/plain", "bad", true),
        ("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#, true),
        ("405 Method Not Allowed", "text/html", "<p>", true),
        (
            "400 Bad Request",
            "application/json",
            r#"{"jsonrpc":"2.0","id":"init","error":{"code":-32022,"message":"no"}}"#,
            false,
        ),
        ("406 Not Acceptable", "text/plain", "no", false),
        ("500 Oops", "text/plain", "no", false),
    ];
    for (status, media, body, tried) in table {
        let stage = Stage::start(move |received: Received, mut wire: Wire| async move {
            if received.method == "POST" {
                wire.answer(status, &[("content-type", media)], body).await;
            } else {
                wire.answer("405 Method Not Allowed", &[], "").await;
            }
        })
        .await;
        let gateway = Gateway::start().await;
        let grant = grant(&gateway, &stage, Transport::Auto);
        let answer = grant.post(&gateway, &[], &crate::gateway::initialize()).await;
        let seen: Vec<String> = stage.log().iter().map(|r| r.method.clone()).collect();
        assert_eq!(seen, if tried { vec!["POST", "GET"] } else { vec!["POST"] }, "{status} {body}");
        if status.starts_with('4') {
            // Where the other is not there either, the first answer stands.
            assert!(status.starts_with(answer.status.as_str()), "{status}");
            assert_eq!(answer.text(), body);
        }
    }
}

#[tokio::test]
async fn an_id_that_is_open_is_not_taken_twice_and_a_slow_client_loses_only_its_own() {
    let stage = old_server("/messages?session=NAME").await;
    let options = sluice_proxy::ProxyOptions { max_held_bytes: 1 << 20, ..Default::default() };
    let setup = crate::gateway::Setup { options, ..Default::default() };
    let gateway = Gateway::with(setup).await;
    let grant = grant(&gateway, &stage, Transport::Sse);
    let id = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", id.as_str())];
    // 3 MB do not fit into what may be held; the call ends with an error, and the session goes on.
    let large = grant.post(&gateway, &session, &call("1", "read_note", "{}")).await;
    assert_eq!(large.json()["error"]["data"]["code"], "upstream_cut", "{}", large.text());
    let small = grant.post(&gateway, &session, &call("2", "echo", "{}")).await;
    assert!(small.text().contains("/messages"), "{}", small.text());
}

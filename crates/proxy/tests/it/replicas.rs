//! Two replicas on one store: any of them serves any request of any session.

use std::time::Duration;

use http::Method;
use sluice_domain::Transport;
use sluice_proxy::ProxyOptions;
use tokio::time::timeout;

use crate::bridge::{grant, old_server};
use crate::gateway::{ALLOW_ALL, Gateway, Grant, Replicas, call, code, initialize};
use crate::stage::{Received, Stage, Wire};

const SOON: Duration = Duration::from_secs(10);
const LIST: &str = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn session(id: &str) -> [(&'static str, &str); 1] {
    [("mcp-session-id", id)]
}

/// A server with sessions, each with a number of its own.
async fn stateful(received: Received, mut wire: Wire) {
    let json = ("content-type", "application/json");
    let id = received.id();
    match (received.method.as_str(), received.rpc().as_str(), received.tool().as_str()) {
        ("POST", "initialize", _) => {
            let own = received.json()["params"]["clientInfo"]["version"].to_string();
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}"#
            );
            wire.answer("200 OK", &[json, ("mcp-session-id", own.trim_matches('"'))], &result)
                .await;
        }
        ("DELETE", ..) => wire.answer("200 OK", &[], "").await,
        ("GET", ..) => {
            wire.events().await;
            let from = received.header("last-event-id").unwrap_or("none").to_owned();
            wire.raw(format!("id: e9\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"from\":\"{from}\"}}}}\n\n")).await;
            wire.gone().await;
        }
        (_, "tools/call", "slow") => {
            wire.events().await;
            wire.raw("data: {\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"method\":\"elicitation/create\",\"params\":{}}\n\n").await;
            wire.gone().await;
        }
        (_, "tools/call", "other") => {
            wire.events().await;
            wire.raw("id: e1\ndata:\n\n").await;
        }
        (_, "tools/list", _) => {
            wire.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"echo"}},{{"name":"sampler"}}]}}}}"#)).await;
        }
        (_, method, _) if method.is_empty() || method.starts_with("notifications/") => {
            wire.answer("202 Accepted", &[], "").await;
        }
        _ => wire.text(&id, "done").await,
    }
}

#[tokio::test]
async fn a_session_opened_at_one_replica_works_at_the_other() {
    let stage = Stage::start(stateful).await;
    let both = Replicas::start().await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let sibling = both.one.sibling(&grant);
    let id = grant.initialize(&both.one).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(grant.post(&both.two, &session(&id), note).await.status, 202);
    for round in 0..20 {
        let at = if round % 2 == 0 { &both.two } else { &both.one };
        let body = if round % 3 == 0 { LIST.to_owned() } else { call("1", "echo", "{}") };
        let answer = grant.post(at, &session(&id), &body).await;
        assert!(answer.status == 200 && answer.text().contains("result"), "{}", answer.text());
    }
    let seen = stage.log();
    assert_eq!(seen.iter().filter(|received| received.rpc() == "initialize").count(), 1);
    assert!(seen[1..].iter().all(|received| received.header("mcp-session-id") == Some("1")));
    for at in [&both.one, &both.two] {
        assert_eq!(sibling.post(at, &session(&id), LIST).await.status, 404);
    }
    // Ended at one, it is gone at the other, which has it in memory.
    let ended = grant.open(&both.one, Method::DELETE, &session(&id), "").await;
    assert_eq!(ended.status, 200);
    both.two.clock.advance(chrono::TimeDelta::minutes(16));
    assert_eq!(grant.post(&both.two, &session(&id), LIST).await.status, 404);
    assert_eq!(grant.post(&both.one, &session(&id), LIST).await.status, 404);
}

#[tokio::test]
async fn a_client_may_answer_at_another_replica_what_it_was_asked_at_one() {
    let stage = Stage::start(stateful).await;
    let both = Replicas::start().await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let id = grant.initialize(&both.one).await;
    let mut asked =
        grant.open(&both.one, Method::POST, &session(&id), &call("5", "slow", "{}")).await;
    let piece = asked.piece().await.expect("open").expect("whole");
    assert!(String::from_utf8_lossy(&piece).contains("ask-1"));
    let reply = r#"{"jsonrpc":"2.0","id":"ask-1","result":{"action":"decline"}}"#;
    assert_eq!(grant.post(&both.two, &session(&id), reply).await.status, 202);
    assert_eq!(stage.log().last().expect("one").text(), reply);
    for at in [&both.one, &both.two] {
        assert_eq!(grant.post(at, &session(&id), reply).await.status, 400, "once");
    }
}

#[tokio::test]
async fn a_request_is_cancelled_at_whichever_replica() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        if received.tool() == "slow" {
            wire.events().await;
            wire.raw(": hello\n\n").await;
            // Ends when the cancellation has arrived.
            let _ = timeout(Duration::from_millis(300), wire.gone()).await;
            return;
        }
        stateful(received, wire).await;
    })
    .await;
    let mut both = Replicas::start().await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let id = grant.initialize(&both.one).await;
    both.one.records();
    let slow = call("5", "slow", "{}");
    let mut open = grant.open(&both.one, Method::POST, &session(&id), &slow).await;
    assert_eq!(open.piece().await.expect("open").expect("whole"), ": hello\n\n");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(grant.post(&both.two, &session(&id), cancel).await.status, 202);
    assert_eq!(stage.log().last().expect("one").text(), cancel);
    assert!(timeout(SOON, open.piece()).await.expect("it ends").is_none(), "no error is invented");
    let record = both.one.record().await;
    assert_eq!((record.outcome.as_str(), record.code.as_str()), ("failed", "cancelled"));
}

#[tokio::test]
async fn tools_that_a_grant_was_shown_at_one_replica_are_known_at_the_other() {
    let stage = Stage::start(stateful).await;
    let both = Replicas::start().await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let sibling = both.one.sibling(&grant);
    assert_eq!(code(&grant.call(&both.two, "1", "sampler", "{}").await), "unknown_tool");
    assert!(grant.post(&both.one, &[], LIST).await.text().contains("sampler"));
    assert!(grant.call(&both.two, "1", "sampler", "{}").await.text().contains("done"));
    assert_eq!(code(&sibling.call(&both.two, "1", "sampler", "{}").await), "unknown_tool");
}

#[tokio::test]
async fn an_interrupted_stream_is_taken_up_at_another_replica() {
    let stage = Stage::start(stateful).await;
    let both = Replicas::start().await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let sibling = both.one.sibling(&grant);
    let id = grant.initialize(&both.one).await;
    let other = call("5", "other", "{}");
    let polled = grant.post(&both.one, &session(&id), &other).await;
    assert_eq!(polled.text(), "id: e1\ndata:\n\n");
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", "e1")];
    let mut taken = grant.open(&both.two, Method::GET, &headers, "").await;
    assert_eq!(taken.status, 200);
    let piece = taken.piece().await.expect("open").expect("whole");
    assert!(String::from_utf8_lossy(&piece).contains(r#""from":"e1""#));
    // Without a session the grant alone may do so, at any replica, and only from what it was sent.
    let bare = [("last-event-id", "e1")];
    assert_eq!(grant.open(&both.two, Method::GET, &bare, "").await.status, 400);
    grant.post(&both.one, &[], &other).await;
    assert_eq!(grant.open(&both.two, Method::GET, &bare, "").await.status, 200);
    let before = stage.count();
    assert_eq!(sibling.open(&both.two, Method::GET, &bare, "").await.status, 400);
    assert_eq!(
        grant.open(&both.two, Method::GET, &[("last-event-id", "e2")], "").await.status,
        400
    );
    assert_eq!(stage.count(), before);
}

#[tokio::test]
async fn at_the_cap_the_session_that_was_not_used_for_longest_makes_room() {
    let stage = Stage::start(stateful).await;
    let options = ProxyOptions { sessions_per_grant: 3, ..ProxyOptions::default() };
    let both = Replicas::with(options).await;
    let grant = both.one.grant(&stage.url(), ALLOW_ALL);
    let mut ids = Vec::new();
    for number in 0..5 {
        let at = if number % 2 == 0 { &both.one } else { &both.two };
        let hello = initialize().replace(r#""version":"1""#, &format!(r#""version":"s{number}""#));
        let answer = grant.post(at, &[], &hello).await;
        ids.push(answer.header("mcp-session-id").to_owned());
        assert!(!ids[number].is_empty(), "a new session is always given");
    }
    for at in [&both.one, &both.two] {
        at.state.tidy().await;
        // What one has in memory it looks up again in time.
        at.clock.advance(chrono::TimeDelta::minutes(16));
    }
    for at in [&both.one, &both.two] {
        for (number, id) in ids.iter().enumerate() {
            let status = grant.post(at, &session(id), LIST).await.status.as_u16();
            assert_eq!(status, if number < 2 { 404 } else { 200 }, "{number}");
        }
    }
    // Those that made room were ended at the server.
    let ended: Vec<_> = stage.log().into_iter().filter(|r| r.method == "DELETE").collect();
    let mut ended: Vec<_> = ended.iter().filter_map(|r| r.header("mcp-session-id")).collect();
    ended.sort_unstable();
    assert_eq!(ended, ["s0", "s1"]);
}

async fn modern_call(gateway: &Gateway, grant: &Grant, params: &str) -> String {
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{}},{params}{META}}}}}"#
    );
    grant.post(gateway, &headers, &body).await.text()
}

#[tokio::test]
async fn what_a_call_asked_for_may_be_brought_and_a_task_looked_at_elsewhere() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        let id = received.id();
        let params = &received.json()["params"];
        let result = match received.rpc().as_str() {
            "tasks/get" => r#"{"resultType":"complete","taskId":"t-1","status":"working"}"#,
            _ if params["inputResponses"].is_null() => {
                r#"{"resultType":"input_required","requestState":"s","inputRequests":{}}"#
            }
            _ => r#"{"resultType":"task","taskId":"t-1","status":"working"}"#,
        };
        wire.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    })
    .await;
    let both = Replicas::start().await;
    let once = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":1}]}}}"#;
    let grant = both.one.grant(&stage.url(), once);
    let sibling = both.one.sibling(&grant);
    assert!(modern_call(&both.one, &grant, "").await.contains("input_required"));
    let brought = r#""requestState":"s","inputResponses":{"a":{}},"#;
    assert!(modern_call(&both.two, &grant, brought).await.contains("t-1"), "counted once");
    assert!(modern_call(&both.one, &grant, brought).await.contains("rate_limited"));
    let get = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{{"taskId":"t-1",{META}}}}}"#
    );
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tasks/get"), ("mcp-name", "t-1")];
    assert!(grant.post(&both.one, &headers, &get).await.text().contains("working"));
    for at in [&both.one, &both.two] {
        let foreign = sibling.post(at, &headers, &get).await;
        assert!(foreign.text().contains("Task not found"), "{}", foreign.text());
    }
}

#[tokio::test]
async fn a_session_of_the_older_transport_is_served_by_both() {
    let stage = old_server("/messages?session=NAME").await;
    let both = Replicas::start().await;
    let grant = grant(&both.one, &stage, Transport::Sse);
    let (first, second) = (grant.initialize(&both.one).await, grant.initialize(&both.two).await);
    for (id, path) in [(&first, "NAME=0"), (&second, "NAME=1")] {
        for at in [&both.one, &both.two] {
            let list = grant.post(at, &session(id), LIST).await;
            assert_eq!(
                list.text(),
                r#"{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"echo"}]}}"#
            );
            let answer = grant.post(at, &session(id), &call("\"7\"", "echo", "{}")).await;
            assert_eq!(answer.json()["id"], "7");
            let own = answer.json()["result"]["content"][0]["text"].to_string();
            assert!(own.contains(&path.replace("NAME", "session")), "{own}");
        }
    }
    let large = grant.post(&both.two, &session(&first), &call("1", "read_note", "{}")).await;
    let text = &large.json()["result"]["content"][0]["text"];
    assert_eq!(text.as_str().map(str::len), Some(3_000_000));
    let streams = stage.log().iter().filter(|received| received.method == "GET").count();
    assert_eq!(streams, 2, "each session has one stream");
}

#[tokio::test]
async fn what_comes_on_the_older_transports_stream_reaches_the_replica_that_listens() {
    let stage = old_server("/messages?session=NAME").await;
    let both = Replicas::start().await;
    let grant = grant(&both.one, &stage, Transport::Sse);
    let id = grant.initialize(&both.one).await;
    let body = call("1", "slow", "{}")
        .replace("\"arguments\"", "\"_meta\":{\"progressToken\":\"t\"},\"arguments\"");
    let text = grant.post(&both.two, &session(&id), &body).await.text();
    let places: Vec<_> =
        ["\"progress\":1", "\"progress\":2", "slow done"].iter().map(|p| text.find(p)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    let mut get = grant.open(&both.two, Method::GET, &session(&id), "").await;
    assert_eq!(get.status, 200);
    for at in [&both.one, &both.two] {
        assert_eq!(grant.open(at, Method::GET, &session(&id), "").await.status, 409);
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(grant.post(&both.two, &session(&id), note).await.status, 202);
    let asked = timeout(SOON, get.piece()).await.expect("soon").expect("open").expect("whole");
    assert!(String::from_utf8_lossy(&asked).contains("roots/list"));
    let reply = r#"{"jsonrpc":"2.0","id":"r-1","result":{"roots":[]}}"#;
    assert_eq!(grant.post(&both.one, &session(&id), reply).await.status, 202);
    assert_eq!(stage.log().last().expect("one").text(), reply);
    // Closed and opened again, by the same replica at once.
    drop(get);
    let again = timeout(SOON, async {
        loop {
            let get = grant.open(&both.two, Method::GET, &session(&id), "").await;
            if get.status == 200 {
                return get;
            }
            tokio::task::yield_now().await;
        }
    });
    drop(again.await.expect("the stream is free again"));
    let ended = grant.open(&both.two, Method::DELETE, &session(&id), "").await;
    assert_eq!(ended.status, 200);
    for at in [&both.one, &both.two] {
        assert_eq!(grant.post(at, &session(&id), LIST).await.status, 404);
    }
}

#[tokio::test]
async fn a_session_whose_stream_is_lost_ends_and_nothing_hangs() {
    let stage = old_server("/messages?session=NAME").await;
    let both = Replicas::start().await;
    let grant = grant(&both.one, &stage, Transport::Sse);
    // The server ends the stream while another replica waits for an answer.
    let id = grant.initialize(&both.one).await;
    let cut = timeout(SOON, grant.post(&both.two, &session(&id), &call("5", "other", "{}"))).await;
    let cut = cut.expect("no hang").json();
    assert_eq!(cut["error"]["data"]["code"], "upstream_cut", "{cut}");
    assert_eq!(cut["error"]["data"]["may_have_run"], true);
    assert_eq!(grant.post(&both.two, &session(&id), LIST).await.status, 404);
}

#[tokio::test]
async fn a_session_whose_replica_dies_ends_and_nothing_runs_twice() {
    let stage = old_server("/messages?session=NAME").await;
    let both = Replicas::start().await;
    let (third, runtime) = both.third().await;
    let grant = grant(&both.one, &stage, Transport::Sse);
    let (waiting, idle) = (grant.initialize(&third).await, grant.initialize(&third).await);
    let before = stage.count();
    let (headers, body) = (session(&waiting), call("6", "delete_note", "{}"));
    let calling = grant.post(&both.two, &headers, &body);
    tokio::pin!(calling);
    tokio::select! {
        _ = &mut calling => unreachable!("it is not answered"),
        () = stage.arrived(before + 1) => {}
    }
    runtime.shutdown_background();
    let lost = timeout(Duration::from_secs(20), &mut calling).await.expect("no hang").json();
    assert_eq!(lost["error"]["data"]["code"], "upstream_cut", "{lost}");
    let (headers, body) = (session(&idle), call("7", "echo", "{}"));
    let gone = grant.post(&both.two, &headers, &body);
    assert_eq!(timeout(SOON, gone).await.expect("no hang").status, 404);
    assert_eq!(stage.calls().len(), 1, "nothing ran twice");
    assert!(!grant.initialize(&both.two).await.is_empty(), "a new session can be had");
}

#[tokio::test]
async fn without_the_shared_store_nothing_is_sent_that_could_not_be_answered() {
    let stage = old_server("/messages?session=NAME").await;
    let mut both = Replicas::start().await;
    let grant = grant(&both.one, &stage, Transport::Sse);
    let id = grant.initialize(&both.one).await;
    assert_eq!(grant.post(&both.two, &session(&id), LIST).await.status, 200);
    both.redis.kill();
    let before = stage.count();
    let asked = timeout(SOON, grant.post(&both.two, &session(&id), &call("1", "echo", "{}"))).await;
    let asked = asked.expect("no hang").json();
    assert_eq!(asked["error"]["data"]["code"], "upstream_unreachable", "{asked}");
    assert_eq!(asked["error"]["data"]["may_have_run"], false);
    assert_eq!(stage.count(), before);
    // Where the stream is read, the session goes on.
    let here = grant.post(&both.one, &session(&id), &call("1", "echo", "{}")).await;
    assert!(here.text().contains("/messages"), "{}", here.text());
}

//! Sessions: ids of our own, bound to one grant and server.

use std::time::Duration;

use http::Method;
use sluice_domain::SecurityKind::ForeignSession;
use sluice_proxy::ProxyOptions;

use crate::gateway::{ALLOW_ALL, Gateway, Setup, call, initialize};
use crate::stage::{Received, Stage, Wire};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A server with sessions that is as strict as the specification lets it be.
async fn stateful(received: Received, mut wire: Wire) {
    let json = ("content-type", "application/json");
    let id = received.id();
    match (received.method.as_str(), received.rpc().as_str()) {
        ("POST", "initialize") => {
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
            );
            wire.answer("200 OK", &[json, ("mcp-session-id", "upstream-session")], &result).await;
        }
        _ if received.header("mcp-session-id") != Some("upstream-session") => {
            // Some servers put a new session id on a refusal.
            wire.answer("400 Bad Request", &[json, ("mcp-session-id", "not-to-be-bound")], r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"needs a session"}}"#).await;
        }
        ("DELETE", _) => wire.answer("200 OK", &[], "").await,
        ("GET", _) => {
            wire.events().await;
            wire.raw(": hello\n\n").await;
            wire.gone().await;
        }
        (_, "tools/call") if received.tool() == "slow" => wire.gone().await,
        (_, "tools/call") if received.tool() == "other" => {
            wire.answer(
                "404 Not Found",
                &[json],
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}"#,
            )
            .await;
        }
        (_, method) if method.starts_with("notifications/") => {
            wire.answer("202 Accepted", &[], "").await;
        }
        _ => wire.text(&id, "done").await,
    }
}

#[tokio::test]
async fn a_session_is_ours_upstream_theirs_and_of_one_grant() {
    let stage = Stage::start(stateful).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let (sibling, stranger) = (gateway.sibling(&grant), gateway.grant(&stage.url(), ALLOW_ALL));
    let id = grant.initialize(&gateway).await;
    assert!(!id.is_empty() && id != "upstream-session" && id.bytes().all(|b| b.is_ascii_graphic()));
    assert_ne!(id, grant.initialize(&gateway).await);
    let session = [("mcp-session-id", id.as_str())];
    assert_eq!(grant.post(&gateway, &session, PING).await.status, 200);
    let before = stage.count();
    for other in [&sibling, &stranger] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let answer = other
                .open(&gateway, method, &session, PING)
                .await
                .whole()
                .await
                .expect("an answer");
            assert_eq!(answer.status, 404);
            assert_eq!(gateway.security().last(), Some(&ForeignSession));
        }
    }
    for odd in ["no-such-session", "upstream-session", &id[1..], &format!("{id}x")] {
        let answer = grant.post(&gateway, &[("mcp-session-id", odd)], PING).await;
        assert_eq!(answer.status, 404, "{odd}");
        assert!(answer.text().contains("-32001"));
    }
    assert_eq!(stage.count(), before);
    assert_eq!(grant.post(&gateway, &session, PING).await.status, 200);
}

#[tokio::test]
async fn without_a_session_the_upstream_says_what_it_thinks_of_that() {
    let stage = Stage::start(stateful).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let answer = grant.post(&gateway, &[], PING).await;
    assert_eq!((answer.status.as_u16(), answer.header("mcp-session-id")), (400, ""));
}

#[tokio::test]
async fn a_deleted_or_expired_session_is_gone() {
    let stage = Stage::start(stateful).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let one = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", one.as_str())];
    let deleted =
        grant.open(&gateway, Method::DELETE, &session, "").await.whole().await.expect("an answer");
    assert_eq!(deleted.status, 200);
    assert_eq!(stage.log().last().expect("one").header("mcp-session-id"), Some("upstream-session"));
    assert_eq!(grant.post(&gateway, &session, PING).await.status, 404);
    let two = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", two.as_str())];
    let expired = grant.post(&gateway, &session, &call("1", "other", "{}")).await;
    assert_eq!(
        (expired.status.as_u16(), expired.json()["error"]["code"].as_i64()),
        (404, Some(-32001))
    );
    let before = stage.count();
    assert_eq!(grant.post(&gateway, &session, PING).await.status, 404);
    assert_eq!(stage.count(), before);
}

/// Clients seldom say goodbye.
#[tokio::test]
async fn a_session_that_nobody_uses_ends_here_and_at_its_server() {
    let stage = Stage::start(stateful).await;
    let options =
        ProxyOptions { session_idle: Duration::from_millis(50), ..ProxyOptions::default() };
    let gateway = Gateway::with(Setup { options, ..Setup::default() }).await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(grant.initialize(&gateway).await);
    }
    let before = stage.count();
    gateway.clock.advance(chrono::TimeDelta::minutes(1));
    let ended = async {
        while gateway.state.sizes().sessions > 0 || stage.count() < before + ids.len() {
            gateway.state.tidy().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("they end");
    for received in &stage.log()[before..] {
        let session = received.header("mcp-session-id");
        assert_eq!((received.method.as_str(), session), ("DELETE", Some("upstream-session")));
    }
    for id in &ids {
        let answer = grant.post(&gateway, &[("mcp-session-id", id)], PING).await;
        assert_eq!((answer.status.as_u16(), stage.count()), (404, before + ids.len()));
    }
}

#[tokio::test]
async fn the_client_of_a_session_is_known_on_its_calls() {
    let stage = Stage::start(stateful).await;
    let mut gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"require":[
        {"conditions":[{"path":"session.client_name","op":"eq","value":"tester"}]}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let id = grant.initialize(&gateway).await;
    let session = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert!(grant.post(&gateway, &session, &call("1", "echo", "{}")).await.text().contains("done"));
    let records = gateway.records();
    let record = records.last().expect("one");
    assert_eq!(record.client_name.as_deref(), Some("tester"));
    assert_eq!(record.session.as_deref(), Some(id.as_str()));
    assert_eq!(record.protocol_version.as_deref(), Some("2025-11-25"));
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time_in_a_session_and_freely_across_sessions() {
    let stage = Stage::start(stateful).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let (one, two) = (grant.initialize(&gateway).await, grant.initialize(&gateway).await);
    let (in_one, in_two) = ([("mcp-session-id", one.as_str())], [("mcp-session-id", two.as_str())]);
    let slow_body = call("1", "slow", "{}");
    let slow = grant.post(&gateway, &in_one, &slow_body);
    tokio::pin!(slow);
    let before = stage.count();
    tokio::select! {
        _ = &mut slow => unreachable!("it never answers"),
        () = stage.arrived(before + 1) => {}
    }
    let (same, text) = (call("1", "echo", "{}"), call("\"1\"", "echo", "{}"));
    let others = async {
        let again = grant.post(&gateway, &in_one, &same).await;
        assert_eq!(
            (again.status.as_u16(), again.json()["error"]["code"].as_i64()),
            (400, Some(-32600))
        );
        assert_eq!(stage.count(), before + 1);
        assert!(grant.post(&gateway, &in_one, &text).await.text().contains("done"));
        assert!(grant.post(&gateway, &in_two, &same).await.text().contains("done"));
    };
    tokio::select! {
        _ = &mut slow => unreachable!("it never answers"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_client_may_answer_only_what_it_was_asked() {
    let stage = Stage::start(|received: Received, mut wire: Wire| async move {
        match received.rpc().as_str() {
            "tools/call" => {
                wire.events().await;
                wire.raw("data: {\"jsonrpc\":\"2.0\",\"id\":\"e-1\",\"method\":\"elicitation/create\",\"params\":{}}\n\n").await;
                wire.gone().await;
            }
            "initialize" => stateful(received, wire).await,
            _ => wire.answer("202 Accepted", &[], "").await,
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let (one, two) = (grant.initialize(&gateway).await, grant.initialize(&gateway).await);
    let session = [("mcp-session-id", one.as_str())];
    let mut opened = grant.open(&gateway, Method::POST, &session, &call("1", "echo", "{}")).await;
    let piece = opened.piece().await.expect("an event").expect("whole");
    assert!(piece.starts_with(b"data: {\"jsonrpc\":\"2.0\",\"id\":\"e-1\""));
    let before = stage.count();
    let reply = r#"{"jsonrpc":"2.0","id":"e-1","result":{"action":"accept","content":{"n":12345678901234567890}}}"#;
    let wrong = reply.replace("e-1", "e-2");
    assert_eq!(grant.post(&gateway, &session, &wrong).await.status, 400);
    assert_eq!(grant.post(&gateway, &[("mcp-session-id", two.as_str())], reply).await.status, 400);
    assert_eq!(grant.post(&gateway, &[], reply).await.status, 400);
    assert_eq!(stage.count(), before);
    assert_eq!(grant.post(&gateway, &session, reply).await.status, 202);
    assert_eq!(stage.log().last().expect("one").text(), reply);
    assert_eq!(grant.post(&gateway, &session, reply).await.status, 400);
}

#[tokio::test]
async fn the_session_scope_counts_each_session_by_itself() {
    let stage = Stage::start(stateful).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), r#"{"version":"1","default":"allow","tools":{"echo":{"rate_limit":{"max":2,"window":60}}}}"#);
    for _ in 0..2 {
        let id = grant.initialize(&gateway).await;
        let session = [("mcp-session-id", id.as_str())];
        let mut passed = 0;
        for call_id in 0..4 {
            let answer =
                grant.post(&gateway, &session, &call(&call_id.to_string(), "echo", "{}")).await;
            passed += usize::from(answer.text().contains("done"));
        }
        assert_eq!(passed, 2);
    }
}

#[tokio::test]
async fn an_initialize_that_fails_binds_nothing() {
    let stage = Stage::start(|_, mut wire: Wire| async move {
        let headers = [("content-type", "application/json"), ("mcp-session-id", "x")];
        wire.answer(
            "400 Bad Request",
            &headers,
            r#"{"jsonrpc":"2.0","id":"init","error":{"code":-32602,"message":"no"}}"#,
        )
        .await;
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let answer = grant.post(&gateway, &[], &initialize()).await;
    assert_eq!((answer.status.as_u16(), answer.header("mcp-session-id")), (400, ""));
    assert_eq!(gateway.state.sizes().sessions, 0);
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_404_however_the_server_says_it() {
    for (status, body, gone) in [
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}"#,
            true,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
            true,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
            true,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid session"}}"#,
            false,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Unsupported protocol version"}}"#,
            false,
        ),
    ] {
        let stage = Stage::start(move |received: Received, mut wire: Wire| async move {
            if received.rpc() == "initialize" {
                return stateful(received, wire).await;
            }
            wire.answer(status, &[("content-type", "application/json")], body).await;
        })
        .await;
        let gateway = Gateway::start().await;
        let grant = gateway.grant(&stage.url(), ALLOW_ALL);
        let id = grant.initialize(&gateway).await;
        let session = [("mcp-session-id", id.as_str())];
        let first = grant.post(&gateway, &session, &call("1", "echo", "{}")).await;
        assert_eq!((first.status == 404, first.text().as_str()), (gone, body));
        let before = stage.count();
        let second = grant.post(&gateway, &session, &call("1", "echo", "{}")).await;
        assert_eq!(second.status == 404, gone, "{body}");
        // A forgotten session is not asked for again; nothing is repeated.
        assert_eq!(stage.count() - before, usize::from(!gone));
        let bare = grant.post(&gateway, &[], &call("1", "echo", "{}")).await;
        assert!(status.starts_with(bare.status.as_str()), "without a session nothing is changed");
    }
}

#[tokio::test]
async fn a_list_of_tools_is_cut_whichever_request_it_answers() {
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"},{"name":"purge"}]}}"#;
    for in_stream in [false, true] {
        let stage = Stage::start(move |_, mut wire: Wire| async move {
            if in_stream {
                wire.events().await;
                wire.raw(format!("data: {list}\n\n")).await;
            } else {
                wire.json(list).await;
            }
        })
        .await;
        let gateway = Gateway::start().await;
        let policy = r#"{"version":"1","default":"allow","hide":["purge"]}"#;
        let grant = gateway.grant(&stage.url(), policy);
        for body in [PING.to_owned(), call("1", "echo", "{}")] {
            let answer = grant.post(&gateway, &[], &body).await;
            assert!(
                answer.text().contains("echo") && !answer.text().contains("purge"),
                "{}",
                answer.text()
            );
        }
    }
    // A result of a call may have a member of that name.
    let stage = Stage::start(|_, mut wire: Wire| async move {
        wire.json(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"tools":[{"name":"purge"}]}}"#)
            .await;
    })
    .await;
    let gateway = Gateway::start().await;
    let grant =
        gateway.grant(&stage.url(), r#"{"version":"1","default":"allow","hide":["purge"]}"#);
    assert!(grant.call(&gateway, "1", "echo", "{}").await.text().contains("purge"));
}

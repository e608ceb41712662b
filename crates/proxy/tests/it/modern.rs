//! What the 2026-07-28 era adds: calls that ask for input, tasks, and streams that announce.

use std::time::Duration;

use http::Method;
use tokio::time::timeout;

use crate::gateway::{ALLOW_ALL, Gateway, Grant, initialize};
use crate::stage::{Received, Stage, Wire};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

async fn modern(
    gateway: &Gateway,
    grant: &Grant,
    method: &str,
    name: Option<&str>,
    params: &str,
) -> sluice_testkit::http::Answer {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{META}}}}}"#);
    grant.post(gateway, &headers, &body).await
}

async fn play(received: Received, mut wire: Wire) {
    let id = received.id();
    let params = &received.json()["params"];
    let result = match (received.rpc().as_str(), received.tool().as_str()) {
        ("tools/call", "slow") => r#"{"resultType":"task","taskId":"t-1","status":"working"}"#.to_owned(),
        ("tools/call", _) if params["inputResponses"].is_null() || params["arguments"]["again"] == true => {
            r#"{"resultType":"input_required","requestState":"s\u002d1","inputRequests":{"who":{}}}"#.to_owned()
        }
        ("tools/call", _) => r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#.to_owned(),
        _ => "{}".to_owned(),
    };
    wire.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
}

#[tokio::test]
async fn a_call_that_brings_its_input_is_decided_again_but_not_counted_twice() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":2}],
        "deny_if":[{"conditions":[{"path":"args.x","op":"eq","value":9}]}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let call = async |params: &str| {
        modern(&gateway, &grant, "tools/call", Some("echo"), params).await.text()
    };
    let input =
        r#""name":"echo","arguments":{"x":1},"requestState":"s-1","inputResponses":{"who":{}},"#;
    // Nothing was asked yet, so this one counts.
    assert!(call(input).await.contains("done"));
    assert!(call(r#""name":"echo","arguments":{"x":1},"#).await.contains("input_required"));
    assert!(call(input).await.contains("done"));
    // The asking is used up, and so is the limit.
    assert!(call(input).await.contains("rate_limited"));
    assert!(call(&input.replace("\"x\":1", "\"x\":2")).await.contains("rate_limited"));
    assert!(call(&input.replace("\"x\":1", "\"x\":9")).await.contains("deny_if_matched"));
    assert_eq!(stage.calls().len(), 3);
}

#[tokio::test]
async fn asking_again_and_again_is_counted_in_the_end() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":1}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let mut rounds = 0;
    let again = r#""name":"echo","arguments":{"again":true},"requestState":"s-1","inputResponses":{"who":{}},"#;
    while modern(&gateway, &grant, "tools/call", Some("echo"), again)
        .await
        .text()
        .contains("input_required")
    {
        rounds += 1;
        assert!(rounds < 50);
    }
    assert_eq!(rounds, 9);
}

#[tokio::test]
async fn a_task_is_its_grants_alone() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let sibling = gateway.sibling(&grant);
    let started =
        modern(&gateway, &grant, "tools/call", Some("slow"), r#""name":"slow","arguments":{},"#)
            .await;
    assert!(started.text().contains("t-1"));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(
            modern(&gateway, &grant, method, Some("t-1"), r#""taskId":"t-1","#).await.status,
            200
        );
        let before = stage.count();
        let foreign = modern(&gateway, &sibling, method, Some("t-1"), r#""taskId":"t-1","#).await;
        assert!(
            foreign.text().contains("Task not found") && stage.count() == before,
            "{}",
            foreign.text()
        );
    }
    let before = stage.count();
    let list = grant.post(&gateway, &[], r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#).await;
    assert!(list.text().contains("-32601") && stage.count() == before);
}

async fn announcing(received: Received, mut wire: Wire) {
    let json = ("content-type", "application/json");
    if received.rpc() == "initialize" {
        let declared = received.text().contains("tester");
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":"init","result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":{declared}}}}}}}}}"#
        );
        wire.answer("200 OK", &[json, ("mcp-session-id", "s")], &result).await;
        return;
    }
    wire.events().await;
    wire.raw(": hello\n\n").await;
    wire.gone().await;
}

#[tokio::test]
async fn an_open_stream_is_told_when_the_policy_changes_the_list() {
    let stage = Stage::start(announcing).await;
    let gateway = Gateway::start().await;
    let mut grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let declared = grant.initialize(&gateway).await;
    let silent = grant.post(&gateway, &[], &initialize().replace("tester", "other")).await;
    let silent = silent.header("mcp-session-id").to_owned();
    let mut told = grant.open(&gateway, Method::GET, &[("mcp-session-id", &declared)], "").await;
    let mut untold = grant.open(&gateway, Method::GET, &[("mcp-session-id", &silent)], "").await;
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
    let mut listening = grant.open(&gateway, Method::POST, &headers, &listen).await;
    for stream in [&mut told, &mut untold, &mut listening] {
        assert_eq!(stream.piece().await.expect("open").expect("whole"), ": hello\n\n");
    }
    gateway.change(&mut grant, |record| record.grant.label = "renamed".to_owned());
    gateway.change(&mut grant, |record| record.policy.as_mut().expect("one").version = 5);
    let soon = Duration::from_secs(5);
    let event = timeout(soon, told.piece()).await.expect("told").expect("open").expect("whole");
    assert_eq!(
        event,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
    );
    let event =
        timeout(soon, listening.piece()).await.expect("told").expect("open").expect("whole");
    assert!(
        String::from_utf8_lossy(&event)
            .contains(r#""io.modelcontextprotocol/subscriptionId":"sub""#)
    );
    assert!(timeout(Duration::from_millis(100), untold.piece()).await.is_err());
}

#[tokio::test]
async fn a_task_of_unknown_owner_is_nobodys_outside_a_session() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let foreign = modern(&gateway, &grant, method, Some("t-9"), r#""taskId":"t-9","#).await;
        assert_eq!(foreign.status, 404);
        assert!(foreign.text().contains("Task not found"), "{}", foreign.text());
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"taskId":"t-9"}}}}"#
        );
        assert!(grant.post(&gateway, &[], &body).await.text().contains("Task not found"));
    }
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn an_answer_of_a_client_has_no_place_in_the_stateless_era() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"params":{{{META}}}}}"#),
    ] {
        let headers = [("mcp-protocol-version", "2026-07-28")];
        assert_eq!(grant.post(&gateway, &headers, &body).await.status, 400, "{body}");
    }
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn a_header_that_repeats_an_argument_must_say_the_same() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
        record.tools[0].input_schema = Some(
            r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#.to_owned(),
        );
    });
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"region":"eu"}},{META}}}}}"#
    );
    let base = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let send = async |more: &[(&str, &str)]| {
        let headers: Vec<_> = base.iter().chain(more).copied().collect();
        grant.post(&gateway, &headers, &body).await
    };
    for fine in [&[][..], &[("mcp-param-region", "eu")], &[("mcp-param-other", "x")]] {
        assert_eq!(send(fine).await.status, 200, "{fine:?}");
    }
    let before = stage.count();
    for wrong in [
        &[("mcp-param-region", "us")][..],
        &[("mcp-param-region", "eu"), ("mcp-param-region", "us")],
        &[("mcp-param-other", "x"), ("mcp-param-other", "x")],
    ] {
        let answer = send(wrong).await;
        assert_eq!(answer.status, 400, "{wrong:?}");
        assert!(answer.text().contains("-32020"), "{}", answer.text());
    }
    assert_eq!(stage.count(), before);
    // In the older era the header means nothing, and does not go on.
    let old = crate::gateway::call("1", "echo", r#"{"region":"eu"}"#);
    assert_eq!(grant.post(&gateway, &[("mcp-param-region", "us")], &old).await.status, 200);
    assert_eq!(stage.log().last().expect("one").header("mcp-param-region"), None);
}

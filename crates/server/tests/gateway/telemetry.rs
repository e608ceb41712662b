//! Spans and log lines on their way to a collector, and the trace on its way to the server.

use std::fmt::Write as _;

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::collector::{FakeCollector, Received, Span, said};
use sluice_testkit::http::{self, Answer};
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, Setup, Sluice};

use crate::world::{Agent, World, passed, request_id, setup};

const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// An argument's value: in no span and in no line.
const VALUE: &str = "value-of-an-argument";

fn sending(collector: &FakeCollector) -> Setup {
    setup()
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hush")
        .with("OTEL_SERVICE_NAME", "gate")
        .with("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
}

async fn call(agent: &Agent, at: &Sluice, tool: &str, traceparent: Option<&str>) -> Answer {
    let mut headers = vec![
        ("authorization", agent.bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    headers.extend(traceparent.map(|value| ("traceparent", value)));
    let params = json!({"name": tool, "arguments": {"text": VALUE}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let sent = http::send(at.address(), Method::POST, &agent.path, &headers, call.to_string());
    sent.await.expect("an answer")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory takes it");
        text
    })
}

/// The `traceparent` of each call that a server got.
fn told_to(upstream: &FakeServer) -> Vec<String> {
    let seen = upstream.seen();
    let calls = seen.iter().filter(|seen| seen.method() == "tools/call");
    calls.map(|seen| seen.headers["traceparent"].to_str().expect("text").to_owned()).collect()
}

fn both<'a>(received: &'a Received, trace: &str, name: &str) -> Option<(&'a Span, &'a Span)> {
    let of = |kind| {
        let mut spans = received.spans.iter();
        spans.find(|span| span.kind == kind && span.name == name && hex(&span.trace_id) == trace)
    };
    Some((of(SERVER)?, of(CLIENT)?))
}

async fn metric(at: &Sluice, begins: &str) -> f64 {
    let text = at.send(Method::GET, "/metrics", &[], "").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(begins)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {begins}: {text}"))
}

/// What every request says of its sender, and what none may hold.
fn names_itself_and_nothing_secret(received: &Received, token: &str) {
    assert_eq!(said(&received.resource, "service.name"), "gate");
    assert_eq!(said(&received.resource, "deployment.environment.name"), "test");
    assert!(received.credentials.iter().all(|one| one == "Bearer hush"));
    let everything = format!("{received:?}");
    assert!(!everything.contains(VALUE) && !everything.contains(token), "{everything}");
}

#[tokio::test]
async fn a_call_is_two_spans_of_its_clients_trace_and_its_server_learns_of_it() {
    let (collector, upstream) = (FakeCollector::start().await, FakeServer::start().await);
    upstream.tools(vec![tool("echo", "Read a note"), tool("other", "Read a note")]);
    let world = World::start(sending(&collector)).await;
    let policy = json!({"version": "1", "default": "deny", "tools": {"echo": {}}});
    let connected = world.connect("notes", &upstream.url(), policy).await;
    let agent = connected.agent();
    let at = &world.sluice;

    let parent = format!("00-{TRACE}-{PARENT}-01");
    let answer = call(&agent, at, "echo", Some(&parent)).await;
    assert!(passed(&answer.json()), "{}", answer.text());
    let own = call(&agent, at, "echo", None).await;
    let own_trace = request_id(&own.headers).replace('-', "");
    let refused = call(&agent, at, "other", None).await;
    let refused_trace = request_id(&refused.headers).replace('-', "");
    let quiet = call(&agent, at, "echo", Some(&format!("00-{TRACE}-{PARENT}-00"))).await;
    assert!(passed(&quiet.json()));
    let received = collector
        .until(|received| {
            both(received, TRACE, "tools/call echo").is_some()
                && both(received, &own_trace, "tools/call echo").is_some()
                && received.spans.iter().any(|span| hex(&span.trace_id) == refused_trace)
        })
        .await;

    let (server, client) = both(&received, TRACE, "tools/call echo").expect("it came");
    assert_eq!(hex(&server.parent_span_id), PARENT);
    assert_eq!(client.parent_span_id, server.span_id);
    assert!(server.start_time_unix_nano <= client.start_time_unix_nano);
    assert!(client.end_time_unix_nano <= server.end_time_unix_nano);
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("sluice.outcome", "allowed"),
        ("sluice.request", request_id(&answer.headers)),
        ("sluice.server", connected.server.as_str()),
        ("sluice.grant", connected.grant.as_str()),
    ] {
        assert_eq!(said(&server.attributes, key), value, "{key}");
    }
    assert_eq!(said(&client.attributes, "http.response.status_code"), "200");
    let (server, client) = both(&received, &own_trace, "tools/call echo").expect("it came");
    assert!(server.parent_span_id.is_empty() && client.parent_span_id == server.span_id);

    // What each server was told is the span of that very request.
    let calls = told_to(&upstream);
    let told = |trace: &str, client: &Span| format!("00-{trace}-{}-01", hex(&client.span_id));
    let (_, first) = both(&received, TRACE, "tools/call echo").expect("it came");
    assert_eq!(calls[..2], [told(TRACE, first), told(&own_trace, client)]);
    assert!(
        calls[2].starts_with(&format!("00-{TRACE}-")) && calls[2].ends_with("-00"),
        "{calls:?}"
    );
    let of_trace = received.spans.iter().filter(|span| hex(&span.trace_id) == TRACE).count();
    assert_eq!(of_trace, 2, "what its client does not keep is not kept here");

    let refused: Vec<&Span> =
        received.spans.iter().filter(|span| hex(&span.trace_id) == refused_trace).collect();
    assert_eq!(refused.len(), 1, "nothing was sent on");
    assert_eq!(said(&refused[0].attributes, "sluice.code"), "default_deny");
    names_itself_and_nothing_secret(&received, &connected.token);
    world.sluice.stop().await;
}

#[tokio::test]
async fn log_lines_name_their_request_and_its_trace_here_and_at_the_collector() {
    let (collector, upstream) = (FakeCollector::start().await, FakeServer::start().await);
    let world = World::start(sending(&collector).with("SLUICE_LOG_FORMAT", "json")).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    drop(upstream);
    let failed =
        call(&agent, &world.sluice, "echo", Some(&format!("00-{TRACE}-{PARENT}-01"))).await;
    assert!(failed.json()["error"].is_object(), "{}", failed.text());
    let received = collector
        .until(|received| received.lines.iter().any(|line| hex(&line.trace_id) == TRACE))
        .await;
    let line = received.lines.iter().find(|line| hex(&line.trace_id) == TRACE).expect("it came");
    assert_eq!(said(&line.attributes, "sluice.request"), request_id(&failed.headers));
    assert_eq!(line.severity_text, "INFO");
    let span = received.span("tools/call echo", SERVER);
    assert!(span.is_none_or(|span| span.span_id == line.span_id));

    let text = world.sluice.said();
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of_call = lines.iter().find(|line| line["trace_id"] == TRACE);
    let of_call = of_call.unwrap_or_else(|| panic!("no line of the call: {text}"));
    assert_eq!(of_call["request_id"], request_id(&failed.headers));
    assert_eq!(of_call["message"], "A request to an upstream failed");
    assert!(
        of_call["timestamp"].is_string()
            && of_call["level"] == "INFO"
            && of_call["target"].is_string()
    );
    assert!(!text.contains("hush") && !text.contains(VALUE), "{text}");
    world.sluice.stop().await;
}

#[tokio::test]
async fn a_collector_that_takes_nothing_is_told_once_and_counted_and_holds_no_call() {
    let (collector, upstream) = (FakeCollector::start().await, FakeServer::start().await);
    let world = World::start(sending(&collector).with("OTEL_LOGS_EXPORTER", "none")).await;
    let policy = json!({"version": "1", "default": "allow"});
    let agent = world.connect("notes", &upstream.url(), policy).await.agent();
    let at = &world.sluice;
    collector.answer(400);
    for round in 1..=2 {
        let before = collector.received().requests;
        assert!(passed(&call(&agent, at, "echo", None).await.json()), "{round}");
        collector.until(|received| received.requests > before).await;
    }
    collector.answer(200);
    assert!(passed(&call(&agent, at, "echo", None).await.json()));
    collector.until(|received| received.span("tools/call echo", CLIENT).is_some()).await;
    let lost = metric(at, "sluice_telemetry_lost_total{signal=\"traces\"}").await;
    assert!(lost >= 4.0, "{lost}");
    assert!(collector.received().lines.is_empty(), "they are switched off");
    let world_said = at.said();
    world.sluice.terminate();
    let (_, said) = world.sluice.ended().await;
    let told = said.matches("The OpenTelemetry collector takes nothing").count();
    assert_eq!(told, 1, "{world_said}{said}");
}

#[tokio::test]
async fn a_stop_sends_what_is_left_and_a_collector_that_is_gone_does_not_hold_it() {
    for gone in [false, true] {
        let (collector, upstream) = (FakeCollector::start().await, FakeServer::start().await);
        let world = World::start(sending(&collector)).await;
        let policy = json!({"version": "1", "default": "allow"});
        let agent = world.connect("notes", &upstream.url(), policy).await.agent();
        let answer = call(&agent, &world.sluice, "echo", None).await;
        if gone {
            drop(collector);
            world.sluice.stop().await;
            continue;
        }
        world.sluice.stop().await;
        let trace = request_id(&answer.headers).replace('-', "");
        let received = collector.received();
        assert!(both(&received, &trace, "tools/call echo").is_some(), "{received:?}");
    }
}

#[tokio::test]
async fn another_protocol_or_headers_that_are_none_are_refused_at_the_start() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hush"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hush"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ] {
        let setup =
            setup().with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").with(name, value);
        let output = setup.output(&["serve"]).await;
        assert_eq!(output.status.code(), Some(2), "{name}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("hush") && !told.is_empty(), "{told}");
    }
}

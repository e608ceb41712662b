//! What is decided on is what is sent, byte for byte; what cannot be read one way only is refused.

use http::Method;
use serde_json::{Value, json};
use sluice_domain::ValidateArguments;

use crate::gateway::{ALLOW_ALL, Gateway, call, code, record};
use crate::stage::{Received, Stage, Wire};

async fn echo(received: Received, mut wire: Wire) {
    wire.text(&received.id(), "done").await;
}

#[tokio::test]
async fn the_bytes_that_were_decided_on_are_sent() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = " {\"params\" : {\"vendor\":true,\"arguments\":{\"b\":9007199254740993,\"a\":123456789012345678901234567890,\
        \"f\":1.0,\"e\":1E+400,\"n\":-0.0,\"s\":\"\\u0000\\/\\ud83d\\ude00é\"},\"name\":\"ec\\u0068o\",\"task\":{\"ttl\":1},\
        \"_meta\":{\"com.acme/x\":[1.0]}},\n\"id\":\"\\u0061\",\"method\":\"tools/call\",\"jsonrpc\":\"2.0\",\"extra\":1.50}\n";
    let answer = grant.post(&gateway, &[], body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(stage.log()[0].text(), body);
    assert!(answer.text().contains(r#""id":"\u0061""#), "{}", answer.text());
}

#[tokio::test]
async fn ids_come_back_as_they_were_written_on_every_way() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{
        "other":{"deny_if":[{"conditions":[]}]},"slow":{"limits":[{"counter":"c","window":"hour","max":0,"scope":"grant"}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let dead = gateway.grant("http://127.0.0.1:9/mcp", policy);
    for id in [r#""1""#, r#""007""#, "0", "-1", r#""""#, "9223372036854775808", r#""ü""#] {
        for (grant, tool) in
            [(&grant, "echo"), (&grant, "other"), (&grant, "slow"), (&dead, "echo")]
        {
            let answer = grant.call(&gateway, id, tool, "{}").await;
            assert!(
                answer.text().contains(&format!(r#""id":{id},"#)),
                "{tool} {id}: {}",
                answer.text()
            );
        }
    }
}

#[tokio::test]
async fn what_two_parsers_may_read_differently_is_refused_and_logged() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"delete_note":{"deny_if":[{"conditions":[]}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let params = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    let table = [
        (params(r#"{"name":"read_note","arguments":{},"name":"delete_note"}"#), -32600, json!(1)),
        (
            params(r#"{"name":"read_note","arguments":{},"na\u006de":"delete_note"}"#),
            -32600,
            json!(1),
        ),
        (params(r#"{"name":"read_note","arguments":{},"Name":"delete_note"}"#), -32600, json!(1)),
        (params(r#"{"name":"read_note","arguments":{"a":{"b":1,"b":2}}}"#), -32600, json!(1)),
        (params("{\"name\":\"read_note\",\"argument\u{17f}\":{}}"), -32600, json!(1)),
        (params(r#"{"name":"read_note\ud800"}"#), -32600, json!(1)),
        (
            params(&format!(r#"{{"name":"read_note","arguments":{{"a":{deep}}}}}"#)),
            -32600,
            Value::Null,
        ),
        (params(r#"{"name":"read_note","arguments":[]}"#), -32602, json!(1)),
        (params(r#"{"arguments":{}}"#), -32602, json!(1)),
        (params("[]"), -32602, json!(1)),
        (format!("[{}]", params(r#"{"name":"delete_note"}"#)), -32600, Value::Null),
        (r#"[1,"tools/call",{"name":"delete_note"}]"#.to_owned(), -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call""#.to_owned(), -32700, Value::Null),
        (format!("\u{feff}{}", params(r#"{"name":"read_note"}"#)), -32700, Value::Null),
        (format!("{0}{0}", params(r#"{"name":"read_note"}"#)), -32700, Value::Null),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_note"}}"#.to_owned(),
            -32600,
            Value::Null,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#.to_owned(), -32600, json!(1)),
    ];
    for (body, code, id) in &table {
        let answer = grant.post(&gateway, &[], body).await;
        let json = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &json["error"]["code"], &json["id"]),
            (400, &json!(code), id),
            "{body}"
        );
        let record = gateway.record().await;
        assert_eq!(
            (record.outcome.as_str(), record.code.as_str()),
            ("rejected", "malformed"),
            "{body}"
        );
        assert_eq!(answer.header("x-request-id"), record.id.to_string());
    }
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn numbers_are_compared_exactly() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"deny_if":[
        {"conditions":[{"path":"args.id","op":"eq","value":9007199254740992}]}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let arguments = r#"{"id":9007199254740993,"price":1.10,"big":123456789012345678901234567890}"#;
    assert!(grant.call(&gateway, "1", "echo", arguments).await.text().contains("done"));
    assert_eq!(stage.log()[0].text(), call("1", "echo", arguments));
    let refused = grant.call(&gateway, "2", "echo", r#"{"id":9007199254740992.0}"#).await;
    assert!(refused.text().contains("deny_if_matched"), "{}", refused.text());
}

#[tokio::test]
async fn bodies_have_bounds_a_coding_and_a_type() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let large = call("1", "echo", &format!("{{\"m\":\"{}\"}}", "x".repeat(4 << 20)));
    assert_eq!(grant.post(&gateway, &[], &large).await.status, 413);
    let fits = call("1", "echo", &format!("{{\"m\":\"{}\"}}", "é".repeat(2_000_000)));
    assert_eq!(grant.post(&gateway, &[], &fits).await.status, 200);
    let small = call("1", "echo", "{}");
    for headers in [
        [("content-encoding", "gzip")],
        [("content-type", "text/plain")],
        [("content-encoding", "br")],
    ] {
        assert_eq!(grant.post(&gateway, &headers, &small).await.status, 415, "{headers:?}");
    }
    let typed =
        [("content-type", "application/json; charset=utf-8"), ("content-encoding", "identity")];
    assert_eq!(grant.post(&gateway, &typed, &small).await.status, 200);
    assert_eq!(stage.count(), 2);
}

#[tokio::test]
async fn in_the_modern_era_headers_must_agree_with_the_body() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    let good = [version, method, ("mcp-name", "=?base64?ZWNobw==?="), ("mcp-param-region", "eu")];
    assert_eq!(grant.post(&gateway, &good, body).await.status, 200);
    assert_eq!(stage.log()[0].header("mcp-param-region"), Some("eu"));
    assert_eq!(stage.log()[0].header("mcp-name"), Some("=?base64?ZWNobw==?="));
    let wrong: [&[(&str, &str)]; 6] = [
        &[version, ("mcp-method", "tools/list"), ("mcp-name", "echo")],
        &[version, method, ("mcp-name", "other")],
        &[version, method],
        &[version, method, ("mcp-name", "echo"), ("mcp-name", "echo")],
        &[version, method, ("mcp-name", "echo"), ("mcp-session-id", "x")],
        &[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "echo")],
    ];
    for headers in wrong {
        let answer = grant.post(&gateway, headers, body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (400, &json!(-32020)),
            "{headers:?}"
        );
    }
    let legacy = grant.post(&gateway, &[version], &call("1", "echo", "{}")).await;
    assert_eq!(legacy.status, 400);
    assert_eq!(stage.count(), 1);
    // A legacy server is not sent headers that it would have to trust.
    grant
        .post(
            &gateway,
            &[("mcp-method", "tools/list"), ("mcp-param-x", "y")],
            &call("1", "echo", "{}"),
        )
        .await;
    assert_eq!(
        (stage.log()[1].header("mcp-method"), stage.log()[1].header("mcp-param-x")),
        (None, None)
    );
}

#[tokio::test]
async fn only_methods_that_the_server_allows_pass() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
        record.server.settings.prompts = sluice_domain::Access::Deny;
    });
    let request =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{{}}}}"#);
    for method in [
        "acme/none",
        "Tools/Call",
        "tools/call\u{a0}",
        "prompts/list",
        "prompts/get",
        "notifications/initialized",
    ] {
        let answer = grant.post(&gateway, &[], &request(method)).await;
        let json = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &json["error"]["code"], &json["id"]),
            (200, &json!(-32601), &json!("q")),
            "{method}"
        );
    }
    let meta = r#"{"jsonrpc":"2.0","id":1,"method":"acme/none","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "acme/none")];
    assert_eq!(grant.post(&gateway, &modern, meta).await.status, 404);
    assert_eq!(stage.count(), 0);
    assert_eq!(grant.post(&gateway, &[], &request("resources/list")).await.status, 200);
    let any = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
        record.server.settings.methods = sluice_domain::Methods::Any;
    });
    assert!(any.post(&gateway, &[], &request("acme/none")).await.text().contains("done"));
    assert!(any.post(&gateway, &[], &request("Tools/Call")).await.text().contains("-32601"));
    assert_eq!(stage.count(), 2);
}

#[tokio::test]
async fn a_body_is_read_in_utf_8_and_goes_up_as_that() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    // To a reader of UTF-7 the value of `y` ends, and another `name` follows.
    let body = call("1", "echo", r#"{}, "y": "+ACIALAAiAG4AYQBtAGUAIgA6ACIAeAAi-""#);
    let body = body.replace(r#""arguments":{}, "y""#, r#""arguments":{},"y""#);
    for kind in ["application/json; charset=utf-7", "application/json;charset=\"utf-16\""] {
        let answer = grant.post(&gateway, &[("content-type", kind)], &body).await;
        assert_eq!(answer.status, 415, "{kind}: {}", answer.text());
    }
    assert_eq!(stage.count(), 0);
    let kind = "application/json; charset=UTF-8; x=y";
    let answer = grant.post(&gateway, &[("content-type", kind)], &call("1", "echo", "{}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(stage.log()[0].header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn names_that_a_reader_gives_a_meaning_never_pass() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for arguments in [
        r#"{"amount":50,"z":{"$serde_json::private::Number":5}}"#,
        r#"{"z":[{"$serde_json::private::RawValue":"not json"}]}"#,
        r#"{"z":{"\u0024serde_json::private::RawValue":"{}"}}"#,
    ] {
        let answer = grant.call(&gateway, "1", "echo", arguments).await;
        assert_eq!(answer.status, 400, "{arguments}: {}", answer.text());
    }
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn arguments_that_no_schema_can_vouch_for_are_refused_where_it_must() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let huge = format!(r#"{{"description":"{}"}}"#, "x".repeat(2 << 20));
    let schemas = [
        r#"{"type":"object","properties":{"n":{"maximum":10}}}"#.to_owned(),
        r#"{"$ref":"https://example.com/schema"}"#.to_owned(),
        r#"{"type":7}"#.to_owned(),
        huge,
    ];
    for (schema, fits) in schemas.into_iter().zip([true, false, false, false]) {
        let mut record = record(&stage.url(), ALLOW_ALL);
        record.server.settings.validate_arguments = ValidateArguments::Deny;
        record.tools[0].input_schema = Some(schema);
        let grant = gateway.enter(record);
        let answer = grant.call(&gateway, "1", "echo", r#"{"n":1}"#).await;
        if fits {
            assert!(answer.text().contains("done"), "{}", answer.text());
        } else {
            assert_eq!(code(&answer), "arguments_invalid");
        }
        let answer = grant.call(&gateway, "1", "echo", r#"{"n":50}"#).await;
        assert_eq!(code(&answer), "arguments_invalid");
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_passed_on() {
    let wrong = |_: Received, mut wire: Wire| async move {
        wire.json(r#"{"jsonrpc":"2.0","id":"other","result":{"content":[]}}"#).await;
    };
    let stage = Stage::start(wrong).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let answer = grant.call(&gateway, r#""z1""#, "echo", "{}").await;
    let json = answer.json();
    assert_eq!(json["id"], "z1", "{json}");
    assert!(json["error"].is_object(), "{json}");
}

#[tokio::test]
async fn the_stateless_era_has_post_alone() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    for method in [Method::GET, Method::DELETE] {
        let version = [("mcp-protocol-version", "2026-07-28")];
        let answer = grant.open(&gateway, method, &version, "").await;
        assert_eq!(answer.status, 405);
    }
    assert_eq!(stage.count(), 0);
}

//! What the server's settings deny is not promised either, and not announced.

use std::time::Duration;

use http::Method;
use sluice_domain::Access::{self, Allow, Deny};
use tokio::time::timeout;

use crate::gateway::{ALLOW_ALL, Gateway, Grant, initialize};
use crate::stage::{Received, Stage, Wire};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn granted(gateway: &Gateway, stage: &Stage, resources: Access, prompts: Access) -> Grant {
    gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
        record.server.settings.resources = resources;
        record.server.settings.prompts = prompts;
    })
}

async fn modern(
    gateway: &Gateway,
    grant: &Grant,
    method: &str,
    params: &str,
) -> sluice_testkit::http::Answer {
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":"d","method":"{method}","params":{{{params}{META}}}}}"#);
    grant.post(gateway, &headers, &body).await
}

/// `initialize` as JSON or as a stream, with a session or without, and `server/discover`.
async fn play(received: Received, mut wire: Wire) {
    let id = received.id();
    let capabilities = r#"{ "tools":{"listChanged":true} , "resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},"tasks":{"list":{},"cancel":{}},"experimental":{"v":1.50}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}},"vendor":[1E400]}}}}"#
    );
    let json = ("content-type", "application/json");
    if received.text().contains("as-stream") {
        wire.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: s\r\nconnection: close\r\n\r\n").await;
        wire.raw(format!("id: 1\ndata: {body}\n\n")).await;
    } else if received.text().contains("stateless") || received.rpc() == "server/discover" {
        wire.json(&body).await;
    } else if received.rpc() == "initialize" {
        wire.answer("200 OK", &[json, ("mcp-session-id", "s")], &body).await;
    } else {
        wire.text(&id, "done").await;
    }
}

#[tokio::test]
async fn denied_parts_are_cut_out_of_what_is_promised_and_nothing_else_changes() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let whole = r#"{ "tools":{"listChanged":true} , "resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},"tasks":{"list":{},"cancel":{}},"experimental":{"v":1.50}}"#;
    let table = [
        (Allow, Allow, whole.to_owned()),
        (Deny, Allow, whole.replace(r#""resources":{"subscribe":true},"#, "")),
        (Allow, Deny, whole.replace(r#""prompts":{},"#, "")),
        (
            Deny,
            Deny,
            whole.replace(r#""resources":{"subscribe":true},"prompts":{},"completions":{},"#, ""),
        ),
    ];
    for (resources, prompts, capabilities) in table {
        let grant = granted(&gateway, &stage, resources, prompts);
        let expected = |id: &str, capabilities: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}},"vendor":[1E400]}}}}"#
            )
        };
        let json = grant.post(&gateway, &[], &initialize()).await;
        assert_eq!(json.text(), expected("\"init\"", &capabilities));
        assert!(!json.header("mcp-session-id").is_empty());
        let stream = grant.post(&gateway, &[], &initialize().replace("tester", "as-stream")).await;
        assert_eq!(
            stream.text(),
            format!("id: 1\ndata: {}\n\n", expected("\"init\"", &capabilities))
        );
        // Without a session, lists of tasks are refused, since they would show those of others.
        let stateless = capabilities.replace(r#""list":{},"#, "");
        let bare = grant.post(&gateway, &[], &initialize().replace("tester", "stateless")).await;
        assert_eq!(bare.text(), expected("\"init\"", &stateless));
        let discover = modern(&gateway, &grant, "server/discover", "").await;
        assert_eq!(discover.text(), expected("\"d\"", &stateless));
    }
}

#[tokio::test]
async fn denied_methods_are_refused_in_both_eras_and_completion_goes_with_what_it_completes() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let complete = |kind: &str| format!(r#""ref":{{"type":"{kind}"}},"argument":{{}}"#);
    let table = [
        ("resources/list", String::new(), true, false),
        ("resources/templates/list", String::new(), true, false),
        ("resources/read", r#""uri":"a:b""#.to_owned(), true, false),
        ("resources/subscribe", r#""uri":"a:b""#.to_owned(), true, false),
        ("resources/unsubscribe", r#""uri":"a:b""#.to_owned(), true, false),
        ("prompts/list", String::new(), false, true),
        ("prompts/get", r#""name":"p""#.to_owned(), false, true),
        ("completion/complete", complete("ref/prompt"), false, true),
        ("completion/complete", complete("ref/resource"), true, false),
        ("completion/complete", complete("ref/else"), true, true),
        ("completion/complete", String::new(), true, true),
        ("ping", String::new(), false, false),
    ];
    for (resources, prompts) in [(Allow, Allow), (Deny, Allow), (Allow, Deny), (Deny, Deny)] {
        let grant = granted(&gateway, &stage, resources, prompts);
        for (method, params, of_resources, of_prompts) in &table {
            let refused = *of_resources && resources == Deny || *of_prompts && prompts == Deny;
            let before = stage.count();
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
            let answer = grant.post(&gateway, &[], &body).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.text().contains("-32601"), refused, "{method} {params}");
            assert_eq!(stage.count() - before, usize::from(!refused), "{method} {params}");
        }
        let params = r#""ref":{"type":"ref/prompt"},"argument":{},"#;
        let answer = modern(&gateway, &grant, "completion/complete", params).await;
        assert_eq!(answer.status == 404, prompts == Deny);
    }
}

#[tokio::test]
async fn a_subscription_to_what_is_denied_is_refused() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = granted(&gateway, &stage, Deny, Deny);
    for (wanted, refused) in [
        (r#""toolsListChanged":true"#, false),
        (r#""toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":[]"#, false),
        (r#""resourceSubscriptions":["a:b"]"#, true),
        (r#""resourcesListChanged":true"#, true),
        (r#""toolsListChanged":true,"promptsListChanged":true"#, true),
    ] {
        let params = format!(r#""notifications":{{{wanted}}},"#);
        let answer = modern(&gateway, &grant, "subscriptions/listen", &params).await;
        assert_eq!(answer.status == 404, refused, "{wanted}: {}", answer.text());
    }
}

#[tokio::test]
async fn nothing_is_announced_of_what_is_denied() {
    let stage = Stage::start(|_, mut wire: Wire| async move {
        wire.events().await;
        for method in [
            "resources/updated",
            "resources/list_changed",
            "prompts/list_changed",
            "tools/list_changed",
            "message",
        ] {
            wire.raw(format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\"}}\n\n"
            ))
            .await;
        }
        wire.gone().await;
    })
    .await;
    let gateway = Gateway::start().await;
    for (resources, prompts) in [(Allow, Allow), (Deny, Allow), (Deny, Deny)] {
        let grant = granted(&gateway, &stage, resources, prompts);
        let mut get = grant.open(&gateway, Method::GET, &[], "").await;
        let mut text = String::new();
        while !text.contains("notifications/message") {
            let piece = timeout(Duration::from_secs(5), get.piece()).await.expect("soon");
            text.push_str(&String::from_utf8_lossy(&piece.expect("open").expect("whole")));
        }
        assert_eq!(text.contains("/resources/"), resources == Allow, "{text}");
        assert_eq!(text.contains("/prompts/"), prompts == Allow, "{text}");
        assert!(text.contains("/tools/"));
    }
}

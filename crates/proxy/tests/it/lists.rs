//! Lists of tools: cut, never re-written; what is not listed cannot be called either.

use std::sync::atomic::Ordering;

use sluice_domain::ToolState;

use crate::gateway::{ALLOW_ALL, Gateway, call, code, named, tool};
use crate::stage::{Received, Stage, Wire};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const ECHO: &str = r#"{"name":"echo","title":"E","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","x":123456789012345678901234567890},"icons":[],"x-vendor":1.0}"#;

fn page(tools: &[&str], rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]{rest}}}}}"#, tools.join(","))
}

#[tokio::test]
async fn hidden_tools_are_gone_and_the_rest_keeps_its_bytes() {
    let body = page(
        &[ECHO, &named("purge_all"), &named("Echo")],
        r#","nextCursor":"Yg==","vendorTop":[1.0,2.50]"#,
    );
    let stage = Stage::start(move |_, mut wire| {
        let body = body.clone();
        async move { wire.json(&body).await }
    })
    .await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","hide":["purge_*"]}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let answer = grant.post(&gateway, &[], LIST).await;
    assert_eq!(
        answer.text(),
        page(&[ECHO, &named("Echo")], r#","nextCursor":"Yg==","vendorTop":[1.0,2.50]"#)
    );
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    // Hidden and absent look the same to the agent.
    let same = |answer: &sluice_testkit::http::Answer, name: &str| {
        answer.text().replace(name, "NAME").replace(answer.header("x-request-id"), "ID")
    };
    let hidden = grant.call(&gateway, "1", "purge_all", "{}").await;
    let absent = grant.call(&gateway, "1", "nothing_like_it", "{}").await;
    assert_eq!(same(&hidden, "purge_all"), same(&absent, "nothing_like_it"));
    assert_eq!(code(&hidden), "unknown_tool");
    assert_eq!(stage.calls().len(), 0);
}

#[tokio::test]
async fn a_list_agrees_with_what_a_call_would_get() {
    let names = ["echo", "other", "read_note", "changed", "held"];
    let body = page(&names.map(named).each_ref().map(String::as_str), "");
    let stage = Stage::start(move |received: Received, mut wire: Wire| {
        let body = body.clone();
        async move {
            if received.rpc() == "tools/list" {
                wire.json(&body).await;
            } else {
                wire.text("1", "done").await;
            }
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"deny","tools":{"echo":{},"read_*":{},"changed":{},"held":{},
        "other":{"deny_if":[{"conditions":[{"path":"args.x","op":"eq","value":1}]}]}}}"#;
    for (name, state) in [("changed", ToolState::Changed), ("held", ToolState::Held)] {
        let grant = gateway.grant_with(&stage.url(), policy, |record| {
            record.server.settings.on_drift = sluice_domain::OnDrift::Deny;
            let mut odd = tool(name);
            odd.state = state;
            record.tools.push(odd);
        });
        let listed = grant.post(&gateway, &[], LIST).await.json();
        let listed: Vec<&str> = listed["result"]["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|t| t["name"].as_str())
            .collect();
        assert!(!listed.contains(&name) && listed.contains(&"other"), "{listed:?}");
        for name in names {
            let answer = grant.call(&gateway, "1", name, "{}").await;
            let passed = answer.text().contains("done");
            assert_eq!(passed, listed.contains(&name), "{name}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn without_a_policy_nothing_is_listed_and_nothing_runs() {
    let stage =
        Stage::start(|_, mut wire| async move { wire.json(&page(&[ECHO], "")).await }).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| record.policy = None);
    assert_eq!(grant.post(&gateway, &[], LIST).await.text(), page(&[], ""));
    assert_eq!(code(&grant.call(&gateway, "1", "echo", "{}").await), "no_policy");
    let odd = gateway.grant(&stage.url(), r#"{"version":"2","default":"allow"}"#);
    assert_eq!(code(&odd.call(&gateway, "1", "echo", "{}").await), "no_policy");
    assert_eq!(stage.calls().len(), 0);
}

#[tokio::test]
async fn lists_are_filtered_however_the_stream_is_written() {
    let body = page(&[&named("echo"), &named("purge_all")], r#","nextCursor":"c""#);
    let kept = page(&[&named("echo")], r#","nextCursor":"c""#);
    let two_lines = body.replace(r#","result""#, "\ndata: ,\"result\"");
    let streams = [
        (
            format!(": hi\n\nid: 1\nevent: message\ndata: {body}\n\n"),
            format!(": hi\n\nid: 1\nevent: message\ndata: {kept}\n\n"),
        ),
        (
            format!("event: message\r\ndata: {body}\r\n\r\n"),
            format!("event: message\r\ndata: {kept}\r\n\r\n"),
        ),
        (format!("data:{body}\rid: e\r\r"), format!("data: {kept}\rid: e\r\r")),
        (
            format!("id: e0\nretry: 3000\ndata: \n\ndata: {two_lines}\n\n"),
            format!(
                "id: e0\nretry: 3000\ndata: \n\ndata: {}\n\n",
                kept.replace(r#","result""#, "\ndata: ,\"result\"")
            ),
        ),
        (format!("data: {body}\n"), format!("data: {kept}\n")),
    ];
    for (stream, expected) in streams {
        for size in [1, 7, 4096] {
            let bytes = stream.clone().into_bytes();
            let stage = Stage::start(move |_, mut wire: Wire| {
                let bytes = bytes.clone();
                async move {
                    wire.events().await;
                    for piece in bytes.chunks(size) {
                        wire.raw(piece).await;
                        tokio::task::yield_now().await;
                    }
                }
            })
            .await;
            let gateway = Gateway::start().await;
            let grant = gateway
                .grant(&stage.url(), r#"{"version":"1","default":"allow","hide":["purge_all"]}"#);
            let answer = grant.post(&gateway, &[], LIST).await;
            assert_eq!(answer.header("content-type"), "text/event-stream");
            assert_eq!(answer.text(), expected, "{size}");
        }
    }
}

#[tokio::test]
async fn a_coded_answer_does_not_slip_past_the_filter() {
    let stage = Stage::start(|_, mut wire: Wire| async move {
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        wire.answer("200 OK", &headers, "\u{1f}\u{8}not really gzip").await;
    })
    .await;
    let mut gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let answer = grant.post(&gateway, &[("accept-encoding", "gzip")], LIST).await;
    assert_eq!(answer.json()["error"]["data"]["code"], "upstream_not_mcp");
    assert_eq!(
        (answer.header("content-encoding"), gateway.record().await.code.as_str()),
        ("", "upstream_not_mcp")
    );
}

#[tokio::test]
async fn an_answer_that_cannot_be_filtered_is_not_passed_on() {
    for body in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"purge_all\"}]",
        "<html>",
        "",
        "[]",
    ] {
        let stage = Stage::start(move |_, mut wire| async move { wire.json(body).await }).await;
        let gateway = Gateway::start().await;
        let grant = gateway
            .grant(&stage.url(), r#"{"version":"1","default":"allow","hide":["purge_all"]}"#);
        let answer = grant.post(&gateway, &[], LIST).await;
        assert_eq!(answer.json()["error"]["data"]["code"], "upstream_not_mcp", "{body}");
        assert!(!answer.text().contains("purge_all"));
    }
}

#[tokio::test]
async fn tools_that_only_a_list_knows_count_as_known_to_the_grant_that_saw_it() {
    let body = page(&[&named("echo"), &named("sampler")], "");
    let stage = Stage::start(move |received: Received, mut wire: Wire| {
        let body = body.clone();
        async move {
            if received.rpc() == "tools/list" {
                wire.json(&body).await;
            } else {
                wire.text("1", "done").await;
            }
        }
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let sibling = gateway.sibling(&grant);
    assert_eq!(code(&grant.call(&gateway, "1", "sampler", "{}").await), "unknown_tool");
    assert!(grant.post(&gateway, &[], LIST).await.text().contains("sampler"));
    assert!(grant.call(&gateway, "1", "sampler", "{}").await.text().contains("done"));
    assert_eq!(code(&sibling.call(&gateway, "1", "sampler", "{}").await), "unknown_tool");
    for odd in ["Sampler", "sampler ", "sampler\\u0000", "ѕampler"] {
        let body = call("1", "x", "{}").replace("\"x\"", &format!("\"{odd}\""));
        assert_eq!(code(&grant.post(&gateway, &[], &body).await), "unknown_tool", "{odd}");
    }
    // The server is read again once for a new page, not for every list.
    assert_eq!(gateway.noted.lists.load(Ordering::Relaxed), 1);
    grant.post(&gateway, &[], LIST).await;
    assert_eq!(gateway.noted.lists.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_modern_list_may_not_be_cached_for_others() {
    let stage = Stage::start(|_, mut wire| async move {
        wire.json(&page(
            &[ECHO],
            r#","ttlMs":60000,"cacheScope":"public","resultType":"complete""#,
        ))
        .await;
    })
    .await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), ALLOW_ALL);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let answer = grant.post(&gateway, &headers, body).await;
    assert_eq!(
        answer.text(),
        page(&[ECHO], r#","ttlMs":60000,"cacheScope":"private","resultType":"complete""#)
    );
}

#[tokio::test]
async fn two_grants_of_one_server_each_see_their_own_list() {
    let stage = Stage::start(|_, mut wire| async move {
        wire.json(&page(&[&named("echo"), &named("other")], "")).await;
    })
    .await;
    let gateway = Gateway::start().await;
    let one = gateway.grant(&stage.url(), r#"{"version":"1","default":"allow","hide":["other"]}"#);
    let mut record = one.record.clone();
    record.grant.id = sluice_domain::GrantId::new();
    record.policy.as_mut().expect("a policy").document =
        r#"{"version":"1","default":"allow","hide":["echo"]}"#.to_owned();
    let two = gateway.enter(record);
    assert_eq!(one.post(&gateway, &[], LIST).await.text(), page(&[&named("echo")], ""));
    assert_eq!(two.post(&gateway, &[], LIST).await.text(), page(&[&named("other")], ""));
}

/// Servers of 2025-03-26 may send several messages in one event. Each is what it would be alone.
#[tokio::test]
async fn a_batch_in_a_stream_is_looked_at_message_by_message() {
    let list = page(&[&named("echo"), &named("purge_all")], "");
    let kept = page(&[&named("echo")], "");
    let ask = r#"{"jsonrpc":"2.0","id":"ask-1","method":"roots/list"}"#;
    let muted = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1.0}}"#;
    for (data, expected) in [
        (format!("[{note} , {list}]"), Some(format!("[{note},{kept}]"))),
        (format!(" [{ask}, {note}]"), Some(format!(" [{ask}, {note}]"))),
        (format!("[{muted}]"), None),
        (format!("[{muted},{ask}]"), Some(format!("[{ask}]"))),
    ] {
        let own = data.clone();
        let stage = Stage::start(move |received: Received, mut wire: Wire| {
            let data = own.clone();
            async move {
                if received.rpc().is_empty() {
                    return wire.answer("202 Accepted", &[], "").await;
                }
                wire.events().await;
                wire.raw(format!("id: 7\ndata: {data}\n\n")).await;
            }
        })
        .await;
        let gateway = Gateway::start().await;
        let policy = r#"{"version":"1","default":"allow","hide":["purge_all"]}"#;
        let grant = gateway.grant_with(&stage.url(), policy, |record| {
            record.server.settings.prompts = sluice_domain::Access::Deny;
        });
        let answer = grant.post(&gateway, &[], LIST).await;
        let expected = expected.map_or(String::new(), |data| format!("id: 7\ndata: {data}\n\n"));
        assert_eq!(answer.text(), expected, "{data}");
        // What the server asked in it may be answered, once.
        let reply = r#"{"jsonrpc":"2.0","id":"ask-1","result":{"roots":[]}}"#;
        let status = if data.contains("ask-1") { 202 } else { 400 };
        assert_eq!(grant.post(&gateway, &[], reply).await.status, status, "{data}");
    }
    for odd in [format!("[[{list}]]"), format!("[{list}"), format!("[{list},]")] {
        let body = odd.clone();
        let stage = Stage::start(move |_, mut wire: Wire| {
            let body = body.clone();
            async move {
                wire.events().await;
                wire.raw(format!("data: {body}\n\n")).await;
            }
        })
        .await;
        let gateway = Gateway::start().await;
        let answer = gateway.grant(&stage.url(), ALLOW_ALL).post(&gateway, &[], LIST).await;
        assert_eq!(answer.json()["error"]["data"]["code"], "upstream_not_mcp", "{odd}");
        assert!(!answer.text().contains("purge_all"));
    }
}

//! Trying a policy on made-up calls and on those of the log.

use chrono::{DateTime, Utc};
use http::StatusCode;
use sluice_domain::{
    CallId, CallRecord, CallTiming, Code, GrantId, Outcome, PolicyId, ServerId, WorkspaceId,
};

use super::{FIRST, make, press};
use crate::world::World;

#[tokio::test]
async fn a_made_up_call_is_decided_with_every_step() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let tried = format!("{path}/try");
    browser.get(&tried).await.says("What would become of it?");
    let refused = [
        ("tool", "executePython"),
        ("arguments", r#"{"n": 500, "x": "<i>"}"#),
        ("grant_label", "bot"),
        ("press", "call"),
    ];
    let page = browser.submit(&tried, &refused).await;
    assert_eq!(page.status, StatusCode::OK);
    page.says("It would be refused.")
        .says("require_failed")
        .says("/tools/executePython/require/0")
        .says("A requirement: refuses the call. args.n is at most 100: false, found 500");
    assert!(page.body.contains(&format!("href=\"{path}#/tools/executePython/require/0\"")));
    assert_eq!(
        (page.value("tool").as_str(), page.value("grant_label").as_str()),
        ("executePython", "bot")
    );
    assert_eq!(page.value("arguments"), r#"{"n": 500, "x": "<i>"}"#);
    let passed = [("tool", "executePython"), ("arguments", r#"{"n": 5}"#), ("press", "call")];
    browser
        .submit(&tried, &passed)
        .await
        .says("It would be forwarded, once its limits are charged.")
        .says("1 to executepython_rate, which holds 10 per minute and grant");
    browser
        .submit(&tried, &[("tool", "read_file"), ("arguments", "{}"), ("press", "call")])
        .await
        .says("default_deny");
    browser
        .submit(&tried, &[("tool", "nothing"), ("arguments", "{}"), ("press", "call")])
        .await
        .says("It would be refused as if the tool did not exist.");
    let bad = browser
        .submit(&tried, &[("tool", "read_file"), ("arguments", "{\"a\": }"), ("press", "call")])
        .await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(bad.body.contains("id=\"arguments-error\""));
    assert_eq!(bad.value("arguments"), "{\"a\": }");
}

#[tokio::test]
async fn policy_tests_run_on_the_page_and_a_bad_file_is_kept() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let tried = format!("{}/try", make(&mut browser, &server, "Sandbox", FIRST).await);
    let cases = r#"{"cases": [{"name": "too <much>", "tool": "executePython",
        "arguments": {"n": 500}, "expect": "deny"}, {"tool": "executePython",
        "arguments": {"n": 5}, "expect": {"outcome": "deny", "code": "default_deny"}}]}"#;
    browser.get(&tried).await.says("Policy tests");
    let page = browser.submit(&tried, &[("cases", cases), ("press", "tests")]).await;
    assert_eq!(page.status, StatusCode::OK);
    page.says("1 passed, 1 failed").says("too <much>").says("expected default_deny");
    let bad = browser.submit(&tried, &[("cases", "{\"cases\": 1}"), ("press", "tests")]).await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(bad.body.contains("id=\"cases-error\""));
    assert_eq!(bad.value("cases"), "{\"cases\": 1}");
}

fn call(
    workspace: WorkspaceId,
    server: ServerId,
    policy: PolicyId,
    arguments: &str,
    at: &str,
) -> CallRecord {
    CallRecord {
        id: CallId::new(),
        workspace,
        server,
        grant: GrantId::new(),
        grant_label: "bot".to_owned(),
        at: at.parse::<DateTime<Utc>>().expect("a time"),
        method: "tools/call".to_owned(),
        tool: Some("executePython".to_owned()),
        outcome: Outcome::Allowed,
        code: Code::Allowed,
        rule: String::new(),
        message: String::new(),
        policy: Some(policy),
        policy_version: Some(1),
        observed: false,
        counter: None,
        retry_after_s: None,
        arguments: Some(arguments.to_owned()),
        trace: None,
        client_name: None,
        protocol_version: None,
        session: None,
        client_address: None,
        request_bytes: 1,
        response_bytes: 1,
        upstream_status: Some(200),
        timing: CallTiming { total_us: 1, limits_us: 1, approval_us: 0, upstream_us: 1 },
    }
}

#[tokio::test]
async fn recent_calls_are_decided_again() {
    let world = World::new().await;
    let (mut browser, server) = world.connected().await;
    let path = make(&mut browser, &server, "Sandbox", FIRST).await;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (server_id, policy) =
        (last(&server).parse().expect("an id"), last(&path).parse().expect("an id"));
    let mut tx = world.db.begin().await.expect("begins");
    let all = sluice_store::workspaces::list_all(&mut tx.conn(), None, 1).await.expect("reads");
    let workspace = all[0].id;
    let one = |arguments: &str, at: &str| call(workspace, server_id, policy, arguments, at);
    let calls = [
        one(r#"{"n":5}"#, "2026-11-30T11:00:00Z"),
        one(r#"{"n":500}"#, "2026-11-30T11:01:00Z"),
        one(r#"{"n":{"$type":"number"}}"#, "2026-11-30T11:02:00Z"),
        CallRecord { policy: None, ..one(r#"{"n":500}"#, "2026-11-30T11:03:00Z") },
    ];
    sluice_store::calls::insert_batch(&mut tx.conn(), &calls).await.expect("writes");
    tx.commit().await.expect("commits");

    let tried = format!("{path}/try");
    let page = browser.submit(&tried, &[("press", "log")]).await;
    page.says("Of the last 3 calls it would refuse 1, park 0 for a person, and let 1 through.")
        .says("Of 1 call it cannot be told")
        .says("1 call would go otherwise than it did.");
    let changed = format!("/w/acme/logs/{}", calls[1].id);
    assert!(page.links().contains(&changed), "{:?}", page.links());
    browser
        .submit(&tried, &[("press", "log"), ("whose", "server")])
        .await
        .says("Of the last 4 calls it would refuse 2");
    // The editor tries what is written, not what is saved.
    let strict = FIRST.replace("\"value\": 100", "\"value\": 1");
    press(&mut browser, &path, &[("document", &strict), ("press", "check")])
        .await
        .says("Of the last 3 calls it would refuse 2, park 0 for a person, and let 0 through.");
}

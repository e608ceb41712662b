//! The log: filters, pages, one call.

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use sluice_domain::{
    CallId, CallRecord, CallTiming, Code, GrantId, Outcome, ServerId, WorkspaceId,
};

use crate::browser::MARKUP;
use crate::world::World;

fn call(workspace: WorkspaceId, server: ServerId, at: DateTime<Utc>) -> CallRecord {
    CallRecord {
        id: CallId::new(),
        workspace,
        server,
        grant: GrantId::new(),
        grant_label: format!("bot {MARKUP}"),
        at,
        method: "tools/call".to_owned(),
        tool: Some("executePython".to_owned()),
        outcome: Outcome::Limited,
        code: Code::RateLimited,
        rule: "/tools/executePython/limits/0".to_owned(),
        message: format!("limited {MARKUP}"),
        policy: None,
        policy_version: None,
        observed: false,
        counter: Some("executepython_rate".to_owned()),
        retry_after_s: Some(23),
        arguments: Some(format!("{{\"code\":{{\"$type\":\"string\"}},\"{MARKUP}\":1}}")),
        trace: Some(
            r#"[{"step":"limit","rule":"/tools/executePython/limits/0","result":"refused"}]"#
                .to_owned(),
        ),
        client_name: Some(MARKUP.to_owned()),
        protocol_version: Some("2025-06-18".to_owned()),
        session: None,
        client_address: Some("192.0.2.7".to_owned()),
        request_bytes: 120,
        response_bytes: 400,
        upstream_status: None,
        timing: CallTiming { total_us: 1_900, limits_us: 300, approval_us: 0, upstream_us: 0 },
    }
}

/// A workspace with `count` limited calls, a minute apart, and one that was allowed.
pub(crate) async fn with_calls(
    world: &World,
    count: i64,
) -> (crate::browser::Browser, Vec<CallRecord>) {
    let (browser, path) = world.connected().await;
    let mut tx = world.db.begin().await.expect("begins");
    let found = sluice_store::workspaces::find_by_slug(&mut tx.conn(), "acme").await;
    let workspace = found.expect("reads").expect("a workspace").id;
    tx.commit().await.expect("commits");
    let server: ServerId = path.rsplit('/').next().expect("an id").parse().expect("an id");
    let start: DateTime<Utc> = "2026-11-30T10:00:00Z".parse().expect("a time");
    let mut calls: Vec<CallRecord> =
        (0..count).map(|n| call(workspace, server, start + TimeDelta::minutes(n))).collect();
    calls.push(CallRecord {
        outcome: Outcome::Allowed,
        code: Code::Allowed,
        tool: Some("read_file".to_owned()),
        ..call(workspace, server, start)
    });
    let mut tx = world.db.begin().await.expect("begins");
    sluice_store::calls::insert_batch(&mut tx.conn(), &calls).await.expect("writes");
    tx.commit().await.expect("commits");
    (browser, calls)
}

pub(crate) async fn write(world: &World, calls: &[&CallRecord]) {
    let calls: Vec<CallRecord> = calls.iter().map(|call| (*call).clone()).collect();
    let mut tx = world.db.begin().await.expect("begins");
    sluice_store::calls::insert_batch(&mut tx.conn(), &calls).await.expect("writes");
    tx.commit().await.expect("commits");
}

#[tokio::test]
async fn new_rows_that_fit_the_filters_come_by_themselves_and_none_after_the_login() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 3).await;
    let another = || CallRecord { id: CallId::new(), ..calls[0].clone() };
    // Its call began before the newest row's and ends later than that.
    let slow = another();
    let newest = another();
    write(&world, &[&newest]).await;
    let page = browser.get("/w/acme/logs?outcome=limited").await;
    assert!(page.body.contains("data-from=\"/w/acme/logs/live?outcome=limited\""));
    assert!(page.body.contains(&format!("<tr data-id=\"{}\">", newest.id)));

    let live = format!("/w/acme/logs/live?outcome=limited&after={}", calls[1].id);
    let (first, mut stream) = browser.first_piece(&live).await;
    assert_eq!(first.headers["content-type"], "text/event-stream");
    let has = |text: &str, call: &CallRecord| text.contains(&format!("data-id=\"{}\"", call.id));
    assert!(has(&first.body, &newest) && has(&first.body, &calls[2]), "{}", first.body);
    assert!(!has(&first.body, &calls[1]) && !has(&first.body, &calls[3]), "{}", first.body);
    assert!(first.body.contains(&format!("id: {}", newest.id)) && !first.body.contains(MARKUP));

    let allowed = CallRecord { outcome: Outcome::Allowed, code: Code::Allowed, ..another() };
    write(&world, &[&slow, &allowed]).await;
    let told = crate::browser::piece(&mut stream).await;
    assert!(has(&told, &slow) && !has(&told, &allowed) && !has(&told, &newest), "{told}");

    browser.submit_to("/w/acme/", "/logout", &[]).await;
    write(&world, &[&another()]).await;
    assert_eq!(crate::browser::piece(&mut stream).await, "", "who signed out is told nothing");
    assert_eq!(browser.get(&live).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_stop_ends_what_is_followed_and_a_person_follows_some_logs_at_most() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 1).await;
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(browser.first_piece("/w/acme/logs/live").await.1);
    }
    let refused = browser.get("/w/acme/logs/live").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    world.control.end_streams();
    for mut stream in open {
        assert_eq!(crate::browser::piece(&mut stream).await, "");
    }
    let (again, _stream) = browser.first_piece("/w/acme/logs/live").await;
    assert_eq!(again.status, StatusCode::OK);
}

/// One press shows first what it would have done to the server's newest calls.
#[tokio::test]
async fn the_button_is_tried_on_recent_calls_before_it_is_pressed() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 3).await;
    let apply = format!("/w/acme/servers/{}/tools/read_file/apply", calls[0].server);
    let page = browser.get(&apply).await;
    page.says("On recent calls")
        .says("Of the last 4 calls it would refuse 3, park 0 for a person, and let 1 through.");
    browser.submit(&apply, &[]).await;
    let again = browser.get(&apply).await;
    assert!(!again.body.contains("On recent calls"), "nothing would change");
}

#[tokio::test]
async fn every_page_of_a_filtered_list_keeps_the_filter() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 64).await;
    let first = browser.get("/w/acme/logs?outcome=limited").await;
    first.says("50 calls on this page");
    assert!(!first.body.contains(">read_file<"), "the filter holds");
    let older =
        first.links().into_iter().find(|link| link.contains("after=")).expect("a next page");
    assert!(older.contains("outcome=limited"), "{older}");
    let second = browser.get(&older).await;
    second.says("14 calls, newest first");
    assert!(!second.links().iter().any(|link| link.contains("after=")), "it is the last page");
    assert!(
        second.links().contains(&"/w/acme/logs?outcome=limited".to_owned()),
        "and leads back to the first"
    );
    let none = browser.get("/w/acme/logs?tool=nothing").await;
    none.says("0 calls match").says("Show every call");
    assert!(!none.body.contains("class=\"pager\""));
}

#[tokio::test]
async fn filters_that_make_no_sense_are_told() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 1).await;
    let page = browser.get("/w/acme/logs?outcome=odd&from=yesterday").await;
    assert_eq!(page.status, StatusCode::OK);
    page.says("Not understood, and so not applied: the outcome odd, the start yesterday.");
}

#[tokio::test]
async fn a_call_opens_to_its_whole_story() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 1).await;
    let page = browser.get(&format!("/w/acme/logs/{}", calls[0].id)).await;
    page.says("A limit was used up.")
        .says("/tools/executePython/limits/0")
        .says("A limit: refuses the call")
        .says("1.9 ms")
        .says(&calls[0].id.to_string())
        .says("30 Nov 2026, 10:00:00 UTC")
        .says("23 s");
    assert!(page.body.contains("<time datetime=\"2026-11-30T10:00:00.000Z\""));
    assert!(!page.body.contains("<img"), "markup runs");
    let list = browser.get("/w/acme/logs").await;
    assert!(!list.body.contains("<img"), "markup runs");
    for gone in ["/w/acme/logs/nonsense", "/w/acme/logs/019a0000-0000-7000-8000-000000000000"] {
        assert_eq!(browser.get(gone).await.status, StatusCode::NOT_FOUND);
    }
}

/// A call's page leads to rules that meet it and to trying it again; nothing is saved by that.
#[tokio::test]
async fn a_call_becomes_a_rule_in_the_editor_and_is_tried_again() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 1).await;
    let applied = format!("/w/acme/servers/{}/tools/read_file/apply", calls[0].server);
    let policy = browser.submit(&applied, &[]).await.location().to_owned();
    let policy = policy.split("/policies/").nth(1).and_then(|rest| rest.split(['?', '/']).next());
    let listed = browser.get(&format!("/w/acme/servers/{}/policies", calls[0].server)).await;
    let link = listed.links().into_iter().find(|link| link.contains("/w/acme/policies/"));
    let policy = match policy {
        Some(id) => format!("/w/acme/policies/{id}"),
        None => link.expect("there is one"),
    };
    let id = policy.rsplit('/').next().and_then(|id| id.parse().ok());
    let kept = r#"{"path":"/etc/pass wd","a b":true,"list":[1],"secret":{"$type":"string"}}"#;
    let refused = CallRecord {
        id: CallId::new(),
        tool: Some("delete_file".to_owned()),
        outcome: Outcome::Denied,
        code: Code::DefaultDeny,
        rule: "(default)".to_owned(),
        arguments: Some(kept.to_owned()),
        policy: id,
        policy_version: Some(1),
        ..calls[0].clone()
    };
    let bare = CallRecord { id: CallId::new(), arguments: None, ..refused.clone() };
    write(&world, &[&refused, &bare]).await;

    let page = browser.get(&format!("/w/acme/logs/{}", refused.id)).await;
    let rule = format!("/w/acme/logs/{}/rule", refused.id);
    let replay = format!("{policy}/edit?call={}", refused.id);
    assert!(page.links().contains(&rule) && page.links().contains(&replay), "{:?}", page.links());
    let page = browser.get(&rule).await;
    page.says("Allow the tool")
        .says("Refuse this path")
        .says("/etc/pass wd")
        .says("Ask a person about this a b")
        .says("Limit the tool")
        .says("10 times a minute")
        .says("Hide the tool");
    assert!(!page.body.contains("this <code>list</code>"), "a list is no value to compare");
    let before = world_policy(&world, &policy).await;
    let edit = format!("{policy}/edit");
    let opened = browser.submit_to(&rule, &edit, &[("press", "check")]).await;
    opened.says("The document is valid");
    let document: serde_json::Value =
        serde_json::from_str(&opened.value("document")).expect("a document");
    assert!(document["tools"].get("delete_file").is_some(), "{document}");
    assert_eq!(world_policy(&world, &policy).await, before, "nothing is saved");

    let again = browser.get(&replay).await;
    again.says("does not keep the value of secret").says("/etc/pass wd").says("Denied");
    let bare_page = browser.get(&format!("/w/acme/logs/{}/rule", bare.id)).await;
    bare_page.says("The log kept no value").says("Limit the tool");
    let other = browser.get(&format!("/w/acme/logs/{}/rule", CallId::new())).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}

async fn world_policy(world: &World, path: &str) -> String {
    let id = path.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
    let mut tx = world.db.read().await.expect("reads");
    let found = sluice_store::workspaces::find_by_slug(&mut tx.conn(), "acme").await;
    let workspace = found.expect("reads").expect("a workspace").id;
    let policy = sluice_store::policies::find(&mut tx.conn(), workspace, id).await;
    policy.expect("reads").expect("there is one").document
}

#[tokio::test]
async fn filters_are_kept_under_a_name_and_only_what_the_page_writes_is_kept() {
    let world = World::new().await;
    let (mut browser, _) = with_calls(&world, 1).await;
    let plain = browser.get("/w/acme/logs").await;
    assert!(!plain.body.contains("Save these filters"), "nothing to keep");
    let (list, action) = ("/w/acme/logs?outcome=limited&q=a%26b", "/w/acme/logs/filters");
    let named = [("name", "Used up <b>")];
    let saved = browser.submit_to(list, action, &named).await;
    assert_eq!(saved.location(), "/w/acme/logs?outcome=limited&q=a%26b");
    let page = browser.get("/w/acme/logs").await;
    page.says("Used up <b>").says("Saved the filters as");
    assert!(page.links().contains(&list.to_owned()) && !page.body.contains("Used up <b>"));

    let twice = browser.submit_to("/w/acme/logs?code=malformed", action, &named).await;
    assert_eq!(twice.status, StatusCode::CONFLICT);
    twice.says("Another of your filters has this name");
    assert_eq!(twice.value("name"), "Used up <b>", "what was typed is kept");
    assert_eq!(twice.value("query"), "?code=malformed");
    let nameless = browser.submit_to(list, action, &[("name", " ")]).await;
    assert_eq!(nameless.status, StatusCode::UNPROCESSABLE_ENTITY);
    let odd = [("name", "odd"), ("query", "javascript=1&after=x&x=%00")];
    let odd = browser.submit_to(list, action, &odd).await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY, "there is no such filter");

    let delete = page.body.split("action=\"").find(|rest| rest.starts_with(action)).expect("one");
    let delete = delete.split('"').next().expect("an address").to_owned();
    browser.submit_to("/w/acme/logs", &delete, &[]).await;
    let after = browser.get("/w/acme/logs").await;
    assert!(!after.body.contains("Used up"), "{}", after.body);
    let gone = browser.submit_to("/w/acme/logs?outcome=limited", action, &named).await;
    assert_eq!(gone.status, StatusCode::SEE_OTHER, "the name is free again");
}

#[tokio::test]
async fn the_security_log_says_who_tried_what_and_how_often() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 1).await;
    let empty = browser.get("/w/acme/security").await;
    assert!(empty.body.contains("Nobody was refused"), "{}", empty.body);
    let event = |workspace, times| sluice_domain::SecurityEvent {
        id: CallId::new(),
        at: calls[0].at,
        kind: sluice_domain::SecurityKind::RevokedToken,
        workspace,
        grant: Some(GrantId::new()),
        address: "192.0.2.9".to_owned(),
        detail: format!("/mcp/{MARKUP}"),
        times,
    };
    let rows = [event(Some(calls[0].workspace), 1_234), event(None, 77)];
    let mut tx = world.db.begin().await.expect("begins");
    sluice_store::security_events::insert_batch(&mut tx.conn(), &rows).await.expect("writes");
    tx.commit().await.expect("commits");
    let text = browser.get("/w/acme/security").await.body;
    for words in ["A revoked token", "192.0.2.9", "1,234 times"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("77 times"), "what no token places in the workspace is not in it");
    assert!(!text.contains(MARKUP), "what strangers send is text");
}

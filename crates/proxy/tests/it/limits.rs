//! Limits at the data path: all or none, exact under concurrency, given back only if nothing was sent.

use chrono::TimeDelta;
use futures_util::future::join_all;
use sluice_domain::{Amount, Reset, Scope, Window};
use sluice_limits::CounterKey;

use crate::gateway::{Gateway, Grant, code};
use crate::stage::{Received, Stage, Wire};

async fn echo(received: Received, mut wire: Wire) {
    if received.tool() == "slow" {
        wire.cut();
    } else {
        wire.text(&received.id(), "done").await;
    }
}

async fn used(gateway: &Gateway, grant: &Grant, counter: &str, scope: Scope) -> String {
    let record = &grant.record;
    let owner = match scope {
        Scope::Workspace => record.workspace.to_string(),
        Scope::Server => record.server.id.to_string(),
        Scope::Grant | Scope::Session => record.grant.id.to_string(),
    };
    let key = CounterKey {
        counter: counter.to_owned(),
        window: Window::Minute,
        reset: Reset::Sliding,
        scope,
        owner,
    };
    let readings = gateway
        .counters
        .read(record.workspace, &[(key, Amount::whole(100))])
        .await
        .expect("counters");
    readings[0].used.to_string()
}

const TEN: &str = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"minute","max":10}]}}}"#;

#[tokio::test]
async fn exactly_so_many_calls_reach_the_upstream() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), TEN);
    let ids: Vec<String> = (0..50).map(|id| id.to_string()).collect();
    let answers = join_all(ids.iter().map(|id| grant.call(&gateway, id, "echo", "{}"))).await;
    let refused: Vec<_> =
        answers.iter().filter(|answer| answer.text().contains("isError")).collect();
    assert_eq!((stage.calls().len(), refused.len()), (10, 40));
    let json = refused[0].json();
    let note = &json["result"]["_meta"]["dev.sluice/decision"];
    assert_eq!(
        (note["code"].as_str(), note["counter"].as_str()),
        (Some("rate_limited"), Some("c"))
    );
    assert_eq!(
        (note["rule"].as_str(), note["policy"].as_str()),
        (Some("/tools/echo/limits/0"), Some("main"))
    );
    assert_eq!(note["policy_version"], 4);
    let wait = note["retry_after_seconds"].as_u64().expect("a wait");
    assert!((1..=63).contains(&wait), "{wait}");
    let text = json["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("[POLICY DENIED] echo is limited to 10 calls a minute."), "{text}");
    let records = gateway.records();
    assert_eq!(
        records
            .iter()
            .filter(|r| r.outcome.as_str() == "limited" && r.retry_after_s.is_some())
            .count(),
        40
    );
    gateway.clock.advance(TimeDelta::seconds(i64::try_from(wait).expect("small")));
    assert!(grant.call(&gateway, "99", "echo", "{}").await.text().contains("done"));
}

#[tokio::test]
async fn a_call_that_one_limit_refuses_charges_none() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[
        {"counter":"wide","window":"minute","max":100,"scope":"workspace"},{"counter":"narrow","window":"minute","max":2}]}}}"#;
    let one = gateway.grant(&stage.url(), policy);
    let two = gateway.sibling(&one);
    let ids: Vec<String> = (0..50).map(|id| id.to_string()).collect();
    join_all(ids.iter().map(|id| one.call(&gateway, id, "echo", "{}"))).await;
    assert_eq!(stage.calls().len(), 2);
    assert_eq!(used(&gateway, &one, "wide", Scope::Workspace).await, "2");
    assert!(two.call(&gateway, "1", "echo", "{}").await.text().contains("done"));
    assert_eq!(used(&gateway, &one, "wide", Scope::Workspace).await, "3");
}

#[tokio::test]
async fn a_charge_comes_back_only_if_nothing_was_sent() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","all_tools":{"limits":[{"counter":"c","window":"minute","max":3}]}}"#;
    let dead = gateway.grant("http://127.0.0.1:9/mcp", policy);
    for id in ["1", "2", "3", "4", "5"] {
        assert!(
            dead.call(&gateway, id, "echo", "{}").await.text().contains("upstream_unreachable")
        );
    }
    assert_eq!(used(&gateway, &dead, "c", Scope::Grant).await, "0");
    let grant = gateway.grant(&stage.url(), policy);
    assert!(grant.call(&gateway, "1", "slow", "{}").await.text().contains("upstream_cut"));
    assert_eq!(used(&gateway, &grant, "c", Scope::Grant).await, "1");
}

#[tokio::test]
async fn workspaces_and_grants_do_not_share_counters() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let one = gateway.grant(&stage.url(), TEN);
    let two = gateway.grant(&stage.url(), TEN);
    for id in 0..12 {
        one.call(&gateway, &id.to_string(), "echo", "{}").await;
    }
    assert_eq!(stage.calls().len(), 10);
    assert!(two.call(&gateway, "1", "echo", "{}").await.text().contains("done"));
}

#[tokio::test]
async fn where_waiting_cannot_help_no_wait_is_named() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"money","window":"day","max":100,"increment_from":"args.amount"}]},
        "other":{"limits":[{"counter":"none","window":"day","max":0}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    for (tool, arguments, expected) in [
        ("echo", r#"{"amount":100.000000001}"#, "rate_limited"),
        ("other", "{}", "rate_limited"),
        ("echo", "{}", "amount_invalid"),
        ("echo", r#"{"amount":"5"}"#, "amount_invalid"),
        ("echo", r#"{"amount":-1}"#, "amount_invalid"),
    ] {
        let answer = grant.call(&gateway, "1", tool, arguments).await;
        assert_eq!(code(&answer), expected, "{arguments}");
        assert!(!answer.text().contains("retry_after_seconds"), "{}", answer.text());
    }
    assert!(grant.call(&gateway, "1", "echo", r#"{"amount":99.5}"#).await.text().contains("done"));
    assert_eq!(
        code(&grant.call(&gateway, "1", "echo", r#"{"amount":0.51}"#).await),
        "rate_limited"
    );
    assert!(grant.call(&gateway, "1", "echo", r#"{"amount":0.5}"#).await.text().contains("done"));
}

#[tokio::test]
async fn an_observing_policy_counts_and_logs_but_stops_nothing() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let policy = r#"{"version":"1","mode":"observe","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"minute","max":1}]},
        "other":{"deny_if":[{"conditions":[]}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    for (tool, outcome, observed) in
        [("echo", "allowed", false), ("echo", "limited", true), ("other", "denied", true)]
    {
        assert!(grant.call(&gateway, "1", tool, "{}").await.text().contains("done"), "{tool}");
        let record = gateway.record().await;
        assert_eq!((record.outcome.as_str(), record.observed), (outcome, observed), "{record:?}");
    }
    assert_eq!(stage.calls().len(), 3);
}

#[tokio::test]
async fn a_policy_edit_holds_for_the_next_call_and_keeps_the_count() {
    let stage = Stage::start(echo).await;
    let gateway = Gateway::start().await;
    let policy = |max: u32| {
        format!(
            r#"{{"version":"1","default":"allow","tools":{{"echo":{{"limits":[{{"counter":"c","window":"hour","max":{max}}}]}}}}}}"#
        )
    };
    let mut grant = gateway.grant(&stage.url(), &policy(5));
    let passed = async |grant: &Grant, tries: usize| {
        let before = stage.calls().len();
        for id in 0..tries {
            grant.call(&gateway, &id.to_string(), "echo", "{}").await;
        }
        stage.calls().len() - before
    };
    assert_eq!(passed(&grant, 7).await, 5);
    gateway.change(&mut grant, |record| record.policy.as_mut().expect("one").document = policy(10));
    assert_eq!(passed(&grant, 7).await, 5);
    gateway.change(&mut grant, |record| record.policy.as_mut().expect("one").document = policy(3));
    assert_eq!(passed(&grant, 2).await, 0);
}

#[tokio::test]
async fn the_operators_day_holds_whatever_the_policy_says() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    for (policy, observe) in [
        (r#"{"version":"1","default":"allow"}"#, false),
        (r#"{"version":"1","default":"allow"}"#, true),
        // What the policy would refuse and only watches counts all the same.
        (
            r#"{"version":"1","default":"allow","all_tools":{"limits":[{"counter":"c","window":"second","max":0}]}}"#,
            true,
        ),
    ] {
        let grant = gateway.grant_with(&stage.url(), policy, |record| {
            record.calls_per_day = Some(2);
            record.grant.observe = observe;
        });
        for tool in ["echo", "other"] {
            assert!(
                grant.call(&gateway, "1", tool, "{}").await.text().contains("done"),
                "{policy}"
            );
            gateway.record().await;
        }
        let refused = grant.call(&gateway, "3", "echo", "{}").await;
        let text = refused.text();
        assert!(
            text.contains("rate_limited") && text.contains("2 tool calls a day (UTC)"),
            "{text}"
        );
        assert!(text.contains("retry_after_seconds"), "{text}");
        let record = gateway.record().await;
        assert_eq!((record.rule.as_str(), record.outcome.as_str()), ("(calls a day)", "limited"));
    }
    assert_eq!(stage.calls().len(), 6);
}

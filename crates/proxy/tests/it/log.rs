//! The call log: one record each, none with a secret, none lost.

use sluice_domain::OnUnavailable;
use sluice_proxy::ProxyOptions;

use crate::gateway::{ALLOW_ALL, Gateway, Setup, call, code, initialize};
use crate::stage::{Received, Stage, Wire};

async fn echo(received: Received, mut wire: Wire) {
    if received.id() == "null" {
        wire.answer("202 Accepted", &[], "").await;
    } else {
        wire.text(&received.id(), "tok-CCCC").await;
    }
}

#[tokio::test]
async fn every_request_leaves_one_record_whose_id_the_client_has() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let policy = r#"{"version":"1","default":"deny","hide":["delete_note"],"tools":{"echo":{},
        "other":{"deny_if":[{"conditions":[],"on_deny":"Not today."}]}}}"#;
    let grant = gateway.grant(&stage.url(), policy);
    let table = [
        (call("1", "echo", "{}"), "allowed", "allowed", ""),
        (call("2", "other", "{}"), "denied", "deny_if_matched", "/tools/other/deny_if/0"),
        (call("3", "delete_note", "{}"), "hidden", "unknown_tool", "(hidden)"),
        (call("4", "nothing", "{}"), "hidden", "unknown_tool", "(unknown tool)"),
        (call("5", "read_note", "{}"), "denied", "default_deny", "(default deny)"),
        (initialize(), "allowed", "allowed", ""),
        ("[]".to_owned(), "rejected", "malformed", ""),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"acme/x"}"#.to_owned(),
            "denied",
            "method_not_allowed",
            "(method)",
        ),
    ];
    for (body, outcome, code, rule) in table {
        let answer = grant.post(&gateway, &[], &body).await;
        let record = gateway.record().await;
        assert_eq!(
            (record.outcome.as_str(), record.code.as_str(), record.rule.as_str()),
            (outcome, code, rule),
            "{body}"
        );
        assert_eq!(answer.header("x-request-id"), record.id.to_string());
        assert_eq!((record.grant, record.grant_label.as_str()), (grant.record.grant.id, "agent"));
        assert_eq!(record.request_bytes, i64::try_from(body.len()).expect("small"));
        assert_eq!(record.client_address.as_deref(), Some("127.0.0.1"));
        assert!(answer.text().contains(&record.id.to_string()) || outcome == "allowed");
    }
    assert!(
        grant
            .call(&gateway, "2", "other", "{}")
            .await
            .text()
            .contains("[POLICY DENIED] Not today.")
    );
    gateway.records();
    // Notifications leave none, unless something goes wrong with them.
    grant.post(&gateway, &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert!(gateway.records().is_empty());
    grant.post(&gateway, &[], r#"{"jsonrpc":"2.0","method":"notifications/acme"}"#).await;
    assert_eq!(gateway.record().await.code.as_str(), "method_not_allowed");
}

#[tokio::test]
async fn no_record_holds_a_secret() {
    let stage = Stage::start(echo).await;
    let mut gateway = Gateway::start().await;
    let arguments = r#"{"api_key":"sk-test-AAAA","nested":{"password":"p-BBBB"},"city":"Ghent"}"#;
    for (values, city) in [(false, false), (true, true)] {
        let grant = gateway.grant_with(&stage.url(), ALLOW_ALL, |record| {
            record.server.settings.log_argument_values = values;
        });
        grant.call(&gateway, "1", "echo", arguments).await;
        let record = format!("{:?}", gateway.record().await);
        for secret in ["AAAA", "BBBB", "CCCC", &grant.token] {
            assert!(!record.contains(secret), "{secret}: {record}");
        }
        assert!(record.contains("api_key"));
        assert_eq!(record.contains("Ghent"), city);
    }
}

#[tokio::test]
async fn with_the_log_full_calls_are_refused_or_go_on_as_the_setting_says() {
    let stage = Stage::start(echo).await;
    for (on_full, reach) in [(OnUnavailable::Deny, 1), (OnUnavailable::Allow, 2)] {
        let options = ProxyOptions { on_log_full: on_full, ..ProxyOptions::default() };
        let mut gateway = Gateway::with(Setup { options, log: 1, ..Setup::default() }).await;
        let policy = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":2}]}}}"#;
        let grant = gateway.grant(&stage.url(), policy);
        let before = stage.count();
        let one = grant.call(&gateway, "1", "echo", "{}").await;
        let two = grant.call(&gateway, "2", "echo", "{}").await;
        assert_eq!(stage.count() - before, reach);
        assert!(one.text().contains("tok-CCCC"));
        if on_full == OnUnavailable::Deny {
            assert_eq!(code(&two), "log_unavailable");
            // What was refused is given back.
            gateway.records();
            assert!(grant.call(&gateway, "3", "echo", "{}").await.text().contains("tok-CCCC"));
        }
    }
}

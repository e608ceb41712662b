//! Calls that a person is asked about, over approvals that are kept in memory.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use sluice_domain::{Amount, ApprovalStatus, Reset, Scope, Window};
use sluice_limits::CounterKey;
use sluice_proxy::{Approvals, Released};

use crate::fake_approvals::FakeApprovals;
use crate::gateway::{Gateway, Grant, Setup, call, code};
use crate::stage::{Received, Stage, Wire};

const POLICY: &str = r#"{"version":"1","default":"allow","tools":{"echo":{
    "approve_if":[{"conditions":[]}],"limits":[{"counter":"c","window":"hour","max":3}],"approval":{"hold":"HOLD","expires":"30m"}}}}"#;

async fn play(received: Received, mut wire: Wire) {
    match received.json()["params"]["arguments"]["how"].as_str() {
        Some("cut") => wire.cut(),
        Some("events") => {
            wire.events().await;
            wire.raw(format!("data: {}\n\n", crate::stage::text_result(&received.id(), "ran")))
                .await;
        }
        _ => wire.text(&received.id(), "ran").await,
    }
}

struct Scene {
    stage: Stage,
    gateway: Gateway,
    approvals: Arc<FakeApprovals>,
    grant: Grant,
}

async fn scene(hold: &str, cap: usize) -> Scene {
    let stage = Stage::start(play).await;
    let approvals = FakeApprovals::new(cap);
    let setup =
        Setup { approvals: Some(Arc::clone(&approvals) as Arc<dyn Approvals>), ..Setup::default() };
    let gateway = Gateway::with(setup).await;
    let grant = gateway.grant(&stage.url(), &POLICY.replace("HOLD", hold));
    Scene { stage, gateway, approvals, grant }
}

impl Scene {
    async fn used(&self) -> String {
        let record = &self.grant.record;
        let owner = record.grant.id.to_string();
        let key = CounterKey {
            counter: "c".into(),
            window: Window::Hour,
            reset: Reset::Sliding,
            scope: Scope::Grant,
            owner,
        };
        let readings =
            self.gateway.counters.read(record.workspace, &[(key, Amount::whole(9))]).await;
        readings.expect("counters")[0].used.to_string()
    }

    async fn call(&self, id: &str, arguments: &str) -> sluice_testkit::http::Answer {
        self.grant.call(&self.gateway, id, "echo", arguments).await
    }
}

#[tokio::test]
async fn a_call_approved_in_time_goes_on() {
    let mut scene = scene("10m", 9).await;
    let (answer, ()) = tokio::join!(scene.call("7", r#"{"a":1}"#), async {
        scene.approvals.parked(1).await;
        assert_eq!((scene.stage.count(), scene.used().await.as_str()), (0, "1"));
        scene.approvals.decide(0, ApprovalStatus::Approved, None);
    });
    assert!(
        answer.text().contains("ran") && answer.text().contains("\"id\":7"),
        "{}",
        answer.text()
    );
    assert_eq!((scene.stage.count(), scene.used().await.as_str()), (1, "1"));
    assert_eq!(scene.approvals.released(0), [Released::Ran]);
    let record = scene.gateway.record().await;
    assert_eq!((record.code.as_str(), record.outcome.as_str()), ("allowed", "allowed"));
    assert!(record.timing.approval_us > 0);
}

#[tokio::test]
async fn a_refused_call_comes_back_with_the_note() {
    let scene = scene("10m", 9).await;
    let (answer, ()) = tokio::join!(scene.call("1", "{}"), async {
        scene.approvals.parked(1).await;
        scene.approvals.decide(0, ApprovalStatus::Denied, Some("Ask Ann first."));
    });
    assert_eq!(code(&answer), "approval_denied");
    assert!(answer.text().contains("Ask Ann first."));
    assert_eq!(scene.stage.count(), 0);
    assert_eq!(code(&scene.call("2", " { } ").await), "approval_denied");
}

#[tokio::test]
async fn an_undecided_call_tells_where_and_runs_once_when_it_comes_again() {
    let mut scene = scene("0s", 9).await;
    let first = scene.call("1", r#"{"to":"a","n":1}"#).await;
    let json = first.json();
    let note = &json["result"]["_meta"]["dev.sluice/decision"];
    let id = scene.approvals.kept.lock()[0].approval.id.to_string();
    assert_eq!(
        (note["code"].as_str(), note["rule"].as_str()),
        (Some("approval_pending"), Some("/tools/echo/approve_if/0"))
    );
    assert_eq!(note["approval"]["id"], id.as_str());
    assert_eq!(note["approval"]["url"], format!("http://localhost:8080/w/acme/approvals/{id}"));
    assert_eq!(note["approval"]["expires_at"], "2026-11-30T12:30:00Z");
    let text = json["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.starts_with("[APPROVAL REQUIRED] ")
            && text.contains(&id)
            && text.contains("/w/acme/approvals/"),
        "{text}"
    );
    assert_eq!(scene.gateway.record().await.outcome.as_str(), "waiting");
    // The same call joins what is parked, another one is parked by itself.
    assert_eq!(code(&scene.call("2", r#"{"n":1,"to":"a"}"#).await), "approval_pending");
    assert_eq!((scene.approvals.count(), scene.used().await.as_str()), (1, "1"));
    assert_eq!(code(&scene.call("3", r#"{"to":"a","n":2}"#).await), "approval_pending");
    assert_eq!((scene.approvals.count(), scene.used().await.as_str()), (2, "2"));
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    assert_eq!(scene.stage.count(), 0);
    assert!(scene.call("4", r#"{"to":"a","n":1}"#).await.text().contains("ran"));
    assert_eq!((scene.stage.count(), scene.used().await.as_str()), (1, "2"));
    // Used up: the next one asks anew.
    assert_eq!(code(&scene.call("5", r#"{"to":"a","n":1}"#).await), "approval_pending");
    assert_eq!(scene.stage.count(), 1);
}

#[tokio::test]
async fn identical_calls_wait_together_and_it_runs_once() {
    for how in ["json", "events"] {
        let scene = scene("10m", 9).await;
        let arguments = format!("{{\"how\":\"{how}\"}}");
        let later = async |id: &str| {
            scene.approvals.parked(1).await;
            scene.call(id, &arguments).await
        };
        let (one, two, three, ()) =
            tokio::join!(scene.call("1", &arguments), later("\"b\""), later("3"), async {
                scene.approvals.held(3).await;
                scene.approvals.decide(0, ApprovalStatus::Approved, None);
            });
        for (answer, id) in [(one, "1"), (two, "\"b\""), (three, "3")] {
            let text = answer.text();
            assert!(text.contains("ran") && text.contains(&format!("\"id\":{id}")), "{how} {text}");
        }
        assert_eq!((scene.stage.count(), scene.approvals.count()), (1, 1));
        assert_eq!(scene.approvals.released(0), [Released::Ran]);
        assert_eq!(scene.used().await, "1");
    }
}

#[tokio::test]
async fn a_client_with_a_progress_token_is_told_that_it_waits() {
    let scene = scene("10m", 9).await;
    let body = call("1", "echo", "{}")
        .replace("\"arguments\"", "\"_meta\":{\"progressToken\":\"tok\"},\"arguments\"");
    let mut opened = scene.grant.open(&scene.gateway, Method::POST, &[], &body).await;
    assert_eq!(opened.headers["content-type"], "text/event-stream");
    let first = opened.piece().await.expect("an event").expect("whole");
    let first = String::from_utf8_lossy(&first).into_owned();
    assert!(
        first.contains("notifications/progress") && first.contains("\"progressToken\":\"tok\""),
        "{first}"
    );
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    let answer = opened.whole().await.expect("whole");
    assert!(
        answer.text().contains("event: message\ndata: {") && answer.text().contains("ran"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn a_flood_of_parked_calls_is_bounded_and_charges_nothing_more() {
    let scene = scene("0s", 1).await;
    assert_eq!(code(&scene.call("1", r#"{"n":1}"#).await), "approval_pending");
    assert_eq!(code(&scene.call("2", r#"{"n":2}"#).await), "too_many_pending");
    assert_eq!(scene.used().await, "1");
}

#[tokio::test]
async fn what_was_approved_is_looked_at_again_before_it_runs() {
    for (what, expected) in
        [("policy", "approval_expired"), ("drift", "tool_changed"), ("deny", "default_deny")]
    {
        let mut scene = scene("0s", 9).await;
        assert_eq!(code(&scene.call("1", "{}").await), "approval_pending");
        scene.approvals.decide(0, ApprovalStatus::Approved, None);
        scene.gateway.change(&mut scene.grant, |record| match what {
            "drift" => record.tools[0].definition_hash = "other".to_owned(),
            "deny" => {
                record.policy.as_mut().expect("one").document =
                    r#"{"version":"1","default":"deny"}"#.to_owned();
            }
            _ => {
                record.policy.as_mut().expect("one").document =
                    POLICY.replace("HOLD", "1s").replace("\"max\":3", "\"max\":2");
            }
        });
        let answer = scene.call("2", "{}").await;
        assert_eq!(scene.stage.count(), 0, "{what}");
        // A changed rule is another call to approve: it is parked anew and not run.
        let expected = if what == "policy" { "approval_pending" } else { expected };
        assert_eq!(code(&answer), expected, "{what}");
    }
}

#[tokio::test]
async fn revoked_while_it_waits_it_does_not_run() {
    let mut scene = scene("10m", 9).await;
    let mut grant = scene.grant.clone();
    let (answer, ()) = tokio::join!(scene.call("1", "{}"), async {
        scene.approvals.parked(1).await;
        scene.gateway.change(&mut grant, |record| record.grant.revoked = true);
        scene.approvals.decide(0, ApprovalStatus::Approved, None);
    });
    assert_eq!((code(&answer).as_str(), scene.stage.count()), ("approval_expired", 0));
    scene.grant = grant;
}

#[tokio::test]
async fn at_its_release_a_call_is_charged_anew_or_stays_approved() {
    let scene = scene("0s", 9).await;
    for n in 1..=3 {
        assert_eq!(code(&scene.call("1", &format!("{{\"n\":{n}}}")).await), "approval_pending");
    }
    // The counter is full, and this call's own charge is moved.
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    assert!(scene.call("1", r#"{"n":1}"#).await.text().contains("ran"));
    assert_eq!((scene.stage.count(), scene.used().await.as_str()), (1, "3"));
    scene.gateway.clock.advance(TimeDelta::seconds(60));
    assert_eq!(code(&scene.call("1", r#"{"n":4}"#).await), "rate_limited");
    assert_eq!(scene.approvals.count(), 3);
}

#[tokio::test]
async fn how_it_ended_is_told_exactly_once() {
    let scene = scene("0s", 9).await;
    let cut = r#"{"how":"cut"}"#;
    scene.call("1", cut).await;
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    assert!(scene.call("1", cut).await.text().contains("upstream_cut"));
    scene.approvals.told(0, Released::Unknown).await;
    assert_eq!(scene.approvals.released(0), [Released::Unknown]);
    let again = scene.call("1", cut).await;
    assert!(again.text().contains("outcome is unknown"), "{}", again.text());
    assert_eq!(scene.stage.count(), 1);
    let dead = scene.gateway.grant("http://127.0.0.1:9/mcp", &POLICY.replace("HOLD", "0s"));
    dead.call(&scene.gateway, "1", "echo", "{}").await;
    scene.approvals.decide(1, ApprovalStatus::Approved, None);
    for _ in 0..2 {
        let answer = dead.call(&scene.gateway, "1", "echo", "{}").await;
        assert!(answer.text().contains("upstream_unreachable"), "{}", answer.text());
    }
    assert_eq!(scene.approvals.released(1), [Released::NotRun, Released::NotRun]);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_call_is_refused() {
    let stage = Stage::start(play).await;
    let gateway = Gateway::start().await;
    let grant = gateway.grant(&stage.url(), &POLICY.replace("HOLD", "0s"));
    assert_eq!(code(&grant.call(&gateway, "1", "echo", "{}").await), "approval_denied");
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn what_a_person_lets_through_runs_without_asking_and_within_its_limits() {
    let mut scene = scene("0s", 9).await;
    *scene.approvals.excepted.lock() = 4;
    for n in 1..=3 {
        let answer = scene.call("1", r#"{"n":1}"#).await;
        assert!(answer.text().contains("ran"), "{}", answer.text());
        assert_eq!((scene.stage.count(), scene.used().await), (n, n.to_string()));
    }
    let record = scene.gateway.record().await;
    assert_eq!((record.outcome.as_str(), record.code.as_str()), ("allowed", "allowed"));
    assert!(record.message.contains("by ann@example.test"), "{}", record.message);
    assert_eq!(code(&scene.call("1", r#"{"n":1}"#).await), "rate_limited");
    assert_eq!((scene.stage.count(), scene.approvals.count()), (3, 0));
    // Its last pass is used up: the next one is asked about, were there room for it.
    assert_eq!(*scene.approvals.excepted.lock(), 0);
}

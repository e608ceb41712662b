//! Calls whose charge is in doubt: the counters answer late, or the client has gone before they do.

use std::sync::Arc;
use std::time::Duration;

use sluice_domain::{Amount, ApprovalStatus, Reset, Scope, Window};
use sluice_limits::{CounterKey, Counters, RedisOptions};
use sluice_proxy::Approvals;
use sluice_testkit::{Plug, RedisServer};

use crate::fake_approvals::FakeApprovals;
use crate::gateway::{Gateway, Grant, Setup, code};
use crate::stage::{Received, Stage, Wire};

const LIMITED: &str = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":3}]}}}"#;
const LENIENT: &str = r#"{"version":"1","default":"allow","tools":{"echo":{"limits":[{"counter":"c","window":"hour","max":3,"on_unavailable":"allow"}]}}}"#;
const APPROVED: &str = r#"{"version":"1","default":"allow","tools":{"echo":{"approve_if":[{"conditions":[]}],
    "limits":[{"counter":"c","window":"hour","max":3}],"approval":{"hold":"0s"}}}}"#;

async fn echo(received: Received, mut wire: Wire) {
    wire.text(&received.id(), "done").await;
}

/// A gateway whose way to Redis can be held.
struct Scene {
    _redis: RedisServer,
    plug: Plug,
    stage: Stage,
    approvals: Arc<FakeApprovals>,
    gateway: Gateway,
}

async fn scene(timeout: Duration) -> Scene {
    let redis = RedisServer::start();
    let plug = Plug::before(redis.address()).await;
    let options = RedisOptions { timeout, ..RedisOptions::default() };
    let url = format!("redis://{}", plug.address());
    let counters = Counters::redis(&url, options).await.expect("an address");
    let approvals = FakeApprovals::new(9);
    let setup = Setup {
        counters: Some(counters),
        approvals: Some(Arc::clone(&approvals) as Arc<dyn Approvals>),
        ..Setup::default()
    };
    let (stage, gateway) = (Stage::start(echo).await, Gateway::with(setup).await);
    Scene { _redis: redis, plug, stage, approvals, gateway }
}

impl Scene {
    async fn used(&self, grant: &Grant) -> String {
        let key = CounterKey {
            counter: "c".into(),
            window: Window::Hour,
            reset: Reset::Sliding,
            scope: Scope::Grant,
            owner: grant.record.grant.id.to_string(),
        };
        let keys = [(key, Amount::whole(9))];
        let read = self.gateway.counters.read(grant.record.workspace, &keys).await;
        read.expect("counters")[0].used.to_string()
    }

    async fn recovers(&self) {
        let well = async {
            while !self.gateway.counters.health().is_well() {
                // The counters tell nobody that they are back.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), well).await.expect("they come back");
    }
}

#[tokio::test]
async fn a_client_that_goes_while_its_limits_are_asked_gives_the_charge_back() {
    let scene = scene(Duration::from_mins(5)).await;
    let grant = scene.gateway.grant(&scene.stage.url(), LIMITED);
    assert!(grant.call(&scene.gateway, "1", "echo", "{}").await.text().contains("done"));
    scene.plug.hold();
    let before = scene.plug.sent();
    {
        let calling = grant.call(&scene.gateway, "2", "echo", "{}");
        tokio::pin!(calling);
        tokio::select! {
            _ = &mut calling => panic!("nothing was answered"),
            () = scene.plug.until_sent(before + 1) => {}
        }
        // Here the client hangs up: its charge is on the way.
    }
    scene.plug.until_sent(before + 2).await;
    scene.plug.put_back();
    assert_eq!(scene.used(&grant).await, "1", "the charge was followed by its refund");
    assert_eq!(scene.stage.calls().len(), 1);
}

#[tokio::test]
async fn a_release_that_times_out_is_not_charged_twice() {
    let scene = scene(Duration::from_millis(300)).await;
    let grant = scene.gateway.grant(&scene.stage.url(), APPROVED);
    let call = async |id: &str| grant.call(&scene.gateway, id, "echo", "{}").await;
    assert_eq!(code(&call("1").await), "approval_pending");
    scene.approvals.decide(0, ApprovalStatus::Approved, None);
    scene.plug.hold();
    assert_eq!(code(&call("2").await), "limits_unavailable");
    scene.plug.put_back();
    scene.recovers().await;
    assert!(call("3").await.text().contains("done"), "the approval is still good");
    assert_eq!(scene.used(&grant).await, "1");
    assert_eq!(scene.stage.calls().len(), 1);
}

#[tokio::test]
async fn each_limits_own_word_decides_while_the_counters_are_away() {
    let scene = scene(Duration::from_millis(300)).await;
    let strict = scene.gateway.grant(&scene.stage.url(), LIMITED);
    let lenient = scene.gateway.grant(&scene.stage.url(), LENIENT);
    scene.plug.hold();
    for _ in 0..5 {
        let refused = strict.call(&scene.gateway, "1", "echo", "{}").await;
        assert_eq!(code(&refused), "limits_unavailable");
        let passed = lenient.call(&scene.gateway, "1", "echo", "{}").await;
        assert!(passed.text().contains("done"), "{}", passed.text());
        let free = strict.call(&scene.gateway, "1", "other", "{}").await;
        assert!(free.text().contains("done"), "no limit, no counter");
    }
    scene.plug.put_back();
    scene.recovers().await;
    assert!(strict.call(&scene.gateway, "1", "echo", "{}").await.text().contains("done"));
    assert_eq!(scene.used(&strict).await, "1", "what was refused counts nothing");
}

//! Parked calls: who may decide, once, and what is given back.

use std::time::Duration;

use chrono::TimeDelta;
use sluice_control::{Admin, ApprovalsOf, GrantForm, Page, PolicyForm};
use sluice_domain::{
    Amount, ApprovalId, ApprovalStatus, CallId, GrantId, PolicyId, ReservationId, Reset, Role,
    Scope, ServerId, Window,
};
use sluice_limits::{CounterKey, Demand};
use sluice_store::approvals::{self, NewApproval, Parked};
use sluice_testkit::on_both;
use sluice_vault::Place;

use crate::common::{World, code};

pub(crate) struct Parking {
    pub(crate) server: ServerId,
    policy: PolicyId,
    grant: GrantId,
}

pub(crate) async fn parking(world: &World, admin: &Admin) -> Parking {
    let server = world.server(admin).await;
    let document =
        r#"{"version":"1","default":"deny","tools":{"delete_file":{"action":"require_approval"}}}"#;
    let form = PolicyForm {
        name: Some("p".to_owned()),
        document: document.to_owned(),
        note: String::new(),
    };
    let policy = world.control.create_policy(admin, server, form).await.expect("saves").policy.id;
    let form = GrantForm { label: "g".to_owned(), policy: Some(policy), ..GrantForm::default() };
    let grant = world.control.create_grant(admin, server, form).await.expect("makes").grant.id;
    Parking { server, policy, grant }
}

fn demand(grant: GrantId) -> Demand {
    let key = CounterKey {
        counter: "delete_file_rate".to_owned(),
        window: Window::Day,
        reset: Reset::Sliding,
        scope: Scope::Grant,
        owner: grant.to_string(),
    };
    Demand { key, max: Amount::whole(1), amount: Amount::ONE }
}

pub(crate) struct Call<'a> {
    digest: &'a str,
    approvers: &'a [String],
    quorum: i64,
    self_allowed: bool,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Self { digest: "d", approvers: &[], quorum: 1, self_allowed: true }
    }
}

/// Parks a call as the proxy does, with a charge.
pub(crate) async fn park(world: &World, admin: &Admin, at: &Parking, call: Call<'_>) -> ApprovalId {
    let (id, reservation, now) = (ApprovalId::new(), ReservationId::new(), world.clock.now());
    let demands = [demand(at.grant)];
    let reserved = world
        .counters
        .reserve_for(admin.workspace, reservation, &demands, Duration::from_hours(2))
        .await;
    assert!(reserved.expect("answers").granted, "charged while it waits");
    let place = Place::approval_arguments(admin.workspace, id);
    let sealed = world.vault.seal(place, br#"{"path":"/x","api_key":"AAAA"}"#);
    let demands = serde_json::to_string(&demands).expect("serialises");
    let new = NewApproval {
        id,
        server: at.server,
        grant: at.grant,
        grant_label: "g",
        call: CallId::new(),
        tool: "delete_file",
        tool_hash: None,
        arguments_digest: call.digest,
        sealed_arguments: &sealed,
        policy: at.policy,
        policy_version: 1,
        rule: "/tools/delete_file/approve_if/0",
        rules_digest: "r",
        session: None,
        client_name: Some("claude"),
        reservation: Some(reservation),
        demands: Some(&demands),
        approvers: call.approvers,
        quorum: call.quorum,
        self_allowed: call.self_allowed,
        hold_until: now + TimeDelta::seconds(50),
        expires_at: now + TimeDelta::minutes(30),
    };
    let mut tx = world.db.begin().await.expect("begins");
    let parked = approvals::create_or_join(&mut tx.conn(), admin.workspace, new, 10, now).await;
    tx.commit().await.expect("commits");
    assert!(matches!(parked.expect("parks"), Parked::Created(_)));
    id
}

async fn charged(world: &World, admin: &Admin, at: &Parking) -> Amount {
    let keys = [(demand(at.grant).key, Amount::whole(1))];
    world.counters.read(admin.workspace, &keys).await.expect("answers")[0].used
}

on_both! {
    async fn one_decision_wins_and_the_other_learns_who(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let viewer = world.viewer(&admin).await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call::default()).await;
        let seen = world.control.approval(&viewer, id).await.expect("viewers read");
        assert!(!seen.may_decide);
        let arguments = seen.arguments.expect("are shown");
        assert_eq!(arguments, serde_json::json!({"path": "/x", "api_key": "[redacted]"}));
        let (yes, no) = tokio::join!(
            world.control.decide(&admin, id, true, "fine"),
            world.control.decide(&manager, id, false, "no"),
        );
        let (won, lost) = if yes.is_ok() { (yes, no) } else { (no, yes) };
        let won = won.expect("one wins").approval;
        let lost = lost.expect_err("the other is too late");
        assert_eq!(lost.code(), "already_decided");
        let who = if won.status == ApprovalStatus::Approved { "ann@" } else { "manager@" };
        assert!(lost.to_string().starts_with(who), "{lost}");
        assert_eq!(world.control.decisions(&viewer, id).await.expect("lists").len(), 1);
        assert_eq!(code(world.control.decide(&admin, ApprovalId::new(), true, "").await), "not_found");
    }

    async fn a_refused_or_expired_call_gives_its_charge_back(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let at = parking(&world, &admin).await;
        let refused = park(&world, &admin, &at, Call::default()).await;
        assert_eq!(charged(&world, &admin, &at).await, Amount::ONE);
        let decided = world.control.decide(&admin, refused, false, "not today").await.expect("refuses");
        assert_eq!(decided.approval.status, ApprovalStatus::Denied);
        assert_eq!(charged(&world, &admin, &at).await, Amount::ZERO);
        let late = park(&world, &admin, &at, Call { digest: "e", ..Call::default() }).await;
        assert_eq!(world.control.pending_approvals(&admin).await.expect("counts"), 1);
        world.clock.advance(TimeDelta::minutes(31));
        let pending = ApprovalsOf { status: Some(ApprovalStatus::Pending), ..ApprovalsOf::default() };
        let pending = world.control.approvals(&admin, &pending, Page::first(9)).await.expect("lists");
        assert!(pending.items.is_empty(), "its time is over");
        assert_eq!(code(world.control.decide(&admin, late, true, "").await), "already_decided");
        assert_eq!(world.control.expire_approvals().await.expect("sweeps"), 1);
        assert_eq!(charged(&world, &admin, &at).await, Amount::ZERO);
        let shown = world.control.approval(&admin, late).await.expect("reads");
        assert_eq!(shown.status, ApprovalStatus::Expired);
        world.clock.advance(TimeDelta::days(8));
        world.control.sweep().await.expect("sweeps");
        assert_eq!(world.control.approval(&admin, late).await.expect("reads").arguments, None);
    }

    async fn only_the_named_people_decide(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let manager = world.manager(&admin).await;
        let at = parking(&world, &admin).await;
        let own = park(&world, &admin, &at, Call { self_allowed: false, ..Call::default() }).await;
        assert!(!world.control.approval(&admin, own).await.expect("reads").may_decide);
        assert!(world.control.approval(&manager, own).await.expect("reads").may_decide);
        let listed = world.control.approvals(&admin, &ApprovalsOf::default(), Page::first(9)).await;
        assert!(listed.expect("lists").items.iter().all(|one| !one.may_decide));
        assert_eq!(code(world.control.decide(&admin, own, true, "").await), "own_grant");
        world.control.decide(&manager, own, false, "").await.expect("somebody else may");
        let admins = ["role:admin".to_owned()];
        let id = park(&world, &admin, &at, Call { digest: "a", approvers: &admins, ..Call::default() }).await;
        assert_eq!(code(world.control.decide(&manager, id, true, "").await), "not_an_approver");
        world.control.decide(&admin, id, false, "").await.expect("an admin may");
        let named = ["member:Manager@example.test".to_owned()];
        let id = park(&world, &admin, &at, Call { digest: "b", approvers: &named, ..Call::default() }).await;
        assert_eq!(code(world.control.decide(&admin, id, true, "").await), "not_an_approver");
        world.control.decide(&manager, id, true, "").await.expect("the named one may");
    }

    async fn two_people_when_two_are_asked_for(world: World) {
        let admin = world.workspace("Acme", "ann@example.test").await;
        let second: Admin = world.member(&admin, "bob@example.test", Role::Admin).await;
        let at = parking(&world, &admin).await;
        let id = park(&world, &admin, &at, Call { quorum: 2, ..Call::default() }).await;
        let first = world.control.decide(&admin, id, true, "").await.expect("counts");
        assert_eq!((first.missing, first.approval.status), (1, ApprovalStatus::Pending));
        assert_eq!(code(world.control.decide(&admin, id, true, "").await), "already_yours");
        let done = world.control.decide(&second, id, true, "").await.expect("counts");
        assert_eq!((done.missing, done.approval.status), (0, ApprovalStatus::Approved));
        assert_eq!(charged(&world, &admin, &at).await, Amount::ONE, "kept until its release");
    }
}

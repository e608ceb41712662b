//! Calls that are parked as the proxy parks them, with a charge.

use std::fmt::Write;
use std::time::Duration;

use chrono::TimeDelta;
use sha2::{Digest, Sha256};
use sluice_control::{Admin, GrantForm, PolicyForm};
use sluice_domain::{
    Amount, ApprovalId, CallId, GrantId, PolicyId, ReservationId, Reset, Scope, ServerId, Window,
};
use sluice_limits::{CounterKey, Demand};
use sluice_store::approvals::{self, NewApproval, Parked};
use sluice_store::tools;
use sluice_vault::Place;

use crate::common::World;

pub(crate) const DOCUMENT: &str =
    r#"{"version":"1","default":"deny","tools":{"delete_file":{"action":"require_approval"}}}"#;

/// As the data path computes it.
pub(crate) fn rules_digest(document: &str) -> String {
    let policy = sluice_policy::compile(document).expect("compiles");
    let digest = Sha256::digest(policy.rules_text("delete_file").as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

async fn reviewed_hash(world: &World, admin: &Admin, at: &Parking) -> Option<String> {
    let mut tx = world.db.read().await.expect("reads");
    let found = tools::find(&mut tx.conn(), admin.workspace, at.server, "delete_file").await;
    found.expect("reads").map(|tool| tool.reviewed_hash.unwrap_or(tool.hash))
}

/// A server, a policy and a grant to park calls of.
pub(crate) struct Parking {
    pub(crate) server: ServerId,
    pub(crate) policy: PolicyId,
    pub(crate) grant: GrantId,
}

pub(crate) async fn parking(world: &World, admin: &Admin) -> Parking {
    let server = world.server(admin).await;
    let form = PolicyForm {
        name: Some("p".to_owned()),
        document: DOCUMENT.to_owned(),
        note: String::new(),
    };
    let policy = world.control.create_policy(admin, server, form).await.expect("saves").policy.id;
    let form = GrantForm { label: "g".to_owned(), policy: Some(policy), ..GrantForm::default() };
    let grant = world.control.create_grant(admin, server, form).await.expect("makes").grant.id;
    Parking { server, policy, grant }
}

pub(crate) fn demand(grant: GrantId) -> Demand {
    let key = CounterKey {
        counter: "delete_file_rate".to_owned(),
        window: Window::Day,
        reset: Reset::Sliding,
        scope: Scope::Grant,
        owner: grant.to_string(),
    };
    Demand { key, max: Amount::whole(100), amount: Amount::ONE }
}

pub(crate) struct Call<'a> {
    pub(crate) digest: &'a str,
    pub(crate) approvers: &'a [String],
    pub(crate) quorum: i64,
    pub(crate) self_allowed: bool,
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
    let hash = reviewed_hash(world, admin, at).await;
    let new = NewApproval {
        id,
        server: at.server,
        grant: at.grant,
        grant_label: "g",
        call: CallId::new(),
        tool: "delete_file",
        tool_hash: hash.as_deref(),
        arguments_digest: call.digest,
        sealed_arguments: &sealed,
        policy: at.policy,
        policy_version: 1,
        rule: "/tools/delete_file/approve_if/0",
        rules_digest: &rules_digest(DOCUMENT),
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

pub(crate) async fn charged(world: &World, admin: &Admin, at: &Parking) -> Amount {
    let keys = [(demand(at.grant).key, Amount::whole(100))];
    world.counters.read(admin.workspace, &keys).await.expect("answers")[0].used
}

/// Gives back what the call was charged, so that the next one fits.
pub(crate) async fn uncharge(world: &World, admin: &Admin, id: ApprovalId) {
    let mut tx = world.db.read().await.expect("reads");
    let found = approvals::find(&mut tx.conn(), admin.workspace, id).await.expect("reads");
    let approval = found.expect("is there");
    let demands: Vec<Demand> =
        serde_json::from_str(approval.demands.as_deref().unwrap_or("[]")).expect("reads");
    let reservation = approval.reservation.expect("a charge");
    world.counters.refund(admin.workspace, reservation, &demands).await.expect("gives back");
}

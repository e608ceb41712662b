//! What is made past the API: calls that wait, rows of the log, filters.

use chrono::TimeDelta;
use sluice_domain::{ApprovalId, CallId, CallRecord, CallTiming, Code, Outcome};
use sluice_domain::{GrantId, PolicyId, ReservationId, Role, ServerId, UserId, WorkspaceId};
use sluice_store::approvals::{self, NewApproval};
use sluice_store::{calls, join_domains, saved_filters};
use sluice_vault::Place;

use super::{Scene, read};

impl Scene {
    pub(super) async fn park(
        &self,
        workspace: WorkspaceId,
        (server, grant, policy): (ServerId, GrantId, PolicyId),
        n: u32,
    ) -> ApprovalId {
        let (id, now) = (ApprovalId::new(), self.world.clock.now());
        let sealed = self.world.vault.seal(Place::approval_arguments(workspace, id), b"{}");
        let digest = n.to_string();
        let new = NewApproval {
            id,
            server,
            grant,
            grant_label: "g",
            call: CallId::new(),
            tool: "executePython",
            tool_hash: None,
            arguments_digest: &digest,
            sealed_arguments: &sealed,
            policy,
            policy_version: 1,
            rule: "/default",
            rules_digest: "rules",
            session: None,
            client_name: None,
            reservation: Some(ReservationId::new()),
            demands: Some("[]"),
            approvers: &[],
            quorum: 1,
            self_allowed: true,
            hold_until: now + TimeDelta::seconds(50),
            expires_at: now + TimeDelta::minutes(30),
        };
        let mut tx = self.world.db.begin().await.expect("begins");
        approvals::create_or_join(&mut tx.conn(), workspace, new, 99, now).await.expect("parks");
        tx.commit().await.expect("commits");
        id
    }

    /// Filters that the admin keeps.
    pub(super) async fn filter(&self, workspace: WorkspaceId, n: u32) -> String {
        let user: UserId = read(&self.member_id("ada@example.test").await);
        let (name, now) = (format!("f{n}"), self.world.clock.now());
        let mut tx = self.world.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let kept = (name.as_str(), "tool=executePython");
        // A member keeps only so many; the first one stays.
        for old in saved_filters::list(conn, workspace, user).await.expect("lists") {
            if old.name != "f1" {
                saved_filters::delete(conn, workspace, user, old.id).await.expect("deletes");
            }
        }
        let id = saved_filters::create(conn, workspace, user, kept, now).await.expect("keeps");
        tx.commit().await.expect("commits");
        id.to_string()
    }

    /// An e-mail domain whose people may join.
    pub(super) async fn join_domain(&self, workspace: WorkspaceId, n: u32) -> String {
        let (domain, now) = (format!("d{n}.example"), self.world.clock.now());
        let mut tx = self.world.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        for old in join_domains::list(conn, workspace).await.expect("lists") {
            if old.domain != "d1.example" {
                join_domains::delete(conn, workspace, old.id).await.expect("deletes");
            }
        }
        let new = (domain.as_str(), Role::Viewer);
        let made = join_domains::create(conn, workspace, new, None, now).await.expect("adds");
        tx.commit().await.expect("commits");
        made.id.to_string()
    }

    pub(super) async fn call(
        &self,
        workspace: WorkspaceId,
        (server, grant, policy): (ServerId, GrantId, PolicyId),
    ) -> CallId {
        let call = CallRecord {
            id: CallId::new(),
            workspace,
            server,
            grant,
            grant_label: "g".to_owned(),
            at: self.world.clock.now(),
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
            arguments: None,
            trace: None,
            client_name: None,
            protocol_version: None,
            session: None,
            client_address: None,
            request_bytes: 1,
            response_bytes: 1,
            upstream_status: Some(200),
            timing: CallTiming { total_us: 9, limits_us: 0, approval_us: 0, upstream_us: 8 },
        };
        let mut tx = self.world.db.begin().await.expect("begins");
        calls::insert_batch(&mut tx.conn(), std::slice::from_ref(&call)).await.expect("logs");
        tx.commit().await.expect("commits");
        call.id
    }
}

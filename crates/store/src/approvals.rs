//! Parked calls. An approval is bound to the exact call (grant, tool, arguments' digest, the
//! rules' digest); the same call sent again joins it; it runs once at most.

mod decide;
mod events;
mod exceptions;
mod links;
mod list;
mod run;
mod sweep;

pub use decide::{Decision, Verdict, decide, decisions};
pub use events::{ApprovalEvent, NewEvent, events, note, note_once, take_news};
pub use exceptions::{
    Exception, Reach, create_exception, find_exception, list_exceptions, prune_exceptions,
    revoke_exception, use_exception,
};
pub use links::{ApprovalLink, create_link, find_link, use_link};
pub use list::{ApprovalFilter, InboxKey, Past, count_pending, inbox, list, past};
pub use run::{Taken, finish, give_up, mark_unknown, put_back, still_running, take_for_run};
pub use sweep::{
    Closed, SealedArguments, escalate_due, expire_due, list_sealed, prune, reseal, wipe_arguments,
};

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{
    ApprovalEventKind, ApprovalId, ApprovalStatus, CallId, Category, ChangeKind, GrantId, PolicyId,
    ReservationId, ServerId, Severity, UserId, WorkspaceId,
};

use crate::column::{Value, json, record};
use crate::conn::{execute, fetch_one, fetch_optional};
use crate::{Conn, StoreError, changes};

record! {
    /// A parked call.
    pub struct Approval {
        pub id: ApprovalId,
        pub workspace_id: WorkspaceId,
        pub server_id: ServerId,
        pub grant_id: GrantId,
        pub grant_label: String,
        /// The call that asked first.
        pub call_id: CallId,
        pub tool: String,
        /// Hash of the tool's definition when it was asked.
        pub tool_hash: Option<String>,
        /// The tool's rating when it was asked.
        pub category: Option<Category>,
        pub severity: Option<Severity>,
        pub arguments_digest: String,
        /// Sealed; gone some days after the decision.
        pub sealed_arguments: Option<Vec<u8>>,
        pub policy_id: PolicyId,
        pub policy_version: i64,
        /// Pointer of the rule that asked.
        pub rule: String,
        /// Digest of the rules that bear on the tool, so that an edit elsewhere does not matter.
        pub rules_digest: String,
        pub session: Option<String>,
        pub client_name: Option<String>,
        /// What is charged while it waits.
        pub reservation: Option<ReservationId>,
        /// What to give back of it, as the caller wrote it.
        pub demands: Option<String>,
        /// `role:…` and `member:…`; empty: admins and policy managers.
        pub approvers: Vec<String>,
        pub quorum: i64,
        /// Whether the member who made the grant may decide.
        pub self_allowed: bool,
        pub status: ApprovalStatus,
        /// Found by the same call sent again.
        pub live: bool,
        pub created_at: DateTime<Utc>,
        pub hold_until: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
        /// When others are told, if nobody decided.
        pub escalate_at: Option<DateTime<Utc>>,
        pub escalated_at: Option<DateTime<Utc>>,
        pub decided_at: Option<DateTime<Utc>>,
        pub decided_by: Option<UserId>,
        /// The deciding person's words.
        pub note: Option<String>,
        pub run_at: Option<DateTime<Utc>>,
        /// The replica that released it.
        pub run_by: Option<String>,
        /// The call under which it ran.
        pub run_call_id: Option<CallId>,
        pub finished_at: Option<DateTime<Utc>>,
    }
}

/// A call to park.
#[derive(Debug, Clone, Copy)]
pub struct NewApproval<'a> {
    pub id: ApprovalId,
    pub server: ServerId,
    pub grant: GrantId,
    pub grant_label: &'a str,
    pub call: CallId,
    pub tool: &'a str,
    pub tool_hash: Option<&'a str>,
    pub arguments_digest: &'a str,
    pub sealed_arguments: &'a [u8],
    pub policy: PolicyId,
    pub policy_version: i64,
    pub rule: &'a str,
    pub rules_digest: &'a str,
    pub session: Option<&'a str>,
    pub client_name: Option<&'a str>,
    pub reservation: Option<ReservationId>,
    pub demands: Option<&'a str>,
    pub approvers: &'a [String],
    pub quorum: i64,
    pub self_allowed: bool,
    pub hold_until: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

impl<'a> NewApproval<'a> {
    /// What other calls must equal to join it.
    pub fn same_call(&self) -> SameCall<'a> {
        SameCall {
            grant: self.grant,
            tool: self.tool,
            arguments_digest: self.arguments_digest,
            rules_digest: self.rules_digest,
        }
    }
}

/// What became of a call to park.
#[derive(Debug, Clone, PartialEq)]
pub enum Parked {
    /// A new approval.
    Created(Approval),
    /// The same call is there already: pending, approved, denied, running or lost.
    Joined(Approval),
    /// The grant has as many pending ones as it may have.
    TooMany,
}

/// Parks a call, or joins the live approval of the same call. `max_pending` bounds what a grant
/// may have waiting; joining is never bounded. The id is the caller's, because the sealed
/// arguments are bound to it.
pub async fn create_or_join(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: NewApproval<'_>,
    max_pending: i64,
    now: DateTime<Utc>,
) -> Result<Parked, StoreError> {
    // The grant's row lock: the bound holds whatever else asks at once.
    let sql = "UPDATE grants SET revision = revision WHERE workspace_id = $1 AND id = $2";
    if execute!(conn, sql, workspace, new.grant)? == 0 {
        return Err(StoreError::DanglingReference);
    }
    unlink_due(conn, workspace, new.grant, now).await?;
    if let Some(approval) = find_live(conn, workspace, new.same_call(), now).await? {
        return Ok(Parked::Joined(approval));
    }
    if count_pending(conn, workspace, Some(new.grant), now).await? >= max_pending {
        return Ok(Parked::TooMany);
    }
    insert(conn, workspace, &new, now).await?;
    note(conn, workspace, new.id, NewEvent::of(ApprovalEventKind::Asked), now).await?;
    changes::append(conn, workspace, ChangeKind::Approval, new.id.uuid(), now).await?;
    let made = find(conn, workspace, new.id).await?;
    made.map(Parked::Created).ok_or(StoreError::DanglingReference)
}

/// When others are told of what is asked now, if nobody decides before.
async fn escalate_at(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let sql = "SELECT escalate_after_s AS value FROM workspaces WHERE id = $1";
    let after = fetch_one!(conn, Value<Option<i64>>, sql, workspace)?.0;
    Ok(after.and_then(TimeDelta::try_seconds).and_then(|after| now.checked_add_signed(after)))
}

async fn insert(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: &NewApproval<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let escalate_at = escalate_at(conn, workspace, now).await?;
    execute!(
        conn,
        "INSERT INTO approvals
             (id, workspace_id, server_id, grant_id, grant_label, call_id, tool, tool_hash,
              category, severity, arguments_digest, sealed_arguments, policy_id, policy_version,
              rule, rules_digest, session, client_name, reservation, demands, approvers, quorum,
              self_allowed, status, live, created_at, hold_until, expires_at, escalate_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8,
                 (SELECT category FROM tools WHERE workspace_id = $2 AND server_id = $3 AND name = $7),
                 (SELECT severity FROM tools WHERE workspace_id = $2 AND server_id = $3 AND name = $7),
                 $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, 'pending', TRUE,
                 $22, $23, $24, $25)",
        new.id,
        workspace,
        new.server,
        new.grant,
        new.grant_label,
        new.call,
        new.tool,
        new.tool_hash,
        new.arguments_digest,
        new.sealed_arguments,
        new.policy,
        new.policy_version,
        new.rule,
        new.rules_digest,
        new.session,
        new.client_name,
        new.reservation,
        new.demands,
        json("approvals.approvers", &new.approvers)?,
        new.quorum,
        new.self_allowed,
        now,
        new.hold_until,
        new.expires_at,
        escalate_at
    )?;
    Ok(())
}

const SELECT: &str =
    "SELECT id, workspace_id, server_id, grant_id, grant_label, call_id, tool, tool_hash, category,
            severity, arguments_digest, sealed_arguments, policy_id, policy_version, rule,
            rules_digest, session, client_name, reservation, demands, approvers, quorum,
            self_allowed, status, live, created_at, hold_until, expires_at, escalate_at,
            escalated_at, decided_at, decided_by, note, run_at, run_by, run_call_id, finished_at
     FROM approvals WHERE workspace_id = $1 AND ";

/// A query for approvals; only fixed texts are put together.
fn select(rest: &'static str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("{SELECT}{rest}"))
}

/// What makes two calls the same call.
#[derive(Debug, Clone, Copy)]
pub struct SameCall<'a> {
    pub grant: GrantId,
    pub tool: &'a str,
    pub arguments_digest: &'a str,
    pub rules_digest: &'a str,
}

/// The approval that this very call has: pending, approved, denied, running or lost, and, unless it is
/// running, not past its expiry.
pub async fn find_live(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    call: SameCall<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Approval>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Approval,
        select(
            "live AND grant_id = $2 AND tool = $3 AND arguments_digest = $4 AND rules_digest = $5
             AND (expires_at > $6 OR status = 'running')"
        ),
        workspace,
        call.grant,
        call.tool,
        call.arguments_digest,
        call.rules_digest,
        now
    )?)
}

/// One approval.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
) -> Result<Option<Approval>, StoreError> {
    Ok(fetch_optional!(conn, Approval, select("id = $2"), workspace, id)?)
}

/// The grant's approvals whose time is over no longer stand in the way of asking anew. That they
/// expired is for [`expire_due`] to say, which also says what is to be given back.
async fn unlink_due(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    grant: GrantId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE approvals SET live = FALSE
         WHERE workspace_id = $1 AND grant_id = $2 AND live AND expires_at <= $3
           AND status IN ('pending', 'approved', 'denied', 'unknown')",
        workspace,
        grant,
        now
    )?;
    Ok(())
}

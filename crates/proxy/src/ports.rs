//! What the data path needs from the rest of Sluice, as traits that `server`
//! plugs into `store`. None is on the path of a call that is already routed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use sluice_domain::{
    ApprovalId, ApprovalStatus, CallId, Charge, GrantId, PolicyId, ReservationId, RouteRecord,
    SecurityEvent, ServerId, ToolDefinition, WorkspaceId,
};
use sluice_limits::Demand;
use sluice_vault::TokenHash;

use crate::trace::CallSpan;

/// The store gave no answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the database cannot be reached")]
pub struct StoreUnavailable;

/// Reads what is needed to decide a grant's calls.
pub trait Routes: Send + Sync + 'static {
    /// The route of the token with this hash, also when it is revoked or expired; none if there is no such token.
    fn load<'a>(
        &'a self,
        token: &'a TokenHash,
    ) -> BoxFuture<'a, Result<Option<RouteRecord>, StoreUnavailable>>;
}

/// Keeps refused attempts. Must not block; may drop when it is flooded, and count what it dropped.
pub trait SecurityLog: Send + Sync + 'static {
    /// Takes one event.
    fn record(&self, event: SecurityEvent);
}

/// Takes what became of requests as spans of traces. Must not block; may drop when it is flooded, and count
/// what it dropped.
pub trait Spans: Send + Sync + 'static {
    /// Whether spans of this trace are kept; `parent`: whether its client keeps its own.
    fn samples(&self, trace: u128, parent: Option<bool>) -> bool;

    /// Takes one request that is over.
    fn ended(&self, span: &CallSpan<'_>);
}

/// A tool as a list that passed by described it to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTool {
    /// The hash by which definitions are pinned.
    pub hash: String,
    pub definition: ToolDefinition,
}

/// Is told of lists of tools that passed by, so that new and changed tools are read and flagged.
pub trait ToolsSeen: Send + Sync + 'static {
    /// A list of this server held something that the process had not seen before; `tools` are those that
    /// are not as they were reviewed, or were never reviewed. Called seldom; must not block.
    fn seen(&self, workspace: WorkspaceId, server: ServerId, tools: Vec<ShownTool>);

    /// Whether a definition has signs of poison: asked of what was not reviewed, before an agent sees it.
    fn is_poisoned(&self, definition: &ToolDefinition) -> bool;
}

/// What makes two calls the same call for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalKey {
    pub workspace: WorkspaceId,
    pub server: ServerId,
    pub grant: GrantId,
    pub tool: String,
    /// SHA-256 of the canonical arguments.
    pub arguments_digest: [u8; 32],
    pub policy: PolicyId,
    pub policy_version: i64,
    /// Digest of the rules that bear on this tool; equal in versions that differ elsewhere.
    pub rules_digest: [u8; 32],
}

/// A call that is to wait for a person.
#[derive(Debug, Clone)]
pub struct ParkedCall {
    pub key: ApprovalKey,
    /// The call that asks first.
    pub call: CallId,
    pub grant_label: String,
    /// The arguments as they were sent; to be encrypted at rest and masked when shown.
    pub arguments: String,
    /// Pointer of the rule that asks.
    pub rule: String,
    pub hold: Duration,
    pub expires: Duration,
    pub approvers: Vec<String>,
    pub quorum: u32,
    pub self_allowed: bool,
    pub session: Option<String>,
    pub client_name: Option<String>,
    /// Hash of the tool's reviewed definition, to notice drift at release.
    pub definition_hash: Option<String>,
    /// What is charged while it waits; given back by whoever ends the approval without a release.
    pub reservation: ReservationId,
    pub charges: Vec<Charge>,
    pub demands: Vec<Demand>,
    pub at: DateTime<Utc>,
}

/// Where an approval stands.
#[derive(Debug, Clone)]
pub struct Approval {
    pub id: ApprovalId,
    pub status: ApprovalStatus,
    pub expires_at: DateTime<Utc>,
    /// The note of the person who decided.
    pub note: Option<String>,
    /// What is charged for it until it is released.
    pub reservation: ReservationId,
    pub demands: Vec<Demand>,
    /// Hash of the tool's reviewed definition when it was parked.
    pub definition_hash: Option<String>,
}

/// Why a call could not be parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParkError {
    /// The grant has as many waiting calls as it may.
    #[error("too many calls of this grant wait for approval")]
    TooMany,
    /// The database cannot be reached.
    #[error(transparent)]
    Unavailable(#[from] StoreUnavailable),
}

/// A person's word that this very call passes for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Whose word it is.
    pub by: String,
    pub until: DateTime<Utc>,
}

/// How a released call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It ran, and its answer was passed on.
    Ran,
    /// It never reached the upstream; the approval may be used again.
    NotRun,
    /// It was sent, and nobody knows whether it ran.
    Unknown,
}

/// Parks calls for a person and releases each at most once, across replicas.
pub trait Approvals: Send + Sync + 'static {
    /// The approval that this very call already has: waiting, approved and unused, denied and not yet
    /// expired, or running. None if there is none, or it has expired or been used.
    fn find<'a>(
        &'a self,
        key: &'a ApprovalKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Approval>, StoreUnavailable>>;

    /// Uses up one pass of a person's word that this very call goes through for a while, if there is
    /// one: for the same tool as it was then, and not over, used up or taken back.
    fn excepted<'a>(
        &'a self,
        key: &'a ApprovalKey,
        definition_hash: Option<&'a str>,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Exception>, StoreUnavailable>>;

    /// Parks a call. If the same call was parked meanwhile, that approval is answered (its reservation differs).
    fn park(&self, call: ParkedCall) -> BoxFuture<'_, Result<Approval, ParkError>>;

    /// Waits until the approval is no longer pending, wherever it is decided. Dropping the future stops waiting.
    fn decided(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
    ) -> BoxFuture<'_, Result<Approval, StoreUnavailable>>;

    /// Takes an approved call for `call` to run, and remembers its new reservation. False if another
    /// took it first or it is no longer approved. Exactly one caller ever gets true.
    fn claim(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<bool, StoreUnavailable>>;

    /// Says how a claimed call ended.
    fn released(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        how: Released,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<(), StoreUnavailable>>;
}

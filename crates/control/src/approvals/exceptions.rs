//! "Allow the same for an hour": the same call by the same grant passes without asking, for a while
//! and a number of times. "The same" is what the approval was bound to: tool, arguments, the tool's
//! definition and the rules that bear on it, so that an edit of those ends it.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sha2::{Digest, Sha256};
use sluice_domain::{ApprovalId, ExceptionId, GrantId, PolicyId, ServerId};
use sluice_store::approvals::{self, Exception};
use sluice_store::{Conn, grants, policies, tools};

use super::decide::{Choice, conflict};
use crate::audit::{self, Event};
use crate::codes;
use crate::page::{Page, PageOf};
use crate::{Control, ControlError, Fault, PolicyManager, Viewer};

/// The longest that the same call may pass without asking.
pub const MAX_ALLOW: TimeDelta = TimeDelta::hours(24);
const MIN_ALLOW: TimeDelta = TimeDelta::minutes(1);
/// How often the same call may pass, whatever the time.
pub(super) const MAX_USES: i64 = 100;

/// Whether an exception lets anything pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceptionState {
    InForce,
    /// Taken back by somebody.
    Revoked,
    Expired,
    UsedUp,
    /// The policy's rules for the tool are others now, or the grant has another policy or none.
    RulesChanged,
    /// The tool's definition is another one now.
    ToolChanged,
    /// The grant was revoked.
    GrantRevoked,
}

impl ExceptionState {
    /// The word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::UsedUp => "used_up",
            Self::RulesChanged => "rules_changed",
            Self::ToolChanged => "tool_changed",
            Self::GrantRevoked => "grant_revoked",
        }
    }
}

/// A call that passes for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionView {
    pub id: ExceptionId,
    pub state: ExceptionState,
    pub server: ServerId,
    pub grant: GrantId,
    pub grant_label: String,
    /// The approval that it was made with; it shows the arguments.
    pub approval: ApprovalId,
    pub policy: PolicyId,
    pub rule: String,
    pub tool: String,
    /// The address of who made it.
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub uses: i64,
    pub max_uses: i64,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// An exception's length, if one is wished for.
pub(super) fn checked_allow(pointer: &str, choice: &Choice) -> Result<Option<TimeDelta>, Fault> {
    match choice.allow {
        Some(_) if !choice.approve => {
            let detail = "a call that is refused cannot be let through for a while";
            Err(Fault::new(pointer, codes::NOT_WITH_DENY, detail))
        }
        Some(allow) if !(MIN_ALLOW..=MAX_ALLOW).contains(&allow) => {
            Err(Fault::new(pointer, codes::OUT_OF_RANGE, "give 1 minute to 24 hours"))
        }
        allow => Ok(allow),
    }
}

impl Control {
    /// The exceptions, newest first: of one grant, or of all; all of them, or only those whose time
    /// is not over.
    pub async fn exceptions(
        &self,
        viewer: &Viewer,
        grant: Option<GrantId>,
        all: bool,
        page: Page<ExceptionId>,
    ) -> Result<PageOf<ExceptionView, ExceptionId>, ControlError> {
        let now = self.now();
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let live = (!all).then_some(now);
        let limit = page.one_more();
        let found =
            approvals::list_exceptions(conn, viewer.workspace, grant, live, page.after, limit)
                .await?;
        let page = page.cut(found, |one| one.id);
        let mut items = Vec::new();
        for exception in page.items {
            items.push(view(conn, viewer, exception, now).await?);
        }
        tx.commit().await?;
        Ok(PageOf { items, next: page.next })
    }

    /// Takes an exception back; the next such call asks again.
    pub async fn revoke_exception(
        &self,
        manager: &PolicyManager,
        id: ExceptionId,
    ) -> Result<(), ControlError> {
        let (workspace, now) = (manager.workspace, self.now());
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let found = approvals::find_exception(conn, workspace, id).await?;
        let exception = found.ok_or(ControlError::NotFound("exception"))?;
        let user = manager.actor.user;
        if !approvals::revoke_exception(conn, workspace, id, user, now).await? {
            return Err(conflict(codes::EXCEPTION_OVER, "it is over already".to_owned()));
        }
        let (text, what) = (id.to_string(), json!({"uses": exception.uses}));
        let event = Event::new("approval_exception.revoke", ("exception", &text, &exception.tool));
        audit::record(conn, workspace, &manager.actor, event.after(&what), now).await?;
        tx.commit().await?;
        Ok(())
    }
}

async fn view(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    exception: Exception,
    now: DateTime<Utc>,
) -> Result<ExceptionView, ControlError> {
    let grant = grants::find(conn, viewer.workspace, exception.grant_id).await?;
    let state = if exception.revoked_at.is_some() {
        ExceptionState::Revoked
    } else if exception.expires_at <= now {
        ExceptionState::Expired
    } else if exception.uses >= exception.max_uses {
        ExceptionState::UsedUp
    } else {
        bound(conn, viewer, &exception, grant.as_ref()).await?
    };
    Ok(ExceptionView {
        id: exception.id,
        state,
        server: exception.server_id,
        grant: exception.grant_id,
        grant_label: grant.map(|grant| grant.label).unwrap_or_default(),
        approval: exception.approval_id,
        policy: exception.policy_id,
        rule: exception.rule,
        tool: exception.tool,
        created_by: exception.created_by_email,
        created_at: exception.created_at,
        expires_at: exception.expires_at,
        uses: exception.uses,
        max_uses: exception.max_uses,
        last_used_at: exception.last_used_at,
        revoked_at: exception.revoked_at,
    })
}

/// Whether all that the exception is bound to is still as it was. The data path compares the same.
async fn bound(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    exception: &Exception,
    grant: Option<&grants::Grant>,
) -> Result<ExceptionState, ControlError> {
    let Some(grant) = grant.filter(|grant| grant.revoked_at.is_none()) else {
        return Ok(ExceptionState::GrantRevoked);
    };
    let document = match grant.policy_id {
        Some(id) => policies::find(conn, viewer.workspace, id).await?.map(|one| one.document),
        None => None,
    };
    let policy = document.and_then(|text| sluice_policy::compile(&text).ok());
    let rules = policy.map(|policy| policy.rules_text(&exception.tool)).unwrap_or_default();
    if hex(&Sha256::digest(rules.as_bytes())) != exception.rules_digest {
        return Ok(ExceptionState::RulesChanged);
    }
    let tool = tools::find(conn, viewer.workspace, exception.server_id, &exception.tool).await?;
    let hash = tool.and_then(|tool| tool.reviewed_hash.or(Some(tool.hash)));
    if exception.tool_hash.is_some() && hash != exception.tool_hash {
        return Ok(ExceptionState::ToolChanged);
    }
    Ok(ExceptionState::InForce)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

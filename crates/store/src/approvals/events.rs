//! What happened to an approval, in order. Every change of its state notes it here in the same
//! transaction; what is to be told to people waits until somebody takes it.

use chrono::{DateTime, Utc};
use sluice_domain::{ApprovalEventId, ApprovalEventKind, ApprovalId, UserId, WorkspaceId};

use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError};

/// More than this is not kept of one approval; a call that is released and put back for ever must
/// not fill the database.
const MOST: i64 = 200;

record! {
    /// One thing that happened.
    pub struct ApprovalEvent {
        pub id: ApprovalEventId,
        pub workspace_id: WorkspaceId,
        pub approval_id: ApprovalId,
        pub at: DateTime<Utc>,
        pub kind: ApprovalEventKind,
        pub user_id: Option<UserId>,
        /// The person's address as it was then; empty: nobody in person.
        pub who: String,
        /// More about it, a JSON object.
        pub detail: serde_json::Value,
    }
}

/// What is noted.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    pub kind: ApprovalEventKind,
    pub user: Option<UserId>,
    pub detail: Option<&'a serde_json::Value>,
}

impl<'a> NewEvent<'a> {
    /// Nobody in person, nothing more.
    pub fn of(kind: ApprovalEventKind) -> Self {
        Self { kind, user: None, detail: None }
    }

    /// By this person.
    #[must_use]
    pub fn by(self, user: UserId) -> Self {
        Self { user: Some(user), ..self }
    }

    /// With more about it.
    #[must_use]
    pub fn with(self, detail: &'a serde_json::Value) -> Self {
        Self { detail: Some(detail), ..self }
    }

    /// Whether anybody is told of such a thing besides the approval's own history.
    const fn is_news(&self) -> bool {
        use ApprovalEventKind as Kind;
        !matches!(self.kind, Kind::Notified | Kind::Shown | Kind::Revealed | Kind::Excepted)
    }
}

/// Notes that something happened.
pub async fn note(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    approval: ApprovalId,
    new: NewEvent<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let detail = new.detail.map_or_else(|| "{}".to_owned(), ToString::to_string);
    execute!(
        conn,
        "INSERT INTO approval_events
             (id, workspace_id, approval_id, at, kind, user_id, who, detail, told)
         SELECT $1, $2, $3, $4, $5, $6,
                COALESCE((SELECT email FROM users WHERE id = $6), ''), $7, $8
         WHERE (SELECT COUNT(*) FROM approval_events
                WHERE workspace_id = $2 AND approval_id = $3) < $9",
        ApprovalEventId::new(),
        workspace,
        approval,
        now,
        new.kind,
        new.user,
        detail,
        !new.is_news(),
        MOST
    )?;
    Ok(())
}

/// Notes that a person did something for the first time; false if it was noted before.
pub async fn note_once(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    approval: ApprovalId,
    kind: ApprovalEventKind,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    // The approval's row lock: the same person in two windows is noted once.
    let sql = "UPDATE approvals SET quorum = quorum WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, approval)?;
    let noted = events(conn, workspace, approval).await?;
    if noted.iter().any(|event| event.kind == kind && event.user_id == Some(user)) {
        return Ok(false);
    }
    note(conn, workspace, approval, NewEvent::of(kind).by(user), now).await?;
    Ok(true)
}

/// What happened to an approval, oldest first.
pub async fn events(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    approval: ApprovalId,
) -> Result<Vec<ApprovalEvent>, StoreError> {
    Ok(fetch_all!(
        conn,
        ApprovalEvent,
        "SELECT id, workspace_id, approval_id, at, kind, user_id, who, detail FROM approval_events
         WHERE workspace_id = $1 AND approval_id = $2 ORDER BY at, id",
        workspace,
        approval
    )?)
}

/// Takes what nobody was told of yet, in any workspace, oldest first, `limit` at most. It is told
/// when the transaction commits; of several callers at once each event comes to one.
pub async fn take_news(conn: &mut Conn<'_>, limit: i64) -> Result<Vec<ApprovalEvent>, StoreError> {
    // SQLite has one writer anyway.
    let sql = match conn {
        Conn::Postgres(_) => {
            "UPDATE approval_events SET told = TRUE WHERE id IN
                 (SELECT id FROM approval_events WHERE NOT told ORDER BY id LIMIT $1
                  FOR UPDATE SKIP LOCKED)
             RETURNING id, workspace_id, approval_id, at, kind, user_id, who, detail"
        }
        Conn::Sqlite(_) => {
            "UPDATE approval_events SET told = TRUE WHERE id IN
                 (SELECT id FROM approval_events WHERE NOT told ORDER BY id LIMIT $1)
             RETURNING id, workspace_id, approval_id, at, kind, user_id, who, detail"
        }
    };
    let mut news = fetch_all!(conn, ApprovalEvent, sql, rows(limit))?;
    news.sort_by_key(|event| event.id);
    Ok(news)
}

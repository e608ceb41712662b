//! The admin audit log: what members and operators did, each row's hash covering the row and the
//! hash before it. A chain is one workspace, or what belongs to none. Append last before the
//! commit: the chain is locked from then on.

mod chain;

pub use chain::{Broken, Chain};

use chrono::{DateTime, Utc};
use sluice_domain::{ActorKind, EventId, WorkspaceId};
use uuid::Uuid;

use crate::column::{micros, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError};

record! {
    /// One thing that somebody did.
    pub struct AdminEvent {
        /// The workspace's id, or the nil UUID.
        pub chain: Uuid,
        /// The number in the chain, from 1, without gaps.
        pub seq: i64,
        pub id: EventId,
        pub workspace_id: Option<WorkspaceId>,
        pub at: DateTime<Utc>,
        pub actor_kind: ActorKind,
        pub actor_id: Option<Uuid>,
        /// As shown: an e-mail address, a token's label.
        pub actor_name: String,
        pub address: String,
        /// `server.create` and the like.
        pub action: String,
        pub object_kind: String,
        pub object_id: String,
        pub object_name: String,
        /// JSON text of what was, secrets masked by the caller.
        pub before: Option<String>,
        /// JSON text of what is, secrets masked by the caller.
        pub after: Option<String>,
        pub prev_hash: Vec<u8>,
        pub hash: Vec<u8>,
    }
}

/// Who did it, and from where.
#[derive(Debug, Clone, Copy)]
pub struct ActorOf<'a> {
    pub kind: ActorKind,
    pub id: Option<Uuid>,
    pub name: &'a str,
    pub address: &'a str,
}

/// What was done to what.
#[derive(Debug, Clone, Copy)]
pub struct NewAdminEvent<'a> {
    pub actor: ActorOf<'a>,
    pub action: &'a str,
    pub object_kind: &'a str,
    pub object_id: &'a str,
    pub object_name: &'a str,
    pub before: Option<&'a serde_json::Value>,
    pub after: Option<&'a serde_json::Value>,
}

const SELECT: &str =
    "SELECT chain, seq, id, workspace_id, at, actor_kind, actor_id, actor_name, address,
            action, object_kind, object_id, object_name, before, after, prev_hash, hash
     FROM admin_events WHERE ";

fn select(rest: &'static str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("{SELECT}{rest}"))
}

fn chain_of(workspace: Option<WorkspaceId>) -> Uuid {
    workspace.map_or(Uuid::nil(), WorkspaceId::uuid)
}

/// Adds an event to the workspace's chain (`None`: to the chain of what belongs to no workspace).
pub async fn append(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
    new: NewAdminEvent<'_>,
    now: DateTime<Utc>,
) -> Result<AdminEvent, StoreError> {
    let chain = chain_of(workspace);
    lock(conn, chain).await?;
    let last = last(conn, chain).await?;
    let mut event = AdminEvent {
        chain,
        seq: last.as_ref().map_or(1, |last| last.seq + 1),
        id: EventId::new(),
        workspace_id: workspace,
        at: micros(now),
        actor_kind: new.actor.kind,
        actor_id: new.actor.id,
        actor_name: new.actor.name.to_owned(),
        address: new.actor.address.to_owned(),
        action: new.action.to_owned(),
        object_kind: new.object_kind.to_owned(),
        object_id: new.object_id.to_owned(),
        object_name: new.object_name.to_owned(),
        before: new.before.map(ToString::to_string),
        after: new.after.map(ToString::to_string),
        prev_hash: last.map_or_else(|| vec![0; 32], |last| last.hash),
        hash: Vec::new(),
    };
    event.hash = chain::hash(&event);
    insert(conn, &event).await?;
    Ok(event)
}

/// SQLite's writers are one after the other already.
async fn lock(conn: &mut Conn<'_>, chain: Uuid) -> Result<(), StoreError> {
    if let Conn::Postgres(conn) = conn {
        // The first half of the UUID is its time and the second random; either alone would do.
        let (high, low) = chain.as_u64_pair();
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind((high ^ low).cast_signed())
            .execute(&mut **conn)
            .await?;
    }
    Ok(())
}

async fn last(conn: &mut Conn<'_>, chain: Uuid) -> Result<Option<AdminEvent>, StoreError> {
    let sql = select("chain = $1 ORDER BY seq DESC LIMIT 1");
    Ok(fetch_optional!(conn, AdminEvent, sql, chain)?)
}

async fn insert(conn: &mut Conn<'_>, event: &AdminEvent) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO admin_events
             (chain, seq, id, workspace_id, at, actor_kind, actor_id, actor_name, address, action,
              object_kind, object_id, object_name, before, after, prev_hash, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        event.chain,
        event.seq,
        event.id,
        event.workspace_id,
        event.at,
        event.actor_kind,
        event.actor_id,
        &event.actor_name,
        &event.address,
        &event.action,
        &event.object_kind,
        &event.object_id,
        &event.object_name,
        event.before.as_ref(),
        event.after.as_ref(),
        event.prev_hash.as_slice(),
        event.hash.as_slice()
    )?;
    Ok(())
}

/// Which events a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdminEventFilter<'a> {
    pub action: Option<&'a str>,
    pub object_kind: Option<&'a str>,
    pub object_id: Option<&'a str>,
    pub actor_id: Option<Uuid>,
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

/// The workspace's events, newest first, below the given number.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: AdminEventFilter<'_>,
    below: Option<i64>,
    limit: i64,
) -> Result<Vec<AdminEvent>, StoreError> {
    Ok(fetch_all!(
        conn,
        AdminEvent,
        select(
            "chain = $1 AND ($2 IS NULL OR action = $2) AND ($3 IS NULL OR object_kind = $3)
             AND ($4 IS NULL OR object_id = $4) AND ($5 IS NULL OR actor_id = $5)
             AND ($6 IS NULL OR at >= $6) AND ($7 IS NULL OR at < $7)
             AND ($8 IS NULL OR seq < $8) ORDER BY seq DESC LIMIT $9"
        ),
        workspace,
        filter.action,
        filter.object_kind,
        filter.object_id,
        filter.actor_id,
        filter.from,
        filter.to,
        below,
        rows(limit)
    )?)
}

/// The events of a chain after a number, oldest first.
pub async fn after(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
    seq: i64,
    limit: i64,
) -> Result<Vec<AdminEvent>, StoreError> {
    let sql = select("chain = $1 AND seq > $2 ORDER BY seq LIMIT $3");
    Ok(fetch_all!(conn, AdminEvent, sql, chain_of(workspace), seq, rows(limit))?)
}

/// The event of a chain that has this hash.
pub async fn find_by_hash(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
    hash: &[u8],
) -> Result<Option<AdminEvent>, StoreError> {
    let sql = select("chain = $1 AND hash = $2");
    Ok(fetch_optional!(conn, AdminEvent, sql, chain_of(workspace), hash)?)
}

/// Goes through a whole chain and checks every link. What was cut off at the end cannot be seen
/// from the rest: compare [`Chain::head`] with one noted elsewhere.
pub async fn verify(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
) -> Result<Result<Chain, Broken>, StoreError> {
    let id = chain_of(workspace);
    let mut chain = Chain::default();
    loop {
        let sql = select("chain = $1 AND seq > $2 ORDER BY seq LIMIT 500");
        let batch = fetch_all!(conn, AdminEvent, sql, id, chain.last_seq)?;
        if batch.is_empty() {
            return Ok(Ok(chain));
        }
        for event in &batch {
            if let Err(broken) = chain.add(event) {
                return Ok(Err(broken));
            }
        }
    }
}

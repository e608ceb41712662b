//! The admin audit log: written in the transaction of what it records, read by admins.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sluice_domain::{ActorKind, EventId, WorkspaceId};
use sluice_store::admin_events::{self, ActorOf, AdminEvent, AdminEventFilter, NewAdminEvent};
use sluice_store::{Conn, StoreError, workspaces};

use crate::page::{Page, PageOf};
use crate::{Actor, Admin, Control, ControlError};

/// What was done to what, for [`record`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    /// `server.create` and the like.
    pub(crate) action: &'a str,
    pub(crate) object: (&'a str, &'a str, &'a str),
    pub(crate) before: Option<&'a Value>,
    pub(crate) after: Option<&'a Value>,
}

impl<'a> Event<'a> {
    /// An event without what was and is. The object is its kind, id and name.
    pub(crate) fn new(action: &'a str, object: (&'a str, &'a str, &'a str)) -> Self {
        Self { action, object, before: None, after: None }
    }

    pub(crate) fn before(self, value: &'a Value) -> Self {
        Self { before: Some(value), ..self }
    }

    pub(crate) fn after(self, value: &'a Value) -> Self {
        Self { after: Some(value), ..self }
    }

    fn row(self, actor: ActorOf<'a>) -> NewAdminEvent<'a> {
        NewAdminEvent {
            actor,
            action: self.action,
            object_kind: self.object.0,
            object_id: self.object.1,
            object_name: self.object.2,
            before: self.before,
            after: self.after,
        }
    }
}

/// Adds the event; last before the commit, because the chain is locked from then on.
pub(crate) async fn record(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    actor: &Actor,
    event: Event<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    admin_events::append(conn, Some(workspace), event.row(actor.for_audit()), now).await?;
    Ok(())
}

/// The same for what people do with their own account: in the chain of what belongs to no workspace,
/// and in every workspace of theirs, whose admins it concerns. Chains are locked in the order of their
/// ids, so that two such never wait for each other.
pub(crate) async fn record_account(
    conn: &mut Conn<'_>,
    actor: &Actor,
    event: Event<'_>,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let places = workspaces::list_for_user(conn, actor.user).await?;
    let mut places: Vec<_> = places.into_iter().map(|place| place.id).collect();
    places.sort_unstable();
    for place in std::iter::once(None).chain(places.into_iter().map(Some)) {
        admin_events::append(conn, place, event.row(actor.for_audit()), now).await?;
    }
    Ok(())
}

/// The same for what happens by itself.
pub(crate) async fn record_system(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    event: Event<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let actor = ActorOf { kind: ActorKind::System, id: None, name: "sluice", address: "" };
    admin_events::append(conn, Some(workspace), event.row(actor), now).await?;
    Ok(())
}

/// The same for what the operator does from the machine.
pub(crate) async fn record_operator(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
    event: Event<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let actor = ActorOf { kind: ActorKind::Operator, id: None, name: "operator", address: "" };
    admin_events::append(conn, workspace, event.row(actor), now).await?;
    Ok(())
}

/// One thing that somebody did.
#[derive(Debug, Clone, PartialEq)]
pub struct EventView {
    pub id: EventId,
    /// The number in the workspace's chain, from 1, without gaps.
    pub seq: i64,
    pub at: DateTime<Utc>,
    pub actor_kind: ActorKind,
    pub actor_name: String,
    pub address: String,
    pub action: String,
    pub object_kind: String,
    pub object_id: String,
    pub object_name: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    /// SHA-256 over the row and the hash before it, in hex.
    pub hash: String,
}

impl From<AdminEvent> for EventView {
    fn from(event: AdminEvent) -> Self {
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Self {
            id: event.id,
            seq: event.seq,
            at: event.at,
            actor_kind: event.actor_kind,
            actor_name: event.actor_name,
            address: event.address,
            action: event.action,
            object_kind: event.object_kind,
            object_id: event.object_id,
            object_name: event.object_name,
            before: json(event.before),
            after: json(event.after),
            hash: hex(&event.hash),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Which events a list shows.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    pub action: Option<String>,
    pub object_kind: Option<String>,
    pub object_id: Option<String>,
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

impl Control {
    /// What was done in the workspace, newest first.
    pub async fn admin_events(
        &self,
        admin: &Admin,
        filter: &EventFilter,
        page: Page<i64>,
    ) -> Result<PageOf<EventView, i64>, ControlError> {
        let filter = AdminEventFilter {
            action: filter.action.as_deref(),
            object_kind: filter.object_kind.as_deref(),
            object_id: filter.object_id.as_deref(),
            actor_id: None,
            from: filter.from,
            to: filter.to,
        };
        let mut tx = self.read_in(admin.workspace).await?;
        let found = admin_events::list(
            &mut tx.conn(),
            admin.workspace,
            filter,
            page.after,
            page.one_more(),
        )
        .await?;
        tx.commit().await?;
        Ok(page.cut(found, |event| event.seq).map(EventView::from))
    }
}

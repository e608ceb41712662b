//! An event of the audit log as REST, files and commands show it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sluice_control::EventView;
use utoipa::ToSchema;

use super::Row;

/// Something that was done in the workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventBody {
    #[schema(format = Uuid)]
    id: String,
    /// The number in the workspace's chain, from 1, without gaps.
    seq: i64,
    at: DateTime<Utc>,
    actor_kind: String,
    actor_name: String,
    address: String,
    action: String,
    object_kind: String,
    object_id: String,
    object_name: String,
    before: Option<Value>,
    after: Option<Value>,
    /// SHA-256 over this event and the hash of the one before.
    hash: String,
}

impl From<EventView> for EventBody {
    fn from(event: EventView) -> Self {
        Self {
            id: event.id.to_string(),
            seq: event.seq,
            at: event.at,
            actor_kind: event.actor_kind.to_string(),
            actor_name: event.actor_name,
            address: event.address,
            action: event.action,
            object_kind: event.object_kind,
            object_id: event.object_id,
            object_name: event.object_name,
            before: event.before,
            after: event.after,
            hash: event.hash,
        }
    }
}

impl Row for EventBody {
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("seq", "/seq"),
        ("at", "/at"),
        ("id", "/id"),
        ("actor_kind", "/actor_kind"),
        ("actor_name", "/actor_name"),
        ("address", "/address"),
        ("action", "/action"),
        ("object_kind", "/object_kind"),
        ("object_id", "/object_id"),
        ("object_name", "/object_name"),
        ("before", "/before"),
        ("after", "/after"),
        ("hash", "/hash"),
    ];
}

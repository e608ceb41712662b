//! A parked call's arguments: sealed at rest, secrets masked when shown, and shown whole only to
//! those who decide, which is noted.

use serde_json::{Value, json};
use sluice_domain::{ApprovalEventKind, ApprovalId, REDACTED, looks_secret, names_secret};
use sluice_store::approvals::{self, Approval};
use sluice_vault::Place;

use super::decide::names;
use crate::audit::{self, Event};
use crate::codes;
use crate::{Control, ControlError, PolicyManager, Viewer};

impl Control {
    /// The arguments as they were sent. Sealed ones that do not open are told in the log and are as
    /// gone.
    pub(super) fn arguments(&self, viewer: &Viewer, approval: &Approval) -> Option<Value> {
        let sealed = approval.sealed_arguments.as_deref()?;
        let place = Place::approval_arguments(viewer.workspace, approval.id);
        match self.inner.vault.open(place, sealed) {
            Ok(text) => serde_json::from_slice(&text).ok(),
            Err(error) => {
                tracing::error!(approval = %approval.id, %error, "Could not open an approval's arguments");
                None
            }
        }
    }

    /// The arguments with their secrets, for one of those who may decide. Who looked is noted.
    pub async fn reveal(
        &self,
        manager: &PolicyManager,
        id: ApprovalId,
    ) -> Result<Value, ControlError> {
        let (workspace, now) = (manager.workspace, self.now());
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let found = approvals::find(conn, workspace, id).await?;
        let approval = found.ok_or(ControlError::NotFound("approval"))?;
        if !names(manager, &approval.approvers) {
            let detail = "only those who decide this see its secrets".into();
            return Err(ControlError::Forbidden { code: codes::NOT_AN_APPROVER, detail });
        }
        let gone =
            ControlError::NotFound("argument kept; they are wiped some days after the decision");
        let arguments = self.arguments(manager, &approval).ok_or(gone)?;
        let (kind, user) = (ApprovalEventKind::Revealed, manager.actor.user);
        approvals::note_once(conn, workspace, id, kind, user, now).await?;
        let (text, what) = (id.to_string(), json!({"grant": approval.grant_label}));
        let event = Event::new("approval.reveal", ("approval", &text, &approval.tool)).after(&what);
        audit::record(conn, workspace, &manager.actor, event, now).await?;
        tx.commit().await?;
        Ok(arguments)
    }
}

/// Values that are secrets by name or form are masked; the rest stays readable.
pub(super) fn masked(value: Value) -> Value {
    match value {
        Value::String(text) if looks_secret(&text) => REDACTED.into(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let secret = names_secret(&name) && !value.is_null();
                let value = if secret { REDACTED.into() } else { masked(value) };
                (name, value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let value = json!({
            "api_key": "AAAA", "n": 1, "list": ["ghp_abc", "x"], "nested": {"Password": "p", "ok": "hello"},
            "session": null,
        });
        let expected = json!({
            "api_key": "[redacted]", "n": 1, "list": ["[redacted]", "x"],
            "nested": {"Password": "[redacted]", "ok": "hello"}, "session": null,
        });
        assert_eq!(masked(value), expected);
    }
}

//! Sets a counter back to nothing: written down before it is done.

use serde_json::json;
use sluice_domain::{Amount, GrantId, Reset, Scope, ServerId, Window};
use sluice_limits::{CounterKey, session_owner};

use super::away;
use crate::audit::{self, Event};
use crate::codes;
use crate::error::Faults;
use crate::{Control, ControlError, Fault, PolicyManager};

/// A session id is not longer than this.
const MAX_SESSION: usize = 200;

/// Which counter is meant, as a list of limits names it.
#[derive(Debug, Clone, Default)]
pub struct CounterForm {
    pub counter: String,
    pub window: String,
    /// Sliding, if left out.
    pub reset: Option<String>,
    pub scope: String,
    /// Of scope `server`.
    pub server: Option<ServerId>,
    /// Of scope `grant` and `session`.
    pub grant: Option<GrantId>,
    /// Of scope `session`; without it, calls outside a session.
    pub session: Option<String>,
}

fn one_of<T: std::str::FromStr>(pointer: &str, text: &str, words: &str) -> Result<T, Fault> {
    let detail =
        || format!("`{}` is not one of {words}", text.chars().take(40).collect::<String>());
    text.parse().map_err(|_| Fault::new(pointer, codes::UNKNOWN_VALUE, detail()))
}

fn counter_name(text: &str) -> Result<String, Fault> {
    let fits = (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b));
    let detail = "a counter's name is 1 to 64 of a-z, 0-9, `_`, `.` and `-`";
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Fault::new("/counter", codes::INVALID_NAME, detail))
    }
}

impl Control {
    /// Empties a counter, and says what it held. Calls that were charged before cannot be given
    /// back any more.
    pub async fn reset_counter(
        &self,
        manager: &PolicyManager,
        form: CounterForm,
    ) -> Result<Amount, ControlError> {
        let key = self.counter_of(manager, form).await?;
        let counters = &self.inner.counters;
        let asked = [(key.clone(), Amount::ZERO)];
        let before = counters.read(manager.workspace, &asked).await;
        let before = before.map_err(|failed| away(&failed.reason))?;
        let used = before.first().map_or(Amount::ZERO, |reading| reading.used);
        self.note_reset(manager, "limit.reset", &key, Some(used)).await?;
        match counters.reset(manager.workspace, &key).await {
            Ok(held) => {
                tracing::info!(workspace = %manager.workspace, counter = key.counter, %held, "Set a counter back");
                Ok(held)
            }
            Err(failed) => {
                // What is written down must stay true.
                self.note_reset(manager, "limit.reset_failed", &key, None).await?;
                Err(away(&failed.reason))
            }
        }
    }

    async fn note_reset(
        &self,
        manager: &PolicyManager,
        action: &str,
        key: &CounterKey,
        used: Option<Amount>,
    ) -> Result<(), ControlError> {
        let counter = |used: Amount| {
            json!({
                "counter": key.counter, "window": key.window, "reset": key.reset,
                "scope": key.scope, "owner": key.owner, "used": used,
            })
        };
        let (before, after) = (counter(used.unwrap_or_default()), counter(Amount::ZERO));
        let event = Event::new(action, ("counter", &key.owner, &key.counter));
        let event = if used.is_some() { event.before(&before).after(&after) } else { event };
        let mut tx = self.begin_in(manager.workspace).await?;
        audit::record(&mut tx.conn(), manager.workspace, &manager.actor, event, self.now()).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The counter that a form names, of this workspace alone.
    async fn counter_of(
        &self,
        manager: &PolicyManager,
        form: CounterForm,
    ) -> Result<CounterKey, ControlError> {
        let mut faults = Faults::default();
        let counter = faults.take(counter_name(&form.counter));
        let window = form.window.parse::<Window>();
        let window = faults
            .take(window.map_err(|e| Fault::new("/window", codes::INVALID_WINDOW, e.to_string())));
        let reset = form.reset.as_deref().unwrap_or("sliding");
        let reset = faults.take(one_of::<Reset>("/reset", reset, "sliding, calendar"));
        let scopes = "grant, session, server, workspace";
        let scope = faults.take(one_of::<Scope>("/scope", &form.scope, scopes));
        if form.session.as_ref().is_some_and(|session| session.len() > MAX_SESSION) {
            faults.push(Fault::new("/session", codes::TOO_LONG, "no session has so long an id"));
        }
        let needed = |pointer: &str, scope: Scope| {
            let detail = format!("a counter of scope {scope} needs it");
            Fault::new(pointer, codes::MISSING, detail)
        };
        let owner = match scope {
            Some(scope @ (Scope::Grant | Scope::Session)) => {
                let grant = faults.take(form.grant.ok_or_else(|| needed("/grant_id", scope)));
                if let Some(grant) = grant {
                    self.grant(manager, grant).await?;
                }
                let session = form.session.filter(|_| scope == Scope::Session);
                grant.map(|grant| match session {
                    Some(session) => session_owner(grant, &session),
                    None => grant.to_string(),
                })
            }
            Some(scope @ Scope::Server) => {
                let server = faults.take(form.server.ok_or_else(|| needed("/server_id", scope)));
                if let Some(server) = server {
                    self.server_row(manager, server).await?;
                }
                server.map(|server| server.to_string())
            }
            Some(Scope::Workspace) => Some(manager.workspace.to_string()),
            None => None,
        };
        faults.check()?;
        match (counter, window, reset, scope, owner) {
            (Some(counter), Some(window), Some(reset), Some(scope), Some(owner)) => {
                Ok(CounterKey { counter, window, reset, scope, owner })
            }
            _ => Err(ControlError::internal("a fault that was not told")),
        }
    }
}

//! Telling people of parked calls: endpoints of the workspace (webhooks, Slack, Teams) and mail. What
//! is told is written with what it tells, in one transaction, and sent by whoever is awake.

mod deliver;
mod deliveries;
mod endpoints;
mod letter;
mod payload;
mod settings;
mod tell;

pub use deliveries::{DeliveriesOf, DeliveryView, Try};
pub use endpoints::{EndpointForm, EndpointPatch, EndpointView, MadeEndpoint};
pub use letter::Letter;
pub use settings::{MAX_ESCALATION, NoticeSettings};

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sluice_domain::{DeliveryId, EndpointId, WorkspaceId};
use sluice_store::Conn;
use sluice_store::outbox::{self, NewDelivery};
use sluice_vault::Place;
use uuid::Uuid;

pub(crate) use self::settings::checked_escalation;
use crate::{Control, ControlError};

/// What a message's sealed body holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Body {
    Mail(Letter),
    /// The JSON text that is posted.
    Http(String),
}

/// To whom a message goes.
#[derive(Debug, Clone, Copy)]
enum To {
    Endpoint(EndpointId),
    /// By mail; the letter has the address.
    Person,
}

/// What a message is about, and until when it is of use.
#[derive(Debug, Clone, Copy)]
struct About<'a> {
    topic: &'a str,
    subject: Option<Uuid>,
    give_up_at: DateTime<Utc>,
}

impl Control {
    /// Puts a letter out to be mailed, in the transaction of what it tells. `workspace` is whose
    /// delivery log shows it; mail about an account has none. Nothing happens where the operator set
    /// no mail up: [`Self::can_mail`] says so beforehand.
    pub(crate) async fn post_letter(
        &self,
        conn: &mut Conn<'_>,
        workspace: Option<WorkspaceId>,
        topic: &str,
        subject: Option<Uuid>,
        letter: Letter,
        give_up_at: DateTime<Utc>,
    ) -> Result<(), ControlError> {
        if !self.can_mail() {
            return Ok(());
        }
        let about = About { topic, subject, give_up_at };
        self.put_out(conn, workspace, To::Person, about, &Body::Mail(letter)).await?;
        Ok(())
    }

    /// Whether the operator set mail up.
    pub fn can_mail(&self) -> bool {
        self.inner.mailer.is_some()
    }

    async fn put_out(
        &self,
        conn: &mut Conn<'_>,
        workspace: Option<WorkspaceId>,
        to: To,
        about: About<'_>,
        body: &Body,
    ) -> Result<DeliveryId, ControlError> {
        let id = DeliveryId::new();
        let text = serde_json::to_vec(body).map_err(ControlError::internal)?;
        let sealed = self.inner.vault.seal(place(workspace, id), &text);
        let (endpoint, recipient) = match (to, body) {
            (To::Endpoint(endpoint), _) => (Some(endpoint), ""),
            (To::Person, Body::Mail(letter)) => (None, letter.to.as_str()),
            (To::Person, Body::Http(_)) => {
                return Err(ControlError::internal("a person is sent mail, not JSON"));
            }
        };
        let new = NewDelivery {
            id,
            endpoint,
            recipient,
            topic: about.topic,
            subject: about.subject,
            sealed_body: &sealed,
            give_up_at: about.give_up_at,
        };
        outbox::put(conn, workspace, new, self.now()).await?;
        Ok(id)
    }

    fn open_body(
        &self,
        workspace: Option<WorkspaceId>,
        id: DeliveryId,
        sealed: &[u8],
    ) -> Option<Body> {
        let text = self.inner.vault.open(place(workspace, id), sealed).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Waits until there may be something to send, at most so long.
    pub async fn outgoing(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.inner.outgoing.notified()).await;
    }
}

/// Where a message's body stands; mail about an account belongs to no workspace.
pub(crate) fn place(workspace: Option<WorkspaceId>, id: DeliveryId) -> Place {
    let workspace = workspace.unwrap_or(WorkspaceId::from_uuid(Uuid::nil()));
    Place::new(workspace, "outbox", id.uuid(), "sealed_body")
}

/// An endpoint's sealed columns.
pub(crate) fn endpoint_place(
    workspace: WorkspaceId,
    id: EndpointId,
    column: EndpointColumn,
) -> Place {
    let column = match column {
        EndpointColumn::Url => "sealed_url",
        EndpointColumn::Secret => "sealed_secret",
        EndpointColumn::PreviousSecret => "sealed_previous_secret",
    };
    Place::new(workspace, "endpoints", id.uuid(), column)
}

/// Which of an endpoint's columns is sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EndpointColumn {
    Url,
    Secret,
    PreviousSecret,
}

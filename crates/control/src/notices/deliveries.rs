//! The delivery log of a workspace: what was sent, what failed and how, and sending it anew.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::json;
use sluice_domain::{DeliveryId, DeliveryStatus, EndpointId, Notice};
use sluice_store::endpoints;
use sluice_store::outbox::{self, Delivery, DeliveryFilter};
use uuid::Uuid;

use super::deliver::CLAIM;
use super::{About, Body, To, payload};
use crate::audit::{self, Event};
use crate::codes;
use crate::page::{Page, PageOf};
use crate::throttle::after;
use crate::{Admin, Control, ControlError};

/// How long a message that is sent anew is of use.
const REPLAYED_FOR: TimeDelta = TimeDelta::days(1);

/// One attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Try {
    pub at: DateTime<Utc>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What went wrong; empty where nothing did.
    pub error: String,
    pub took_ms: u64,
}

/// A message as an admin sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    pub id: DeliveryId,
    /// `None`: it was mail.
    pub endpoint: Option<EndpointId>,
    /// The mail's address.
    pub recipient: Option<String>,
    pub topic: String,
    /// The approval it is about.
    pub subject: Option<Uuid>,
    pub status: DeliveryStatus,
    pub attempts: i64,
    pub tries: Vec<Try>,
    /// When it is sent next, while it waits.
    pub next_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub done_at: Option<DateTime<Utc>>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        let waits = delivery.status == DeliveryStatus::Waiting;
        Self {
            id: delivery.id,
            endpoint: delivery.endpoint_id,
            recipient: (!delivery.recipient.is_empty()).then_some(delivery.recipient),
            topic: delivery.topic,
            subject: delivery.subject_id,
            status: delivery.status,
            attempts: delivery.attempts,
            tries: serde_json::from_value(delivery.tries).unwrap_or_default(),
            next_at: waits.then_some(delivery.next_at),
            created_at: delivery.created_at,
            done_at: delivery.done_at,
        }
    }
}

/// Which messages a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveriesOf {
    pub endpoint: Option<EndpointId>,
    pub status: Option<DeliveryStatus>,
}

impl Control {
    /// The workspace's messages, newest first.
    pub async fn deliveries(
        &self,
        admin: &Admin,
        of: DeliveriesOf,
        page: Page<DeliveryId>,
    ) -> Result<PageOf<DeliveryView, DeliveryId>, ControlError> {
        let filter = DeliveryFilter { endpoint: of.endpoint, status: of.status };
        let mut tx = self.read_in(admin.workspace).await?;
        let (workspace, limit) = (admin.workspace, page.one_more());
        let found = outbox::list(&mut tx.conn(), workspace, filter, page.after, limit).await?;
        tx.commit().await?;
        Ok(page.cut(found, |one| one.id).map(DeliveryView::from))
    }

    /// One message.
    pub async fn delivery(
        &self,
        admin: &Admin,
        id: DeliveryId,
    ) -> Result<DeliveryView, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found = outbox::find(&mut tx.conn(), admin.workspace, id).await?;
        tx.commit().await?;
        Ok(found.ok_or(ControlError::NotFound("delivery"))?.into())
    }

    /// Sends a message anew that was given up or taken, under the same id.
    pub async fn replay(
        &self,
        admin: &Admin,
        id: DeliveryId,
    ) -> Result<DeliveryView, ControlError> {
        let (workspace, now) = (admin.workspace, self.now());
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let found = outbox::find(conn, workspace, id).await?;
        let delivery = found.ok_or(ControlError::NotFound("delivery"))?;
        if !outbox::replay(conn, workspace, id, after(now, REPLAYED_FOR), now).await? {
            let detail = "it is still waiting to be sent".to_owned();
            return Err(ControlError::Conflict {
                code: codes::STILL_WAITING,
                pointer: None,
                detail,
            });
        }
        let (object, what) = (id.to_string(), json!({"was": delivery.status}));
        let event = Event::new("delivery.replay", ("delivery", &object, &delivery.topic));
        audit::record(conn, workspace, &admin.actor, event.after(&what), now).await?;
        tx.commit().await?;
        self.inner.outgoing.notify_one();
        self.delivery(admin, id).await
    }

    /// Sends a test message to an endpoint, once and now, and says how that went.
    pub async fn test_endpoint(
        &self,
        admin: &Admin,
        id: EndpointId,
    ) -> Result<DeliveryView, ControlError> {
        let (workspace, now) = (admin.workspace, self.now());
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let page = format!("{base}/w/{}/notifications", admin.slug);
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let found = endpoints::find(conn, workspace, id).await?;
        let endpoint = found.ok_or(ControlError::NotFound("endpoint"))?;
        if !endpoint.enabled {
            let detail = "the endpoint is switched off; switch it on first".to_owned();
            return Err(ControlError::Conflict {
                code: codes::ENDPOINT_OFF,
                pointer: None,
                detail,
            });
        }
        let body = Body::Http(payload::test(endpoint.kind, &admin.slug, &page, now).to_string());
        // Of no use later: a failure is told at once and not tried again.
        let about = About { topic: Notice::Test.as_str(), subject: None, give_up_at: now };
        let message = self.put_out(conn, Some(workspace), To::Endpoint(id), about, &body).await?;
        let claimed = outbox::claim(conn, workspace, message, after(now, CLAIM)).await?;
        let object = id.to_string();
        let event = Event::new("endpoint.test", ("endpoint", &object, &endpoint.name));
        audit::record(conn, workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        if let Some((claim, delivery)) = claimed {
            self.deliver_one(claim, &delivery).await?;
        }
        self.delivery(admin, message).await
    }
}

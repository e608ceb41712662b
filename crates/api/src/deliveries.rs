//! The delivery log of a workspace's notifications.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control, DeliveriesOf, DeliveryView, Try};
use sluice_domain::{DeliveryId, DeliveryStatus, EndpointId};
use sluice_web::{As, PathId, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(show)).routes(routes!(replay))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeliveriesQuery {
    #[param(value_type = Option<String>, format = Uuid)]
    endpoint: Option<EndpointId>,
    /// `waiting`, `sent` or `dead`.
    #[param(value_type = Option<String>)]
    status: Option<DeliveryStatus>,
    /// 1 to 1,000; 50 when left out.
    limit: Option<u32>,
    cursor: Option<String>,
}

/// One attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TryBody {
    at: DateTime<Utc>,
    /// The HTTP status, where there was one.
    status: Option<u16>,
    /// What went wrong; empty where nothing did.
    error: String,
    took_ms: u64,
}

impl From<Try> for TryBody {
    fn from(one: Try) -> Self {
        Self { at: one.at, status: one.status, error: one.error, took_ms: one.took_ms }
    }
}

/// A message on its way, or past it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryBody {
    /// The webhook's `webhook-id`.
    #[schema(format = Uuid)]
    id: String,
    /// `null`: it was mail.
    #[schema(format = Uuid)]
    endpoint_id: Option<String>,
    recipient: Option<String>,
    event: String,
    /// The approval it is about.
    #[schema(format = Uuid)]
    subject_id: Option<String>,
    /// `waiting`, `sent` or `dead`.
    status: &'static str,
    attempts: Vec<TryBody>,
    /// While it waits: when it is sent next.
    next_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    done_at: Option<DateTime<Utc>>,
}

impl From<DeliveryView> for DeliveryBody {
    fn from(delivery: DeliveryView) -> Self {
        Self {
            id: delivery.id.to_string(),
            endpoint_id: delivery.endpoint.map(|id| id.to_string()),
            recipient: delivery.recipient,
            event: delivery.topic,
            subject_id: delivery.subject.map(|id| id.to_string()),
            status: delivery.status.as_str(),
            attempts: delivery.tries.into_iter().map(TryBody::from).collect(),
            next_at: delivery.next_at,
            created_at: delivery.created_at,
            done_at: delivery.done_at,
        }
    }
}

/// The messages, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/notification-deliveries", operation_id = "list_deliveries", tag = "Notifications",
    params(("ws" = String, Path), DeliveriesQuery),
    responses((status = 200, body = List<DeliveryBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<DeliveriesQuery>,
) -> Result<Json<List<DeliveryBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let of = DeliveriesOf { endpoint: query.endpoint, status: query.status };
    let found = control.deliveries(&admin, of, page).await?;
    Ok(Json(list(found, DeliveryBody::from)))
}

/// One message, with every attempt.
#[utoipa::path(
    get, path = "/workspaces/{ws}/notification-deliveries/{id}", operation_id = "show_delivery", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = DeliveryBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<DeliveryId>,
) -> Result<Json<DeliveryBody>, Problem> {
    Ok(Json(control.delivery(&admin, id).await?.into()))
}

/// Sends a message anew that was given up or taken, under the same id.
#[utoipa::path(
    post, path = "/workspaces/{ws}/notification-deliveries/{id}/replay", operation_id = "replay_delivery", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = DeliveryBody), Refusals),
)]
async fn replay(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<DeliveryId>,
) -> Result<Json<DeliveryBody>, Problem> {
    Ok(Json(control.replay(&admin, id).await?.into()))
}

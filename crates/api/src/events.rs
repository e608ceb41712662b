//! The admin audit log and what was used.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sluice_control::codes;
use sluice_control::{Admin, Breakdown, Control, EventFilter, Fault, Span, Viewer};
use sluice_web::export::EventBody;
use sluice_web::{As, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(usage))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// Such as `grant.create`.
    action: Option<String>,
    object_kind: Option<String>,
    object_id: Option<String>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    /// 1 to 1,000; 50 when left out.
    limit: Option<u32>,
    cursor: Option<String>,
}

/// What was done in the workspace, by whom, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/admin-events", operation_id = "list_admin_events", tag = "Workspace",
    params(("ws" = String, Path), EventsQuery),
    responses((status = 200, body = List<EventBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<EventsQuery>,
) -> Result<Json<List<EventBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let filter = EventFilter {
        action: query.action,
        object_kind: query.object_kind,
        object_id: query.object_id,
        from: query.from,
        to: query.to,
    };
    let found = control.admin_events(&admin, &filter, page).await?;
    Ok(Json(list(found, EventBody::from)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct UsageQuery {
    /// 30 days ago when left out.
    from: Option<DateTime<Utc>>,
    /// Now when left out.
    to: Option<DateTime<Utc>>,
    /// Rows at most, 1 to 1,000; 50 when left out.
    limit: Option<u32>,
}

/// Calls of one tool by one grant with one outcome.
#[derive(Debug, Serialize, ToSchema)]
struct UsageBody {
    #[schema(format = Uuid)]
    server_id: String,
    #[schema(format = Uuid)]
    grant_id: String,
    tool: String,
    outcome: &'static str,
    calls: i64,
    last_at: DateTime<Utc>,
}

impl From<Breakdown> for UsageBody {
    fn from(row: Breakdown) -> Self {
        Self {
            server_id: row.server_id.to_string(),
            grant_id: row.grant_id.to_string(),
            tool: row.tool,
            outcome: row.outcome.as_str(),
            calls: row.calls,
            last_at: row.last_at,
        }
    }
}

/// Tool calls by server, grant, tool and outcome, the most frequent first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/usage", operation_id = "usage", tag = "Workspace",
    params(("ws" = String, Path), UsageQuery),
    responses((status = 200, body = List<UsageBody>), Refusals),
)]
async fn usage(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<UsageQuery>,
) -> Result<Json<List<UsageBody>>, Problem> {
    let limit = page::<i64>(query.limit, None)?.limit;
    let until = query.to.unwrap_or_else(|| control.now());
    let since = query.from.unwrap_or(until - TimeDelta::days(30));
    if since > until {
        let fault = Fault::new("/from", codes::OUT_OF_RANGE, "`from` is after `to`");
        return Err(Problem::invalid(fault));
    }
    let span = Span { since, until, server: None, grant: None };
    let rows = control.usage(&viewer, span, limit).await?;
    Ok(Json(List::whole(rows.into_iter().map(UsageBody::from).collect())))
}

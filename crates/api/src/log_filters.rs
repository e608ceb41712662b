//! Filters of the log that the token's maker keeps under a name.

use axum::Json;
use axum::extract::{Query, State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sluice_control::codes;
use sluice_control::{Control, Fault, Viewer};
use sluice_domain::FilterId;
use sluice_web::{As, JsonBody, PathId, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::calls::CallsQuery;
use crate::openapi::Refusals;
use crate::page::List;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index, save)).routes(routes!(forget))
}

/// Filters with a name.
#[derive(Debug, Serialize, ToSchema)]
struct LogFilterBody {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    /// The filters as `GET …/calls` takes them.
    query: String,
}

/// Filters to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewLogFilter {
    name: String,
    /// The filters as `GET …/calls` takes them, such as `outcome=denied&tool=read_file`.
    query: String,
}

/// The filters that the token's maker keeps, by name. All on one page.
#[utoipa::path(
    get, path = "/workspaces/{ws}/log-filters", operation_id = "list_log_filters", tag = "Calls",
    params(("ws" = String, Path)),
    responses((status = 200, body = List<LogFilterBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
) -> Result<Json<List<LogFilterBody>>, Problem> {
    let found = control.saved_filters(&viewer).await?.into_iter();
    let body = |one: sluice_control::SavedFilter| LogFilterBody {
        id: one.id.to_string(),
        name: one.name,
        query: one.query,
    };
    Ok(Json(List::whole(found.map(body).collect())))
}

/// Keeps filters under a name of the token's maker; the log's page shows them too.
#[utoipa::path(
    post, path = "/workspaces/{ws}/log-filters", operation_id = "save_log_filter", tag = "Calls",
    params(("ws" = String, Path)), request_body = NewLogFilter,
    responses((status = 201, body = LogFilterBody), Refusals),
)]
async fn save(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    JsonBody(new): JsonBody<NewLogFilter>,
) -> Result<(StatusCode, Json<LogFilterBody>), Problem> {
    readable(&new.query)?;
    let id = control.save_filter(&viewer, &new.name, &new.query).await?.to_string();
    let made = LogFilterBody { id, name: new.name, query: new.query };
    Ok((StatusCode::CREATED, Json(made)))
}

/// What the log does not understand is not kept.
fn readable(query: &str) -> Result<(), Problem> {
    let uri = format!("/?{query}").parse::<http::Uri>();
    let fault =
        |detail: String| Problem::invalid(Fault::new("/query", codes::INVALID_QUERY, detail));
    let uri = uri.map_err(|error| fault(format!("it is no query: {error}")))?;
    let Query(read) =
        Query::<CallsQuery>::try_from_uri(&uri).map_err(|error| fault(error.body_text()))?;
    if read.limit.is_some() || read.cursor.is_some() {
        return Err(fault("`limit` and `cursor` are no filters".to_owned()));
    }
    Ok(())
}

/// Forgets filters of the token's maker.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/log-filters/{id}", operation_id = "forget_log_filter", tag = "Calls",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn forget(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<FilterId>,
) -> Result<StatusCode, Problem> {
    control.forget_filter(&viewer, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

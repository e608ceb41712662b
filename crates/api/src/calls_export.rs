//! The call log as files; `sluice_web::export` writes them.

use axum::extract::State;
use axum::response::Response;
use sluice_control::codes;
use sluice_control::{Control, Fault, Viewer};
use sluice_web::export::{self, CallBody, Format};
use sluice_web::{As, Problem, Queried};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::calls::CallsQuery;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(csv)).routes(routes!(ndjson))
}

/// The calls as CSV (RFC 4180), newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls.csv", operation_id = "export_calls_csv", tag = "Calls",
    params(("ws" = String, Path), CallsQuery),
    responses((status = 200, body = String, content_type = "text/csv"), Refusals),
)]
async fn csv(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<CallsQuery>,
) -> Result<Response, Problem> {
    unpaged(&query)?;
    Ok(export::calls(control, viewer, query.filter(), Format::Csv))
}

/// The calls as one JSON object a line, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls.ndjson", operation_id = "export_calls_ndjson", tag = "Calls",
    params(("ws" = String, Path), CallsQuery),
    responses((status = 200, body = CallBody, content_type = "application/x-ndjson"), Refusals),
)]
async fn ndjson(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<CallsQuery>,
) -> Result<Response, Problem> {
    unpaged(&query)?;
    Ok(export::calls(control, viewer, query.filter(), Format::Ndjson))
}

/// An export has every row that fits: a page of it is not accepted and then ignored.
fn unpaged(query: &CallsQuery) -> Result<(), Problem> {
    let name = match (query.limit, &query.cursor) {
        (Some(_), _) => "limit",
        (None, Some(_)) => "cursor",
        (None, None) => return Ok(()),
    };
    let detail =
        format!("an export has no pages; leave `{name}` out, or narrow it with `from` and `to`");
    Err(Problem::invalid(Fault::new(format!("/{name}"), codes::UNKNOWN_FIELD, detail)))
}

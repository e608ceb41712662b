//! The call log as files: pages are read one after the other and streamed, so that the size of the
//! log does not matter.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::header;
use sluice_control::{CallsOf, Control, ControlError, Fault, Page, Viewer};
use sluice_domain::CallId;
use sluice_web::{As, Problem, Queried};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::calls::{CallBody, CallsQuery};
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(csv)).routes(routes!(ndjson))
}

const PAGE: u32 = 500;

/// The calls as CSV (RFC 4180), newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls.csv", tag = "Calls",
    params(("ws" = String, Path), CallsQuery),
    responses((status = 200, body = String, content_type = "text/csv"), Refusals),
)]
async fn csv(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<CallsQuery>,
) -> Result<Response, Problem> {
    unpaged(&query)?;
    let rows = rows(control, viewer, query.filter(), csv_row);
    let head = stream::iter([Ok(Bytes::from_static(HEAD.as_bytes()))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(head, rows));
    Ok(file("text/csv; charset=utf-8", "calls.csv", body))
}

/// The calls as one JSON object a line, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls.ndjson", tag = "Calls",
    params(("ws" = String, Path), CallsQuery),
    responses((status = 200, body = CallBody, content_type = "application/x-ndjson"), Refusals),
)]
async fn ndjson(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<CallsQuery>,
) -> Result<Response, Problem> {
    unpaged(&query)?;
    let rows = rows(control, viewer, query.filter(), |call, text| {
        text.push_str(&serde_json::to_string(call).unwrap_or_default());
        text.push('\n');
    });
    Ok(file("application/x-ndjson", "calls.ndjson", Body::from_stream(rows)))
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
    Err(Problem::invalid(Fault::new(format!("/{name}"), "unknown_field", detail)))
}

fn file(kind: &'static str, name: &'static str, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers =
        [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    (headers, body).into_response()
}

/// Where the next page begins; `None` after the last.
type Next = Option<Option<CallId>>;

fn rows(
    control: Control,
    viewer: Viewer,
    filter: CallsOf,
    write: fn(&CallBody, &mut String),
) -> impl Stream<Item = Result<Bytes, ControlError>> {
    let first: Next = Some(None);
    stream::try_unfold(first, move |next| {
        let (control, viewer, filter) = (control.clone(), viewer.clone(), filter.clone());
        async move {
            let Some(after) = next else { return Ok(None) };
            let found = control.calls(&viewer, &filter, Page { after, limit: PAGE }).await?;
            let mut text = String::new();
            for call in found.items {
                write(&CallBody::from(call), &mut text);
            }
            Ok(Some((Bytes::from(text), found.next.map(Some))))
        }
    })
}

const HEAD: &str = "id,at,server_id,grant_id,grant_label,method,tool,outcome,code,rule,message,\
    policy_id,policy_version,observed,counter,retry_after_seconds,client_name,protocol_version,\
    client_address,request_bytes,response_bytes,upstream_status,total_us,upstream_us\r\n";

fn csv_row(call: &CallBody, text: &mut String) {
    let timing = serde_json::to_value(&call.timing).unwrap_or_default();
    let optional = |value: Option<&String>| value.cloned().unwrap_or_default();
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let cells = [
        call.id.clone(),
        call.at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        call.server_id.clone(),
        call.grant_id.clone(),
        call.grant_label.clone(),
        call.method.clone(),
        optional(call.tool.as_ref()),
        call.outcome.to_owned(),
        call.code.to_owned(),
        call.rule.clone(),
        call.message.clone(),
        optional(call.policy_id.as_ref()),
        number(call.policy_version),
        call.observed.to_string(),
        optional(call.counter.as_ref()),
        number(call.retry_after_seconds),
        optional(call.client_name.as_ref()),
        optional(call.protocol_version.as_ref()),
        optional(call.client_address.as_ref()),
        call.request_bytes.to_string(),
        call.response_bytes.to_string(),
        number(call.upstream_status.map(i64::from)),
        timing["total_us"].to_string(),
        timing["upstream_us"].to_string(),
    ];
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    let _ = write!(text, "{}\r\n", cells.join(","));
}

/// A cell. Text that a spreadsheet would run as a formula is made plain: agents choose it.
pub fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_neither_broken_nor_run() {
        for (cell, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
        ] {
            assert_eq!(quoted(cell), expected);
        }
    }
}

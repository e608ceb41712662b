//! Limits: how each counter stands, and setting one back.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sluice_control::codes;
use sluice_control::{
    Control, ControlError, CounterForm, Fault, LimitKey, LimitView, LimitsOf, PolicyManager, Viewer,
};
use sluice_domain::{Amount, GrantId, PolicyId, ServerId};
use sluice_web::{As, JsonBody, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(reset))
}

/// Which limits are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LimitsQuery {
    #[param(value_type = Option<String>, format = Uuid)]
    server: Option<ServerId>,
    #[param(value_type = Option<String>, format = Uuid)]
    policy: Option<PolicyId>,
    /// The limits that calls of this grant are held to.
    #[param(value_type = Option<String>, format = Uuid)]
    grant: Option<GrantId>,
    /// Only counters of which at least so many percent are used, the fullest first, on one page.
    #[param(minimum = 1, maximum = 100)]
    near: Option<u32>,
    /// 1 to 1,000; 50 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A counter under one `max`, and how it stands now.
#[derive(Debug, Serialize, ToSchema)]
struct LimitBody {
    #[schema(format = Uuid)]
    server_id: String,
    #[schema(format = Uuid)]
    policy_id: String,
    policy: String,
    /// JSON Pointers of the limits in the policy that share this counter and `max`.
    #[schema(example = json!(["/tools/execute_code/limits/0"]))]
    rules: Vec<String>,
    /// The first of them in words.
    sentence: String,
    counter: String,
    #[schema(example = "minute")]
    window: String,
    /// `sliding` or `calendar`.
    reset: &'static str,
    /// `grant`, `session`, `server` or `workspace`.
    scope: &'static str,
    /// Whose counter it is, of scope `grant` and `session`.
    #[schema(format = Uuid)]
    grant_id: Option<String>,
    grant_label: Option<String>,
    /// Of scope `session`; `null` counts calls outside a session.
    session: Option<String>,
    increment_from: Option<String>,
    /// `deny` or `allow`.
    on_unavailable: &'static str,
    #[schema(value_type = f64)]
    max: Amount,
    #[schema(value_type = f64)]
    used: Amount,
    #[schema(value_type = f64)]
    left: Amount,
    /// Of `max`, rounded down; `null` where `max` is 0.
    used_percent: Option<u32>,
    /// When nothing counts any more, if nobody calls; `null`: nothing counts.
    resets_at: Option<DateTime<Utc>>,
    resets_in_seconds: Option<u64>,
    /// Until anything more fits; `null`: it fits now, or never will.
    retry_after_seconds: Option<u64>,
}

/// Whole seconds, rounded up.
fn seconds(wait: std::time::Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl LimitBody {
    /// `None`: the counter was not read.
    fn new(row: LimitView, now: DateTime<Utc>) -> Option<Self> {
        let reading = row.reading?;
        let resets_at = reading.resets_in.and_then(|wait| TimeDelta::from_std(wait).ok());
        let (grant_id, grant_label) = row.grant.clone().unzip();
        Some(Self {
            used_percent: row.percent(),
            server_id: row.server.to_string(),
            policy_id: row.policy.to_string(),
            policy: row.policy_name,
            rules: row.rules,
            sentence: row.sentence,
            counter: row.counter,
            window: row.window.to_string(),
            reset: row.reset.as_str(),
            scope: row.scope.as_str(),
            grant_id: grant_id.map(|id| id.to_string()),
            grant_label,
            session: row.session,
            increment_from: row.increment_from,
            on_unavailable: row.on_unavailable.as_str(),
            max: row.max,
            used: reading.used,
            left: reading.remaining,
            resets_at: resets_at.map(|wait| now + wait),
            resets_in_seconds: reading.resets_in.map(seconds),
            retry_after_seconds: reading.wait.map(seconds),
        })
    }
}

/// The limits of policies that a live grant has, each with how its counter stands now.
#[utoipa::path(
    get, path = "/workspaces/{ws}/limits", operation_id = "list_limits", tag = "Limits",
    params(("ws" = String, Path), LimitsQuery),
    responses((status = 200, body = List<LimitBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<LimitsQuery>,
) -> Result<Json<List<LimitBody>>, Problem> {
    let of = LimitsOf { server: query.server, policy: query.policy, grant: query.grant };
    let page = page::<LimitKey>(query.limit, query.cursor.as_deref())?;
    let now = control.now();
    let body = |row| LimitBody::new(row, now);
    let Some(percent) = query.near else {
        let page = control.limits(&viewer, of, page).await?;
        let next_cursor = page.next.as_ref().map(sluice_web::Cursor::write);
        return Ok(Json(List {
            items: page.items.into_iter().filter_map(body).collect(),
            next_cursor,
        }));
    };
    if !(1..=100).contains(&percent) {
        let detail = "`near` is 1 to 100 percent";
        return Err(Problem::invalid(Fault::new("/near", codes::OUT_OF_RANGE, detail)));
    }
    let nearest = control.nearest_limits(&viewer, of).await?;
    if nearest.fault.is_some() {
        return Err(ControlError::Unavailable("the counters' store").into());
    }
    let near = nearest.rows.into_iter().filter(|row| row.percent() >= Some(percent));
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    Ok(Json(List::whole(near.take(limit).filter_map(body).collect())))
}

/// The counter to set back, as the list of limits names it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResetCounter {
    #[schema(example = "execute_code_rate")]
    counter: String,
    #[schema(example = "minute")]
    window: String,
    /// `sliding` (when left out) or `calendar`.
    reset: Option<String>,
    /// `grant`, `session`, `server` or `workspace`.
    #[schema(example = "grant")]
    scope: String,
    /// For scope `server`.
    #[schema(value_type = Option<String>, format = Uuid)]
    server_id: Option<ServerId>,
    /// For scope `grant` and `session`.
    #[schema(value_type = Option<String>, format = Uuid)]
    grant_id: Option<GrantId>,
    /// For scope `session`; left out, it is the counter of calls outside a session.
    session: Option<String>,
}

/// What a counter held when it was set back.
#[derive(Debug, Serialize, ToSchema)]
struct CounterWasReset {
    #[schema(value_type = f64)]
    used_before: Amount,
}

/// Sets a counter back to nothing; the admin audit log says who did. Calls that were charged before
/// cannot be given back any more.
#[utoipa::path(
    post, path = "/workspaces/{ws}/limits/reset", operation_id = "reset_limit", tag = "Limits",
    params(("ws" = String, Path)),
    request_body = ResetCounter,
    responses((status = 200, body = CounterWasReset), Refusals),
)]
async fn reset(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    JsonBody(wanted): JsonBody<ResetCounter>,
) -> Result<Json<CounterWasReset>, Problem> {
    let form = CounterForm {
        counter: wanted.counter,
        window: wanted.window,
        reset: wanted.reset,
        scope: wanted.scope,
        server: wanted.server_id,
        grant: wanted.grant_id,
        session: wanted.session,
    };
    let used_before = control.reset_counter(&manager, form).await?;
    Ok(Json(CounterWasReset { used_before }))
}

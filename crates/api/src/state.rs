//! The state and the router.

use axum::Router;
use axum::extract::FromRef;
use axum::middleware::from_fn_with_state;
use sluice_control::Control;
use sluice_web::{WebState, method_not_allowed, not_found};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    allowance, api_tokens, approval_exceptions, approvals, calls, calls_export, configuration,
    deliveries, endpoints, events, grants, idempotency, limits, log_filters, me, members, notices,
    openapi, policies, policy_checks, policy_compare, policy_history, policy_tests, servers, tools,
    workspace,
};

/// What handlers need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ApiState {
    pub web: WebState,
}

impl FromRef<ApiState> for WebState {
    fn from_ref(state: &ApiState) -> Self {
        state.web.clone()
    }
}

impl FromRef<ApiState> for Control {
    fn from_ref(state: &ApiState) -> Self {
        state.web.control.clone()
    }
}

/// Every route with its description.
pub(crate) fn described() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(openapi::head())
        .merge(me::routes())
        .merge(servers::routes())
        .merge(tools::routes())
        .merge(policies::routes())
        .merge(policy_checks::routes())
        .merge(policy_tests::routes())
        .merge(policy_compare::routes())
        .merge(policy_history::routes())
        .merge(grants::routes())
        .merge(limits::routes())
        .merge(calls::routes())
        .merge(crate::security_events::routes())
        .merge(calls_export::routes())
        .merge(log_filters::routes())
        .merge(approvals::routes())
        .merge(approval_exceptions::routes())
        .merge(notices::routes())
        .merge(endpoints::routes())
        .merge(deliveries::routes())
        .merge(members::routes())
        .merge(crate::join_domains::routes())
        .merge(api_tokens::routes())
        .merge(events::routes())
        .merge(workspace::routes())
        .merge(configuration::routes())
}

/// The routes under `/api/v1`; errors are problems, also for paths and methods that are not there.
pub fn router(state: ApiState) -> Router {
    let (routes, _) = described().split_for_parts();
    let api = routes
        .route("/openapi.json", axum::routing::get(openapi::serve))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(from_fn_with_state(state.clone(), idempotency::replay))
        .layer(from_fn_with_state(state.clone(), allowance::count))
        .with_state(state);
    Router::new()
        .nest("/api/v1", api)
        .route("/api", axum::routing::any(not_found))
        .route("/api/{*rest}", axum::routing::any(not_found))
}

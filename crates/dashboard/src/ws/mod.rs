//! The pages of a workspace.

mod api_tokens;
mod apply;
mod approvals;
mod audit;
mod call;
mod connect;
mod find;
mod grant;
mod grant_new;
mod grants;
mod join_domains;
mod limit_rows;
mod limits;
mod logs;
mod look;
mod members;
mod notifications;
mod overview;
mod policies;
mod policy;
mod policy_edit;
mod policy_try;
mod policy_versions;
mod security;
mod server;
mod server_form;
mod server_settings;
mod servers;
mod settings;
mod tool;
mod tools;
mod try_it;
pub(crate) mod watching;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use sluice_web::SignedIn;

use crate::DashboardState;
use crate::desk::{Answer, refuse};
use crate::routes::Routes;

pub(crate) use approvals::item::{Argument, arguments};
pub(crate) use approvals::one::{Input as DecisionInput, told};
pub(crate) use approvals::words::status_word;

/// A form with nothing but its token.
#[derive(Debug, Deserialize)]
pub(crate) struct Nothing {}

/// Everything under `/w`.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/w", get(home))
        .route("/w/", get(home))
        .route("/w/{ws}", get(overview::get))
        .route("/w/{ws}/", get(overview::get))
        .merge(server_routes())
        .merge(policy_routes())
        .route("/w/{ws}/find", get(find::show))
        .route("/w/{ws}/tools", get(look::list))
        .route("/w/{ws}/grants", get(grants::list))
        .route("/w/{ws}/grants/{id}", get(grant::show).post(grant::edit))
        .route("/w/{ws}/grants/{id}/rotate", post(grant::rotate))
        .route("/w/{ws}/grants/{id}/revoke", post(grant::revoke))
        .route("/w/{ws}/limits", get(limits::list))
        .route("/w/{ws}/limits/reset", post(limits::reset))
        .route("/w/{ws}/logs", get(logs::list))
        .route("/w/{ws}/logs.csv", get(logs::export::csv))
        .route("/w/{ws}/logs.ndjson", get(logs::export::ndjson))
        .route("/w/{ws}/logs/filters", post(logs::saved::save))
        .route("/w/{ws}/logs/filters/{id}/delete", post(logs::saved::forget))
        .route("/w/{ws}/logs/live", get(logs::live::events))
        .route("/w/{ws}/logs/{id}", get(call::show))
        .route("/w/{ws}/logs/{id}/rule", get(logs::rule::show))
        .merge(approval_routes())
        .route("/w/{ws}/members", get(members::list))
        .route("/w/{ws}/members/invite", post(members::invite))
        .route("/w/{ws}/members/leave", post(members::leave))
        .route("/w/{ws}/members/{id}/role", post(members::role))
        .route("/w/{ws}/members/{id}/remove", post(members::remove))
        .route("/w/{ws}/invites/{id}/revoke", post(members::revoke_invite))
        .route("/w/{ws}/api-tokens", get(api_tokens::list).post(api_tokens::create))
        .route("/w/{ws}/api-tokens/{id}/revoke", post(api_tokens::revoke))
        .route("/w/{ws}/audit", get(audit::list))
        .route("/w/{ws}/audit.csv", get(audit::csv))
        .route("/w/{ws}/audit.ndjson", get(audit::ndjson))
        .route("/w/{ws}/security", get(security::list))
        .route("/w/{ws}/settings", get(settings::show))
        .route("/w/{ws}/settings/name", post(settings::rename))
        .route("/w/{ws}/settings/slug", post(settings::slug))
        .route("/w/{ws}/settings/provider", post(settings::require_provider))
        .route("/w/{ws}/settings/join-domains", post(join_domains::add))
        .route("/w/{ws}/settings/join-domains/{id}/remove", post(join_domains::remove))
        .route("/w/{ws}/settings/hand-over", post(settings::hand_over))
        .route("/w/{ws}/settings/delete", post(settings::delete))
}

fn server_routes() -> Routes {
    Routes::new()
        .route("/w/{ws}/servers", get(servers::list))
        .route("/w/{ws}/servers/new", get(connect::form).post(connect::connect))
        .route("/w/{ws}/servers/{id}", get(tools::list))
        .route("/w/{ws}/servers/{id}/refresh", post(tools::refresh))
        .route("/w/{ws}/servers/{id}/accept-all", post(tools::accept_all))
        .route("/w/{ws}/servers/{id}/tools/{tool}", get(tool::show))
        .route("/w/{ws}/servers/{id}/tools/{tool}/accept", post(tool::accept))
        .route("/w/{ws}/servers/{id}/tools/{tool}/apply", get(apply::preview).post(apply::apply))
        .route("/w/{ws}/servers/{id}/policies", get(policies::of_server))
        .route("/w/{ws}/servers/{id}/policies/new", get(policy_edit::new).post(policy_edit::create))
        .route("/w/{ws}/servers/{id}/grants", get(grants::of_server))
        .route("/w/{ws}/servers/{id}/grants/new", get(grant_new::form).post(grant_new::create))
        .route("/w/{ws}/servers/{id}/try", get(try_it::show))
        .route(
            "/w/{ws}/servers/{id}/settings",
            get(server_settings::show).post(server_settings::save),
        )
        .route("/w/{ws}/servers/{id}/delete", post(server_settings::delete))
}

fn approval_routes() -> Routes {
    use notifications::endpoint;
    Routes::new()
        .route("/w/{ws}/approvals", get(approvals::list))
        .route("/w/{ws}/approvals/live", get(approvals::live::events))
        .route("/w/{ws}/approvals/deny", post(approvals::deny_all))
        .route("/w/{ws}/approvals/exceptions", get(approvals::exceptions::list))
        .route("/w/{ws}/approvals/exceptions/{id}/revoke", post(approvals::exceptions::revoke))
        .route("/w/{ws}/approvals/{id}", get(approvals::one::show).post(approvals::one::decide))
        .route("/w/{ws}/approvals/{id}/reveal", post(approvals::one::reveal))
        .route("/w/{ws}/notifications", get(notifications::show))
        .route("/w/{ws}/notifications/mail", post(notifications::mail))
        .route("/w/{ws}/notifications/escalation", post(notifications::escalation))
        .route("/w/{ws}/notifications/endpoints", post(notifications::create))
        .route("/w/{ws}/notifications/endpoints/{id}", get(endpoint::show).post(endpoint::edit))
        .route("/w/{ws}/notifications/endpoints/{id}/test", post(endpoint::test))
        .route("/w/{ws}/notifications/endpoints/{id}/rotate", post(endpoint::rotate))
        .route("/w/{ws}/notifications/endpoints/{id}/delete", post(endpoint::delete))
        .route("/w/{ws}/notifications/deliveries/{id}/replay", post(endpoint::replay))
}

fn policy_routes() -> Routes {
    Routes::new()
        .route("/w/{ws}/policies", get(policies::list))
        .route("/w/{ws}/policies/{id}", get(policy::show))
        .route("/w/{ws}/policies/{id}/edit", get(policy_edit::edit).post(policy_edit::save))
        .route("/w/{ws}/policies/{id}/try", get(policy_try::form).post(policy_try::run))
        .route("/w/{ws}/policies/{id}/versions", get(policy_versions::list))
        .route("/w/{ws}/policies/{id}/versions/{version}", get(policy_versions::show))
        .route("/w/{ws}/policies/{id}/versions/{version}/restore", post(policy_versions::restore))
        .route("/w/{ws}/policies/{id}/undo", post(policy::undo))
        .route("/w/{ws}/policies/{id}/delete", post(policy::delete))
}

/// `/w`: the member's first workspace, or the way to make one.
async fn home(State(state): State<DashboardState>, SignedIn(actor): SignedIn) -> Answer {
    let all = state.control().workspaces(&actor).await.map_err(refuse)?;
    let to =
        all.first().map_or_else(|| "/workspaces/new".to_owned(), |one| format!("/w/{}/", one.slug));
    Ok(redirect(&to))
}

/// 303.
pub(crate) fn redirect(to: &str) -> Response {
    Redirect::to(to).into_response()
}

//! One grant: what it may, what it did, its policy; rotating and revoking it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sluice_control::{
    Admin, Breakdown, CallsOf, ExceptionView, GrantPatch, GrantView, LimitsOf, Page, PolicyManager,
    PolicyView, ServerName, Viewer,
};
use sluice_domain::{CallRecord, GrantId, PolicyId, Role};
use sluice_web::Form;

use super::approvals::exceptions::state as exception_state;
use super::grant_new::{networks, token_page};
use super::grants::state;
use super::limit_rows::{LimitRows, trouble};
use super::server::find;
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::next::encode;
use crate::page;
use crate::ui::{Field, Select};

/// Limits that the page itself shows.
const MOST_LIMITS: usize = 10;

#[derive(Debug, Template)]
#[template(path = "ws/grant.html")]
struct GrantPage {
    frame: WsFrame,
    grant: GrantView,
    state: (&'static str, &'static str),
    now: DateTime<Utc>,
    path: String,
    server: (String, String),
    policy: Option<(String, String)>,
    problem: Option<String>,
    choose: Select,
    label: Field,
    networks: Field,
    observe: bool,
    calls: Vec<CallRecord>,
    did: Vec<(Breakdown, String)>,
    confirm: Field,
    /// Calls of it that pass without asking, for a while.
    exceptions: Vec<ExceptionView>,
    logs: String,
    trouble: Option<String>,
    limits: LimitRows,
    /// All of them, where this page shows only the nearest to their edge.
    all_limits: String,
}

impl GrantPage {
    #[expect(clippy::unused_self, reason = "the template calls it")]
    fn exception_state(&self, row: &ExceptionView) -> (&'static str, &'static str) {
        exception_state(row.state)
    }

    fn is_live(&self) -> bool {
        self.grant.revoked_at.is_none()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    networks: Option<String>,
    #[serde(default)]
    observe: Option<String>,
    #[serde(default)]
    revision: String,
}

/// The limits nearest to their edge, and what is wrong with the counters.
async fn limits_of<P: AsViewer>(
    desk: &Desk<P>,
    id: GrantId,
    servers: &[ServerName],
) -> Result<(LimitRows, Option<String>), Response> {
    let of = LimitsOf { grant: Some(id), ..LimitsOf::default() };
    let mut nearest = desk.control.nearest_limits(desk.viewer(), of).await.map_err(refuse)?;
    nearest.rows.truncate(MOST_LIMITS);
    let trouble = trouble(&desk.control, nearest.fault.is_some());
    let rows = LimitRows::new(desk, nearest.rows, servers, desk.path(&format!("/grants/{id}")));
    Ok((rows, trouble))
}

fn policy_choice(grant: &GrantView, typed: Option<&str>, policies: &[PolicyView]) -> Select {
    let attached = grant.policy_id.map(|id| id.to_string());
    let chosen = typed.or(attached.as_deref()).unwrap_or_default();
    let mut options: Vec<(String, String)> = policies
        .iter()
        .map(|one| (one.id.to_string(), format!("{}, version {}", one.name, one.version)))
        .collect();
    options.push((String::new(), "None: every call is refused".to_owned()));
    Select::new("policy", "Policy", options, chosen)
}

/// What it did, each line with the calls behind it.
async fn did<P: AsViewer>(
    desk: &Desk<P>,
    id: GrantId,
) -> Result<Vec<(Breakdown, String)>, Response> {
    let did = desk.control.grant_did(desk.viewer(), id).await.map_err(refuse)?;
    let with_link = |row: Breakdown| {
        let (tool, outcome) = (encode(&row.tool), row.outcome);
        let query = format!("grant={id}&tool={tool}&outcome={outcome}&kind=tools");
        let href = desk.path(&format!("/logs?{query}"));
        (row, href)
    };
    Ok(did.into_iter().map(with_link).collect())
}

async fn page<P: AsViewer>(desk: Desk<P>, id: &str, input: Input, faults: Faults) -> Answer {
    let id: GrantId = id.parse().map_err(|_| absent("grant"))?;
    let (control, viewer) = (&desk.control, desk.viewer());
    let grant = control.grant(viewer, id).await.map_err(refuse)?;
    let names = control.server_names(viewer).await.map_err(refuse)?;
    let (limits, trouble) = limits_of(&desk, id, &names).await?;
    let server = names
        .into_iter()
        .find(|one| one.id == grant.server_id)
        .map(|one| one.name)
        .unwrap_or_default();
    let policies = control
        .policies(viewer, Some(grant.server_id), Page::first(200))
        .await
        .map_err(refuse)?
        .items;
    let of = CallsOf { grant: Some(id), ..CallsOf::default() };
    let calls = control.calls(viewer, &of, Page::first(10)).await.map_err(refuse)?.items;
    let exceptions = control.exceptions(viewer, Some(id), false, Page::first(50)).await;
    let exceptions = exceptions.map_err(refuse)?.items;
    let attached = grant.policy_id.and_then(|id| policies.iter().find(|policy| policy.id == id));
    let mut choose = policy_choice(&grant, input.policy.as_deref(), &policies);
    choose.error = faults.at("/policy_id");
    let page = GrantPage {
        frame: desk.frame("grants").await?,
        state: state(&grant, desk.now),
        now: desk.now,
        path: desk.path(&format!("/grants/{id}")),
        server: (desk.path(&format!("/servers/{}", grant.server_id)), server),
        policy: attached
            .map(|policy| (desk.path(&format!("/policies/{}", policy.id)), policy.name.clone())),
        problem: faults.rest(&["/policy_id", "/label", "/networks", "/confirm"]),
        choose,
        label: Field::text("label", "Label")
            .value(input.label.unwrap_or_else(|| grant.label.clone()))
            .required()
            .max(80)
            .error(faults.at("/label")),
        networks: Field::area("networks", "Networks", 2)
            .value(input.networks.unwrap_or_else(|| grant.networks.join("\n")))
            .hint("Addresses or networks that may use it, one a line. Empty: any.")
            .error(faults.at("/networks")),
        observe: grant.observe,
        logs: desk.path(&format!("/logs?grant={id}")),
        all_limits: desk.path(&format!("/limits?grant={id}")),
        trouble,
        limits,
        did: did(&desk, id).await?,
        confirm: Field::text("confirm", &format!("Type {} to confirm", grant.label))
            .max(200)
            .required()
            .error(faults.at("/confirm")),
        calls,
        exceptions,
        grant,
    };
    Ok(page::private(status(&faults), &page))
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    page(desk, &id, Input::default(), Faults::none()).await
}

pub(crate) async fn edit(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<Input>,
) -> Answer {
    let grant: GrantId = id.parse().map_err(|_| absent("grant"))?;
    let policy = match input.policy.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(text) => {
            let Ok(policy) = text.parse::<PolicyId>() else {
                let faults = Faults::one("/policy_id", "This server has no such policy.");
                return page(desk, &id, input, faults).await;
            };
            Some(Some(policy))
        }
    };
    // What only an admin may change is sent by an admin's form alone.
    let admin = desk.may(Role::Admin);
    let patch = GrantPatch {
        policy,
        label: input.label.clone().filter(|_| admin),
        networks: input.networks.as_deref().filter(|_| admin).map(networks),
        observe: input.label.as_ref().filter(|_| admin).map(|_| input.observe.is_some()),
        expires_at: None,
    };
    let Ok(expected) = input.revision.parse().map(Some) else {
        let text = "Reload the page: the form is incomplete.";
        return page(desk, &id, input, Faults::one("/revision", text)).await;
    };
    match desk.control.edit_grant(&desk.who, grant, expected, patch).await {
        Ok(saved) => {
            let to = desk.path(&format!("/grants/{grant}"));
            Ok(flash::done(
                &to,
                &format!("Saved `{}`. It holds from the next call on.", saved.label),
            ))
        }
        Err(error) => page(desk, &id, input, Faults::of(error)?).await,
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RotateInput {
    #[serde(default)]
    overlap_hours: String,
}

pub(crate) async fn rotate(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<RotateInput>,
) -> Answer {
    let grant: GrantId = id.parse().map_err(|_| absent("grant"))?;
    let hours = input.overlap_hours.parse().ok().filter(|hours| (0..=720).contains(hours));
    let Some(hours) = hours else {
        let text =
            "The old token was not replaced: give 0 to 720 hours for which it goes on working.";
        return page(desk, &id, Input::default(), Faults::one("/overlap_hours", text)).await;
    };
    match desk.control.rotate_grant(&desk.who, grant, TimeDelta::hours(hours)).await {
        Ok(granted) => {
            let found = find(&desk, &granted.grant.server_id.to_string()).await?;
            token_page(desk, found, granted, "The grant's new token").await
        }
        Err(error) => page(desk, &id, Input::default(), Faults::of(error)?).await,
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RevokeInput {
    #[serde(default)]
    confirm: String,
}

pub(crate) async fn revoke(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<RevokeInput>,
) -> Answer {
    let grant: GrantId = id.parse().map_err(|_| absent("grant"))?;
    let label = desk.control.grant(desk.viewer(), grant).await.map_err(refuse)?.label;
    if input.confirm.trim() != label.trim() {
        let text = "The grant was not revoked: type its label exactly.";
        return page(desk, &id, Input::default(), Faults::one("/confirm", text)).await;
    }
    desk.control.revoke_grant(&desk.who, grant).await.map_err(refuse)?;
    Ok(flash::done(
        &desk.path(&format!("/grants/{grant}")),
        "Revoked. Its calls are refused within a second, and its open streams end.",
    ))
}

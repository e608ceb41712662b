//! `/start?server=…&tool=…`: the button of a public tool page. Carries the choice through sign-up, a
//! workspace and a connected server to the page that applies the rule.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use sluice_control::{
    Actor, Control, ControlError, JoinableView, Page, ServerView, Signup, Viewer, WorkspaceView,
};
use sluice_domain::ToolState;
use sluice_web::{Csrf, Form, MaybeActor, SignedIn};

use crate::DashboardState;
use crate::auth::{AuthFrame, choice};
use crate::desk::{Answer, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::next::{carry, encode, local, segment};
use crate::page;
use crate::routes::Routes;
use crate::ui::{Field, Steps};

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/start", get(start))
        .route("/workspaces/new", get(workspace_page).post(workspace))
}

/// What was chosen on a public page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Choice {
    #[serde(default)]
    pub(crate) server: String,
    #[serde(default)]
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) ws: String,
}

impl Choice {
    /// The same choice as an address.
    fn path(&self, ws: Option<&str>) -> String {
        let mut path = format!("/start?server={}", encode(&self.server));
        if !self.tool.is_empty() {
            path.push_str("&tool=");
            path.push_str(&encode(&self.tool));
        }
        if let Some(ws) = ws {
            path.push_str("&ws=");
            path.push_str(&encode(ws));
        }
        path
    }
}

#[derive(Debug, Template)]
#[template(path = "auth/choose.html")]
struct ChoosePage {
    frame: AuthFrame,
    title: &'static str,
    text: String,
    rows: Vec<(String, String, String)>,
}

/// The connected servers that have the tool; without a tool, those with the catalogue's address.
async fn having(
    control: &Control,
    viewer: &Viewer,
    choice: &Choice,
) -> Result<Vec<ServerView>, ControlError> {
    const MOST: u32 = 50;
    let servers = control.servers(viewer, Page::first(MOST)).await?.items;
    let mut found = Vec::new();
    for server in servers {
        let has = match control.tool(viewer, server.id, &choice.tool).await {
            Ok(tool) => tool.state != ToolState::Gone,
            Err(ControlError::NotFound(_)) => false,
            Err(other) => return Err(other),
        };
        if has {
            found.push(server);
        }
    }
    Ok(found)
}

fn apply_path(ws: &str, server: &ServerView, tool: &str) -> String {
    format!("/w/{ws}/servers/{}/tools/{}/apply", server.id, segment(tool))
}

/// The step after the workspace is known.
async fn onward(
    control: &Control,
    actor: &Actor,
    choice: &Choice,
    ws: &str,
    frame: AuthFrame,
) -> Answer {
    let viewer: Viewer = control.enter(actor, ws).await.map_err(refuse)?;
    let servers = if choice.tool.is_empty() {
        Vec::new()
    } else {
        having(control, &viewer, choice).await.map_err(refuse)?
    };
    let connect = format!(
        "/w/{ws}/servers/new?server={}&tool={}",
        encode(&choice.server),
        encode(&choice.tool)
    );
    match servers.as_slice() {
        [] => Ok(Redirect::to(&connect).into_response()),
        [only] => Ok(Redirect::to(&apply_path(ws, only, &choice.tool)).into_response()),
        several => {
            let mut rows: Vec<_> = several
                .iter()
                .map(|server| {
                    (
                        apply_path(ws, server, &choice.tool),
                        server.name.clone(),
                        server.upstream_url.clone(),
                    )
                })
                .collect();
            rows.push((connect, "Connect another server".to_owned(), String::new()));
            let page = ChoosePage {
                frame,
                title: "Which server?",
                text: format!("Several of your servers have a tool named `{}`.", choice.tool),
                rows,
            };
            Ok(page::private(StatusCode::OK, &page))
        }
    }
}

async fn start(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(choice): Query<Choice>,
) -> Answer {
    let control = state.control();
    let Some(actor) = actor else {
        let page = if control.settings().signup == Signup::Open { "/signup" } else { "/login" };
        return Ok(Redirect::to(&carry(page, Some(&choice.path(None)))).into_response());
    };
    let frame = AuthFrame::new(&headers, &uri, &csrf);
    let workspaces = control.workspaces(&actor).await.map_err(refuse)?;
    match workspaces.as_slice() {
        [] => {
            let next = carry("/workspaces/new", Some(&choice.path(None)));
            Ok(Redirect::to(&next).into_response())
        }
        [only] => onward(control, &actor, &choice, &only.slug, frame).await,
        several => match several.iter().find(|one| one.slug == choice.ws) {
            Some(one) => onward(control, &actor, &choice, &one.slug, frame).await,
            None => Ok(which_workspace(frame, &choice, several)),
        },
    }
}

fn which_workspace(frame: AuthFrame, choice: &Choice, several: &[WorkspaceView]) -> Response {
    let row =
        |one: &WorkspaceView| (choice.path(Some(&one.slug)), one.name.clone(), one.slug.clone());
    let page = ChoosePage {
        frame,
        title: "Which workspace?",
        text: "You are a member of several workspaces.".to_owned(),
        rows: several.iter().map(row).collect(),
    };
    page::private(StatusCode::OK, &page)
}

#[derive(Debug, Template)]
#[template(path = "auth/workspace.html")]
struct WorkspacePage {
    frame: AuthFrame,
    problem: Option<String>,
    name: Field,
    next: String,
    steps: Option<Steps>,
    first: bool,
    /// Workspaces that are there already and may be joined.
    joinable: Vec<JoinableView>,
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    name: String,
    #[serde(default)]
    next: String,
}

fn workspace_form(
    frame: AuthFrame,
    csrf: Csrf,
    input: &Input,
    faults: &Faults,
    (first, joinable): (bool, Vec<JoinableView>),
) -> Response {
    let next = local(&input.next);
    let page = WorkspacePage {
        frame,
        problem: faults.rest(&["/name"]),
        name: Field::text("name", "Name")
            .value(input.name.clone())
            .hint("A team, a product, a company. You can change it later.")
            .complete("organization")
            .required()
            .max(80)
            .focus()
            .error(faults.at("/name")),
        steps: choice(next).map(|mut steps| {
            steps.advance();
            steps
        }),
        next: next.unwrap_or_default().to_owned(),
        first,
        joinable,
    };
    (csrf, page::private(faults.status, &page)).into_response()
}

async fn workspace_page(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(input): Query<Input>,
) -> Answer {
    let first = state.control().workspaces(&actor).await.map_err(refuse)?.is_empty();
    let frame = AuthFrame::new(&headers, &uri, &csrf);
    let joinable = state.control().joinable(&actor).await.map_err(refuse)?;
    Ok(workspace_form(frame, csrf, &input, &Faults::none(), (first, joinable)))
}

async fn workspace(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    match state.control().create_workspace(&actor, &input.name).await {
        Ok(made) => {
            let to = match local(&input.next) {
                // The choice goes on in the workspace that was just made.
                Some(next) if next.starts_with("/start?") => format!("{next}&ws={}", made.slug),
                Some(next) => next.to_owned(),
                None => format!("/w/{}/", made.slug),
            };
            Ok(Redirect::to(&to).into_response())
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            let frame = AuthFrame::new(&headers, &uri, &csrf);
            Ok(workspace_form(frame, csrf, &input, &faults, (false, Vec::new())))
        }
    }
}

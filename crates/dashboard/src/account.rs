//! `/account`: name, password, and where the account is signed in.

pub(crate) mod passkeys;
pub(crate) mod second_factor;

use askama::Template;
use axum::extract::{FromRef, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum_extra::extract::CookieJar;
use chrono::{DateTime, Utc};
use http::{HeaderMap, StatusCode, Uri};
use secrecy::SecretString;
use serde::Deserialize;
use sluice_control::{
    Actor, ClosedView, IdentityView, JoinableView, LoginView, SecondFactorView, WorkspaceView,
};
use sluice_domain::WorkspaceId;
use sluice_web::{Csrf, Form, SignedIn, WebState, start_flow};

use crate::DashboardState;
use crate::auth::AuthFrame;
use crate::desk::{Answer, absent, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::routes::Routes;
use crate::ui::Field;
use crate::ui::text::count;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/account", get(show))
        .route("/account/name", post(rename))
        .route("/account/password", post(password))
        .route("/account/sessions/{id}/end", post(end))
        .route("/account/sessions/end-others", post(end_others))
        .route("/account/workspaces/{id}/restore", post(restore))
        .route("/account/join/{id}", post(join))
        .route("/account/link-provider", post(link))
        .route("/account/identities/{id}/unlink", post(unlink))
}

#[derive(Debug, Template)]
#[template(path = "auth/account.html")]
struct AccountPage {
    frame: AuthFrame,
    email: String,
    problem: Option<String>,
    name: Field,
    passwords: [Field; 2],
    logins: Vec<LoginView>,
    workspaces: Vec<WorkspaceView>,
    closed: Vec<ClosedView>,
    joinable: Vec<JoinableView>,
    factor: SecondFactorView,
    identities: Vec<IdentityView>,
    /// Providers that can be linked, each its name and label.
    linkable: Vec<(String, String)>,
    link_password: Field,
    /// Whether the address is to be confirmed.
    unconfirmed: bool,
    now: DateTime<Utc>,
}

impl AccountPage {
    fn others(&self) -> bool {
        self.logins.len() > 1
    }

    fn codes_left(&self) -> String {
        second_factor::codes_left(self.factor.codes_left)
    }
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    old_password: String,
    #[serde(default)]
    new_password: String,
}

struct Asked {
    state: DashboardState,
    actor: Actor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
}

async fn form(asked: Asked, input: &Input, faults: &Faults) -> Answer {
    let Asked { state, actor, csrf, headers, uri } = asked;
    let logins = state.control().logins(&actor).await.map_err(refuse)?;
    let workspaces = state.control().workspaces(&actor).await.map_err(refuse)?;
    let closed = state.control().closed_workspaces(&actor).await.map_err(refuse)?;
    let joinable = state.control().joinable(&actor).await.map_err(refuse)?;
    let factor = state.control().second_factor(&actor).await.map_err(refuse)?;
    let identities = state.control().identities(&actor).await.map_err(refuse)?;
    let linkable = linkable(&state, &identities);
    let unconfirmed =
        state.control().can_mail() && !state.control().is_verified(&actor).await.map_err(refuse)?;
    let page = AccountPage {
        frame: AuthFrame::new(&headers, &uri, &csrf),
        problem: faults.rest(&["/name", "/old_password", "/new_password", "/password"]),
        name: Field::text("name", "Name")
            .value(input.name.clone().unwrap_or(actor.name))
            .complete("name")
            .max(80)
            .error(faults.at("/name")),
        passwords: [
            Field::new("password", "old_password", "Present password")
                .complete("current-password")
                .required()
                .error(faults.at("/old_password")),
            Field::new("password", "new_password", "New password")
                .hint("At least 10 characters. Every other session of yours ends.")
                .complete("new-password")
                .required()
                .error(faults.at("/new_password")),
        ],
        email: actor.email,
        logins,
        workspaces,
        closed,
        joinable,
        factor,
        identities,
        linkable,
        link_password: Field::new("password", "password", "Your password")
            .complete("current-password")
            .required()
            .error(faults.at("/password")),
        unconfirmed,
        now: state.control().now(),
    };
    Ok((csrf, page::private(faults.status, &page)).into_response())
}

/// Providers that the account is not linked to.
fn linkable(state: &DashboardState, identities: &[IdentityView]) -> Vec<(String, String)> {
    let providers = state.control().providers().iter();
    let free = providers.filter(|one| !identities.iter().any(|it| it.issuer == one.issuer));
    free.map(|one| (one.name.clone(), one.label.clone())).collect()
}

async fn show(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let asked = Asked { state, actor, csrf, headers, uri };
    form(asked, &Input::default(), &Faults::none()).await
}

async fn rename(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let name = input.name.clone().unwrap_or_default();
    match state.control().rename_account(&actor, &name).await {
        Ok(()) => Ok(flash::done("/account", "Saved your name.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            form(Asked { state, actor, csrf, headers, uri }, &input, &faults).await
        }
    }
}

async fn password(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let (old, new) = (
        SecretString::from(input.old_password.clone()),
        SecretString::from(input.new_password.clone()),
    );
    match state.control().change_password(&actor, old, new).await {
        Ok(()) => {
            let said = "Changed your password. Every other session of yours has ended.";
            Ok(flash::done("/account", said))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            let input = Input::default();
            form(Asked { state, actor, csrf, headers, uri }, &input, &faults).await
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct LinkInput {
    #[serde(default)]
    provider: String,
    #[serde(default)]
    password: String,
}

/// The way to the provider is a link of its own: browsers follow no form to another site from here.
#[derive(Debug, Template)]
#[template(path = "auth/link_provider.html")]
struct LinkPage {
    frame: AuthFrame,
    label: String,
    url: String,
}

async fn link(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<LinkInput>,
) -> Answer {
    let (control, password) = (state.control().clone(), SecretString::from(input.password));
    match control.begin_link(&actor, &input.provider, password).await {
        Ok(flow) => {
            let jar = CookieJar::from_headers(&headers);
            let jar = start_flow(&WebState::from_ref(&state), jar, &flow);
            let provider = control.providers().iter().find(|one| one.name == input.provider);
            let page = LinkPage {
                frame: AuthFrame::new(&headers, &uri, &csrf),
                label: provider.map(|one| one.label.clone()).unwrap_or_default(),
                url: flow.url,
            };
            Ok((jar, csrf, page::private(StatusCode::OK, &page)).into_response())
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            form(Asked { state, actor, csrf, headers, uri }, &Input::default(), &faults).await
        }
    }
}

async fn unlink(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Path(id): Path<String>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id = id.parse().map_err(|_| absent("identity"))?;
    match state.control().unlink_identity(&actor, id).await {
        Ok(()) => Ok(flash::done("/account", "Unlinked. It signs you in no more.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            form(Asked { state, actor, csrf, headers, uri }, &Input::default(), &faults).await
        }
    }
}

#[derive(Debug, Deserialize)]
struct Nothing {}

async fn end(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Path(id): Path<String>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id = id.parse().map_err(|_| absent("login"))?;
    state.control().end_login(&actor, id).await.map_err(refuse)?;
    Ok(flash::done("/account", "Ended the session."))
}

async fn end_others(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Form(Nothing {}): Form<Nothing>,
) -> Result<Response, Response> {
    let ended = state.control().end_other_logins(&actor).await.map_err(refuse)?;
    let ended = count(usize::try_from(ended).unwrap_or(usize::MAX), "other session", None);
    Ok(flash::done("/account", &format!("Ended {ended}.")))
}

async fn restore(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Path(id): Path<String>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: WorkspaceId = id.parse().map_err(|_| absent("deleted workspace"))?;
    let slug = state.control().restore_workspace(&actor, id).await.map_err(refuse)?;
    Ok(flash::done(&format!("/w/{slug}/"), "Restored the workspace. Its grants work again."))
}

async fn join(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Path(id): Path<String>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: WorkspaceId = id.parse().map_err(|_| absent("workspace"))?;
    let slug = state.control().join_by_domain(&actor, id).await.map_err(refuse)?;
    Ok(flash::done(&format!("/w/{slug}/"), "You are a member now."))
}

//! Signing up, in and out. Where somebody was going is carried along in `next`.

pub(crate) mod code;
pub(crate) mod links;
pub(crate) mod passkey;
pub(crate) mod providers;

use askama::Template;
use axum::extract::{FromRef, Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum_extra::extract::CookieJar;
use http::{HeaderMap, StatusCode, Uri};
use secrecy::SecretString;
use serde::Deserialize;
use sluice_control::{Entry, InviteCard, Origin, SignUp, SignedUp, Signup};
use sluice_web::{
    ClientAddress, Csrf, Form, MaybeActor, SignedIn, UserAgent, WebState, end_session, start_half,
    start_session,
};

use crate::DashboardState;
use crate::desk::{Answer, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::frame::Head;
use crate::next::{carry, local};
use crate::page;
use crate::routes::Routes;
use crate::ui::{Field, Flash, Steps};
use providers::{ProviderLink, links};

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/signup", get(signup_page).post(signup))
        .route("/login", get(login_page).post(login))
        .route("/logout", post(logout).get(logout_page))
        .route("/join/{token}", get(join_page).post(join))
}

/// The frame of a page with one form in the middle.
#[derive(Debug, Clone)]
pub(crate) struct AuthFrame {
    pub(crate) head: Head,
    pub(crate) csrf: String,
    pub(crate) flash: Option<Flash>,
}

impl AuthFrame {
    pub(crate) fn new(headers: &HeaderMap, uri: &Uri, csrf: &Csrf) -> Self {
        Self {
            head: Head::new(headers, uri),
            csrf: csrf.token.clone(),
            flash: flash::read(headers),
        }
    }
}

/// What the choice carried in `next` is, in words, so that it is seen to survive.
pub(crate) fn choice(next: Option<&str>) -> Option<Steps> {
    let query = next?.strip_prefix("/start?")?;
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).ok()?;
    let value =
        |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let server = crate::catalogue::server(value("server")?)?;
    let tool = value("tool").and_then(|name| server.tool(name));
    let tool = tool.map_or("the tools you choose", |tool| tool.definition.name.as_str());
    Some(Steps::path(0, &server.entry.owner_name, tool))
}

#[derive(Debug, Template)]
#[template(path = "auth/signup.html")]
struct SignupPage {
    frame: AuthFrame,
    problem: Option<String>,
    closed: Option<&'static str>,
    fields: [Field; 3],
    next: String,
    invite: String,
    login: String,
    providers: Vec<ProviderLink>,
    steps: Option<Steps>,
}

#[derive(Debug, Template)]
#[template(path = "auth/login.html")]
struct LoginPage {
    frame: AuthFrame,
    problem: Option<String>,
    fields: [Field; 2],
    next: String,
    signup: Option<String>,
    /// Whether a link can be mailed.
    mails: bool,
    providers: Vec<ProviderLink>,
    /// The script of passkeys, where browsers make some.
    passkey: Option<String>,
    steps: Option<Steps>,
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    email: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    next: String,
    #[serde(default)]
    invite: String,
}

/// What a browser sends with a page of this kind.
struct Asked {
    headers: HeaderMap,
    uri: Uri,
    csrf: Csrf,
}

fn signup_form(state: &DashboardState, asked: Asked, input: &Input, faults: &Faults) -> Response {
    let next = local(&input.next);
    let frame = AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf);
    let closed = match state.control().settings().signup {
        _ if !input.invite.is_empty() => None,
        Signup::Open => None,
        Signup::Invite => {
            Some("Signing up needs an invitation. Ask an admin of a workspace for its link.")
        }
        Signup::Closed => Some("The operator of this Sluice makes the accounts. Ask them for one."),
    };
    let page = SignupPage {
        problem: faults.rest(&["/email", "/password", "/name"]),
        closed,
        fields: [
            Field::new("email", "email", "E-mail")
                .value(input.email.clone())
                .complete("email")
                .required()
                .max(254)
                .focus()
                .error(faults.at("/email")),
            Field::new("password", "password", "Password")
                .hint("At least 10 characters. A password manager's is best.")
                .complete("new-password")
                .required()
                .error(faults.at("/password")),
            Field::text("name", "Your name")
                .value(input.name.clone())
                .hint("Shown to the others in your workspace.")
                .complete("name")
                .max(80)
                .error(faults.at("/name")),
        ],
        login: carry("/login", next),
        providers: links(state, next),
        steps: choice(next),
        next: next.unwrap_or_default().to_owned(),
        invite: input.invite.clone(),
        frame,
    };
    (asked.csrf, page::private(faults.status, &page)).into_response()
}

/// The script of passkeys, where browsers make some for the public URL.
fn passkey_script(state: &DashboardState) -> Option<String> {
    state.control().passkey_site().map(|_| crate::assets::url("passkey.js"))
}

fn login_form(state: &DashboardState, asked: Asked, input: &Input, faults: &Faults) -> Response {
    let next = local(&input.next);
    let open = state.control().settings().signup == Signup::Open;
    let page = LoginPage {
        frame: AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf),
        problem: faults.rest(&["/email", "/password"]),
        fields: [
            Field::new("email", "email", "E-mail")
                .value(input.email.clone())
                .complete("username")
                .required()
                .max(254)
                .focus()
                .error(faults.at("/email")),
            Field::new("password", "password", "Password")
                .complete("current-password")
                .required()
                .error(faults.at("/password")),
        ],
        signup: open.then(|| carry("/signup", next)),
        mails: state.control().can_mail(),
        passkey: passkey_script(state),
        providers: links(state, next),
        steps: choice(next),
        next: next.unwrap_or_default().to_owned(),
    };
    (asked.csrf, page::private(faults.status, &page)).into_response()
}

/// The same for every address: what is to be done next is in the mail.
#[derive(Debug, Template)]
#[template(path = "auth/mailed.html")]
struct MailedPage {
    frame: AuthFrame,
    email: String,
}

/// Where somebody who has just signed in goes.
fn onward(next: &str) -> &str {
    local(next).unwrap_or("/w")
}

async fn signup_page(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(input): Query<Input>,
) -> Response {
    if actor.is_some() {
        return Redirect::to(onward(&input.next)).into_response();
    }
    let input = Input { password: String::new(), ..input };
    signup_form(&state, Asked { headers, uri, csrf }, &input, &Faults::none())
}

async fn login_page(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(input): Query<Input>,
) -> Response {
    if actor.is_some() {
        return Redirect::to(onward(&input.next)).into_response();
    }
    login_form(&state, Asked { headers, uri, csrf }, &input, &Faults::none())
}

fn origin(address: ClientAddress, agent: UserAgent) -> Origin {
    Origin { address: address.to_string(), user_agent: agent.0 }
}

/// Signs the browser in and leads on, or asks for the second factor first.
fn enter(state: &DashboardState, headers: &HeaderMap, entry: &Entry, to: &str) -> Response {
    let (web, jar) = (WebState::from_ref(state), CookieJar::from_headers(headers));
    match entry {
        Entry::In(login) => (start_session(&web, jar, login), Redirect::to(to)).into_response(),
        Entry::Half(half) => {
            let code = carry("/login/code", local(to));
            (start_half(&web, jar, half), Redirect::to(&code)).into_response()
        }
    }
}

async fn signup(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let form = SignUp {
        email: input.email.clone(),
        password: SecretString::from(input.password.clone()),
        name: input.name.clone(),
        invite: (!input.invite.is_empty()).then(|| SecretString::from(input.invite.clone())),
        next: local(&input.next).unwrap_or_default().to_owned(),
    };
    match state.control().sign_up(form, &origin(address, agent)).await {
        Ok(SignedUp::In(login)) => Ok(enter(&state, &headers, &login, onward(&input.next))),
        Ok(SignedUp::Mailed) => {
            let page = MailedPage {
                frame: AuthFrame::new(&headers, &uri, &csrf),
                email: input.email.trim().to_owned(),
            };
            Ok((csrf, page::private(StatusCode::OK, &page)).into_response())
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            Ok(signup_form(&state, Asked { headers, uri, csrf }, &input, &faults))
        }
    }
}

async fn login(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let password = SecretString::from(input.password.clone());
    match state.control().log_in(&input.email, password, &origin(address, agent)).await {
        Ok(login) => Ok(enter(&state, &headers, &login, onward(&input.next))),
        Err(error) => {
            let faults = Faults::of(error)?;
            Ok(login_form(&state, Asked { headers, uri, csrf }, &input, &faults))
        }
    }
}

async fn logout_page() -> Redirect {
    Redirect::to("/account")
}

#[derive(Debug, Deserialize)]
struct Nothing {}

async fn logout(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    headers: HeaderMap,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    state.control().log_out(&actor).await.map_err(refuse)?;
    let jar = end_session(&WebState::from_ref(&state), CookieJar::from_headers(&headers));
    Ok((jar, flash::done("/login", "Signed out. The session has ended here and on the server."))
        .into_response())
}

#[derive(Debug, Template)]
#[template(path = "auth/join.html")]
struct JoinPage {
    frame: AuthFrame,
    card: InviteCard,
    signed_in: Option<String>,
    token: String,
    login: String,
}

async fn join_page(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Path(token): Path<String>,
) -> Answer {
    let card = state.control().invite_card(&SecretString::from(token.clone())).await;
    let card = card.map_err(refuse)?;
    let page = JoinPage {
        frame: AuthFrame::new(&headers, &uri, &csrf),
        card,
        signed_in: actor.map(|actor| actor.email),
        login: carry("/login", Some(&format!("/join/{}", crate::next::segment(&token)))),
        token,
    };
    Ok((csrf, page::private(StatusCode::OK, &page)).into_response())
}

async fn join(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Path(token): Path<String>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let joined = state.control().accept_invite(&actor, &SecretString::from(token)).await;
    let slug = joined.map_err(refuse)?;
    Ok(flash::done(&format!("/w/{slug}/"), "You are a member now."))
}

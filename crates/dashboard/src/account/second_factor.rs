//! `/account/second-factor`: the authenticator app set up, recovery codes renewed, all of it turned off.
//! Secrets stand only in answers to POST, which no browser keeps.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, Uri};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sluice_control::{Actor, Enrolment, SecondFactorView};
use sluice_web::{Csrf, Form, SignedIn};

use crate::DashboardState;
use crate::auth::AuthFrame;
use crate::desk::{Answer, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::routes::Routes;
use crate::ui::text::count;
use crate::ui::{Field, Html, qr};

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/account/second-factor", get(show))
        .route("/account/second-factor/begin", post(begin))
        .route("/account/second-factor/confirm", post(confirm))
        .route("/account/second-factor/codes", post(renew))
        .route("/account/second-factor/end", post(end))
}

/// How many recovery codes are left, as a sentence.
pub(crate) fn codes_left(left: i64) -> String {
    match left {
        0 => "No recovery code is left: make new ones.".to_owned(),
        left => {
            let codes = count(usize::try_from(left).unwrap_or_default(), "recovery code", None);
            format!("{codes} left.")
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "auth/second_factor.html")]
struct FactorPage {
    frame: AuthFrame,
    problem: Option<String>,
    view: SecondFactorView,
    password: Field,
    renew_code: Field,
    end_code: Field,
}

impl FactorPage {
    fn codes_left(&self) -> String {
        codes_left(self.view.codes_left)
    }
}

#[derive(Debug, Template)]
#[template(path = "auth/second_factor_begun.html")]
struct BegunPage {
    frame: AuthFrame,
    problem: Option<String>,
    picture: Option<Html>,
    /// In groups of four, for people who type it.
    secret: String,
    uri: String,
    code: Field,
}

#[derive(Debug, Template)]
#[template(path = "auth/recovery_codes.html")]
pub(super) struct CodesPage {
    pub(super) frame: AuthFrame,
    pub(super) codes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    password: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    renew_code: String,
    #[serde(default)]
    end_code: String,
}

struct Asked {
    state: DashboardState,
    actor: Actor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
}

impl Asked {
    fn frame(&self) -> AuthFrame {
        AuthFrame::new(&self.headers, &self.uri, &self.csrf)
    }
}

fn code(name: &str, hint: &'static str) -> Field {
    Field::text(name, "Code").hint(hint).complete("one-time-code").code().required().max(40)
}

/// Which of the page's two codes an error belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Renewing,
    Ending,
}

async fn form(asked: Asked, of: Of, faults: &Faults) -> Answer {
    const HINT: &str = "From your app, or a recovery code.";
    let view = asked.state.control().second_factor(&asked.actor).await.map_err(refuse)?;
    let error = |one| if one == of { faults.at("/code") } else { None };
    let page = FactorPage {
        frame: asked.frame(),
        problem: faults.rest(&["/password", "/code"]),
        view,
        password: Field::new("password", "password", "Your password")
            .complete("current-password")
            .required()
            .error(faults.at("/password")),
        renew_code: code("renew_code", HINT).error(error(Of::Renewing)),
        end_code: code("end_code", HINT).error(error(Of::Ending)),
    };
    Ok((asked.csrf, page::private(faults.status, &page)).into_response())
}

fn begun(asked: Asked, enrolment: &Enrolment, faults: &Faults) -> Response {
    let secret = enrolment.secret.expose_secret();
    let groups: Vec<&str> =
        (0..secret.len()).step_by(4).filter_map(|at| secret.get(at..at + 4)).collect();
    let uri = enrolment.uri.expose_secret();
    let page = BegunPage {
        frame: asked.frame(),
        problem: faults.rest(&["/code"]),
        picture: qr::svg(uri, "QR code with the secret for your authenticator app"),
        secret: groups.join(" "),
        uri: uri.to_owned(),
        code: code("code", "The six digits that the app shows now.")
            .focus()
            .error(faults.at("/code")),
    };
    (asked.csrf, page::private(faults.status, &page)).into_response()
}

fn shown_once(asked: Asked, codes: &[SecretString]) -> Response {
    let page = CodesPage {
        frame: asked.frame(),
        codes: codes.iter().map(|code| code.expose_secret().to_owned()).collect(),
    };
    (asked.csrf, page::private(StatusCode::OK, &page)).into_response()
}

async fn show(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    form(Asked { state, actor, csrf, headers, uri }, Of::Ending, &Faults::none()).await
}

async fn begin(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let control = state.control().clone();
    let asked = Asked { state, actor, csrf, headers, uri };
    match control.begin_second_factor(&asked.actor, SecretString::from(input.password)).await {
        Ok(enrolment) => Ok(begun(asked, &enrolment, &Faults::none())),
        Err(error) => form(asked, Of::Ending, &Faults::of(error)?).await,
    }
}

async fn confirm(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let control = state.control().clone();
    let asked = Asked { state, actor, csrf, headers, uri };
    match control.confirm_second_factor(&asked.actor, &SecretString::from(input.code)).await {
        Ok(codes) => Ok(shown_once(asked, &codes)),
        Err(error) => {
            let faults = Faults::of(error)?;
            match control.begun_second_factor(&asked.actor).await {
                Ok(enrolment) => Ok(begun(asked, &enrolment, &faults)),
                Err(_) => form(asked, Of::Ending, &faults).await,
            }
        }
    }
}

async fn renew(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let control = state.control().clone();
    let asked = Asked { state, actor, csrf, headers, uri };
    match control.renew_recovery_codes(&asked.actor, &SecretString::from(input.renew_code)).await {
        Ok(codes) => Ok(shown_once(asked, &codes)),
        Err(error) => form(asked, Of::Renewing, &Faults::of(error)?).await,
    }
}

async fn end(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let control = state.control().clone();
    let asked = Asked { state, actor, csrf, headers, uri };
    match control.end_second_factor(&asked.actor, &SecretString::from(input.end_code)).await {
        Ok(()) => Ok(flash::done("/account", "Two-step sign-in is off.")),
        Err(error) => form(asked, Of::Ending, &Faults::of(error)?).await,
    }
}

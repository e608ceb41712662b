//! The second step of signing in: a code from the app, or a recovery code.

use askama::Template;
use axum::extract::{FromRef, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, Uri};
use secrecy::SecretString;
use serde::Deserialize;
use sluice_control::{ControlError, Entry};
use sluice_web::{ClientAddress, Csrf, Form, MaybeActor, UserAgent, WebState, half_token};

use super::{Asked, AuthFrame, enter, onward, origin, passkey_script};
use crate::DashboardState;
use crate::desk::Answer;
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::next::{carry, local};
use crate::page;
use crate::routes::Routes;
use crate::ui::{Field, Tone};

pub(crate) fn routes() -> Routes {
    Routes::new().route("/login/code", get(show).post(send))
}

#[derive(Debug, Template)]
#[template(path = "auth/code.html")]
struct CodePage {
    frame: AuthFrame,
    problem: Option<String>,
    code: Field,
    next: String,
    passkey: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    code: String,
    #[serde(default)]
    next: String,
}

fn form(state: &DashboardState, asked: Asked, next: &str, faults: &Faults) -> Response {
    let page = CodePage {
        frame: AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf),
        problem: faults.rest(&["/code"]),
        code: Field::text("code", "Code")
            .hint("Six digits from your authenticator app, or one of your recovery codes.")
            .complete("one-time-code")
            .code()
            .required()
            .max(40)
            .focus()
            .error(faults.at("/code")),
        next: local(next).unwrap_or_default().to_owned(),
        passkey: passkey_script(state),
    };
    (asked.csrf, page::private(faults.status, &page)).into_response()
}

async fn show(
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
    if half_token(&WebState::from_ref(&state), &headers).is_none() {
        return Redirect::to(&carry("/login", local(&input.next))).into_response();
    }
    form(&state, Asked { headers, uri, csrf }, &input.next, &Faults::none())
}

async fn send(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let again = carry("/login", local(&input.next));
    let Some(token) = half_token(&WebState::from_ref(&state), &headers) else {
        return Ok(Redirect::to(&again).into_response());
    };
    let (code, from) = (SecretString::from(input.code), origin(address, agent));
    match state.control().finish_login(&token, &code, &from).await {
        Ok(login) => Ok(enter(&state, &headers, &Entry::In(login), onward(&input.next))),
        Err(error @ ControlError::Unauthenticated { .. }) => {
            Ok(flash::redirect(&again, Tone::Warn, &sentence(&error.to_string())))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            Ok(form(&state, Asked { headers, uri, csrf }, &input.next, &faults))
        }
    }
}

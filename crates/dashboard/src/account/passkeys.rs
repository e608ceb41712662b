//! `/account/passkeys`: passkeys listed, made and taken away. What a browser asks an authenticator is the
//! work of `static/passkey.js`.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, Uri};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sluice_control::{Actor, PasskeyRegistration, PasskeyView, SecondFactorView};
use sluice_domain::PasskeyId;
use sluice_web::{Csrf, Form, SignedIn};

use super::second_factor::CodesPage;
use crate::DashboardState;
use crate::auth::AuthFrame;
use crate::desk::{Answer, absent, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::routes::Routes;
use crate::ui::Field;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/account/passkeys", get(show).post(finish))
        .route("/account/passkeys/begin", post(begin))
        .route("/account/passkeys/{id}/remove", post(remove))
}

#[derive(Debug, Template)]
#[template(path = "auth/passkeys.html")]
struct PasskeysPage {
    frame: AuthFrame,
    problem: Option<String>,
    rows: Vec<PasskeyView>,
    factor: SecondFactorView,
    /// Where browsers make no passkeys: the public URL.
    impossible: Option<String>,
    name: Field,
    password: Field,
    now: chrono::DateTime<chrono::Utc>,
}

/// One touch of the authenticator is left to do.
#[derive(Debug, Template)]
#[template(path = "auth/passkey_begun.html")]
struct BegunPage {
    frame: AuthFrame,
    name: String,
    /// What the browser is to ask, as JSON.
    question: String,
    script: String,
}

#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
}

struct Asked {
    state: DashboardState,
    actor: Actor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
}

async fn form(asked: Asked, input: Input, faults: &Faults) -> Answer {
    let control = asked.state.control();
    let impossible =
        control.passkey_site().is_none().then(|| control.settings().public_url.to_string());
    let page = PasskeysPage {
        frame: AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf),
        problem: faults.rest(&["/name", "/password"]),
        rows: control.passkeys(&asked.actor).await.map_err(refuse)?,
        factor: control.second_factor(&asked.actor).await.map_err(refuse)?,
        impossible,
        name: Field::text("name", "Name")
            .value(input.name)
            .hint("So that you know it again: the device, or where it is kept.")
            .complete("off")
            .max(80)
            .error(faults.at("/name")),
        password: Field::new("password", "password", "Your password")
            .complete("current-password")
            .required()
            .error(faults.at("/password")),
        now: control.now(),
    };
    Ok((asked.csrf, page::private(faults.status, &page)).into_response())
}

async fn show(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    form(Asked { state, actor, csrf, headers, uri }, Input::default(), &Faults::none()).await
}

async fn begin(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let password = SecretString::from(input.password.clone());
    match state.control().begin_passkey(&actor, password).await {
        Ok(question) => {
            let page = BegunPage {
                frame: AuthFrame::new(&headers, &uri, &csrf),
                name: input.name,
                question: serde_json::to_string(&question).unwrap_or_default(),
                script: crate::assets::url("passkey.js"),
            };
            Ok((csrf, page::private(StatusCode::OK, &page)).into_response())
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            form(Asked { state, actor, csrf, headers, uri }, input, &faults).await
        }
    }
}

async fn finish(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(registration): Form<PasskeyRegistration>,
) -> Answer {
    match state.control().finish_passkey(&actor, &registration).await {
        Ok(codes) if codes.is_empty() => Ok(flash::done("/account/passkeys", "Added the passkey.")),
        Ok(codes) => {
            let page = CodesPage {
                frame: AuthFrame::new(&headers, &uri, &csrf),
                codes: codes.iter().map(|code| code.expose_secret().to_owned()).collect(),
            };
            Ok((csrf, page::private(StatusCode::OK, &page)).into_response())
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            let input = Input { name: registration.name, ..Input::default() };
            form(Asked { state, actor, csrf, headers, uri }, input, &faults).await
        }
    }
}

async fn remove(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    csrf: Csrf,
    (headers, uri): (HeaderMap, Uri),
    Path(id): Path<String>,
    Form(input): Form<Input>,
) -> Answer {
    let id: PasskeyId = id.parse().map_err(|_| absent("passkey"))?;
    let password = SecretString::from(input.password);
    match state.control().remove_passkey(&actor, id, password).await {
        Ok(()) => {
            Ok(flash::done("/account/passkeys", "Took the passkey away. It signs you in no more."))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            form(Asked { state, actor, csrf, headers, uri }, Input::default(), &faults).await
        }
    }
}

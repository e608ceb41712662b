//! Signing in by a passkey: as the second step of somebody who is half in, or alone.

use axum::Json;
use axum::extract::{FromRef, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::HeaderMap;
use serde::Deserialize;
use sluice_control::{ControlError, Entry, PasskeyAnswer, PasskeyQuestion};
use sluice_web::{ClientAddress, Form, Problem, UserAgent, WebState, half_token};

use super::{enter, onward, origin};
use crate::DashboardState;
use crate::desk::{Answer, refuse};
use crate::faults::sentence;
use crate::flash;
use crate::next::{carry, local};
use crate::routes::Routes;
use crate::ui::Tone;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/login/passkey", post(finish))
        .route("/login/passkey/question", post(question))
}

#[derive(Debug, Deserialize)]
struct Going {
    /// As the second step, or alone.
    #[serde(default)]
    step: String,
    #[serde(default)]
    next: String,
    #[serde(flatten)]
    answer: PasskeyAnswer,
}

impl Going {
    fn is_second(&self) -> bool {
        self.step == "second"
    }
}

async fn question(
    State(state): State<DashboardState>,
    (address, agent): (ClientAddress, UserAgent),
    headers: HeaderMap,
    Form(going): Form<Going>,
) -> Result<Json<PasskeyQuestion>, Response> {
    let half = half_token(&WebState::from_ref(&state), &headers).filter(|_| going.is_second());
    let from = origin(address, agent);
    let question = state.control().begin_passkey_login(half.as_ref(), &from).await;
    question.map(Json).map_err(|error| Problem::from(error).into_response())
}

async fn finish(
    State(state): State<DashboardState>,
    (address, agent): (ClientAddress, UserAgent),
    headers: HeaderMap,
    Form(going): Form<Going>,
) -> Answer {
    let half = half_token(&WebState::from_ref(&state), &headers).filter(|_| going.is_second());
    let from = origin(address, agent);
    match state.control().finish_passkey_login(half.as_ref(), &going.answer, &from).await {
        Ok(login) => Ok(enter(&state, &headers, &Entry::In(login), onward(&going.next))),
        Err(
            error @ (ControlError::Unauthenticated { .. }
            | ControlError::TooMany { .. }
            | ControlError::Conflict { .. }),
        ) => {
            let back = if half.is_some() { "/login/code" } else { "/login" };
            let to = carry(back, local(&going.next));
            Ok(flash::redirect(&to, Tone::Bad, &sentence(&error.to_string())))
        }
        Err(error) => Err(refuse(error)),
    }
}

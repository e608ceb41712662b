//! Signing in by an identity provider. Going there is a plain link: it changes nothing but a cookie, and
//! the answer is taken only from the browser that has it.

use axum::extract::{FromRef, Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum_extra::extract::CookieJar;
use http::HeaderMap;
use serde::Deserialize;
use sluice_control::{ControlError, ProviderAnswer, ProviderOutcome};
use sluice_web::{
    ClientAddress, MaybeActor, UserAgent, WebState, end_flow, flow_cookie, start_flow,
};

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
        .route("/login/with/{provider}", get(begin))
        .route("/login/with/{provider}/callback", get(finish))
}

/// A provider's button.
#[derive(Debug)]
pub(crate) struct ProviderLink {
    pub(crate) label: String,
    pub(crate) href: String,
}

/// The buttons of all providers.
pub(super) fn links(state: &DashboardState, next: Option<&str>) -> Vec<ProviderLink> {
    let link = |one: &sluice_control::Provider| ProviderLink {
        label: one.label.clone(),
        href: carry(&format!("/login/with/{}", one.name), next),
    };
    state.control().providers().iter().map(link).collect()
}

#[derive(Debug, Default, Deserialize)]
struct Going {
    #[serde(default)]
    next: String,
}

/// What stands in the way, told where one signs in.
fn told(error: ControlError, to: &str) -> Answer {
    match error {
        ControlError::Internal(_) | ControlError::Unavailable(_) | ControlError::NotFound(_) => {
            Err(refuse(error))
        }
        error => Ok(flash::redirect(to, Tone::Bad, &sentence(&error.to_string()))),
    }
}

/// Also for somebody who is signed in another way: a workspace may ask for the provider.
async fn begin(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    headers: HeaderMap,
    Path(provider): Path<String>,
    Query(going): Query<Going>,
) -> Answer {
    let (next, from) = (local(&going.next), origin(address, agent));
    match state.control().begin_with_provider(&provider, next.unwrap_or_default(), &from).await {
        Ok(flow) => {
            let jar = CookieJar::from_headers(&headers);
            let jar = start_flow(&WebState::from_ref(&state), jar, &flow);
            Ok((jar, Redirect::to(&flow.url)).into_response())
        }
        Err(error) => told(error, &carry("/login", next)),
    }
}

async fn finish(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    (address, agent): (ClientAddress, UserAgent),
    headers: HeaderMap,
    Path(provider): Path<String>,
    Query(answer): Query<ProviderAnswer>,
) -> Answer {
    let web = WebState::from_ref(&state);
    let (cookie, from) = (flow_cookie(&web, &headers), origin(address, agent));
    let control = state.control();
    let done = control
        .finish_with_provider(&provider, cookie.as_ref(), &answer, actor.as_ref(), &from)
        .await;
    let response: Response = match done {
        Ok(ProviderOutcome::Entered { entry, next }) => {
            enter(&state, &headers, &entry, onward(&next))
        }
        Ok(ProviderOutcome::Linked { label }) => {
            flash::done("/account", &format!("Linked {label}. It signs you in from now on."))
        }
        Err(error) => told(error, if actor.is_some() { "/account" } else { "/login" })?,
    };
    Ok((end_flow(&web, CookieJar::new()), response).into_response())
}

//! `/approve/{token}`: where a link from a mail or a channel leads. Opening it shows the call and
//! decides nothing; the form decides, once.

use askama::Template;
use axum::extract::{FromRef, FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use http::request::Parts;
use http::{HeaderMap, Uri};
use sluice_control::{ControlError, LinkView, OpenLink};
use sluice_domain::ApprovalStatus;
use sluice_web::{ClientAddress, Csrf, Form, MaybeActor, WebState};

use crate::DashboardState;
use crate::auth::AuthFrame;
use crate::desk::{Answer, absent, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::next::carry;
use crate::page;
use crate::routes::Routes;
use crate::ui::Field;
use crate::ws::{Argument, DecisionInput, arguments, redirect, status_word, told};

pub(crate) fn routes() -> Routes {
    Routes::new().route("/approve/{token}", get(show).post(decide))
}

#[derive(Debug, Template)]
#[template(path = "auth/approve.html")]
struct ApprovePage {
    frame: AuthFrame,
    now: DateTime<Utc>,
    view: LinkView,
    word: &'static str,
    arguments: Vec<Argument>,
    action: String,
    /// The link still decides.
    open: bool,
    /// What was just done.
    done: Option<String>,
    note: Field,
    problem: Option<String>,
}

/// Who asks, and with what.
struct Asked {
    state: DashboardState,
    actor: MaybeActor,
    address: ClientAddress,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    token: String,
}

impl<S> FromRequestParts<S> for Asked
where
    S: Send + Sync,
    DashboardState: FromRef<S>,
    WebState: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let refused = IntoResponse::into_response;
        let Ok(address) = ClientAddress::from_request_parts(parts, state).await;
        let Path(token) =
            Path::from_request_parts(parts, state).await.map_err(|_| absent("link"))?;
        Ok(Self {
            actor: MaybeActor::from_request_parts(parts, state).await.map_err(refused)?,
            csrf: Csrf::from_request_parts(parts, state).await.map_err(refused)?,
            state: DashboardState::from_ref(state),
            address,
            headers: parts.headers.clone(),
            uri: parts.uri.clone(),
            token,
        })
    }
}

async fn answer(
    asked: Asked,
    open: &OpenLink,
    typed: &str,
    faults: &Faults,
    done: Option<String>,
) -> Answer {
    let control = asked.state.control();
    let view = control.link_view(open).await.map_err(refuse)?;
    let frame = AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf);
    let approval = &view.approval;
    let page = ApprovePage {
        frame,
        now: control.now(),
        word: status_word(approval.status),
        arguments: view.arguments.as_ref().map(arguments).unwrap_or_default(),
        action: format!("/approve/{}", asked.token),
        open: !view.used
            && approval.status == ApprovalStatus::Pending
            && approval.may_decide
            && done.is_none(),
        done,
        note: Field::area("note", "Note", 2)
            .value(typed)
            .hint("The agent is told it when you deny. It stands in the log.")
            .max(500)
            .error(faults.at("/note")),
        problem: faults.rest(&["/note"]),
        view,
    };
    Ok((asked.csrf, page::private(faults.status, &page)).into_response())
}

/// Opens the link, or says where to go first.
async fn opened(asked: &Asked) -> Result<OpenLink, Response> {
    let (signed_in, address) = (asked.actor.0.as_ref(), asked.address.to_string());
    match asked.state.control().open_link(&asked.token, signed_in, &address).await {
        Ok(open) => Ok(open),
        Err(ControlError::Unauthenticated { .. }) => {
            Err(redirect(&carry("/login", Some(&format!("/approve/{}", asked.token)))))
        }
        Err(error) => Err(refuse(error)),
    }
}

/// Safe to be followed by whatever looks at mail before people do.
async fn show(asked: Asked) -> Answer {
    let open = opened(&asked).await?;
    answer(asked, &open, "", &Faults::none(), None).await
}

async fn decide(asked: Asked, Form(input): Form<DecisionInput>) -> Answer {
    let open = opened(&asked).await?;
    let Some(choice) = input.decision() else {
        let faults = Faults::one("", "Choose whether to approve or deny.");
        return answer(asked, &open, input.note(), &faults, None).await;
    };
    match asked.state.control().decide_by_link(&open, &choice).await {
        Ok(decided) => {
            let said = told(&decided, choice.approve);
            answer(asked, &open, "", &Faults::none(), Some(said)).await
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            answer(asked, &open, input.note(), &faults, None).await
        }
    }
}

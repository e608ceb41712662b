//! Links that are mailed to a person: asking for one, and what opens with it. Opening a link does
//! nothing (mail scanners open links too); its button does.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, Uri};
use secrecy::SecretString;
use serde::Deserialize;
use sluice_control::{Actor, Confirmed, LinkCard};
use sluice_domain::LinkPurpose;
use sluice_web::{ClientAddress, Csrf, Form, MaybeActor, SignedIn, UserAgent};

use super::{Asked, AuthFrame, enter, onward, origin};
use crate::DashboardState;
use crate::desk::{Answer, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::routes::Routes;
use crate::ui::Field;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/forgot", get(forgot_page).post(forgot))
        .route("/account/link/{token}", get(link_page).post(follow))
        .route("/account/verify", post(verify))
}

#[derive(Debug, Template)]
#[template(path = "auth/forgot.html")]
struct ForgotPage {
    frame: AuthFrame,
    problem: Option<String>,
    /// Absent where no mail is sent.
    email: Option<Field>,
    /// The address that a mail is on its way to, if there is an account that has it.
    sent_to: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Wish {
    #[serde(default)]
    email: String,
    #[serde(default)]
    purpose: String,
}

fn forgot_form(
    state: &DashboardState,
    asked: Asked,
    email: &str,
    faults: &Faults,
    sent_to: Option<String>,
) -> Response {
    let field = Field::new("email", "email", "E-mail")
        .value(email)
        .complete("username")
        .required()
        .max(254)
        .focus()
        .error(faults.at("/email"));
    let page = ForgotPage {
        frame: AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf),
        problem: faults.rest(&["/email"]),
        email: state.control().can_mail().then_some(field),
        sent_to,
    };
    (asked.csrf, page::private(faults.status, &page)).into_response()
}

async fn forgot_page(
    State(state): State<DashboardState>,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(wish): Query<Wish>,
) -> Response {
    forgot_form(&state, Asked { headers, uri, csrf }, &wish.email, &Faults::none(), None)
}

async fn forgot(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(wish): Form<Wish>,
) -> Answer {
    let asked = Asked { headers, uri, csrf };
    let purpose = match wish.purpose.parse::<LinkPurpose>() {
        Ok(purpose @ (LinkPurpose::SignIn | LinkPurpose::Reset)) => purpose,
        Ok(LinkPurpose::Verify) | Err(_) => {
            let text = "Choose whether to sign in or to set a new password.".to_owned();
            let faults = Faults::general(StatusCode::UNPROCESSABLE_ENTITY, text);
            return Ok(forgot_form(&state, asked, &wish.email, &faults, None));
        }
    };
    match state.control().ask_link(&wish.email, purpose, &origin(address, agent)).await {
        Ok(()) => {
            let to = Some(wish.email.trim().to_owned());
            Ok(forgot_form(&state, asked, &wish.email, &Faults::none(), to))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            Ok(forgot_form(&state, asked, &wish.email, &faults, None))
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "auth/link.html")]
struct LinkPage {
    frame: AuthFrame,
    problem: Option<String>,
    card: LinkCard,
    /// Where one is asked for.
    password: Option<Field>,
}

impl LinkPage {
    fn title(&self) -> &'static str {
        match self.card.purpose {
            LinkPurpose::Verify => "Confirm your address",
            LinkPurpose::SignIn => "Sign in",
            LinkPurpose::Reset => "Set a new password",
        }
    }

    fn resets(&self) -> bool {
        self.card.purpose == LinkPurpose::Reset
    }

    fn verifies(&self) -> bool {
        self.card.purpose == LinkPurpose::Verify
    }
}

/// What the link asks for besides its button; nothing of somebody who is signed in to the account.
fn password(purpose: LinkPurpose, own: bool) -> Option<Field> {
    let field = |label| Field::new("password", "password", label).required().focus();
    match purpose {
        LinkPurpose::Verify => (!own).then(|| {
            field("Your password")
                .hint("The one that you typed when you made the account.")
                .complete("current-password")
        }),
        LinkPurpose::SignIn => None,
        LinkPurpose::Reset => Some(
            field("New password")
                .hint("At least 10 characters. A password manager's is best.")
                .complete("new-password"),
        ),
    }
}

async fn link_form(
    state: &DashboardState,
    asked: Asked,
    (token, actor): (&str, Option<&Actor>),
    faults: &Faults,
) -> Answer {
    let card = state.control().link_card(&SecretString::from(token)).await.map_err(refuse)?;
    let own = actor.is_some_and(|actor| actor.email == card.email);
    let page = LinkPage {
        frame: AuthFrame::new(&asked.headers, &asked.uri, &asked.csrf),
        problem: faults.rest(&["/password"]),
        password: password(card.purpose, own).map(|field| field.error(faults.at("/password"))),
        card,
    };
    Ok((asked.csrf, page::private(faults.status, &page)).into_response())
}

async fn link_page(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Path(token): Path<String>,
) -> Answer {
    let asked = Asked { headers, uri, csrf };
    link_form(&state, asked, (&token, actor.as_ref()), &Faults::none()).await
}

#[derive(Debug, Default, Deserialize)]
struct Going {
    #[serde(default)]
    next: String,
}

#[derive(Debug, Default, Deserialize)]
struct NewPassword {
    #[serde(default)]
    password: String,
}

async fn follow(
    State(state): State<DashboardState>,
    MaybeActor(actor): MaybeActor,
    (address, agent): (ClientAddress, UserAgent),
    (csrf, headers, uri): (Csrf, HeaderMap, Uri),
    Path(token): Path<String>,
    Query(going): Query<Going>,
    Form(input): Form<NewPassword>,
) -> Answer {
    let (control, secret) = (state.control(), SecretString::from(token.clone()));
    let (from, typed) = (origin(address, agent), SecretString::from(input.password));
    let purpose = control.link_card(&secret).await.map_err(refuse)?.purpose;
    let login = match purpose {
        LinkPurpose::Verify => {
            match control.verify_email(&secret, actor.as_ref(), typed, &from).await {
                Ok(Confirmed { email, entry: None }) => {
                    let said = format!("Confirmed: {email} is yours.");
                    return Ok(flash::done("/account", &said));
                }
                Ok(Confirmed { entry: Some(entry), .. }) => Ok(entry),
                Err(error) => Err(error),
            }
        }
        LinkPurpose::SignIn => control.log_in_by_link(&secret, &from).await,
        LinkPurpose::Reset => control.reset_by_link(&secret, typed, &from).await,
    };
    match login {
        Ok(login) => Ok(enter(&state, &headers, &login, onward(&going.next))),
        Err(error) => {
            let faults = Faults::of(error)?;
            let asked = Asked { headers, uri, csrf };
            link_form(&state, asked, (&token, actor.as_ref()), &faults).await
        }
    }
}

#[derive(Debug, Deserialize)]
struct Nothing {}

async fn verify(
    State(state): State<DashboardState>,
    SignedIn(actor): SignedIn,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    state.control().send_verification(&actor).await.map_err(refuse)?;
    Ok(flash::done("/account", "Sent the link. It works once, for three days."))
}

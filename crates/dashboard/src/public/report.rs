//! `/report?page=`: what a reader says is wrong on a page. Works without an account and without script.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Uri};
use serde::Deserialize;
use sluice_control::Origin;
use sluice_control::catalogue::ReportForm;
use sluice_web::{ClientAddress, Csrf, Form, UserAgent};

use crate::DashboardState;
use crate::auth::AuthFrame;
use crate::desk::Answer;
use crate::faults::Faults;
use crate::filters;
use crate::next::local;
use crate::page;
use crate::ui::Field;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    page: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    contact: String,
}

#[derive(Debug, Template)]
#[template(path = "public/report.html")]
struct ReportPage {
    frame: AuthFrame,
    problem: Option<String>,
    page: String,
    fields: [Field; 2],
    done: bool,
}

fn show(asked: (HeaderMap, Uri, Csrf), input: &Input, faults: &Faults, done: bool) -> Response {
    let (headers, uri, csrf) = asked;
    let page = ReportPage {
        frame: AuthFrame::new(&headers, &uri, &csrf),
        problem: faults.rest(&["/text", "/contact"]),
        page: local(&input.page).unwrap_or("/").to_owned(),
        fields: [
            Field::area("text", "What is wrong", 6)
                .value(input.text.clone())
                .required()
                .max(4_000)
                .error(faults.at("/text")),
            Field::text("contact", "How to reach you")
                .value(input.contact.clone())
                .hint("If you want an answer. Only the operator of this Sluice sees it.")
                .max(254)
                .error(faults.at("/contact")),
        ],
        done,
    };
    (csrf, page::private(faults.status, &page)).into_response()
}

pub(crate) async fn form(
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Query(input): Query<Input>,
) -> Response {
    let input = Input { page: input.page, ..Input::default() };
    show((headers, uri, csrf), &input, &Faults::none(), false)
}

pub(crate) async fn send(
    State(state): State<DashboardState>,
    address: ClientAddress,
    agent: UserAgent,
    csrf: Csrf,
    headers: HeaderMap,
    uri: Uri,
    Form(input): Form<Input>,
) -> Answer {
    let report = ReportForm {
        page: input.page.clone(),
        text: input.text.clone(),
        contact: input.contact.clone(),
    };
    let from = Origin { address: address.to_string(), user_agent: agent.0 };
    let (faults, done) = match state.control().report_mistake(&report, &from).await {
        Ok(()) => (Faults::none(), true),
        Err(error) => (Faults::of(error)?, false),
    };
    Ok(show((headers, uri, csrf), &input, &faults, done))
}

//! Error pages: what happened, and what to do next.

use askama::Template;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{ACCEPT, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Uri};
use sluice_control::codes;
use sluice_web::{Problem, RequestId};

use crate::faults::sentence;
use crate::filters;
use crate::frame::{Head, PublicFrame, cookie};
use crate::page;
use crate::visitor::Visitor;

#[derive(Debug, Template)]
#[template(path = "public/error.html")]
struct ErrorPage {
    frame: PublicFrame,
    status: u16,
    title: &'static str,
    text: String,
    links: Vec<(String, &'static str)>,
    request_id: String,
}

fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "That request could not be read",
        403 => "This is not open to you",
        404 => "There is no such page",
        405 => "That page takes another method",
        409 | 412 => "Someone was faster",
        413 => "That was too long",
        421 => "Sluice does not answer to this name",
        429 => "Too many tries",
        503 => "Something that Sluice needs is down",
        _ => "Something broke",
    }
}

/// Ways on: addresses and words.
type Links = Vec<(String, &'static str)>;

fn links<const N: usize>(all: [(&str, &'static str); N]) -> Links {
    all.map(|(href, words)| (href.to_owned(), words)).into()
}

/// What to do next, by what went wrong.
fn advice(problem: &Problem) -> (String, Links) {
    let said = sentence(&problem.detail);
    match problem.code {
        codes::NOT_FOUND => (
            "Nothing stands at this address. It may have been deleted, or the address is of a workspace that you are not a member of.".to_owned(),
            links([("/w", "Your workspace"), ("/tools", "Catalogue"), ("/docs", "Docs")]),
        ),
        codes::ROLE_TOO_LOW => (
            format!("{said} Ask an admin of the workspace, or see what each role may do."),
            links([("/w", "Your workspace"), ("/docs/roles", "Roles")]),
        ),
        codes::FORM_EXPIRED | codes::FOREIGN_ORIGIN | codes::UNKNOWN_FIELD | codes::DUPLICATE_FIELD | codes::INVALID_FORM => (
            format!("{said} Nothing was saved. Go back, reload the page and send it again."),
            links([("/w", "Your workspace"), ("/login", "Sign in")]),
        ),
        codes::WRONG_HOST => (
            format!("{said} The operator can add the name with `--allowed-hosts`."),
            links([("/docs/operate", "How to operate Sluice"), ("/docs", "Docs")]),
        ),
        _ => by_status(problem, said),
    }
}

fn by_status(problem: &Problem, said: String) -> (String, Links) {
    let usual = links([("/w", "Your workspace"), ("/docs", "Docs")]);
    match problem.status.as_u16() {
        409 | 412 => (
            format!(
                "{said} Nothing was saved. Go back, reload the page to see how it stands now, and make the change again."
            ),
            usual,
        ),
        413 => (
            format!("{said} Nothing was saved. Go back and send less at once."),
            links([("/w", "Your workspace"), ("/docs/protocol", "Every bound")]),
        ),
        429 => {
            let wait = match problem.retry_after_s {
                Some(1) => "Wait a second".to_owned(),
                Some(seconds) => format!("Wait {seconds} seconds"),
                None => "Wait a moment".to_owned(),
            };
            (format!("{said} {wait}, then reload this page."), usual)
        }
        500 => (
            format!(
                "{said} It is not your doing. See how things stand before you try again; if it breaks again, give the operator the request id below."
            ),
            links([("/w", "Your workspace"), ("/docs/operate", "For the operator")]),
        ),
        503 => (
            format!(
                "{said} Calls of agents are refused rather than let through unchecked. Try again in a moment; `/readyz` tells the operator what is down."
            ),
            links([("/w", "Try again"), ("/docs/operate", "When something is down")]),
        ),
        _ => (said, usual),
    }
}

fn frame(headers: &HeaderMap, uri: &Uri) -> PublicFrame {
    // The store may be what is down, so it is not asked who that is.
    let session = ["sluice_session", "__Host-sluice_session"];
    PublicFrame {
        head: Head::new(headers, uri),
        section: "",
        signed_in: session.iter().any(|name| cookie(headers, name).is_some()),
        canonical: String::new(),
        base: String::new(),
    }
}

/// A layer that turns problems into pages for those who read HTML. Put it outermost, so that it
/// also sees what other layers refuse.
pub async fn error_pages(request: Request, next: Next) -> Response {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let reads_html = accept.is_some_and(|accept| accept.contains("text/html"));
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let id = request.extensions().get::<RequestId>().map(|id| id.0.to_string());
    let answer = next.run(request).await;
    let Some(problem) = answer.extensions().get::<Problem>().filter(|_| reads_html) else {
        return answer;
    };
    let (text, links) = advice(problem);
    let page = ErrorPage {
        frame: frame(&headers, &uri),
        status: problem.status.as_u16(),
        title: title(problem.status),
        text,
        links,
        request_id: id.unwrap_or_default(),
    };
    let mut shown = page::private(problem.status, &page);
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = answer.headers().get(&name) {
            shown.headers_mut().insert(name, value.clone());
        }
    }
    shown
}

/// 404 with a way on.
pub(crate) fn not_found(visitor: Visitor) -> Response {
    let problem = Problem::new(StatusCode::NOT_FOUND, codes::NOT_FOUND, "");
    let (text, links) = advice(&problem);
    let page = ErrorPage {
        frame: visitor.frame("", ""),
        status: 404,
        title: title(StatusCode::NOT_FOUND),
        text,
        links,
        request_id: String::new(),
    };
    page::private(StatusCode::NOT_FOUND, &page)
}

/// The router's fallback.
pub(crate) async fn fallback(visitor: Visitor) -> Response {
    not_found(visitor)
}

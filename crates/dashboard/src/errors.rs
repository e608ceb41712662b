//! Error pages: what happened, and what to do next.

use askama::Template;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{ACCEPT, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Uri};
use sluice_web::{Problem, RequestId};

use crate::faults::sentence;
use crate::filters;
use crate::frame::{Head, PublicFrame};
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

/// What to do next, by what went wrong.
fn advice(problem: &Problem) -> (String, Vec<(String, &'static str)>) {
    let said = sentence(&problem.detail);
    let link = |href: &str, words| (href.to_owned(), words);
    match problem.code.as_str() {
        "not_found" => (
            "Nothing stands at this address. It may have been deleted, or the address is of a workspace that you are not a member of.".to_owned(),
            vec![link("/w", "Your workspace"), link("/tools", "Catalogue"), link("/docs", "Docs")],
        ),
        "role_too_low" => (
            format!("{said} Ask an admin of the workspace, or see what each role may do."),
            vec![link("/w", "Your workspace"), link("/docs/roles", "Roles")],
        ),
        "form_expired" | "foreign_origin" | "unknown_field" | "duplicate_field" | "invalid_form" => (
            format!("{said} Nothing was saved. Go back, reload the page and send it again."),
            vec![link("/w", "Your workspace"), link("/login", "Sign in")],
        ),
        "host_not_allowed" | "misdirected" => (
            format!("{said} The operator can add the name with `--allowed-hosts`."),
            vec![link("/docs/operate", "How to operate Sluice")],
        ),
        _ => (said, vec![link("/w", "Your workspace"), link("/docs", "Docs")]),
    }
}

fn frame(headers: &HeaderMap, uri: &Uri) -> PublicFrame {
    PublicFrame {
        head: Head::new(headers, uri),
        section: "",
        signed_in: false,
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
    let problem = Problem::new(StatusCode::NOT_FOUND, "not_found", "");
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

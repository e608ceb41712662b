//! Form tokens. With a login the token is a signature of the login's id, so that it ends with it;
//! before there is one, of a random mark in a cookie. Besides, a browser must say that the request
//! comes from our own pages.

use axum::extract::{FromRef, FromRequestParts};
use axum::response::{AppendHeaders, IntoResponseParts, ResponseParts};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use sluice_control::codes;
use uuid::Uuid;

use crate::cookies::{form_mark, mark_cookie};
use crate::session::MaybeActor;
use crate::{Problem, WebState};

/// The hidden field's name.
pub const CSRF_FIELD: &str = "csrf";

const LOGIN: &str = "csrf-login";
const MARK: &str = "csrf-mark";

/// The token for a page's forms. Give it back with the response, which sets the mark's cookie
/// where one is needed: `(csrf, page)`.
#[derive(Debug, Clone)]
pub struct Csrf {
    pub token: String,
    set_cookie: Option<String>,
}

impl<S> FromRequestParts<S> for Csrf
where
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let MaybeActor(actor) = MaybeActor::from_request_parts(parts, state).await?;
        let web = WebState::from_ref(state);
        if let Some(login) = actor.as_ref().and_then(sluice_control::Actor::login) {
            let token = web.control.sign(LOGIN, login.to_string().as_bytes());
            return Ok(Self { token, set_cookie: None });
        }
        let (mark, set_cookie) = if let Some(mark) = form_mark(&web, &parts.headers) {
            (mark, None)
        } else {
            let mark = Uuid::new_v4().simple().to_string();
            let cookie = mark_cookie(&web, &mark).to_string();
            (mark, Some(cookie))
        };
        Ok(Self { token: web.control.sign(MARK, mark.as_bytes()), set_cookie })
    }
}

impl IntoResponseParts for Csrf {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, parts: ResponseParts) -> Result<ResponseParts, Self::Error> {
        let cookies = self.set_cookie.map(|cookie| (header::SET_COOKIE, cookie));
        match AppendHeaders(cookies).into_response_parts(parts) {
            Ok(parts) => Ok(parts),
            Err(_) => unreachable!("a cookie of hex digits and known words is a header value"),
        }
    }
}

/// Whether a form's token belongs to this browser and login.
pub(crate) fn holds(web: &WebState, actor: &MaybeActor, headers: &HeaderMap, token: &str) -> bool {
    if let Some(login) = actor.0.as_ref().and_then(sluice_control::Actor::login) {
        return web.control.verify(LOGIN, login.to_string().as_bytes(), token);
    }
    form_mark(web, headers).is_some_and(|mark| web.control.verify(MARK, mark.as_bytes(), token))
}

/// The refusal of a form whose token does not hold.
pub(crate) fn stale_form() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        codes::FORM_EXPIRED,
        "this form was opened before you signed in or out; reload the page and send it again",
    )
}

/// Refuses what a browser says comes from elsewhere. A client that is no browser says nothing.
pub(crate) fn same_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if method.is_safe() { Ok(()) } else { ours(headers) }
}

/// A request that none but our own pages, the address bar or a program sent: for reads that are dear.
#[derive(Debug, Clone, Copy)]
pub struct OwnSite;

impl<S: Send + Sync> FromRequestParts<S> for OwnSite {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        ours(&parts.headers).map(|()| Self)
    }
}

fn ours(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    let site_fits = site.is_none_or(|site| ["same-origin", "none"].contains(&site));
    let host = text(header::HOST).unwrap_or_default();
    let origin = headers.get(header::ORIGIN);
    let origin_fits = origin.is_none_or(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    });
    if site_fits && origin_fits {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        codes::FOREIGN_ORIGIN,
        "this request comes from a page that is not ours",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_may_send_forms() {
        let table: [(&[(&str, &str)], bool); 8] = [
            (&[], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "http://a.example:8080")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("origin", "https://a.example:8080")], true),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "null")], false),
        ];
        for (pairs, fits) in table {
            let mut headers = HeaderMap::new();
            headers.insert("host", "a.example:8080".parse().expect("a header"));
            for (name, value) in pairs {
                headers.insert(*name, value.parse().expect("a header"));
            }
            assert_eq!(same_origin(&Method::POST, &headers).is_ok(), fits, "{pairs:?}");
            assert!(same_origin(&Method::GET, &headers).is_ok());
        }
    }
}

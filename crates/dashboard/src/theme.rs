//! The theme switch without script: a link that sets a cookie and comes back.

use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{HeaderValue, SET_COOKIE};
use serde::Deserialize;

use crate::next;

/// Set by this page and by the script, so it is not `HttpOnly`; it holds one of three words.
pub(crate) const COOKIE: &str = "sluice_theme";

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    set: String,
    #[serde(default)]
    next: String,
}

/// `GET /theme?set=dark&next=/docs`
pub(crate) async fn get(Query(input): Query<Input>) -> Response {
    let value = match input.set.as_str() {
        "light" => "sluice_theme=light; Path=/; Max-Age=31536000; SameSite=Lax",
        "dark" => "sluice_theme=dark; Path=/; Max-Age=31536000; SameSite=Lax",
        _ => "sluice_theme=; Path=/; Max-Age=0; SameSite=Lax",
    };
    let mut answer = Redirect::to(next::local(&input.next).unwrap_or("/")).into_response();
    answer.headers_mut().insert(SET_COOKIE, HeaderValue::from_static(value));
    answer
}

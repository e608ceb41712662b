//! What the last press did, carried over one redirect in a cookie that lives a minute.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{COOKIE, HeaderValue, SET_COOKIE};
use http::{HeaderMap, Method};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::DashboardState;
use crate::frame::cookie;
use crate::ui::{Flash, Tone};

const NAME: &str = "sluice_flash";
/// Browsers refuse cookies of 4 KiB; a flash is a sentence.
const MOST_CHARS: usize = 600;

/// 303 to `to`, where `text` is shown. Code stands between backticks.
pub(crate) fn redirect(to: &str, tone: Tone, text: &str) -> Response {
    let sign = match tone {
        Tone::Good => 'g',
        Tone::Warn => 'w',
        Tone::Bad => 'b',
    };
    let short: String = text.chars().take(MOST_CHARS).collect();
    let value = utf8_percent_encode(&short, NON_ALPHANUMERIC);
    let cookie = format!("{NAME}={sign}{value}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    let mut answer = Redirect::to(to).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}

/// 303 to `to`, saying that all went well.
pub(crate) fn done(to: &str, text: &str) -> Response {
    redirect(to, Tone::Good, text)
}

/// The flash that the request brings.
pub(crate) fn read(headers: &HeaderMap) -> Option<Flash> {
    let value = cookie(headers, NAME)?;
    let (sign, text) = value.split_at_checked(1)?;
    let tone = match sign {
        "g" => Tone::Good,
        "w" => Tone::Warn,
        "b" => Tone::Bad,
        _ => return None,
    };
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(Flash::new(tone, &text))
}

/// A flash is shown once: the page that was shown with it drops the cookie.
pub(crate) async fn clear(
    State(state): State<DashboardState>,
    request: Request,
    next: Next,
) -> Response {
    let shows = request.method() == Method::GET
        && request.headers().contains_key(COOKIE)
        && cookie(request.headers(), NAME).is_some();
    let mut answer = next.run(request).await;
    let is_page = answer
        .headers()
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let sets = answer
        .headers()
        .get_all(SET_COOKIE)
        .iter()
        .any(|line| line.as_bytes().starts_with(NAME.as_bytes()));
    if shows && is_page && !sets {
        let secure = if state.secure() { "; Secure" } else { "" };
        let gone = format!("{NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}");
        if let Ok(gone) = HeaderValue::from_str(&gone) {
            answer.headers_mut().append(SET_COOKIE, gone);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_survives_the_redirect_and_is_escaped() {
        let answer = done("/w", "Connected `<b>`; 12 tools, ünïcode.");
        let set = answer.headers()[SET_COOKIE].to_str().expect("ASCII");
        let pair = set.split(';').next().expect("a pair");
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, pair.parse().expect("a header"));
        let flash = read(&headers).expect("a flash");
        assert_eq!(flash.text.0, "Connected <code>&lt;b&gt;</code>; 12 tools, ünïcode.");
    }

    #[test]
    fn odd_cookies_are_nothing() {
        for odd in ["sluice_flash=", "sluice_flash=x", "sluice_flash=g%FF", "other=g"] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, odd.parse().expect("a header"));
            assert!(read(&headers).is_none(), "{odd}");
        }
    }
}

//! The cookies: the login's token, that of a login which waits for its second factor, what binds a
//! visit to an identity provider to the browser, and a random mark for forms before there is a login.
//! `__Host-` names bind them to this host and to https (RFC 6265bis section 4.1.3).

use axum::http::HeaderMap;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use secrecy::{ExposeSecret, SecretString};
use sluice_control::{HalfIn, LOGIN_AT_MOST, LoggedIn, ProviderFlow};

use crate::WebState;

fn named(state: &WebState, plain: &'static str, hosted: &'static str) -> &'static str {
    if state.secure() { hosted } else { plain }
}

fn session_name(state: &WebState) -> &'static str {
    named(state, "sluice_session", "__Host-sluice_session")
}

fn half_name(state: &WebState) -> &'static str {
    named(state, "sluice_half", "__Host-sluice_half")
}

fn flow_name(state: &WebState) -> &'static str {
    named(state, "sluice_flow", "__Host-sluice_flow")
}

fn mark_name(state: &WebState) -> &'static str {
    named(state, "sluice_form", "__Host-sluice_form")
}

fn cookie(state: &WebState, name: &'static str, value: String) -> Cookie<'static> {
    let mut cookie = Cookie::new(name, value);
    cookie.set_path("/");
    cookie.set_http_only(true);
    cookie.set_secure(state.secure());
    cookie.set_same_site(SameSite::Lax);
    cookie
}

fn removal(state: &WebState, name: &'static str) -> Cookie<'static> {
    let mut cookie = cookie(state, name, String::new());
    cookie.make_removal();
    cookie
}

/// The cookies of somebody who has just logged in. The form mark of before is dropped, so that a
/// form opened by somebody else on this machine cannot be sent.
pub fn start_session(state: &WebState, jar: CookieJar, login: &LoggedIn) -> CookieJar {
    // The store ends the login; the cookie only must not end before it.
    let age = LOGIN_AT_MOST.num_seconds();
    let mut session = cookie(state, session_name(state), login.token.expose_secret().to_owned());
    if let Ok(aged) = Cookie::parse(format!("age=; Max-Age={age}")) {
        session.set_max_age(aged.max_age());
    }
    jar.add(session).add(removal(state, mark_name(state))).add(removal(state, half_name(state)))
}

/// The cookie of somebody whose second factor is waited for. The store ends it within minutes.
pub fn start_half(state: &WebState, jar: CookieJar, half: &HalfIn) -> CookieJar {
    jar.add(cookie(state, half_name(state), half.token.expose_secret().to_owned()))
}

/// The token of a login that waits for its second factor, if the request has one.
pub fn half_token(state: &WebState, headers: &HeaderMap) -> Option<SecretString> {
    let jar = CookieJar::from_headers(headers);
    jar.get(half_name(state)).map(|cookie| SecretString::from(cookie.value()))
}

/// The cookie that binds a visit to an identity provider to this browser.
pub fn start_flow(state: &WebState, jar: CookieJar, flow: &ProviderFlow) -> CookieJar {
    jar.add(cookie(state, flow_name(state), flow.cookie.expose_secret().to_owned()))
}

/// What [`start_flow`] left, if the request has it.
pub fn flow_cookie(state: &WebState, headers: &HeaderMap) -> Option<SecretString> {
    let jar = CookieJar::from_headers(headers);
    jar.get(flow_name(state)).map(|cookie| SecretString::from(cookie.value()))
}

/// Drops what [`start_flow`] left: it is good for one answer.
pub fn end_flow(state: &WebState, jar: CookieJar) -> CookieJar {
    jar.add(removal(state, flow_name(state)))
}

/// Drops the cookies; the login itself is ended by `Control::log_out`.
pub fn end_session(state: &WebState, jar: CookieJar) -> CookieJar {
    jar.add(removal(state, session_name(state))).add(removal(state, mark_name(state)))
}

/// The login's token, if the request has one.
pub(crate) fn session_token(state: &WebState, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(session_name(state)).map(|cookie| cookie.value().to_owned())
}

/// The form mark, if the request has one.
pub(crate) fn form_mark(state: &WebState, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(mark_name(state)).map(|cookie| cookie.value().to_owned())
}

/// The cookie that carries a new form mark.
pub(crate) fn mark_cookie(state: &WebState, mark: &str) -> Cookie<'static> {
    cookie(state, mark_name(state), mark.to_owned())
}

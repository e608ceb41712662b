//! Forms of our own pages: same origin, form token, and bounds first; then the fields.

use sluice_control::codes;
use std::collections::HashSet;

use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use http::{StatusCode, header};
use serde::de::DeserializeOwned;

use crate::csrf::{CSRF_FIELD, holds, same_origin, stale_form};
use crate::json::whole;
use crate::{MaybeActor, Problem, WebState, fields};

const UNPROCESSABLE: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

/// A policy document of 256 KiB whose every byte is percent-encoded, and room for the rest.
const MAX_FORM_BYTES: usize = 1024 * 1024;
const MAX_FIELDS: usize = 5_000;

/// A form's fields as they were typed, for forms whose fields are not known beforehand.
#[derive(Debug, Clone, Default)]
pub struct FormFields(pub Vec<(String, String)>);

impl FormFields {
    /// The first field of this name, empty where there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Refuses what the page's own form cannot send: a field that it does not have, or one twice that
    /// is not among `several`.
    pub fn only(&self, once: &[&str], several: &[&str]) -> Result<(), Problem> {
        let mut seen = HashSet::new();
        for (name, _) in &self.0 {
            let shown: String = name.chars().take(80).collect();
            if several.contains(&name.as_str()) {
                continue;
            }
            if !once.contains(&name.as_str()) {
                let detail = format!("the form has no field `{shown}`");
                return Err(Problem::new(UNPROCESSABLE, codes::UNKNOWN_FIELD, detail));
            }
            if !seen.insert(name) {
                let detail = format!("the form has the field `{shown}` twice");
                return Err(Problem::new(UNPROCESSABLE, codes::DUPLICATE_FIELD, detail));
            }
        }
        Ok(())
    }

    /// Every field of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A form read into `T`, whose fields are texts: what was typed is kept, also when it is wrong.
#[derive(Debug)]
pub struct Form<T>(pub T);

impl<S> FromRequest<S> for FormFields
where
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        same_origin(&parts.method, &parts.headers)?;
        let actor = MaybeActor::from_request_parts(&mut parts, state).await?;
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or("").split(';').next().unwrap_or("").trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                codes::UNSUPPORTED_MEDIA_TYPE,
                "send the form as `application/x-www-form-urlencoded`",
            ));
        }
        let headers = parts.headers.clone();
        let body = whole(Request::from_parts(parts, body), MAX_FORM_BYTES).await?;
        let unreadable = |_| {
            Problem::new(StatusCode::BAD_REQUEST, codes::INVALID_FORM, "the form cannot be read")
        };
        let mut fields: Vec<(String, String)> =
            serde_urlencoded::from_bytes(&body).map_err(unreadable)?;
        if fields.len() > MAX_FIELDS {
            let detail = format!("the form has more than {MAX_FIELDS} fields");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, codes::TOO_LARGE, detail));
        }
        let at = fields.iter().position(|(name, _)| name == CSRF_FIELD);
        let token = at.map(|at| fields.remove(at).1).unwrap_or_default();
        if !holds(&WebState::from_ref(state), &actor, &headers, &token) {
            return Err(stale_form());
        }
        Ok(Self(fields))
    }
}

impl<T, S> FromRequest<S> for Form<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
    WebState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let fields = FormFields::from_request(request, state).await?;
        if let Some(names) = fields::of::<T>() {
            fields.only(names, &[])?;
        }
        let text = serde_urlencoded::to_string(fields.0).unwrap_or_default();
        serde_urlencoded::from_str(&text).map(Self).map_err(|error| {
            let detail = format!("the form does not fit: {error}");
            Problem::new(UNPROCESSABLE, codes::INVALID_FORM, detail)
        })
    }
}

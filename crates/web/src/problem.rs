//! Errors as `application/problem+json` (RFC 9457), with a stable `code` and a JSON Pointer to the
//! field. A page's router turns the [`Problem`] that the response carries into a page.

use std::ops::{Deref, DerefMut};

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_control::codes::{self, ProblemCode};
use sluice_control::{ControlError, Fault};

/// An answer that is an error; boxed, so that a `Result` with one stays small.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<Parts>);

/// What a problem says.
#[derive(Debug, Clone, Serialize)]
pub struct Parts {
    #[serde(rename = "type")]
    kind: String,
    pub title: String,
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    pub code: ProblemCode,
    pub detail: String,
    /// The first faulty field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    #[serde(rename = "retry_after_seconds", skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// Members of this kind of problem alone.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn as_number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

impl Deref for Problem {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Problem {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Problem {
    /// A problem without a field.
    pub fn new(status: StatusCode, code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind: format!("/docs/api#{code}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status,
            code,
            detail: detail.into(),
            pointer: None,
            errors: Vec::new(),
            retry_after_s: None,
            more: Map::new(),
        }))
    }

    /// A field that cannot be accepted.
    pub fn invalid(fault: Fault) -> Self {
        Self::from(ControlError::Invalid(vec![fault]))
    }

    /// Something broke in Sluice.
    pub fn internal() -> Self {
        let detail = "something broke in Sluice; the log has the details under this request's id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, codes::INTERNAL, detail)
    }

    /// Adds a member of its own.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }
}

fn status(error: &ControlError) -> StatusCode {
    match error {
        ControlError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ControlError::NotFound(_) => StatusCode::NOT_FOUND,
        ControlError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        ControlError::Forbidden { .. } => StatusCode::FORBIDDEN,
        ControlError::Stale { .. } => StatusCode::PRECONDITION_FAILED,
        ControlError::TooMany { retry_after_s: Some(_), .. } => StatusCode::TOO_MANY_REQUESTS,
        // A bound that waiting does not lift.
        ControlError::TooMany { .. } | ControlError::Conflict { .. } => StatusCode::CONFLICT,
        ControlError::Upstream { .. } => StatusCode::BAD_GATEWAY,
        ControlError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        ControlError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        if let ControlError::Internal(cause) = &error {
            tracing::error!(error = ?cause, "A request failed");
        }
        let mut problem = Self::new(status(&error), error.code(), error.to_string());
        problem.errors = error.faults();
        problem.pointer = problem.errors.first().map(|fault| fault.pointer.clone());
        match error {
            ControlError::TooMany { retry_after_s, .. } => problem.retry_after_s = retry_after_s,
            ControlError::Stale { current } => {
                problem.more.insert("current_version".to_owned(), current.into());
            }
            _ => {}
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"sluice\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// No route has this path.
pub async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, codes::NOT_FOUND, "there is nothing at this address")
}

/// The path exists, for another method.
pub async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        codes::METHOD_NOT_ALLOWED,
        "this address does not take this method; `Allow` lists those it does",
    )
}

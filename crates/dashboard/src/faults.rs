//! What control refused, put beside the fields of a form.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use sluice_control::codes;
use sluice_control::{ControlError, Fault};
use sluice_web::Problem;

/// A form's faults by field, and one sentence for what belongs to no field.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) list: Vec<Fault>,
    /// For the head of the form.
    pub(crate) general: Option<String>,
    pub(crate) status: StatusCode,
}

impl Faults {
    /// Nothing is wrong.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// One fault of a field that is read here.
    pub(crate) fn one(pointer: &str, detail: &str) -> Self {
        Self::several(vec![Fault::new(pointer, codes::INVALID, detail)])
    }

    /// Faults of several fields that are read here.
    pub(crate) fn several(list: Vec<Fault>) -> Self {
        Self { list, general: None, status: StatusCode::UNPROCESSABLE_ENTITY }
    }

    /// One sentence for the head of the form.
    pub(crate) fn general(status: StatusCode, text: String) -> Self {
        Self { list: Vec::new(), general: Some(text), status }
    }

    /// What can be told on the form; the rest is a page of its own.
    pub(crate) fn of(error: ControlError) -> Result<Self, Response> {
        let status = match &error {
            ControlError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ControlError::Conflict { .. } | ControlError::Stale { .. } => StatusCode::CONFLICT,
            ControlError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            ControlError::Upstream { .. } => StatusCode::BAD_GATEWAY,
            ControlError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            ControlError::Forbidden {
                code: codes::SIGNUP_CLOSED | codes::LOGIN_TOO_OLD, ..
            } => StatusCode::FORBIDDEN,
            _ => return Err(Problem::from(error).into_response()),
        };
        let mut list = error.faults();
        for fault in &mut list {
            fault.detail = sentence(&fault.detail);
        }
        let general = list.is_empty().then(|| match &error {
            ControlError::TooMany { retry_after_s: Some(wait), detail, .. } => {
                format!("{} Try again in {wait} s.", sentence(detail))
            }
            other => sentence(&other.to_string()),
        });
        Ok(Self { list, general, status })
    }

    /// What is wrong with the field at `pointer`, all of it.
    pub(crate) fn at(&self, pointer: &str) -> Option<String> {
        let of_field: Vec<&str> = self
            .list
            .iter()
            .filter(|fault| is_within(&fault.pointer, pointer))
            .map(|fault| fault.detail.as_str())
            .collect();
        (!of_field.is_empty()).then(|| of_field.join(" "))
    }

    /// Everything that none of `shown` pointers tells, so that no fault is lost.
    pub(crate) fn rest(&self, shown: &[&str]) -> Option<String> {
        let untold = self
            .list
            .iter()
            .filter(|fault| !shown.iter().any(|pointer| is_within(&fault.pointer, pointer)))
            .map(|fault| fault.detail.as_str());
        let all: Vec<&str> = self.general.as_deref().into_iter().chain(untold).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// The pointer itself, or one of a part of what it names: `/networks/0` is told at `/networks`.
fn is_within(fault: &str, field: &str) -> bool {
    fault.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Control's phrases begin small and end bare.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut chars = phrase.trim().chars();
    let Some(first) = chars.next() else { return String::new() };
    let mut out: String = first.to_uppercase().chain(chars).collect();
    if !out.ends_with(['.', '?', '!', ':']) {
        out.push('.');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fault_is_lost() {
        let error = ControlError::Invalid(vec![
            Fault::new("/name", codes::REQUIRED, "give it a name"),
            Fault::new("/odd/0", codes::INVALID, "`x` is odd"),
        ]);
        let faults = Faults::of(error).expect("told on the form");
        assert_eq!(faults.at("/name").as_deref(), Some("Give it a name."));
        assert_eq!(faults.rest(&["/name"]).as_deref(), Some("`x` is odd."));
        assert_eq!(faults.at("/other"), None);
        assert_eq!(faults.at("/odd").as_deref(), Some("`x` is odd."));
        assert_eq!(faults.at("/od"), None);
    }

    #[test]
    fn what_is_no_fault_of_the_form_is_a_page() {
        assert!(Faults::of(ControlError::NotFound("server")).is_err());
        assert!(Faults::of(ControlError::internal("x")).is_err());
        let wait = ControlError::TooMany {
            code: codes::TOO_MANY_ATTEMPTS,
            retry_after_s: Some(30),
            detail: "too many tries".to_owned(),
        };
        let faults = Faults::of(wait).expect("told on the form");
        assert_eq!(faults.rest(&[]).as_deref(), Some("Too many tries. Try again in 30 s."));
    }
}

//! Why an operation was refused, by what the caller can do about it.

use std::borrow::Cow;

use sluice_domain::Role;
use sluice_store::StoreError;

use crate::codes::{self, ProblemCode};

/// One thing that is wrong with what was sent, at its place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// JSON Pointer into what was sent; for a form the field's name after the slash.
    pub pointer: String,
    /// A stable word.
    pub code: ProblemCode,
    /// A sentence for people.
    pub detail: String,
    /// Which file, where several were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line and column, for documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Fault {
    /// A fault at a field.
    pub fn new(pointer: impl Into<String>, code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code,
            detail: detail.into(),
            file: None,
            line: None,
            column: None,
            suggestion: None,
        }
    }
}

/// A refused or failed operation. `Internal` keeps its cause for the log alone.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// What was sent cannot be accepted; all faults at once.
    #[error("{}", sentence(.0))]
    Invalid(Vec<Fault>),
    /// It does not exist, or not for this caller.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Who is calling is not known.
    #[error("{detail}")]
    Unauthenticated { code: ProblemCode, detail: &'static str },
    /// The caller is known and may not.
    #[error("{detail}")]
    Forbidden { code: ProblemCode, detail: Cow<'static, str> },
    /// It collides with what is there.
    #[error("{detail}")]
    Conflict { code: ProblemCode, pointer: Option<&'static str>, detail: String },
    /// Somebody else changed it since it was read; `current` is the version that stands.
    #[error("somebody else changed it since you read it; it is now at version {current}")]
    Stale { current: i64 },
    /// Too often, or too many.
    #[error("{detail}")]
    TooMany { code: ProblemCode, retry_after_s: Option<u64>, detail: String },
    /// The upstream server did not do what was needed; in words with what to do.
    #[error("{words}")]
    Upstream { code: ProblemCode, words: String },
    /// A dependency is down; later it may work.
    #[error("{0} is not available; try again in a moment")]
    Unavailable(&'static str),
    #[error("something broke in Sluice; the log has the details")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn sentence(faults: &[Fault]) -> String {
    match faults {
        [only] => only.detail.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.detail, rest.len()),
        [] => "the request cannot be accepted".to_owned(),
    }
}

impl ControlError {
    /// A single fault at a field.
    pub fn invalid(
        pointer: impl Into<String>,
        code: ProblemCode,
        detail: impl Into<String>,
    ) -> Self {
        Self::Invalid(vec![Fault::new(pointer, code, detail)])
    }

    /// Something that can only happen if Sluice itself is wrong.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    /// The member's role is too low.
    pub(crate) fn role_too_low(needed: Role) -> Self {
        let who = match needed {
            Role::Viewer => "members",
            Role::PolicyManager => "policy managers and admins",
            Role::Admin => "admins",
        };
        let detail = format!("only {who} of this workspace may do this").into();
        Self::Forbidden { code: codes::ROLE_TOO_LOW, detail }
    }

    /// A bound of the workspace or account is reached.
    pub(crate) fn full(what: &str, bound: i64) -> Self {
        let detail = format!("there are {bound} {what} already, which is the most there can be");
        Self::TooMany { code: codes::TOO_MANY, retry_after_s: None, detail }
    }

    /// The stable word of the refusal.
    pub fn code(&self) -> ProblemCode {
        match self {
            Self::Invalid(faults) => faults.first().map_or(codes::INVALID, |fault| fault.code),
            Self::NotFound(_) => codes::NOT_FOUND,
            Self::Unauthenticated { code, .. }
            | Self::Forbidden { code, .. }
            | Self::Conflict { code, .. }
            | Self::TooMany { code, .. }
            | Self::Upstream { code, .. } => *code,
            Self::Stale { .. } => codes::STALE,
            Self::Unavailable(_) => codes::UNAVAILABLE,
            Self::Internal(_) => codes::INTERNAL,
        }
    }

    /// The faults by field, also of a conflict that belongs to one.
    pub fn faults(&self) -> Vec<Fault> {
        match self {
            Self::Invalid(faults) => faults.clone(),
            Self::Conflict { code, pointer: Some(pointer), detail } => {
                vec![Fault::new(*pointer, *code, detail)]
            }
            _ => Vec::new(),
        }
    }
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { constraint } => conflict(&constraint),
            StoreError::Stale { current } => Self::Stale { current },
            StoreError::DanglingReference => Self::invalid(
                "",
                codes::UNKNOWN_REFERENCE,
                "it names something that does not exist",
            ),
            StoreError::Unavailable(cause) => {
                tracing::warn!(error = %cause, "The database is not available");
                Self::Unavailable("the database")
            }
            other => Self::internal(other),
        }
    }
}

fn conflict(constraint: &str) -> ControlError {
    let (code, pointer, detail) = match constraint {
        "servers_name" => (codes::NAME_TAKEN, Some("/name"), "another server has this name"),
        "policies_name" => (codes::NAME_TAKEN, Some("/name"), "another policy has this name"),
        "saved_filters_name" => {
            (codes::NAME_TAKEN, Some("/name"), "another of your filters has this name")
        }
        "endpoints_name" => (codes::NAME_TAKEN, Some("/name"), "another endpoint has this name"),
        "grants_label" => (codes::LABEL_TAKEN, Some("/label"), "another grant has this label"),
        "join_domains_domain" => {
            (codes::DOMAIN_TAKEN, Some("/domain"), "people of this domain may join already")
        }
        "users_email" => (codes::EMAIL_TAKEN, Some("/email"), "this address has an account"),
        "workspaces_slug" => (codes::SLUG_TAKEN, Some("/slug"), "this address is taken"),
        _ => (codes::CONFLICT, None, "it collides with something that exists"),
    };
    ControlError::Conflict { code, pointer, detail: detail.to_owned() }
}

/// Collects the faults of several fields, so that all are told at once.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Keeps the value, or notes its fault.
    pub(crate) fn take<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }

    pub(crate) fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// What was noted.
    pub(crate) fn into_list(self) -> Vec<Fault> {
        self.0
    }

    /// Fails if anything was noted.
    pub(crate) fn check(self) -> Result<(), ControlError> {
        if self.0.is_empty() { Ok(()) } else { Err(ControlError::Invalid(self.0)) }
    }
}

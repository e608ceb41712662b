//! Versions as entity tags (RFC 9110 section 8.8.3), for what two people may edit.

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};

use crate::Problem;

/// The entity tag of a version.
pub fn etag(version: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// What an edit expects to find. Missing: 428.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: whatever is there.
    Any,
    /// This version.
    Version(i64),
}

impl IfMatch {
    /// The version, unless any will do.
    pub fn version(self) -> Option<i64> {
        match self {
            Self::Any => None,
            Self::Version(version) => Some(version),
        }
    }
}

fn parse(text: &str) -> Option<IfMatch> {
    let text = text.trim();
    if text == "*" {
        return Some(IfMatch::Any);
    }
    // A proxy that compressed an answer may have weakened its tag.
    let tag = text.strip_prefix("W/").unwrap_or(text);
    let version = tag.strip_prefix('"')?.strip_suffix('"')?;
    version.parse().ok().map(IfMatch::Version)
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                "if_match_required",
                "somebody else may have edited this: send the `ETag` you read as `If-Match`, \
                 or `*` to overwrite whatever is there",
            ));
        };
        value.to_str().ok().and_then(parse).ok_or_else(|| {
            Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "stale",
                "`If-Match` is none of our entity tags; read the object again",
            )
        })
    }
}

/// What a step expects to find, where the client says so: a version that is sent is never ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaybeIfMatch(pub Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for MaybeIfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Ok(Self(None));
        }
        Ok(Self(IfMatch::from_request_parts(parts, state).await?.version()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip() {
        let tag = etag(7);
        assert_eq!(parse(tag.to_str().expect("text")), Some(IfMatch::Version(7)));
        assert_eq!(parse("W/\"7\""), Some(IfMatch::Version(7)));
        assert_eq!(parse("*"), Some(IfMatch::Any));
        for odd in ["7", "\"a\"", "\"7", ""] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}

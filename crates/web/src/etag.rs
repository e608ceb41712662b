//! Versions as entity tags (RFC 9110 section 8.8.3), for what two people may edit.

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use sluice_control::codes;

use crate::Problem;

/// The entity tag of a version.
pub fn etag(version: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// What an edit expects to find. Missing: 428.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: whatever is there.
    Any,
    /// One of these versions. A tag of ours that is weak, or none of ours, matches nothing (RFC 9110
    /// section 13.1.1 compares strongly), and is not listed.
    Versions(Vec<i64>),
}

/// No version has this number: what is expected when no tag can match.
const NONE: i64 = 0;

impl IfMatch {
    /// The version that an edit must find: the current one if it is among those named.
    pub fn version(&self, current: i64) -> Option<i64> {
        match self {
            Self::Any => None,
            Self::Versions(named) if named.contains(&current) => Some(current),
            Self::Versions(named) => Some(named.first().copied().unwrap_or(NONE)),
        }
    }
}

/// Reads the field's lines; `None` if they are no list of entity tags.
fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Option<IfMatch> {
    let mut versions = Vec::new();
    let mut tags = 0;
    for line in lines {
        if line.trim() == "*" {
            return (tags == 0).then_some(IfMatch::Any);
        }
        let mut rest = line.trim_start_matches([' ', '\t', ',']);
        while !rest.is_empty() {
            let (weak, tag) = match rest.strip_prefix("W/") {
                Some(tag) => (true, tag),
                None => (false, rest),
            };
            let (inside, behind) = tag.strip_prefix('"')?.split_once('"')?;
            let behind = behind.trim_start_matches([' ', '\t']);
            if !behind.is_empty() && !behind.starts_with(',') {
                return None;
            }
            versions.extend(inside.parse::<i64>().ok().filter(|_| !weak));
            tags += 1;
            rest = behind.trim_start_matches([' ', '\t', ',']);
        }
    }
    (tags > 0).then_some(IfMatch::Versions(versions))
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                codes::IF_MATCH_REQUIRED,
                "somebody else may have edited this: send the `ETag` you read as `If-Match`, \
                 or `*` to overwrite whatever is there",
            ));
        }
        let lines: Result<Vec<_>, _> =
            parts.headers.get_all(header::IF_MATCH).iter().map(HeaderValue::to_str).collect();
        lines.ok().and_then(|lines| parse(lines.into_iter())).ok_or_else(|| {
            Problem::new(
                StatusCode::PRECONDITION_FAILED,
                codes::STALE,
                "`If-Match` is no list of entity tags; read the object again",
            )
        })
    }
}

/// What a step expects to find, where the client says so: a version that is sent is never ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaybeIfMatch(pub Option<IfMatch>);

impl<S: Send + Sync> FromRequestParts<S> for MaybeIfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Ok(Self(None));
        }
        IfMatch::from_request_parts(parts, state).await.map(Some).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_and_compared_strongly() {
        let read = |lines: &[&str]| parse(lines.iter().copied());
        let own = etag(7);
        assert_eq!(read(&[own.to_str().expect("text")]), Some(IfMatch::Versions(vec![7])));
        for (lines, current, expected) in [
            (&["*"][..], 7, Some(None)),
            (&["\"7\""], 7, Some(Some(7))),
            (&["\"6\", \"7\""], 7, Some(Some(7))),
            (&["\"6\"", "\"x,y\" ,\"7\""], 7, Some(Some(7))),
            (&["\"6\", \"5\""], 7, Some(Some(6))),
            (&["W/\"7\""], 7, Some(Some(NONE))),
            (&["W/\"7\", \"7\""], 7, Some(Some(7))),
            (&["\"another\""], 7, Some(Some(NONE))),
        ] {
            let found = read(lines).map(|tags| tags.version(current));
            assert_eq!(found, expected, "{lines:?}");
        }
        for odd in ["7", "\"7", "", ",", "\"7\" \"8\"", "\"7\"x", "\"7\", *"] {
            assert_eq!(read(&[odd]), None, "{odd}");
        }
    }
}

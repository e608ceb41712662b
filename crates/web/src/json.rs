//! JSON bodies, read strictly: what is not understood is told with its place, never ignored.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::{Path, Segment};
use sluice_control::Fault;
use sluice_control::codes;

use crate::Problem;

/// Larger than any policy document, with its JSON escapes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A JSON body of `MOST` bytes at most. A problem with a JSON Pointer where it does not fit.
#[derive(Debug)]
pub struct JsonBody<T, const MOST: usize = MAX_BODY_BYTES>(pub T);

impl<T: DeserializeOwned, S: Send + Sync, const MOST: usize> FromRequest<S> for JsonBody<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let body = whole(request, MOST).await?;
        parse(&body).map(Self)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub struct MaybeJson<T>(pub Option<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let typed = request.headers().contains_key(header::CONTENT_TYPE);
        let json = is_json(request.headers());
        let body = whole(request, MAX_BODY_BYTES).await?;
        if body.is_empty() {
            return Ok(Self(None));
        }
        if typed {
            json?;
        }
        parse(&body).map(Some).map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        codes::UNSUPPORTED_MEDIA_TYPE,
        "send the body as JSON, with `Content-Type: application/json`",
    ))
}

/// Reads a body up to its bound.
pub(crate) async fn whole(request: Request, most: usize) -> Result<Bytes, Problem> {
    match Limited::new(request.into_body(), most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            codes::TOO_LARGE,
            format!("the body is larger than {most} bytes"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            codes::BODY_CUT,
            "the body ended before it was whole",
        )),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer(error.path());
        refuse(body, pointer, &error.into_inner())
    })?;
    reader.end().map_err(|error| refuse(body, String::new(), &error))?;
    // `serde` also reads a struct from a list of its fields' values, which no client means.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        let fault =
            Fault::new("", codes::INVALID, "the body is an object, `{…}`, with named fields");
        return Err(Problem::invalid(fault));
    }
    Ok(value)
}

fn refuse(body: &[u8], mut pointer: String, error: &serde_json::Error) -> Problem {
    if !error.is_data() {
        // Where a word is wanted, `serde_json` takes `null` or a number for broken JSON.
        if serde_json::from_slice::<IgnoredAny>(body).is_ok() {
            let detail = "this value does not fit here; a text is wanted";
            return Problem::invalid(Fault::new(pointer, codes::INVALID, detail));
        }
        let detail = format!("the body is not valid JSON: {error}");
        return Problem::new(StatusCode::BAD_REQUEST, codes::INVALID_JSON, detail);
    }
    let text = error.to_string();
    // The place is in the pointer already.
    let words = text.split(" at line ").next().unwrap_or(&text);
    let named = |start: &str| words.strip_prefix(start).and_then(|rest| rest.split('`').next());
    let mut code = codes::INVALID;
    for (start, is) in [
        ("unknown field `", codes::UNKNOWN_FIELD),
        ("missing field `", codes::MISSING_FIELD),
        ("duplicate field `", codes::DUPLICATE_FIELD),
    ] {
        if let Some(name) = named(start) {
            code = is;
            let name = escape(name);
            if !pointer.ends_with(&format!("/{name}")) {
                pointer = format!("{pointer}/{name}");
            }
        }
    }
    Problem::invalid(Fault::new(pointer, code, words))
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The JSON Pointer (RFC 6901) of a path.
fn pointer(path: &Path) -> String {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(format!("/{}", escape(key))),
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read into")]
    struct Inner {
        count: u8,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read into")]
    struct Outer {
        name: String,
        #[serde(default)]
        list: Vec<Inner>,
        document: Option<Box<serde_json::value::RawValue>>,
        #[serde(default)]
        rest: Rest,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Rest {
        #[default]
        Deny,
    }

    #[test]
    fn every_fault_has_its_place_and_code() {
        let table = [
            (r#"{"name":1}"#, 422, "invalid", "/name"),
            (r#"{"name":"a","nmae":1}"#, 422, "unknown_field", "/nmae"),
            ("{}", 422, "missing_field", "/name"),
            (r#"{"name":"a","name":"b"}"#, 422, "duplicate_field", "/name"),
            (r#"{"name":"a","list":[{"count":1},{"count":-1}]}"#, 422, "invalid", "/list/1/count"),
            (r#"{"name":"a","list":[{"x":1}]}"#, 422, "unknown_field", "/list/0/x"),
            (r#"{"name":"a","rest":null}"#, 422, "invalid", "/rest"),
            (r#"{"name":"a","rest":7}"#, 422, "invalid", "/rest"),
            (r#"{"name":"a","rest":"deny""#, 400, "invalid_json", ""),
            ("[]", 422, "missing_field", ""),
            ("{", 400, "invalid_json", ""),
            (r#"{"name":"a"} {}"#, 400, "invalid_json", ""),
            (r#" ["a",[],null]"#, 422, "invalid", ""),
        ];
        for (body, status, code, place) in table {
            let problem = parse::<Outer>(body.as_bytes()).expect_err(body);
            assert_eq!(problem.status.as_u16(), status, "{body}: {problem:?}");
            if body != "[]" {
                assert_eq!(problem.code, code, "{body}");
                assert_eq!(problem.pointer.as_deref().unwrap_or_default(), place, "{body}");
            }
        }
    }

    #[test]
    fn a_document_keeps_its_text() {
        let body = br#"{"name":"a","document":{"b": 1.10,  "a":1e2}}"#;
        let outer: Outer = parse(body).expect("it fits");
        assert_eq!(outer.document.expect("given").get(), r#"{"b": 1.10,  "a":1e2}"#);
    }
}

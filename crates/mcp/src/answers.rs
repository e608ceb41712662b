//! The answers that the gateway itself gives: JSON-RPC errors and refused
//! tool results.

use serde::Serialize;

use crate::text::{self, unescape};

/// What an error says beyond its code and message.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ErrorNote<'a> {
    /// The gateway's own code.
    pub code: &'a str,
    /// Whether the tool may have run; left out where no tool was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_have_run: Option<bool>,
    pub request_id: &'a str,
}

/// The approval that a call waits for.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ApprovalNote<'a> {
    pub id: &'a str,
    pub url: &'a str,
    pub expires_at: &'a str,
}

/// `_meta["dev.sluice/decision"]` of a refused call.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecisionNote<'a> {
    pub code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalNote<'a>>,
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<i64>,
}

/// JSON of values that hold only strings, numbers and options, which cannot fail.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// A JSON-RPC error; without an id its id is null.
pub fn error_answer(
    id: Option<&str>,
    code: i64,
    message: &str,
    note: Option<&ErrorNote<'_>>,
) -> Vec<u8> {
    let id = id.unwrap_or("null");
    let data = note.map(|note| format!(",\"data\":{}", json(note))).unwrap_or_default();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{}{data}}}}}",
        json(message)
    )
    .into_bytes()
}

/// A `tools/call` result that tells the agent why the call was not made.
pub fn refused_result(id: &str, text: &str, note: &DecisionNote<'_>, modern: bool) -> Vec<u8> {
    let complete = if modern { "\"resultType\":\"complete\"," } else { "" };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{complete}\"isError\":true,\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"_meta\":{{\"dev.sluice/decision\":{}}}}}}}",
        json(text),
        json(note)
    )
    .into_bytes()
}

/// A `tools/call` result that asks the client for input before it calls again (2026-07-28); `requests`
/// is the JSON of its input requests.
pub fn input_required(id: &str, requests: &str, state: &str, note: &DecisionNote<'_>) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"input_required\",\"inputRequests\":{requests},\"requestState\":{},\"_meta\":{{\"dev.sluice/decision\":{}}}}}}}",
        json(state),
        json(note)
    )
    .into_bytes()
}

/// One message as one server-sent event.
pub fn sse_event(message: &[u8]) -> Vec<u8> {
    let mut out = b"event: message\n".to_vec();
    for line in message.split(|b| matches!(b, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
    out
}

/// The same answer under another id; none if `answer` is not a JSON object with an id.
pub fn relabelled(answer: &str, id: &str) -> Option<String> {
    let mut out = String::with_capacity(answer.len() + id.len());
    let mut at = 0;
    for (name, span) in text::members(answer, text::whole(answer)) {
        if unescape(name).is_some_and(|name| name == "id") {
            out.push_str(&answer[at..span.start]);
            out.push_str(id);
            at = span.end;
        }
    }
    (at > 0).then(|| {
        out.push_str(&answer[at..]);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> DecisionNote<'static> {
        DecisionNote {
            code: "rate_limited",
            rule: Some("/tools/executePython/limits/0"),
            counter: Some("executepython_rate"),
            retry_after_seconds: Some(23),
            approval: None,
            request_id: "019a1b2c-0000-7000-8000-000000000000",
            policy: Some("python-sandbox"),
            policy_version: Some(4),
        }
    }

    #[test]
    fn a_refused_call_is_exactly_as_the_contract_shows_it() {
        let text =
            "[POLICY DENIED] executePython is limited to 10 calls a minute. Retry after 23 s.";
        let result = String::from_utf8(refused_result("7", text, &note(), false)).expect("UTF-8");
        assert_eq!(
            result,
            r#"{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"[POLICY DENIED] executePython is limited to 10 calls a minute. Retry after 23 s."}],"_meta":{"dev.sluice/decision":{"code":"rate_limited","rule":"/tools/executePython/limits/0","counter":"executepython_rate","retry_after_seconds":23,"request_id":"019a1b2c-0000-7000-8000-000000000000","policy":"python-sandbox","policy_version":4}}}}"#
        );
        let modern = String::from_utf8(refused_result("7", text, &note(), true)).expect("UTF-8");
        assert!(modern.contains(r#""result":{"resultType":"complete","isError":true"#));
    }

    #[test]
    fn errors_keep_the_id_as_written() {
        let error = error_answer(Some("\"007\""), -32600, "a \"b\"", None);
        assert_eq!(
            error,
            br#"{"jsonrpc":"2.0","id":"007","error":{"code":-32600,"message":"a \"b\""}}"#
        );
        let note = ErrorNote { code: "upstream_cut", may_have_run: Some(true), request_id: "r" };
        let error = String::from_utf8(error_answer(None, -32603, "x", Some(&note))).expect("UTF-8");
        assert!(error.contains(r#""id":null"#));
        assert!(
            error
                .contains(r#""data":{"code":"upstream_cut","may_have_run":true,"request_id":"r"}"#)
        );
    }

    #[test]
    fn an_answer_can_go_to_another_id() {
        assert_eq!(
            relabelled(r#"{"jsonrpc":"2.0", "id" : 1 ,"result":{"id":1,"n":1.0}}"#, "\"b\"")
                .as_deref(),
            Some(r#"{"jsonrpc":"2.0", "id" : "b" ,"result":{"id":1,"n":1.0}}"#)
        );
        assert_eq!(relabelled("[]", "1"), None);
    }
}

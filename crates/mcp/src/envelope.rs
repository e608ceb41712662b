//! One message from a client: what kind it is, and the slices of its bytes
//! that decisions are made on.

use std::borrow::Cow;

use crate::error::{Malformed, codes};
use crate::id::RawId;
use crate::scan::{self, Scanned, Slots};
use crate::text::string_value;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    /// The answer to a request of the server.
    Response,
}

/// What a `tools/call` calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The tool's name, unescaped, otherwise as it was written.
    pub name: Cow<'a, str>,
    /// The raw text of `arguments`, an object; `{}` where it is absent or null.
    pub arguments: &'a str,
}

/// A message that follows JSON-RPC as MCP wants it.
#[derive(Debug, Clone)]
pub struct Envelope<'a> {
    pub kind: Kind,
    /// Present on requests and responses.
    pub id: Option<RawId<'a>>,
    /// Empty on responses.
    pub method: Cow<'a, str>,
    /// Raw text of `params`.
    pub params: Option<&'a str>,
    /// Present exactly when the method is `tools/call`.
    pub tool: Option<ToolCall<'a>>,
    /// What `Mcp-Name` must repeat: tool or prompt name, resource URI, task id.
    pub subject: Option<Cow<'a, str>>,
    /// `_meta["io.modelcontextprotocol/protocolVersion"]`, which only 2026-07-28 and later have.
    pub meta_version: Option<Cow<'a, str>>,
    /// `_meta["io.modelcontextprotocol/clientCapabilities"]` is an object.
    pub meta_capabilities: bool,
    /// Raw text of `_meta.progressToken`, a string or an integer.
    pub progress_token: Option<&'a str>,
    /// The request that a `notifications/cancelled` cancels.
    pub cancels: Option<RawId<'a>>,
    /// `clientInfo.name`, of `initialize` or of `_meta`.
    pub client_name: Option<Cow<'a, str>>,
    /// `protocolVersion` of `initialize`.
    pub initialize_version: Option<Cow<'a, str>>,
    /// Raw text of `requestState`, on a repeated call that brings what was asked for (2026-07-28).
    pub request_state: Option<&'a str>,
    /// `inputResponses` is there (2026-07-28).
    pub has_input_responses: bool,
}

/// Reads a request body. An error is to be answered with HTTP 400.
pub fn read(body: &[u8]) -> Result<Envelope<'_>, Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| Malformed::syntax("not UTF-8"))?;
    let scanned = scan::scan(text, scan::MAX_DEPTH)?;
    let envelope = check(text, &scanned);
    envelope.map_err(|error| describe(error, &scanned.slots, scanned.object))
}

/// Adds what is known of a message that is refused, for its answer and the log.
fn describe(mut error: Malformed, slots: &Slots<'_>, object: bool) -> Malformed {
    if object {
        error.id = slots.id.and_then(RawId::parse).map(|id| id.as_str().to_owned());
        error.method = slots.method.and_then(string_value).map(Cow::into_owned);
        if error.method.as_deref() == Some("tools/call") {
            error.tool = slots.name.and_then(string_value).map(Cow::into_owned);
        }
    }
    error
}

const fn invalid(message: &'static str) -> Malformed {
    Malformed::new(codes::INVALID_REQUEST, message)
}

const fn bad_params(message: &'static str) -> Malformed {
    Malformed::new(codes::INVALID_PARAMS, message)
}

fn check<'a>(text: &str, scanned: &Scanned<'a>) -> Result<Envelope<'a>, Malformed> {
    let slots = &scanned.slots;
    if !scanned.object {
        let batch = text.trim_start().starts_with('[');
        return Err(invalid(if batch {
            "batches are not accepted; send one message at a time"
        } else {
            "a message is a JSON object"
        }));
    }
    if let Some(fault) = scanned.fault {
        return Err(invalid(fault));
    }
    if slots.jsonrpc.and_then(string_value).as_deref() != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let id = match slots.id {
        None => None,
        Some(raw) => Some(RawId::parse(raw).ok_or(invalid("`id` must be a string or an integer"))?),
    };
    let (kind, method) = kind(slots, id)?;
    let mut envelope = bare(kind, id, method, slots);
    if kind != Kind::Response {
        check_params(&mut envelope, slots)?;
    }
    Ok(envelope)
}

fn kind<'a>(slots: &Slots<'a>, id: Option<RawId<'a>>) -> Result<(Kind, Cow<'a, str>), Malformed> {
    match (slots.method, slots.result, slots.error) {
        (Some(raw), None, None) => {
            let method = string_value(raw).ok_or(invalid("`method` must be a string"))?;
            if method.is_empty() || method.len() > 256 {
                return Err(invalid("`method` must have 1 to 256 bytes"));
            }
            Ok((if id.is_some() { Kind::Request } else { Kind::Notification }, method))
        }
        (None, Some(_), None) | (None, None, Some(_)) if id.is_some() => {
            Ok((Kind::Response, Cow::Borrowed("")))
        }
        (None, Some(_), None) | (None, None, Some(_)) => Err(invalid("an answer needs an `id`")),
        (None, None, None) => Err(invalid("a message has a `method`, a `result` or an `error`")),
        _ => Err(invalid("a message has one of `method`, `result` and `error`")),
    }
}

fn bare<'a>(
    kind: Kind,
    id: Option<RawId<'a>>,
    method: Cow<'a, str>,
    slots: &Slots<'a>,
) -> Envelope<'a> {
    let response = kind == Kind::Response;
    let string = |raw: Option<&'a str>| if response { None } else { raw.and_then(string_value) };
    Envelope {
        kind,
        id,
        params: slots.params,
        tool: None,
        subject: None,
        meta_version: string(slots.meta_version),
        meta_capabilities: slots.meta_capabilities.is_some_and(|raw| raw.starts_with('{')),
        progress_token: None,
        cancels: None,
        client_name: string(slots.client_name),
        initialize_version: if method == "initialize" {
            string(slots.protocol_version)
        } else {
            None
        },
        request_state: slots.request_state,
        has_input_responses: slots.input_responses.is_some(),
        method,
    }
}

fn check_params<'a>(envelope: &mut Envelope<'a>, slots: &Slots<'a>) -> Result<(), Malformed> {
    match slots.params.map(|raw| raw.as_bytes()[0]) {
        None | Some(b'{') => {}
        // JSON-RPC knows positional parameters; MCP does not use them.
        Some(b'[') if crate::classify_method(&envelope.method) == crate::MethodKind::Unknown => {}
        Some(_) => return Err(bad_params("`params` must be an object")),
    }
    if slots.meta_version.is_some() && envelope.meta_version.is_none() {
        return Err(bad_params("the protocol version in `_meta` must be a string"));
    }
    if let Some(raw) = slots.progress_token {
        RawId::parse(raw).ok_or(bad_params("`progressToken` must be a string or an integer"))?;
        envelope.progress_token = Some(raw);
    }
    let string = |raw: Option<&'a str>, message| match raw {
        None => Ok(None),
        Some(raw) => string_value(raw).map(Some).ok_or(bad_params(message)),
    };
    match &*envelope.method {
        "tools/call" => return check_call(envelope, slots),
        "prompts/get" => {
            envelope.subject = string(slots.name, "`name` must be a string")?;
        }
        "resources/read" => envelope.subject = string(slots.uri, "`uri` must be a string")?,
        method if method.starts_with("tasks/") => {
            envelope.subject = string(slots.task_id, "`taskId` must be a string")?;
        }
        "notifications/cancelled" => {
            envelope.cancels = slots.request_id.and_then(RawId::parse);
        }
        _ => {}
    }
    Ok(())
}

fn check_call<'a>(envelope: &mut Envelope<'a>, slots: &Slots<'a>) -> Result<(), Malformed> {
    // As a notification it would still run the tool on some servers.
    if envelope.kind != Kind::Request {
        return Err(invalid("`tools/call` needs an `id`"));
    }
    let name = slots.name.and_then(string_value);
    let name = name.ok_or(bad_params("`tools/call` needs the tool's `name`, a string"))?;
    let arguments = match slots.arguments {
        None | Some("null") => "{}",
        Some(raw) if raw.starts_with('{') => raw,
        Some(_) => return Err(bad_params("`arguments` must be an object")),
    };
    envelope.subject = Some(name.clone());
    envelope.tool = Some(ToolCall { name, arguments });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (i64, Option<String>) {
        let error = read(body.as_bytes()).expect_err(body);
        (error.code, error.id)
    }

    #[test]
    fn a_call_is_read_as_slices_of_its_bytes() {
        let body = r#"{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{
            "_meta":{"progressToken":7,"io.modelcontextprotocol/clientInfo":{"name":"c"}},
            "name":"ec\u0068o","arguments":{ "n":1E400, "b":1.0 },"task":{"ttl":1}}}"#;
        let envelope = read(body.as_bytes()).expect("valid");
        let tool = envelope.tool.expect("a call");
        assert_eq!((&*tool.name, tool.arguments), ("echo", r#"{ "n":1E400, "b":1.0 }"#));
        assert_eq!(envelope.id.map(RawId::as_str), Some(r#""\u0061""#));
        assert_eq!(envelope.progress_token, Some("7"));
        assert_eq!(envelope.client_name.as_deref(), Some("c"));
    }

    #[test]
    fn kinds_of_message_are_told_apart() {
        for (body, kind) in [
            (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, Kind::Request),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Kind::Notification),
            (r#"{"jsonrpc":"2.0","id":"e","result":{"name":1,"_meta":5}}"#, Kind::Response),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}"#, Kind::Response),
            (r#"{"jsonrpc":"2.0","id":1,"method":"acme/x","params":[1]}"#, Kind::Request),
        ] {
            assert_eq!(read(body.as_bytes()).expect(body).kind, kind, "{body}");
        }
    }

    #[test]
    fn what_is_not_a_message_is_refused_with_its_code_and_id() {
        let invalid = codes::INVALID_REQUEST;
        let table = [
            ("[]", invalid, None),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, invalid, None),
            (r#"[1,"tools/call",{"name":"x"}]"#, invalid, None),
            ("5", invalid, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, codes::PARSE_ERROR, None),
            (r#"{"id":1,"method":"ping"}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, invalid, Some("1")),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, invalid, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, invalid, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, invalid, None),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, invalid, Some("\"a\"")),
            (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"2.0","result":{}}"#, invalid, None),
            (r#"{"jsonrpc":"2.0","id":1}"#, invalid, Some("1")),
            (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, invalid, None),
        ];
        for (body, code, id) in table {
            assert_eq!(refused(body), (code, id.map(str::to_owned)), "{body}");
        }
    }

    #[test]
    fn a_call_with_bad_params_is_refused() {
        let call = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
        };
        for params in [
            "[]",
            "null",
            "\"x\"",
            "{}",
            r#"{"name":5}"#,
            r#"{"name":null}"#,
            r#"{"name":"x","arguments":[]}"#,
            r#"{"name":"x","arguments":"{}"}"#,
            r#"{"name":"x","_meta":{"progressToken":1.5}}"#,
        ] {
            assert_eq!(refused(&call(params)).0, codes::INVALID_PARAMS, "{params}");
        }
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","na\u006de":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"name":"a","arguments":{"x":{"y":1,"y":2}}}"#,
            r#"{"name":"a\ud800"}"#,
            r#"{"name":"a","ARGUMENTS":{}}"#,
            "{\"name\":\"a\",\"ta\u{17f}k\":1}",
        ] {
            assert_eq!(
                refused(&call(params)),
                (codes::INVALID_REQUEST, Some("1".into())),
                "{params}"
            );
        }
        for params in [r#"{"name":"x"}"#, r#"{"name":"x","arguments":null}"#] {
            let body = call(params);
            let envelope = read(body.as_bytes()).expect("valid");
            assert_eq!(envelope.tool.map(|tool| tool.arguments), Some("{}"), "{params}");
        }
    }

    #[test]
    fn bytes_that_are_not_one_plain_text_are_refused() {
        for body in [
            b"\xef\xbb\xbf{}".as_slice(),
            b"\xff",
            b"{\"a\":\"\xc3\"}",
            b"",
            b" ",
            b"{}{}",
            b"{}\0",
        ] {
            assert_eq!(read(body).expect_err("refused").code, codes::PARSE_ERROR, "{body:?}");
        }
    }
}

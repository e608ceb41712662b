//! Why a request body is refused before anything is decided.

/// JSON-RPC and MCP error codes that the gateway itself uses.
pub mod codes {
    /// Not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but not a message that MCP allows.
    pub const INVALID_REQUEST: i64 = -32600;
    /// A method that is not there, or is switched off.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// A message whose parameters cannot be used.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The way to the upstream failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Headers and body disagree (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// Session not found, as the SDKs say it.
    pub const SESSION_NOT_FOUND: i64 = -32001;
}

/// A body that is refused with HTTP 400 and a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// JSON-RPC error code.
    pub code: i64,
    /// A sentence for the client; holds nothing of the body.
    pub message: &'static str,
    /// Raw text of the id, where exactly one valid one was there.
    pub id: Option<String>,
    /// The method, where one could be read.
    pub method: Option<String>,
    /// The tool's name, where one could be read.
    pub tool: Option<String>,
}

impl Malformed {
    pub(crate) const fn new(code: i64, message: &'static str) -> Self {
        Self { code, message, id: None, method: None, tool: None }
    }

    pub(crate) const fn syntax(message: &'static str) -> Self {
        Self::new(codes::PARSE_ERROR, message)
    }
}

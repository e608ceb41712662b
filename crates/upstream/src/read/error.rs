//! Why a server's tools could not be read: what happened, and what to do.

use crate::send::SendError;

/// A failed reading. `Display` says what happened; [`ReadError::advice`] what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Send(#[source] SendError),
    #[error("the server took too long to answer")]
    Slow,
    #[error("the server broke off its answer")]
    Cut,
    #[error("the server redirects to {0}")]
    Redirect(String),
    #[error("the server demands authorization (HTTP 401)")]
    Unauthorized,
    #[error("the server refuses the credentials (HTTP 403)")]
    Forbidden,
    #[error("there is nothing at this path (HTTP 404)")]
    NotFound,
    #[error("the address does not take POST requests (HTTP 405)")]
    MethodNotAllowed,
    #[error("the server has a fault of its own (HTTP {0})")]
    ServerFault(u16),
    #[error("the server asks to come back later (HTTP 429)")]
    TooManyRequests,
    #[error("the server answered with HTTP {0}")]
    Status(u16),
    #[error("the address answers with a web page, not with MCP")]
    WebPage,
    #[error("the address answers, but not with MCP")]
    NotMcp,
    #[error("the server answered with a coded body ({0}) although none was asked for")]
    Coded(String),
    #[error("the server opened no event stream at this address")]
    NoEventStream,
    #[error("the server's event stream names an endpoint on another server")]
    ForeignEndpoint,
    #[error("the server answered with the error {code}: {message}")]
    Rpc { code: i64, message: String },
    #[error("the server's answer is larger than {0} MiB")]
    TooLarge(usize),
    #[error("the server lists more than {0} tools")]
    TooManyTools(usize),
    #[error("the server's list of tools has no end: {0}")]
    Endless(&'static str),
    #[error("entry {index} of the server's list is not a tool: {problem}")]
    InvalidTool { index: usize, problem: String },
}

impl ReadError {
    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Send(SendError::Refused(_)) => "upstream_refused",
            Self::Send(SendError::Dns) => "upstream_dns",
            Self::Send(SendError::Tls(_)) => "upstream_tls",
            Self::Send(SendError::TimedOutBeforeSend | SendError::TimedOutAfterSend)
            | Self::Slow => "upstream_slow",
            Self::Send(SendError::NotHttp { .. }) | Self::NotMcp | Self::Coded(_) => {
                "upstream_not_mcp"
            }
            Self::Send(SendError::Unsendable(_)) => "upstream_unsendable",
            Self::Send(_) => "upstream_down",
            Self::Cut => "upstream_cut",
            Self::Redirect(_) => "upstream_redirects",
            Self::Unauthorized => "upstream_unauthorized",
            Self::Forbidden => "upstream_forbidden",
            Self::NotFound => "upstream_not_found",
            Self::MethodNotAllowed | Self::NoEventStream | Self::ForeignEndpoint => {
                "upstream_wrong_transport"
            }
            Self::ServerFault(_) => "upstream_fault",
            Self::TooManyRequests => "upstream_busy",
            Self::Status(_) => "upstream_status",
            Self::WebPage => "upstream_web_page",
            Self::Rpc { .. } => "upstream_error",
            Self::TooLarge(_) | Self::TooManyTools(_) | Self::Endless(_) => "upstream_too_large",
            Self::InvalidTool { .. } => "upstream_invalid_tools",
        }
    }

    /// What the person can do about it, as a sentence.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Send(SendError::Refused(_)) => {
                "Use the server's public address, or have the operator allow private upstreams."
            }
            Self::Send(SendError::Dns) => "Check the spelling of the host.",
            Self::Send(SendError::Tls(_)) => {
                "Check that the address should begin with https: and that the server's certificate is valid for its host."
            }
            Self::Send(SendError::NotHttp { .. }) => {
                "Check the port, and whether the address should begin with https:."
            }
            Self::Send(SendError::Unsendable(_)) => "Check the server's headers.",
            Self::Send(SendError::TimedOutBeforeSend | SendError::TimedOutAfterSend)
            | Self::Slow => "Check that the server is running and not overloaded, then try again.",
            Self::Send(_) | Self::Cut => {
                "Check that the server is running and that host and port are right, then try again."
            }
            Self::Redirect(_) => {
                "Sluice follows no redirects, so that credentials go nowhere else. If you trust that address, use it instead."
            }
            Self::Unauthorized => {
                "Add the server's API key or token under upstream headers, for example Authorization: Bearer …"
            }
            Self::Forbidden => "Check the key or token under upstream headers and what it may do.",
            Self::NotFound => "Check the path; many servers answer at /mcp, some at /sse.",
            Self::MethodNotAllowed | Self::NoEventStream => {
                "Check the path and the transport; older servers use HTTP+SSE at /sse."
            }
            Self::ForeignEndpoint => {
                "Sluice sends credentials only to the server you gave. Ask its maintainer to name an endpoint of its own."
            }
            Self::ServerFault(_) => "Look at the server's own log, then try again.",
            Self::TooManyRequests => "Wait a little, then try again.",
            Self::WebPage => {
                "This is the address for browsers. Look in the server's documentation for its MCP endpoint, often /mcp."
            }
            Self::Status(_) | Self::NotMcp | Self::Coded(_) => {
                "Check that this is the address of the server's MCP endpoint, often /mcp."
            }
            Self::Rpc { .. } => "Look up the error in the server's documentation, or in its log.",
            Self::TooLarge(_) | Self::TooManyTools(_) | Self::Endless(_) => {
                "This server is beyond what Sluice reads; split it, or ask its maintainer."
            }
            Self::InvalidTool { .. } => "Ask the server's maintainer to correct the tool.",
        }
    }

    /// Whether the answer is one that a server of the HTTP+SSE transport may give to a POST.
    pub(super) const fn may_be_sse(&self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::MethodNotAllowed
                | Self::Status(_)
                | Self::WebPage
                | Self::NotMcp
        )
    }

    /// Whether an error of the second transport tells more than that of the first.
    pub(super) const fn says_more_than(&self, first: &Self) -> bool {
        !self.may_be_sse() && first.may_be_sse()
    }
}

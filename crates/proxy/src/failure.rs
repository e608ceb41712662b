//! What can go wrong on the way to the upstream and back, and how the client is told.

use sluice_domain::Code;
use sluice_mcp::{ErrorNote, codes, error_answer};

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing was sent.
    Unreachable,
    /// Sent, and no answer came in time.
    TimedOut,
    /// The answer broke off.
    Cut,
    /// The answer is not MCP; the tool may have run.
    NotMcp,
    /// The upstream redirects; nothing ran there.
    Redirect,
    /// The upstream refused the gateway's own credentials.
    Unauthorized,
    /// A message of the upstream is larger than the bound.
    TooLarge,
}

impl Failure {
    pub(crate) const fn code(self) -> Code {
        match self {
            Self::Unreachable => Code::UpstreamUnreachable,
            Self::TimedOut => Code::UpstreamTimeout,
            Self::Cut => Code::UpstreamCut,
            Self::NotMcp | Self::Redirect => Code::UpstreamNotMcp,
            Self::Unauthorized => Code::UpstreamUnauthorized,
            Self::TooLarge => Code::UpstreamTooLarge,
        }
    }

    pub(crate) const fn may_have_run(self) -> bool {
        matches!(self, Self::TimedOut | Self::Cut | Self::NotMcp | Self::TooLarge)
    }

    /// A sentence for the client; `call`: the request was a `tools/call`.
    pub(crate) const fn message(self, call: bool) -> &'static str {
        match (self, call) {
            (Self::Unreachable, true) => {
                "The upstream server could not be reached. The tool did not run."
            }
            (Self::Unreachable, false) => "The upstream server could not be reached.",
            (Self::TimedOut, true) => {
                "The upstream server did not answer in time. Outcome unknown: the tool may have run."
            }
            (Self::TimedOut, false) => "The upstream server did not answer in time.",
            (Self::Cut, true) => {
                "The upstream server's answer broke off. Outcome unknown: the tool may have run."
            }
            (Self::Cut, false) => "The upstream server's answer broke off.",
            (Self::NotMcp, true) => {
                "The upstream server's answer is not MCP. Outcome unknown: the tool may have run."
            }
            (Self::NotMcp, false) => "The upstream server's answer is not MCP.",
            (Self::Redirect, _) => {
                "The upstream server redirects elsewhere, which is not followed."
            }
            (Self::Unauthorized, _) => {
                "The upstream server refused the gateway's credentials. Ask the server's administrator."
            }
            (Self::TooLarge, true) => {
                "The upstream server's answer is larger than the gateway passes on. The tool may have run."
            }
            (Self::TooLarge, false) => {
                "The upstream server's answer is larger than the gateway passes on."
            }
        }
    }

    /// The JSON-RPC error for the request with this raw id.
    pub(crate) fn answer(self, id: Option<&str>, request_id: &str, call: bool) -> Vec<u8> {
        let note = ErrorNote {
            code: self.code().as_str(),
            may_have_run: call.then(|| self.may_have_run()),
            request_id,
        };
        error_answer(id, codes::INTERNAL_ERROR, self.message(call), Some(&note))
    }
}

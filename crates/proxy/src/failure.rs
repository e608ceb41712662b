//! What can go wrong on the way to the upstream and back, and how the client is told.

use sluice_domain::Code;
use sluice_mcp::{ErrorNote, codes, error_answer};
use sluice_upstream::SendError;

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing was sent; why, for the log.
    Unreachable(&'static str),
    /// No secure connection, so nothing was sent; why, for the log.
    Tls(&'static str),
    /// Connecting took too long; nothing was sent.
    ConnectTimedOut,
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
    /// The grant was revoked or has expired while the upstream worked.
    Revoked,
}

impl From<&SendError> for Failure {
    fn from(error: &SendError) -> Self {
        match error {
            SendError::Refused(what) | SendError::Unsendable(what) => Self::Unreachable(what),
            SendError::Dns => Self::Unreachable("its name cannot be resolved"),
            SendError::Connect => Self::Unreachable("it does not accept connections"),
            SendError::ClosedBeforeSend => Self::Unreachable("it closed the connection at once"),
            SendError::Tls(words) if words.contains("certificate") => {
                Self::Tls("its certificate is not valid")
            }
            SendError::Tls(_) => Self::Tls("the handshake failed"),
            SendError::TimedOutBeforeSend => Self::ConnectTimedOut,
            SendError::TimedOutAfterSend => Self::TimedOut,
            SendError::NotHttp { sent: true, .. } => Self::NotMcp,
            SendError::NotHttp { sent: false, .. } => Self::Unreachable("it does not speak HTTP"),
            SendError::Cut(_) => Self::Cut,
        }
    }
}

impl Failure {
    /// The stored address or credentials cannot be used.
    pub(crate) const UNUSABLE: Self =
        Self::Unreachable("its stored address or credentials cannot be used");

    pub(crate) const fn code(self) -> Code {
        match self {
            Self::Unreachable(_) => Code::UpstreamUnreachable,
            Self::Tls(_) => Code::UpstreamTls,
            Self::ConnectTimedOut => Code::UpstreamConnectTimeout,
            Self::TimedOut => Code::UpstreamTimeout,
            Self::Cut => Code::UpstreamCut,
            Self::NotMcp | Self::Redirect => Code::UpstreamNotMcp,
            Self::Unauthorized => Code::UpstreamUnauthorized,
            Self::TooLarge => Code::UpstreamTooLarge,
            Self::Revoked => Code::Cancelled,
        }
    }

    pub(crate) const fn may_have_run(self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Tls(_)
            | Self::ConnectTimedOut
            | Self::Redirect
            | Self::Unauthorized => false,
            Self::TimedOut | Self::Cut | Self::NotMcp | Self::TooLarge | Self::Revoked => true,
        }
    }

    /// Whether nothing of the request reached the upstream, so that what was charged is given back.
    pub(crate) const fn never_sent(self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Tls(_) | Self::ConnectTimedOut)
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Unreachable(_) => "The upstream server could not be reached.",
            Self::Tls(_) => "No secure connection to the upstream server could be made.",
            Self::ConnectTimedOut => "Connecting to the upstream server took too long.",
            Self::TimedOut => "The upstream server did not answer in time.",
            Self::Cut => "The upstream server's answer broke off.",
            Self::NotMcp => "The upstream server's answer is not MCP.",
            Self::Redirect => "The upstream server redirects elsewhere, which is not followed.",
            Self::Unauthorized => {
                "The upstream server refused the gateway's credentials. Ask the server's administrator."
            }
            Self::TooLarge => "The upstream server's answer is larger than the gateway passes on.",
            Self::Revoked => {
                "The grant was revoked or has expired while the upstream server worked."
            }
        }
    }

    /// What the client is told; `call`: the request was a `tools/call`.
    pub(crate) fn message(self, call: bool) -> String {
        let what = self.what();
        match self {
            _ if !call => what.to_owned(),
            _ if self.never_sent() => format!("{what} The tool did not run."),
            _ if self.may_have_run() => {
                format!("{what} Outcome unknown: the tool may have run.")
            }
            _ => what.to_owned(),
        }
    }

    /// What the log keeps.
    pub(crate) fn log_message(self, call: bool) -> String {
        match self {
            Self::Unreachable(why) | Self::Tls(why) => {
                format!("{} Reason: {why}.", self.message(call))
            }
            _ => self.message(call),
        }
    }

    /// The JSON-RPC error for the request with this raw id.
    pub(crate) fn answer(self, id: Option<&str>, request_id: &str, call: bool) -> Vec<u8> {
        let note = ErrorNote {
            code: self.code().as_str(),
            may_have_run: call.then(|| self.may_have_run()),
            request_id,
        };
        error_answer(id, codes::INTERNAL_ERROR, &self.message(call), Some(&note))
    }
}

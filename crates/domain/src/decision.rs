//! The words for what became of a call.

use crate::words::words;

words!(
    /// What the gateway did with a request.
    Outcome, "outcome" {
        /// Forwarded to the upstream.
        Allowed = "allowed",
        /// Refused by a rule or a setting.
        Denied = "denied",
        /// Refused by a limit.
        Limited = "limited",
        /// Refused as if the tool did not exist.
        Hidden = "hidden",
        /// Parked for a person.
        Waiting = "waiting",
        /// Forwarded, and the upstream or the way to it failed.
        Failed = "failed",
        /// Malformed; never decided.
        Rejected = "rejected",
    }
);

words!(
    /// The stable code of a decision, in the log, `_meta` and the API.
    Code, "code" {
        Allowed = "allowed",
        NoPolicy = "no_policy",
        UnknownTool = "unknown_tool",
        ToolChanged = "tool_changed",
        DefaultDeny = "default_deny",
        RequireFailed = "require_failed",
        DenyIfMatched = "deny_if_matched",
        ArgumentsInvalid = "arguments_invalid",
        AmountInvalid = "amount_invalid",
        RateLimited = "rate_limited",
        LimitsUnavailable = "limits_unavailable",
        ApprovalPending = "approval_pending",
        ApprovalDenied = "approval_denied",
        ApprovalExpired = "approval_expired",
        TooManyPending = "too_many_pending",
        LogUnavailable = "log_unavailable",
        NetworkNotAllowed = "network_not_allowed",
        /// The method is switched off for the server, or is not of the specification.
        MethodNotAllowed = "method_not_allowed",
        /// Not JSON-RPC as MCP wants it; nothing was forwarded.
        Malformed = "malformed",
        /// The upstream could not be reached; the tool did not run.
        UpstreamUnreachable = "upstream_unreachable",
        /// No secure connection to the upstream; the tool did not run.
        UpstreamTls = "upstream_tls",
        /// Connecting to the upstream took too long; the tool did not run.
        UpstreamConnectTimeout = "upstream_connect_timeout",
        /// No answer in time; the tool may have run.
        UpstreamTimeout = "upstream_timeout",
        /// The answer broke off; the tool may have run.
        UpstreamCut = "upstream_cut",
        /// The answer was not MCP.
        UpstreamNotMcp = "upstream_not_mcp",
        /// The upstream refused the gateway's own credentials.
        UpstreamUnauthorized = "upstream_unauthorized",
        /// The upstream's answer is larger than the bound.
        UpstreamTooLarge = "upstream_too_large",
        /// The client went away or cancelled.
        Cancelled = "cancelled",
    }
);

//! A server's settings that bear on the decision, and their defaults.

use serde::{Deserialize, Serialize};

use crate::words::words;

words!(
    /// How to speak to the upstream.
    Transport, "transport" {
        /// Streamable HTTP first, then HTTP+SSE.
        Auto = "auto",
        StreamableHttp = "streamable_http",
        /// The HTTP+SSE transport of 2024-11-05.
        Sse = "sse",
    }
);

words!(
    /// A call of a tool that the upstream's list does not name.
    UnknownTools, "unknown_tools" {
        Deny = "deny",
        /// The policy alone decides.
        ByPolicy = "by_policy",
    }
);

words!(
    /// A call of a tool whose definition changed since it was reviewed.
    OnDrift, "on_drift" {
        AllowAndFlag = "allow_and_flag",
        Deny = "deny",
    }
);

words!(
    /// Arguments that do not fit the tool's pinned input schema.
    ValidateArguments, "validate_arguments" {
        Off = "off",
        Log = "log",
        Deny = "deny",
    }
);

words!(
    /// Which methods pass.
    Methods, "methods" {
        /// Those of the MCP specification.
        Spec = "spec",
        /// Any.
        Any = "any",
    }
);

words!(
    /// Whether a part of MCP passes at all.
    Access, "access" {
        Allow = "allow",
        Deny = "deny",
    }
);

/// What of a server's settings the proxy reads. Stored as one JSON column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    pub transport: Transport,
    pub unknown_tools: UnknownTools,
    pub on_drift: OnDrift,
    pub validate_arguments: ValidateArguments,
    pub methods: Methods,
    pub resources: Access,
    pub prompts: Access,
    /// A tool with signs of a poisoned definition waits for review before agents see it.
    pub hold_poisoned: bool,
    /// Its tools' definitions and its public address may stand in the public catalogue.
    pub publish_tools: bool,
    /// Keep argument values (redacted) in the log, not only their names.
    pub log_argument_values: bool,
    /// Seconds to wait for an upstream connection.
    pub connect_timeout_s: u32,
    /// Seconds that an upstream answer may stay silent.
    pub idle_timeout_s: u32,
    /// Seconds that one request may take in all; 0: no bound (streams).
    pub total_timeout_s: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            transport: Transport::Auto,
            unknown_tools: UnknownTools::Deny,
            on_drift: OnDrift::AllowAndFlag,
            validate_arguments: ValidateArguments::Log,
            methods: Methods::Spec,
            resources: Access::Allow,
            prompts: Access::Allow,
            hold_poisoned: true,
            publish_tools: false,
            log_argument_values: false,
            connect_timeout_s: 5,
            idle_timeout_s: 300,
            total_timeout_s: 3_600,
        }
    }
}

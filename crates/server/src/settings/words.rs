//! The closed sets of words that settings take.

use clap::ValueEnum;
use sluice_domain::OnUnavailable;

/// Which half of Sluice a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Dashboard, API and proxy.
    All,
    /// The proxy alone.
    Proxy,
    /// Dashboard and API alone.
    Control,
}

impl Part {
    pub(crate) fn serves_proxy(self) -> bool {
        self != Self::Control
    }

    pub(crate) fn serves_control(self) -> bool {
        self != Self::Proxy
    }
}

/// A switch that may be left to the circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AutoSwitch {
    /// Yes only if the listen addresses and the public URL are loopback.
    Auto,
    Yes,
    No,
}

impl AutoSwitch {
    /// What the switch means where `auto` stands for `by_circumstance`.
    pub(crate) fn resolve(self, by_circumstance: bool) -> bool {
        match self {
            Self::Auto => by_circumstance,
            Self::Yes => true,
            Self::No => false,
        }
    }
}

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignupWord {
    /// Anybody who reaches the page.
    Open,
    /// Only who was invited.
    Invite,
    /// Nobody; `sluice admin create-user` makes accounts.
    Closed,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What becomes of a call that cannot be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogUnavailable {
    /// It is made all the same; its row is lost, and counted in `sluice_log_lost_total`.
    Allow,
    /// It is refused with the code `log_unavailable` before its server learns of it.
    Deny,
}

impl From<LogUnavailable> for OnUnavailable {
    fn from(word: LogUnavailable) -> Self {
        match word {
            LogUnavailable::Allow => Self::Allow,
            LogUnavailable::Deny => Self::Deny,
        }
    }
}

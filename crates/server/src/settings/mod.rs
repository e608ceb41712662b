//! Settings: a flag, an environment variable and a line of help each; parsed once here, checked
//! together in `check`, passed down as values.

mod check;
mod collector;
mod limits;
mod mail;
mod network;
mod providers;
mod storage;
mod words;

use clap::Args;

pub(crate) use collector::{CollectorArgs, SamplerWord, Sent};
pub(crate) use limits::BoundsArgs;
pub(crate) use mail::MailArgs;
pub(crate) use network::{NetworkArgs, Places};
pub(crate) use providers::{ProviderArgs, ProviderError};
pub(crate) use storage::StorageArgs;
pub(crate) use words::{LogFormat, LogUnavailable, Part, SignupWord};

/// Everything that `sluice serve` can be told.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
    #[command(flatten)]
    pub(crate) mail: MailArgs,
    #[command(flatten)]
    pub(crate) providers: ProviderArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) collector: CollectorArgs,
}

/// What is written to standard error.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// How log lines look.
    #[arg(long, env = "SLUICE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Which log lines are written: `error`, `warn`, `info`, `debug`, or a list such as `info,sluice_proxy=debug`.
    #[arg(long, env = "SLUICE_LOG", default_value = "info")]
    pub(crate) log: String,
}

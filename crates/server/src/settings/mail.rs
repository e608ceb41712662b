//! How mail is sent. Without it Sluice sends none, and its pages say so.

use clap::Args;
use secrecy::SecretString;
use sluice_upstream::{Mailer, MailerOptions};
use url::Url;

use crate::failure::{Failure, Outcome};

/// The mail server and the sender.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Mail")]
pub(crate) struct MailArgs {
    /// The mail server: `smtp://user:password@host:587` (STARTTLS) or `smtps://…`; `?tls=none` for an
    /// open line. Without it no mail is sent.
    #[arg(long, env = "SLUICE_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) smtp_url: Option<SecretString>,
    /// Whom mail is from, such as `Sluice <sluice@example.com>` [default: sluice at the public URL's host].
    #[arg(long, env = "SLUICE_MAIL_FROM", value_name = "SENDER")]
    pub(crate) mail_from: Option<String>,
}

impl MailArgs {
    /// The mailer, where mail is set up.
    pub(crate) fn mailer(&self, public_url: &Url) -> Outcome<Option<Mailer>> {
        let Some(url) = &self.smtp_url else { return Ok(None) };
        let host = public_url.host_str().unwrap_or("localhost");
        let from = self.mail_from.clone().unwrap_or_else(|| format!("Sluice <sluice@{host}>"));
        let options = MailerOptions {
            url: url.clone(),
            from,
            hello: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            extra_roots: Vec::new(),
        };
        Mailer::new(&options).map(Some).map_err(|error| {
            Failure::settings(error).remedy("correct SLUICE_SMTP_URL or SLUICE_MAIL_FROM")
        })
    }
}

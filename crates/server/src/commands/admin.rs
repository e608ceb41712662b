//! `sluice admin`: the operator's tools. An operator is who has the machine; there is no operator
//! login. They work on the database beside a running server.

use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use sluice_control::operator::{ApiTokenMade, Leaked, Operator};
use sluice_control::{Attempts, ControlError};
use sluice_domain::{Role, WorkspaceLimits};

use crate::failure::{Failure, Outcome};
use crate::open::{self, Schema};
use crate::settings::StorageArgs;
use crate::{clock, data_dir, say};

/// The operator's commands.
#[derive(Debug, Args)]
pub(crate) struct AdminCommand {
    #[command(subcommand)]
    what: Admin,
}

#[derive(Debug, Subcommand)]
enum Admin {
    /// Makes an account.
    CreateUser {
        /// The person's e-mail address.
        #[arg(long)]
        email: String,
        /// Reads the password from standard input: its first line.
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Makes an API token and prints `{"workspace":"…","token":"slu_…"}`.
    ApiToken {
        /// Whose token it is.
        #[arg(long)]
        email: String,
        /// The workspace's name or slug.
        #[arg(long)]
        workspace: String,
        /// Makes what is missing of user, workspace and membership.
        #[arg(long)]
        create: bool,
        /// What the token may do: `viewer`, `policy_manager` or `admin`.
        #[arg(long, default_value_t = Role::Admin)]
        role: Role,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Sets a new password and ends the person's logins.
    ResetPassword {
        /// The person's e-mail address.
        #[arg(long)]
        email: String,
        /// Reads the password from standard input: its first line.
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Takes the second factor of somebody who has lost the app and the recovery codes, and ends the
    /// person's logins.
    ResetSecondFactor {
        /// The person's e-mail address.
        #[arg(long)]
        email: String,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Finds what a token is that leaked, and ends it: a grant, an API token, a login or an
    /// invitation of any workspace.
    RevokeToken {
        /// Reads the token from standard input: its first line.
        #[arg(long, required = true)]
        token_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Sets what a workspace may have, and shows it.
    SetLimits {
        /// The workspace's slug.
        workspace: String,
        /// The most servers: a number, or `default` for what the installation allows.
        #[arg(long, value_name = "NUMBER")]
        servers: Option<Most>,
        /// The most live grants.
        #[arg(long, value_name = "NUMBER")]
        grants: Option<Most>,
        /// The most tool calls in a day (UTC); `default`: as many as the policies allow.
        #[arg(long, value_name = "NUMBER")]
        calls_per_day: Option<Most>,
        /// Days that the call log is kept; 0: for ever; `default`: as `--call-retention` says.
        #[arg(long, value_name = "NUMBER")]
        log_days: Option<Most>,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Lets members of a workspace come in any way again, where it asked for an identity provider that
    /// is there no more.
    LiftProvider {
        /// The workspace's slug.
        workspace: String,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Shows who was refused at the door: bad and revoked tokens, foreign web pages, unknown servers.
    SecurityLog {
        /// How far back to look.
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=9_000))]
        hours: u16,
        /// Places at most, the most frequent first.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Switches a workspace off: its grants are refused and nothing in it can be changed.
    Suspend {
        /// The workspace's slug.
        workspace: String,
        /// Switches it on again.
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

/// A number, or `default`.
#[derive(Debug, Clone, Copy)]
struct Most(Option<u32>);

impl std::str::FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self(None)),
            _ => text.parse().map(|most| Self(Some(most))).map_err(|_| {
                format!("`{text}` is neither `default` nor a number from 0 to {}", u32::MAX)
            }),
        }
    }
}

pub(crate) async fn run(command: AdminCommand) -> Outcome {
    match command.what {
        Admin::CreateUser { email, storage, .. } => {
            let password = first_line("password")?;
            operator(&storage).await?.create_user(&email, password).await.map_err(refused)?;
            say!("Made an account for {email}.");
        }
        Admin::ApiToken { email, workspace, create, role, storage } => {
            let made = make_token(&storage, &email, &workspace, role, create).await?;
            let token = made.token.expose_secret();
            say!("{}", json!({"workspace": made.workspace, "token": token}));
        }
        Admin::ResetPassword { email, storage, .. } => {
            let password = first_line("password")?;
            operator(&storage).await?.reset_password(&email, password).await.map_err(refused)?;
            say!("Set a new password for {email}; every login of this account has ended.");
        }
        Admin::ResetSecondFactor { email, storage } => {
            operator(&storage).await?.reset_second_factor(&email).await.map_err(refused)?;
            say!(
                "Took the second factor of {email}; every login of this account has ended, and the \
                 password alone signs in."
            );
        }
        Admin::RevokeToken { storage, .. } => {
            let token = first_line("token")?;
            let found = operator(&storage).await?.revoke_token(&token).await.map_err(refused)?;
            say!("{}", told(&found));
        }
        Admin::SetLimits { workspace, servers, grants, calls_per_day, log_days, storage } => {
            let wanted = [servers, grants, calls_per_day, log_days];
            set_limits(&storage, &workspace, wanted).await?;
        }
        Admin::LiftProvider { workspace, storage } => {
            operator(&storage).await?.lift_provider(&workspace).await.map_err(refused)?;
            say!("Members of the workspace {workspace} come in any way they like again.");
        }
        Admin::SecurityLog { hours, limit, json, storage } => {
            let since = clock::now() - TimeDelta::hours(hours.into());
            let found = operator(&storage).await?.refused_attempts(since, limit.into()).await;
            found.map_err(refused)?.iter().for_each(|one| attempt(one, json));
        }
        Admin::Suspend { workspace, undo, storage } => {
            operator(&storage).await?.suspend(&workspace, !undo).await.map_err(refused)?;
            let state = if undo { "on again" } else { "off" };
            say!("The workspace {workspace} is switched {state}.");
        }
    }
    Ok(())
}

/// Sets what a workspace may have, in the order of the flags, and shows it.
async fn set_limits(storage: &StorageArgs, workspace: &str, wanted: [Option<Most>; 4]) -> Outcome {
    let [servers, grants, calls_per_day, log_days] = wanted;
    let change = |mut limits: WorkspaceLimits| {
        let set = |limit: &mut Option<u32>, most: Option<Most>| {
            if let Some(Most(most)) = most {
                *limit = most;
            }
        };
        set(&mut limits.servers, servers);
        set(&mut limits.grants, grants);
        set(&mut limits.calls_per_day, calls_per_day);
        set(&mut limits.log_days, log_days);
        limits
    };
    let limits = operator(storage).await?.set_limits(workspace, change).await.map_err(refused)?;
    let shown = |limit: Option<u32>| limit.map_or("default".to_owned(), |most| most.to_string());
    say!(
        "The workspace {workspace} may have: servers {}, live grants {}, calls a day {}, days of log {}.",
        shown(limits.servers),
        shown(limits.grants),
        shown(limits.calls_per_day),
        shown(limits.log_days)
    );
    Ok(())
}

/// One line of the security log.
fn attempt(one: &Attempts, as_json: bool) {
    if as_json {
        let line = json!({"kind": one.kind.as_str(), "workspace": one.workspace,
            "grant": one.grant_id.map(|id| id.to_string()), "address": one.address,
            "times": one.times, "last_at": one.last_at});
        say!("{line}");
        return;
    }
    let of = one.workspace.as_ref().map(|slug| format!(" of {slug}")).unwrap_or_default();
    let (kind, from, times) = (one.kind.as_str(), &one.address, one.times);
    say!("{times:>8} × {kind}{of} from {from}, last at {}", one.last_at.to_rfc3339());
}

/// Makes an API token, and with `create` what it needs.
pub(crate) async fn make_token(
    storage: &StorageArgs,
    email: &str,
    workspace: &str,
    role: Role,
    create: bool,
) -> Outcome<ApiTokenMade> {
    let operator = operator(storage).await?;
    operator.api_token(email, workspace, role, create).await.map_err(refused)
}

pub(crate) async fn operator(storage: &StorageArgs) -> Outcome<Operator> {
    storage.check().map_err(Failure::settings)?;
    data_dir::prepare(storage)?;
    let vault = open::vault(storage)?;
    let db = open::database(storage, Schema::FillEmpty).await?;
    Ok(Operator::new(db, Arc::clone(&vault), clock::function()))
}

/// What a token was, in a sentence.
fn told(found: &Leaked) -> String {
    let what = match found.kind {
        "grant" => "the grant",
        "api_token" => "the API token",
        "login" => "a login of",
        "link" => "a mailed link of",
        _ => "the invitation of",
    };
    let mut words = format!("It is {what} `{}`", found.name);
    if let Some(server) = &found.server {
        words = format!("{words} for the server `{server}`");
    }
    if let Some(workspace) = &found.workspace {
        words = format!("{words} of the workspace {workspace}");
    }
    let used = found.last_used_at.map_or_else(
        || "never used".to_owned(),
        |at| format!("last used {}", at.format("%Y-%m-%d %H:%M:%S UTC")),
    );
    let now = if found.revoked_now { "It is revoked now." } else { "It was revoked before." };
    format!("{words}, {used}. {now}")
}

fn first_line(what: &str) -> Outcome<SecretString> {
    let mut text = String::new();
    std::io::stdin()
        .take(64 * 1024)
        .read_to_string(&mut text)
        .with_context(|| format!("the {what} cannot be read from standard input"))
        .map_err(Failure::settings)?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(Failure::settings(anyhow!("no {what} came on standard input")));
    }
    Ok(SecretString::from(line))
}

/// What control refuses is bad input; what it cannot do is a dependency.
pub(crate) fn refused(error: ControlError) -> Failure {
    match error {
        ControlError::Unavailable(_) => Failure::dependency(error),
        _ => Failure::bad(error),
    }
}

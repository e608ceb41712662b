//! `sluice approvals`: calls that wait for a person, listed and decided from a terminal or a script,
//! through the REST API of a running Sluice.

mod show;

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use http::{Method, StatusCode};
use hyper::body::Bytes;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::failure::{Failure, Outcome};
use crate::remote::{self, Ask, Remote};
use crate::say;

const WITHIN: Duration = Duration::from_secs(30);
/// The most that one request lists.
const PAGE: &str = "1000";
/// Lists end here; who has more waiting needs filters, not pages.
const MAX_LISTED: usize = 10_000;

/// Calls that wait for a person.
///
/// Works through the REST API of a running Sluice, with an API token of a member: viewers may list
/// and show, policy managers and admins may decide.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Lists them: what waits, the riskiest first and of those the oldest.
    List {
        /// In which state.
        #[arg(long, value_enum, default_value_t = Status::Pending)]
        status: Status,
        /// Only of this server, by its id.
        #[arg(long)]
        server: Option<Uuid>,
        /// Only of this grant, by its id.
        #[arg(long)]
        grant: Option<Uuid>,
        /// Only of this tool.
        #[arg(long)]
        tool: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Shows one with its arguments (secrets masked), who decided, and what happened to it.
    Show {
        /// The approval's id.
        id: Uuid,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Lets the call run, once.
    Approve {
        /// The approval's id.
        id: Uuid,
        /// Why; it stands in the log.
        #[arg(long, default_value = "", value_name = "TEXT")]
        note: String,
        /// Lets the same call pass without asking for so long: `1m` to `24h`.
        #[arg(long, value_name = "TIME")]
        allow_for: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Refuses calls.
    Deny {
        /// The approvals' ids.
        #[arg(required = true)]
        ids: Vec<Uuid>,
        /// Why; the agent is told it.
        #[arg(long, default_value = "", value_name = "TEXT")]
        note: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
    Running,
    Used,
    Unknown,
    All,
}

impl Status {
    /// As the API says it; none for all.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Pending => Some("pending"),
            Self::Approved => Some("approved"),
            Self::Denied => Some("denied"),
            Self::Expired => Some("expired"),
            Self::Running => Some("running"),
            Self::Used => Some("used"),
            Self::Unknown => Some("unknown"),
            Self::All => None,
        }
    }
}

/// Where, as whom, and how it is printed.
#[derive(Debug, Args)]
struct PlaceArgs {
    /// The address of the Sluice.
    #[arg(
        long,
        env = "SLUICE_PUBLIC_URL",
        default_value = "http://localhost:8080",
        value_name = "URL"
    )]
    url: Url,
    /// A member's API token.
    #[arg(long, env = "SLUICE_API_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    api_token: Option<SecretString>,
    /// The workspace's slug; without it the token's only workspace.
    #[arg(long)]
    workspace: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A workspace of a Sluice.
struct Place {
    remote: Remote,
    workspace: String,
    json: bool,
}

pub(crate) async fn run(command: ApprovalsCommand) -> Outcome {
    match command.what {
        What::List { status, server, grant, tool, place } => {
            let (server, grant) = (server.map(|id| id.to_string()), grant.map(|id| id.to_string()));
            let filters: Vec<(&str, &str)> = [
                ("status", status.word()),
                ("server", server.as_deref()),
                ("grant", grant.as_deref()),
                ("tool", tool.as_deref()),
            ]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
            list(&Place::open(place).await?, status, &filters).await
        }
        What::Show { id, place } => one(&Place::open(place).await?, id).await,
        What::Approve { id, note, allow_for, place } => {
            let mut body = json!({ "note": note });
            if let Some(time) = allow_for {
                body["allow_for"] = time.into();
            }
            let place = Place::open(place).await?;
            let approval = place.decide(id, "approve", &body).await?;
            place.told(&approval, show::approved);
            Ok(())
        }
        What::Deny { ids, note, place } => deny(&Place::open(place).await?, &ids, &note).await,
    }
}

async fn list(place: &Place, status: Status, filters: &[(&str, &str)]) -> Outcome {
    let mut items: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    while items.len() < MAX_LISTED {
        let mut query = filters.to_vec();
        query.push(("limit", PAGE));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: Value = remote::read(place.ask(Method::GET, &[], &query, None).await?)?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if status == Status::Pending {
        items.sort_by_cached_key(show::urgency);
    }
    if place.json {
        say!("{}", json!({ "items": items }));
        return Ok(());
    }
    for line in show::table(&items) {
        say!("{line}");
    }
    if items.is_empty() {
        let what = status.word().unwrap_or("any");
        say!("No approvals: none is in the state \"{what}\" in the workspace {}.", place.workspace);
    }
    Ok(())
}

async fn one(place: &Place, id: Uuid) -> Outcome {
    let id = id.to_string();
    let mut approval: Value = remote::read(place.ask(Method::GET, &[&id], &[], None).await?)?;
    let events: Value = remote::read(place.ask(Method::GET, &[&id, "events"], &[], None).await?)?;
    approval["events"] = events["items"].clone();
    place.told(&approval, show::whole);
    Ok(())
}

/// Refuses one after the other; what cannot be refused does not keep the others from being.
async fn deny(place: &Place, ids: &[Uuid], note: &str) -> Outcome {
    let mut worst: Option<Failure> = None;
    for id in ids {
        match place.decide(*id, "deny", &json!({ "note": note })).await {
            Ok(approval) => place.told(&approval, show::denied),
            Err(failure) => {
                if let Some(earlier) = worst.take() {
                    crate::complain(&earlier);
                }
                worst = Some(failure);
            }
        }
    }
    worst.map_or(Ok(()), Err)
}

impl Place {
    async fn open(args: PlaceArgs) -> Outcome<Self> {
        let remote = Remote::at(&args.url, args.api_token.as_ref())?;
        let workspace = match args.workspace {
            Some(slug) => slug,
            None => only_workspace(&remote).await?,
        };
        Ok(Self { remote, workspace, json: args.json })
    }

    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&SecretString>,
    ) -> Outcome<(StatusCode, Bytes)> {
        let mut whole = vec!["workspaces", self.workspace.as_str(), "approvals"];
        whole.extend(path);
        self.remote.ask(Ask { method, path: &whole, query, body, within: WITHIN }).await
    }

    /// Decides, and gives the approval as it stands then.
    async fn decide(&self, id: Uuid, how: &str, body: &Value) -> Outcome<Value> {
        let (id, body) = (id.to_string(), SecretString::from(body.to_string()));
        let (status, answer) = self.ask(Method::POST, &[&id, how], &[], Some(&body)).await?;
        if status != StatusCode::CONFLICT {
            return remote::read((status, answer));
        }
        let problem: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("somebody else was faster");
        Err(Failure::bad(anyhow!("approval {id} was not changed: {detail}")))
    }

    fn told(&self, approval: &Value, words: fn(&Value) -> Vec<String>) {
        if self.json {
            say!("{approval}");
            return;
        }
        for line in words(approval) {
            say!("{line}");
        }
    }
}

/// The workspace of a token that reaches only one.
async fn only_workspace(remote: &Remote) -> Outcome<String> {
    let ask = Ask { method: Method::GET, path: &["me"], query: &[], body: None, within: WITHIN };
    let me: Value = remote::read(remote.ask(ask).await?)?;
    let slugs: Vec<&str> = me["workspaces"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(|workspace| workspace["slug"].as_str())
        .collect();
    match slugs[..] {
        [slug] => Ok(slug.to_owned()),
        [] => Err(Failure::settings(anyhow!("the token reaches no workspace"))),
        _ => {
            let error = anyhow!("the token reaches several workspaces: {}", slugs.join(", "));
            Err(Failure::settings(error).remedy("name one with --workspace"))
        }
    }
}

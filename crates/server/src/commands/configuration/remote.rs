//! A Sluice that is reached over HTTP with an API token: what a pipeline has.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use http::{Method, StatusCode};
use hyper::body::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_api::configuration::{AppliedBody, FilesBody, PlanBody, TokenBody};
use sluice_control::configuration::{Files, Options};
use url::Url;

use super::folder::Folder;
use super::show::{faulty, place};
use super::tokens::Tokens;
use crate::failure::{Failure, Outcome};
use crate::remote;

/// Reading the tools of many new servers takes its time.
const TIMEOUT: Duration = Duration::from_mins(10);

/// A Sluice somewhere else.
#[derive(Debug, Args)]
#[command(next_help_heading = "Through the REST API")]
pub(super) struct RemoteArgs {
    /// The address of a Sluice: work through its REST API instead of on the database.
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// An admin's API token, for --url.
    #[arg(long, env = "SLUICE_API_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    api_token: Option<SecretString>,
}

/// The configuration of a workspace there.
#[derive(Debug)]
pub(super) struct Remote(remote::Remote);

/// What is sent.
#[derive(Debug)]
pub(super) struct Ask(SecretString);

impl Ask {
    pub(super) fn new(folder: &Folder, options: &Options) -> Self {
        let secrets: BTreeMap<_, _> =
            folder.secrets.iter().map(|(name, value)| (name, value.expose_secret())).collect();
        let body = json!({
            "files": folder.files,
            "secrets": secrets,
            "prune": options.prune,
            "overwrite_drift": options.overwrite,
            "take_tokens": options.take_tokens,
            "note": options.note,
        });
        Self(body.to_string().into())
    }
}

impl RemoteArgs {
    /// The Sluice to ask, if one is named.
    pub(super) fn open(&self) -> Outcome<Option<Remote>> {
        let Some(url) = &self.url else { return Ok(None) };
        remote::Remote::at(url, self.api_token.as_ref()).map(Remote).map(Some)
    }
}

impl Remote {
    pub(super) async fn export(&self, workspace: &str) -> Outcome<Files> {
        let answer = self.ask(Method::GET, workspace, None, None).await?;
        Ok(read::<FilesBody>(answer)?.files)
    }

    pub(super) async fn plan(&self, workspace: &str, ask: &Ask) -> Outcome<PlanBody> {
        read(self.ask(Method::POST, workspace, Some("plan"), Some(ask)).await?)
    }

    /// Tokens are kept also where the run stopped on its way.
    pub(super) async fn apply(
        &self,
        workspace: &str,
        ask: &Ask,
        tokens: &mut Tokens,
    ) -> Outcome<AppliedBody> {
        let (status, answer) = self.ask(Method::POST, workspace, Some("apply"), Some(ask)).await?;
        let made = serde_json::from_slice::<Value>(&answer).unwrap_or_default();
        let made: Vec<TokenBody> =
            serde_json::from_value(made["tokens"].clone()).unwrap_or_default();
        tokens.keep_all(made)?;
        read((status, answer))
    }

    async fn ask(
        &self,
        method: Method,
        workspace: &str,
        path: Option<&str>,
        body: Option<&Ask>,
    ) -> Outcome<(StatusCode, Bytes)> {
        let mut whole = vec!["workspaces", workspace, "configuration"];
        whole.extend(path);
        let body = body.map(|ask| &ask.0);
        let ask = remote::Ask { method, path: &whole, query: &[], body, within: TIMEOUT };
        self.0.ask(ask).await
    }
}

fn read<T: DeserializeOwned>((status, body): (StatusCode, Bytes)) -> Outcome<T> {
    if status.is_success() {
        return remote::read((status, body));
    }
    Err(problem(status, &serde_json::from_slice(&body).unwrap_or_default()))
}

/// A refusal, with its faults in lines.
fn problem(status: StatusCode, problem: &Value) -> Failure {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let faults = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    if status != StatusCode::UNPROCESSABLE_ENTITY || faults.is_empty() {
        return remote::problem(status, problem);
    }
    let lines: Vec<_> = faults
        .iter()
        .map(|fault| {
            let number = |name: &str| fault[name].as_u64().and_then(|n| u32::try_from(n).ok());
            let (line, column) = (number("line"), number("column"));
            let (pointer, detail) = (text(fault, "pointer"), text(fault, "detail"));
            place(fault["file"].as_str(), line, column, &pointer, &detail)
        })
        .collect();
    faulty(&lines)
}

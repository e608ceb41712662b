//! A Sluice that is reached over HTTP with an API token: what a pipeline has.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_api::configuration::{AppliedBody, FilesBody, PlanBody, TokenBody};
use sluice_control::configuration::{Files, Options};
use url::{Host, Url};

use super::folder::Folder;
use super::show::{faulty, place};
use super::tokens::Tokens;
use crate::failure::{Failure, Outcome};

/// Reading the tools of many new servers takes its time.
const TIMEOUT: Duration = Duration::from_mins(10);
const MAX_ANSWER: usize = 32 * 1024 * 1024;

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

/// Where to ask, and as whom.
#[derive(Debug)]
pub(super) struct Remote {
    url: Url,
    token: SecretString,
}

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
        let local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && local) {
            let words = anyhow!("--url {url} would send the token in the clear; use https");
            return Err(Failure::settings(words));
        }
        let token = self.api_token.clone().ok_or_else(|| {
            let failure = Failure::settings(anyhow!("--url needs an API token"));
            failure.remedy("set SLUICE_API_TOKEN; an admin makes one under API tokens")
        })?;
        Ok(Some(Remote { url: url.clone(), token }))
    }
}

impl Remote {
    pub(super) async fn export(&self, workspace: &str) -> Outcome<Files> {
        let answer = self.ask(Method::GET, workspace, "", None).await?;
        Ok(read::<FilesBody>(answer)?.files)
    }

    pub(super) async fn plan(&self, workspace: &str, ask: &Ask) -> Outcome<PlanBody> {
        read(self.ask(Method::POST, workspace, "/plan", Some(ask)).await?)
    }

    /// Tokens are kept also where the run stopped on its way.
    pub(super) async fn apply(
        &self,
        workspace: &str,
        ask: &Ask,
        tokens: &mut Tokens,
    ) -> Outcome<AppliedBody> {
        let (status, answer) = self.ask(Method::POST, workspace, "/apply", Some(ask)).await?;
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
        path: &str,
        body: Option<&Ask>,
    ) -> Outcome<(StatusCode, Bytes)> {
        let sent = self.send(method, workspace, path, body);
        let unreachable = |error: anyhow::Error| {
            let error = error.context(format!("no answer from {}", self.url));
            Failure::dependency(error).remedy("check --url, and that this Sluice runs")
        };
        match tokio::time::timeout(TIMEOUT, sent).await {
            Ok(answer) => answer.map_err(unreachable),
            Err(_) => Err(unreachable(anyhow!("it took longer than {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn send(
        &self,
        method: Method,
        workspace: &str,
        path: &str,
        body: Option<&Ask>,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let tls = rustls::ClientConfig::builder()
            .with_native_roots()
            .context("the machine's certificates cannot be read")?
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
        let mut url = self.url.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow!("it is no web address"))?
            .pop_if_empty()
            .extend(["api", "v1", "workspaces", workspace, "configuration"]);
        url.set_path(&format!("{}{path}", url.path()));
        let bearer = format!("Bearer {}", self.token.expose_secret());
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::AUTHORIZATION, bearer)
            .header(header::USER_AGENT, concat!("sluice/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|ask| Bytes::from(ask.0.expose_secret().to_owned()));
        let response = client.request(request.body(Full::new(bytes.unwrap_or_default()))?).await?;
        let status = response.status();
        let whole = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let whole = whole.map_err(|error| anyhow!("the answer broke off: {error}"))?;
        Ok((status, whole.to_bytes()))
    }
}

fn read<T: DeserializeOwned>((status, body): (StatusCode, Bytes)) -> Outcome<T> {
    if status.is_success() {
        return serde_json::from_slice(&body)
            .context("the answer is not one of this version of Sluice")
            .map_err(Failure::bad);
    }
    Err(problem(status, &serde_json::from_slice(&body).unwrap_or_default()))
}

/// A refusal, with its faults in lines.
fn problem(status: StatusCode, problem: &Value) -> Failure {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let faults = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    if status == StatusCode::UNPROCESSABLE_ENTITY && !faults.is_empty() {
        let lines: Vec<_> = faults
            .iter()
            .map(|fault| {
                let number = |name: &str| fault[name].as_u64().and_then(|n| u32::try_from(n).ok());
                let (line, column) = (number("line"), number("column"));
                let (pointer, detail) = (text(fault, "pointer"), text(fault, "detail"));
                place(fault["file"].as_str(), line, column, &pointer, &detail)
            })
            .collect();
        return faulty(&lines);
    }
    let mut words = text(problem, "detail");
    if let Some(at) = problem["at"].as_str() {
        words = format!(
            "stopped at {at}: {words} ({} objects were changed before it)",
            problem["done"]
        );
    }
    if words.is_empty() {
        words.push_str("it is no Sluice, or something stands before it");
    }
    let error = anyhow!("the server answered {}: {words}", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
            Failure::settings(error).remedy("check the token, its role and the workspace's slug")
        }
        status if status.is_server_error() => Failure::dependency(error),
        _ => Failure::bad(error),
    }
}

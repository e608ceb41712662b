//! A Sluice that is reached over HTTP with an API token: what a pipeline has, and a person at a
//! machine that is not the server.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use crate::failure::{Failure, Outcome};

const MAX_ANSWER: usize = 32 * 1024 * 1024;

/// One call of the REST API.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// What follows `/api/v1` in the path.
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// JSON, which may hold secrets.
    pub(crate) body: Option<&'a SecretString>,
    /// How long the answer may take.
    pub(crate) within: Duration,
}

/// Where to ask, and as whom.
#[derive(Debug)]
pub(crate) struct Remote {
    url: Url,
    token: SecretString,
}

impl Remote {
    /// The Sluice at an address. A token never goes over the net in the clear.
    pub(crate) fn at(url: &Url, token: Option<&SecretString>) -> Outcome<Self> {
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
        let token = token.cloned().ok_or_else(|| {
            let failure = Failure::settings(anyhow!("an API token is needed to ask {url}"));
            failure.remedy("set SLUICE_API_TOKEN; an admin makes one under API tokens")
        })?;
        Ok(Self { url: url.clone(), token })
    }

    /// Asks, and gives status and body whatever they are.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Outcome<(StatusCode, Bytes)> {
        let within = ask.within;
        let unreachable = |error: anyhow::Error| {
            let error = error.context(format!("no answer from {}", self.url));
            Failure::dependency(error).remedy("check --url, and that this Sluice runs")
        };
        match tokio::time::timeout(within, self.send(ask)).await {
            Ok(answer) => answer.map_err(unreachable),
            Err(_) => Err(unreachable(anyhow!("it took longer than {} s", within.as_secs()))),
        }
    }

    async fn send(&self, ask: Ask<'_>) -> anyhow::Result<(StatusCode, Bytes)> {
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
            .extend(["api", "v1"])
            .extend(ask.path);
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let bearer = format!("Bearer {}", self.token.expose_secret());
        let mut request = Request::builder()
            .method(ask.method)
            .uri(url.as_str())
            .header(header::AUTHORIZATION, bearer)
            .header(header::USER_AGENT, concat!("sluice/", env!("CARGO_PKG_VERSION")));
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = ask.body.map(|body| Bytes::from(body.expose_secret().to_owned()));
        let response = client.request(request.body(Full::new(bytes.unwrap_or_default()))?).await?;
        let status = response.status();
        let whole = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let whole = whole.map_err(|error| anyhow!("the answer broke off: {error}"))?;
        Ok((status, whole.to_bytes()))
    }
}

/// What a good answer says.
pub(crate) fn read<T: DeserializeOwned>((status, body): (StatusCode, Bytes)) -> Outcome<T> {
    if status.is_success() {
        return serde_json::from_slice(&body)
            .context("the answer is not one of this version of Sluice")
            .map_err(Failure::bad);
    }
    Err(problem(status, &serde_json::from_slice(&body).unwrap_or_default()))
}

/// A refusal, in the server's own words.
pub(crate) fn problem(status: StatusCode, problem: &Value) -> Failure {
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let mut words = text("detail");
    if let Some(at) = problem["at"].as_str() {
        words = format!(
            "stopped at {at}: {words} ({} objects were changed before it)",
            problem["done"]
        );
    }
    let faults = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    for fault in faults {
        let detail = fault["detail"].as_str().unwrap_or_default();
        let pointer = fault["pointer"].as_str().unwrap_or_default();
        words = format!("{words}\n  {pointer}: {detail}");
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

//! Signing in by an identity provider: OIDC (any issuer), and GitHub, which has no ID tokens.
//! The provider vouches for a person; which account that is, is decided here, and a linked identity alone
//! decides it: an address that the provider names never opens an account that exists.

mod github;
mod known;
mod oidc;
mod people;
pub(crate) mod required;

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sluice_domain::UserId;
use sluice_upstream::Fetch;
use sluice_vault::{Place, random_word, same};
use url::Url;

use crate::accounts::{Entry, Origin};
use crate::codes::{self, ProblemCode};
use crate::{Actor, Control, ControlError};
pub(crate) use known::Known;
pub use people::IdentityView;
pub use required::RequiredProvider;

/// How long a person may take at the provider.
const FLOW_LIFE: TimeDelta = TimeDelta::minutes(10);
/// A browser refuses cookies of 4 KiB.
const MAX_NEXT_BYTES: usize = 2_000;
/// The most bytes of an answer of a provider.
const MAX_ANSWER: usize = 256 * 1024;
const ANSWER: std::time::Duration = std::time::Duration::from_secs(10);

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    Oidc,
    GitHub,
}

/// An identity provider that the operator set up.
#[derive(Debug, Clone)]
pub struct Provider {
    /// In addresses: `google`.
    pub name: String,
    /// On buttons: `Google`.
    pub label: String,
    pub kind: ProviderKind,
    /// Exactly as the provider writes its own address.
    pub issuer: String,
    pub client_id: String,
    pub client_secret: SecretString,
}

/// Where the browser is to go, and what it is to keep meanwhile.
#[derive(Debug)]
pub struct ProviderFlow {
    pub url: String,
    pub cookie: SecretString,
}

/// What the browser brings back.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ProviderAnswer {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub iss: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub enum ProviderOutcome {
    /// Signed in, or the second factor is asked for; and where the person wanted to go.
    Entered { entry: Entry, next: String },
    /// The identity is linked to the account that asked for it.
    Linked { label: String },
}

/// What the browser keeps, sealed: bound to it, to the provider and to ten minutes.
#[derive(Debug, Serialize, Deserialize)]
struct Flow {
    provider: String,
    state: String,
    nonce: String,
    verifier: String,
    next: String,
    /// Who asked to link the identity.
    link: Option<UserId>,
    until: i64,
}

/// A person, as a provider vouches for them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vouched {
    subject: String,
    /// Present only where the provider says that it is the person's own.
    email: Option<String>,
    name: String,
}

fn refuse(code: ProblemCode, detail: impl Into<Cow<'static, str>>) -> ControlError {
    ControlError::Forbidden { code, detail: detail.into() }
}

/// The provider's answer cannot be believed. Why stands in the log as well.
fn unbelievable(provider: &Provider, why: &str) -> ControlError {
    tracing::warn!(provider = provider.name, why, "An identity provider's answer was refused");
    let label = &provider.label;
    refuse(codes::PROVIDER_ANSWER, format!("the answer of {label} was refused: {why}"))
}

fn unreachable(provider: &Provider, why: &str) -> ControlError {
    tracing::warn!(
        provider = provider.name,
        why,
        "An identity provider did not answer as it should"
    );
    let words = format!("{} does not answer as it should: {why}", provider.label);
    ControlError::Upstream { code: codes::PROVIDER_UNREACHABLE, words }
}

fn over() -> ControlError {
    let detail =
        "this sign-in was begun in another browser, or took longer than ten minutes; begin anew";
    refuse(codes::PROVIDER_FLOW, detail)
}

impl Control {
    /// The providers that the operator set up.
    pub fn providers(&self) -> &[Provider] {
        &self.settings().providers
    }

    fn provider(&self, name: &str) -> Result<&Provider, ControlError> {
        let found = self.providers().iter().find(|provider| provider.name == name);
        found.ok_or(ControlError::NotFound("sign-in provider"))
    }

    /// Where a provider sends the browser back to.
    fn callback(&self, provider: &Provider) -> String {
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        format!("{base}/login/with/{}/callback", provider.name)
    }

    /// Begins to sign in.
    pub async fn begin_with_provider(
        &self,
        name: &str,
        next: &str,
        from: &Origin,
    ) -> Result<ProviderFlow, ControlError> {
        let provider = self.provider(name)?;
        self.inner.throttle.provider(&from.address).await?;
        self.flow(provider, next, None).await
    }

    /// Begins to link an identity to the caller's account, for somebody who knows its password (or,
    /// where there is none, has just signed in).
    pub async fn begin_link(
        &self,
        actor: &Actor,
        name: &str,
        password: SecretString,
    ) -> Result<ProviderFlow, ControlError> {
        crate::accounts::login_only(actor)?;
        let provider = self.provider(name)?;
        self.inner.throttle.provider(&actor.address).await?;
        self.step_up(actor, password).await?;
        self.flow(provider, "/account", Some(actor.user)).await
    }

    async fn flow(
        &self,
        provider: &Provider,
        next: &str,
        link: Option<UserId>,
    ) -> Result<ProviderFlow, ControlError> {
        let word = || random_word().expose_secret().to_owned();
        let next = if next.len() <= MAX_NEXT_BYTES { next.to_owned() } else { String::new() };
        let flow = Flow {
            provider: provider.name.clone(),
            state: word(),
            nonce: word(),
            verifier: word(),
            next,
            link,
            until: (self.now() + FLOW_LIFE).timestamp(),
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&flow.verifier));
        let (endpoint, scope) = match provider.kind {
            ProviderKind::Oidc => (self.known(provider).await?.authorize, "openid email profile"),
            ProviderKind::GitHub => (github::authorize(provider)?, "read:user user:email"),
        };
        let mut url = endpoint;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &provider.client_id)
            .append_pair("redirect_uri", &self.callback(provider))
            .append_pair("scope", scope)
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let plain = serde_json::to_vec(&flow).map_err(ControlError::internal)?;
        let sealed = self.inner.vault.seal(Place::provider_flow(), &plain);
        let cookie = SecretString::from(URL_SAFE_NO_PAD.encode(sealed));
        Ok(ProviderFlow { url: url.into(), cookie })
    }

    /// Ends what [`Self::begin_with_provider`] or [`Self::begin_link`] began, in the same browser.
    pub async fn finish_with_provider(
        &self,
        name: &str,
        cookie: Option<&SecretString>,
        answer: &ProviderAnswer,
        actor: Option<&Actor>,
        from: &Origin,
    ) -> Result<ProviderOutcome, ControlError> {
        let provider = self.provider(name)?;
        let flow = cookie.and_then(|cookie| self.open_flow(cookie)).ok_or_else(over)?;
        let in_time = self.now().timestamp() < flow.until;
        if flow.provider != name || !in_time || !same(&flow.state, &answer.state) {
            return Err(over());
        }
        if !answer.error.is_empty() {
            let label = &provider.label;
            return Err(refuse(
                codes::PROVIDER_REFUSED,
                format!("{label} did not sign you in; try again"),
            ));
        }
        // Which provider answers, where it says so (RFC 9207).
        if answer.iss.as_ref().is_some_and(|issuer| *issuer != provider.issuer) {
            return Err(unbelievable(provider, "it comes from another provider"));
        }
        let vouched = match provider.kind {
            ProviderKind::Oidc => self.ask_oidc(provider, &flow, &answer.code).await?,
            ProviderKind::GitHub => self.ask_github(provider, &flow, &answer.code).await?,
        };
        if let Some(user) = flow.link {
            let actor = actor.filter(|actor| actor.user == user).ok_or_else(over)?;
            self.link(provider, actor, &vouched).await?;
            return Ok(ProviderOutcome::Linked { label: provider.label.clone() });
        }
        let entry = self.enter_as(provider, &vouched, &flow.next, from).await?;
        Ok(ProviderOutcome::Entered { entry, next: flow.next })
    }

    fn open_flow(&self, cookie: &SecretString) -> Option<Flow> {
        let sealed = URL_SAFE_NO_PAD.decode(cookie.expose_secret()).ok()?;
        let plain = self.inner.vault.open(Place::provider_flow(), &sealed).ok()?;
        serde_json::from_slice(&plain).ok()
    }

    /// Changes a code for what the provider's token endpoint gives.
    async fn exchange(
        &self,
        provider: &Provider,
        endpoint: &Url,
        (flow, code): (&Flow, &str),
        basic: bool,
    ) -> Result<HashMap<String, serde_json::Value>, ControlError> {
        let callback = self.callback(provider);
        let secret = provider.client_secret.expose_secret();
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", flow.verifier.as_str()),
        ];
        let mut headers = Vec::new();
        if basic {
            headers.push((http::header::AUTHORIZATION, basic_of(&provider.client_id, secret)));
        } else {
            pairs.extend([("client_id", provider.client_id.as_str()), ("client_secret", secret)]);
        }
        let form = serde_urlencoded::to_string(&pairs).map_err(ControlError::internal)?;
        let body =
            self.ask_provider(provider, endpoint, headers, Some(SecretString::from(form))).await?;
        serde_json::from_slice(&body)
            .map_err(|_| unreachable(provider, "what it gave for the code is no JSON object"))
    }

    /// One question to a provider, and its answer, if it is a good one.
    async fn ask_provider(
        &self,
        provider: &Provider,
        url: &Url,
        headers: Vec<(http::HeaderName, SecretString)>,
        form: Option<SecretString>,
    ) -> Result<Vec<u8>, ControlError> {
        let owner = uuid::Uuid::nil();
        let fetch =
            Fetch { owner, url: url.clone(), headers, form, most: MAX_ANSWER, time: ANSWER };
        let got = self.inner.upstream.fetch(&fetch).await;
        let got = got.map_err(|error| unreachable(provider, &error.to_string()))?;
        if got.status == 200 {
            return Ok(got.body.to_vec());
        }
        Err(unreachable(provider, &format!("it answered {}", got.status)))
    }
}

/// The client's name and secret, each percent-encoded first (RFC 6749 section 2.3.1).
fn basic_of(id: &str, secret: &str) -> SecretString {
    let encoded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    let pair = base64::engine::general_purpose::STANDARD.encode(pair);
    SecretString::from(format!("Basic {pair}"))
}

/// An address that a provider is asked at: https, or http on this machine.
fn endpoint(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let here = match url.host()? {
        url::Host::Domain(name) => name == "localhost",
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    };
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (plain && (url.scheme() == "https" || url.scheme() == "http" && here)).then_some(url)
}

impl Provider {
    /// Whether the issuer's address can be asked at all.
    pub fn is_askable(&self) -> bool {
        endpoint(&self.issuer).is_some_and(|url| url.query().is_none())
    }
}

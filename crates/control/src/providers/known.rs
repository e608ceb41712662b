//! What is known of a provider: its endpoints and keys, read from itself, kept for an hour, and read anew
//! when a token names a key that is not among them.

use std::collections::HashMap;
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sluice_vault::Jwks;
use url::Url;

use super::{Provider, endpoint, unreachable};
use crate::{Control, ControlError};

const KEPT: TimeDelta = TimeDelta::hours(1);
/// Keys are read anew no more often than this, whatever tokens say.
const KEYS_EVERY: TimeDelta = TimeDelta::minutes(1);

/// A provider's description of itself.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(super) authorize: Url,
    pub(super) token: Url,
    pub(super) keys: Jwks,
    /// Whether the client's secret goes into a header.
    pub(super) basic: bool,
    keys_at: Url,
    read_at: DateTime<Utc>,
    /// When keys were last read because one was missing.
    missed_at: Option<DateTime<Utc>>,
}

/// Descriptions by provider. One for each that the operator set up, so bounded.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<String, Description>>);

impl Known {
    fn get(&self, name: &str) -> Option<Description> {
        let known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get(name).cloned()
    }

    fn put(&self, name: &str, description: &Description) {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.insert(name.to_owned(), description.clone());
    }
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Control {
    /// What the provider says of itself.
    pub(super) async fn known(&self, provider: &Provider) -> Result<Description, ControlError> {
        let now = self.now();
        let known = self.inner.known.get(&provider.name);
        if let Some(known) = known.filter(|known| now - known.read_at < KEPT) {
            return Ok(known);
        }
        let odd = |what: &str| unreachable(provider, what);
        let at =
            format!("{}/.well-known/openid-configuration", provider.issuer.trim_end_matches('/'));
        let at = endpoint(&at).ok_or_else(|| odd("its address is none for https"))?;
        let body = self.ask_provider(provider, &at, Vec::new(), None).await?;
        let document: Document = serde_json::from_slice(&body)
            .map_err(|_| odd("its description is not one of OpenID Connect"))?;
        if document.issuer != provider.issuer {
            return Err(odd("it calls itself by another address than the one that was set up"));
        }
        let place = |text: &str| {
            endpoint(text).ok_or_else(|| odd("one of its addresses is none for https"))
        };
        let keys_at = place(&document.jwks_uri)?;
        // Without the member it is the header (OpenID Connect Discovery section 3).
        let methods = document.token_endpoint_auth_methods_supported.unwrap_or_default();
        let description = Description {
            authorize: place(&document.authorization_endpoint)?,
            token: place(&document.token_endpoint)?,
            keys: self.keys(provider, &keys_at).await?,
            basic: !methods.iter().any(|method| method == "client_secret_post"),
            keys_at,
            read_at: now,
            missed_at: None,
        };
        self.inner.known.put(&provider.name, &description);
        Ok(description)
    }

    /// The provider's keys of now, if they were not looked for a moment ago.
    pub(super) async fn newer_keys(
        &self,
        provider: &Provider,
        mut known: Description,
    ) -> Result<Option<Jwks>, ControlError> {
        let now = self.now();
        if known.missed_at.is_some_and(|at| now - at < KEYS_EVERY) {
            return Ok(None);
        }
        known.missed_at = Some(now);
        self.inner.known.put(&provider.name, &known);
        known.keys = self.keys(provider, &known.keys_at).await?;
        self.inner.known.put(&provider.name, &known);
        Ok(Some(known.keys))
    }

    async fn keys(&self, provider: &Provider, at: &Url) -> Result<Jwks, ControlError> {
        let body = self.ask_provider(provider, at, Vec::new(), None).await?;
        Jwks::read(&body).ok_or_else(|| unreachable(provider, "its keys are no key set"))
    }
}

//! GitHub, and GitHub Enterprise Server: OAuth 2.0 without ID tokens. Who it is and which address is
//! verified is asked for over its API.

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{Flow, Provider, Vouched, endpoint, unbelievable, unreachable};
use crate::{Control, ControlError};

const PUBLIC: &str = "https://github.com";

fn place(provider: &Provider, path: &str) -> Result<Url, ControlError> {
    let base = provider.issuer.trim_end_matches('/');
    endpoint(&format!("{base}{path}"))
        .ok_or_else(|| unreachable(provider, "its address is none for https"))
}

fn api(provider: &Provider, path: &str) -> Result<Url, ControlError> {
    if provider.issuer.trim_end_matches('/') == PUBLIC {
        return endpoint(&format!("https://api.github.com{path}"))
            .ok_or_else(|| unreachable(provider, "its address is none for https"));
    }
    place(provider, &format!("/api/v3{path}"))
}

pub(super) fn authorize(provider: &Provider) -> Result<Url, ControlError> {
    place(provider, "/login/oauth/authorize")
}

#[derive(Deserialize)]
struct User {
    id: u64,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Address {
    email: String,
    primary: bool,
    verified: bool,
}

impl Control {
    pub(super) async fn ask_github(
        &self,
        provider: &Provider,
        flow: &Flow,
        code: &str,
    ) -> Result<Vouched, ControlError> {
        let token = place(provider, "/login/oauth/access_token")?;
        let given = self.exchange(provider, &token, (flow, code), false).await?;
        // It answers 200 to a code that is not good.
        let token = given.get("access_token").and_then(Value::as_str);
        let token = token.ok_or_else(|| unbelievable(provider, "it did not take the code"))?;
        let user: User = self.read_api(provider, "/user", token).await?;
        let emails: Vec<Address> = self.read_api(provider, "/user/emails", token).await?;
        let own = emails.into_iter().find(|one| one.primary && one.verified);
        Ok(Vouched {
            subject: user.id.to_string(),
            email: own.map(|one| one.email),
            name: user.name.unwrap_or_default(),
        })
    }

    async fn read_api<T: DeserializeOwned>(
        &self,
        provider: &Provider,
        path: &str,
        token: &str,
    ) -> Result<T, ControlError> {
        let headers =
            vec![(http::header::AUTHORIZATION, SecretString::from(format!("Bearer {token}")))];
        let body = self.ask_provider(provider, &api(provider, path)?, headers, None).await?;
        serde_json::from_slice(&body)
            .map_err(|_| unreachable(provider, "its API answers in another form"))
    }
}

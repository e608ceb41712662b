//! OIDC: the code changed for an ID token, and the token looked at as section 3.1.3.7 of its
//! core says, and no less.

use serde_json::{Map, Value};
use sluice_vault::{JwtError, same};

use super::{Flow, Provider, Vouched, unbelievable};
use crate::{Control, ControlError};

/// How far clocks may be apart, in seconds.
const SKEW_S: i64 = 60;
const MAX_SUBJECT_BYTES: usize = 255;

impl Control {
    pub(super) async fn ask_oidc(
        &self,
        provider: &Provider,
        flow: &Flow,
        code: &str,
    ) -> Result<Vouched, ControlError> {
        let known = self.known(provider).await?;
        let given = self.exchange(provider, &known.token, (flow, code), known.basic).await?;
        let token = given.get("id_token").and_then(Value::as_str);
        let token = token.ok_or_else(|| unbelievable(provider, "it gave no ID token"))?;
        let claims = match known.keys.claims(token) {
            Err(JwtError::UnknownKey) => match self.newer_keys(provider, known).await? {
                Some(keys) => keys.claims(token),
                None => Err(JwtError::UnknownKey),
            },
            known => known,
        };
        let claims = claims.map_err(|error| unbelievable(provider, &error.to_string()))?;
        check(&claims, provider, &flow.nonce, self.now().timestamp())
            .map_err(|why| unbelievable(provider, why))
    }
}

/// Who the claims vouch for, if they are meant for us and hold now.
fn check(
    claims: &Map<String, Value>,
    provider: &Provider,
    nonce: &str,
    now_s: i64,
) -> Result<Vouched, &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(provider.issuer.as_str()) {
        return Err("its ID token is of another issuer");
    }
    meant_for_us(claims, &provider.client_id)?;
    let moment = |name: &str| claims.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds are exact in a double for ages")]
    let (now, skew) = (now_s as f64, SKEW_S as f64);
    if !moment("exp").is_some_and(|end| now < end + skew) {
        return Err("its ID token is over");
    }
    if !moment("iat").is_some_and(|made| made <= now + skew) {
        return Err("its ID token is of the future");
    }
    if claims.contains_key("nbf") && !moment("nbf").is_some_and(|from| from <= now + skew) {
        return Err("its ID token does not hold yet");
    }
    if !text("nonce").is_some_and(|given| same(given, nonce)) {
        return Err("its ID token was not made for this sign-in");
    }
    let subject = text("sub").filter(|sub| !sub.is_empty() && sub.len() <= MAX_SUBJECT_BYTES);
    let subject = subject.ok_or("its ID token names nobody")?;
    // Some write the word.
    let verified = matches!(claims.get("email_verified"), Some(Value::Bool(true)))
        || text("email_verified") == Some("true");
    Ok(Vouched {
        subject: subject.to_owned(),
        email: text("email").filter(|_| verified).map(str::to_owned),
        name: text("name").unwrap_or_default().to_owned(),
    })
}

fn meant_for_us(claims: &Map<String, Value>, client: &str) -> Result<(), &'static str> {
    const OTHER: &str = "its ID token is meant for another client";
    let party = claims.get("azp");
    let several = match claims.get("aud") {
        Some(Value::String(one)) if one == client => false,
        Some(Value::Array(all)) if all.iter().any(|one| one == client) => all.len() > 1,
        _ => return Err(OTHER),
    };
    match party {
        Some(party) if party != client => Err(OTHER),
        None if several => Err(OTHER),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use serde_json::json;

    use super::*;
    use crate::providers::ProviderKind;

    fn provider() -> Provider {
        Provider {
            name: "acme".to_owned(),
            label: "Acme".to_owned(),
            kind: ProviderKind::Oidc,
            issuer: "https://id.example".to_owned(),
            client_id: "us".to_owned(),
            client_secret: SecretString::from("secret"),
        }
    }

    fn with(change: &Value) -> Result<Vouched, &'static str> {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "us", "sub": "1", "exp": 1_300, "iat": 1_000,
            "nonce": "n", "email": "a@example.test", "email_verified": true,
        });
        for (name, value) in change.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        check(claims.as_object().expect("an object"), &provider(), "n", 1_000)
    }

    #[test]
    fn every_claim_is_looked_at() {
        for good in [
            json!({}),
            json!({"aud": ["us"]}),
            json!({"aud": ["us", "them"], "azp": "us"}),
            json!({"azp": "us"}),
            json!({"exp": 941}),
            json!({"iat": 1_060}),
            json!({"nbf": 1_060}),
        ] {
            assert!(with(&good).is_ok(), "{good}");
        }
        for bad in [
            json!({"iss": "https://id.example/"}),
            json!({"iss": null}),
            json!({"aud": "them"}),
            json!({"aud": "us "}),
            json!({"aud": []}),
            json!({"aud": null}),
            json!({"aud": ["us", "them"]}),
            json!({"aud": ["us", "them"], "azp": "them"}),
            json!({"azp": "them"}),
            json!({"exp": 940}),
            json!({"exp": null}),
            json!({"exp": "1300"}),
            json!({"iat": 1_061}),
            json!({"iat": null}),
            json!({"nbf": 1_061}),
            json!({"nbf": "x"}),
            json!({"nonce": "m"}),
            json!({"nonce": null}),
            json!({"sub": ""}),
            json!({"sub": 7}),
            json!({"sub": "x".repeat(256)}),
        ] {
            assert!(with(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_counts_only_where_it_is_verified() {
        for (verified, counts) in [
            (json!(true), true),
            (json!("true"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!(1), false),
            (json!(null), false),
        ] {
            let vouched = with(&json!({"email_verified": verified})).expect("believed");
            assert_eq!(vouched.email.is_some(), counts, "{verified}");
        }
    }
}

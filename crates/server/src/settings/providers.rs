//! Who vouches for people besides: identity providers.

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use sluice_control::{Provider, ProviderKind};

/// Identity providers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sign-in")]
pub(crate) struct ProviderArgs {
    /// Identity providers, divided by `;`: `google ID SECRET`, `github ID SECRET`, or a name of your own
    /// with the issuer's address, `acme https://id.acme.example ID SECRET` (OIDC; with a name
    /// that begins with `github`, GitHub Enterprise Server). Each sends people back to
    /// `…/login/with/NAME/callback` at the public URL.
    #[arg(long, env = "SLUICE_LOGIN_PROVIDERS", hide_env_values = true, value_name = "PROVIDER;…")]
    pub(crate) login_providers: Option<SecretString>,
}

/// Why a provider's setting cannot be used. Never says its secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error(
        "entry {0} of `--login-providers` has {1} words; write `google ID SECRET`, `github ID SECRET` or `NAME ISSUER ID SECRET`"
    )]
    Words(usize, usize),
    #[error(
        "entry {0} of `--login-providers` has three words and the name `{1}`; three words are for `google` and `github`, another name needs its issuer's address after it"
    )]
    Unknown(usize, String),
    #[error(
        "entry {0} of `--login-providers` has the name `{1}`; a name has up to 32 of a to z, 0 to 9 and `-`"
    )]
    Name(usize, String),
    #[error("two entries of `--login-providers` are called `{0}`")]
    Twice(String),
    #[error(
        "`{0}` and `{1}` of `--login-providers` have the same issuer, so nobody could tell whose people are whose; keep one of them"
    )]
    SameIssuer(String, String),
    #[error(
        "the issuer of `{0}` in `--login-providers` must be an https:// address (http:// on this machine alone)"
    )]
    Issuer(String),
}

impl ProviderArgs {
    /// The providers, in the order given.
    pub(crate) fn read(&self) -> Result<Vec<Provider>, ProviderError> {
        let text = self.login_providers.as_ref().map_or("", |text| text.expose_secret());
        let mut all: Vec<Provider> = Vec::new();
        let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
        for (at, entry) in (1..).zip(entries) {
            let one = provider(at, entry)?;
            if all.iter().any(|other| other.name == one.name) {
                return Err(ProviderError::Twice(one.name));
            }
            if let Some(other) = all.iter().find(|other| same_issuer(other, &one)) {
                return Err(ProviderError::SameIssuer(other.name.clone(), one.name));
            }
            all.push(one);
        }
        Ok(all)
    }
}

fn provider(at: usize, entry: &str) -> Result<Provider, ProviderError> {
    let words: Vec<&str> = entry.split_whitespace().collect();
    let (name, issuer, id, secret) = match *words.as_slice() {
        ["google", id, secret] => ("google", "https://accounts.google.com", id, secret),
        ["github", id, secret] => ("github", "https://github.com", id, secret),
        [name, _, _] => return Err(ProviderError::Unknown(at, shown(name))),
        [name, issuer, id, secret] => (name, issuer, id, secret),
        _ => return Err(ProviderError::Words(at, words.len())),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > 32 || !name.chars().all(plain) {
        return Err(ProviderError::Name(at, shown(name)));
    }
    let kind = if name.starts_with("github") { ProviderKind::GitHub } else { ProviderKind::Oidc };
    let one = Provider {
        name: name.to_owned(),
        label: label(name),
        kind,
        issuer: issuer.to_owned(),
        client_id: id.to_owned(),
        client_secret: SecretString::from(secret),
    };
    if one.is_askable() { Ok(one) } else { Err(ProviderError::Issuer(name.to_owned())) }
}

/// A slash at the end makes no other issuer.
fn same_issuer(one: &Provider, other: &Provider) -> bool {
    let bare = |provider: &Provider| provider.issuer.trim_end_matches('/').to_lowercase();
    bare(one) == bare(other)
}

/// A wrong name may be a secret that slipped: only its beginning is told.
fn shown(name: &str) -> String {
    name.chars().take(8).collect()
}

fn label(name: &str) -> String {
    match name {
        "google" => "Google".to_owned(),
        "github" => "GitHub".to_owned(),
        other => {
            let mut chars = other.chars();
            let first = chars.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(chars).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Provider>, ProviderError> {
        ProviderArgs { login_providers: Some(SecretString::from(text)) }.read()
    }

    #[test]
    fn providers_are_read_in_order() {
        let all = read("google g-id g-secret; github h-id h-secret;\n acme https://id.acme.example/x a-id a-secret;github-work https://git.acme.example i s;")
            .expect("good");
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.label.as_str(), one.issuer.as_str(), one.kind))
            .collect();
        let expected = [
            ("google", "Google", "https://accounts.google.com", ProviderKind::Oidc),
            ("github", "GitHub", "https://github.com", ProviderKind::GitHub),
            ("acme", "Acme", "https://id.acme.example/x", ProviderKind::Oidc),
            ("github-work", "Github-work", "https://git.acme.example", ProviderKind::GitHub),
        ];
        assert_eq!(told, expected);
        assert_eq!(all[2].client_id, "a-id");
        assert_eq!(all[2].client_secret.expose_secret(), "a-secret");
        assert!(!format!("{all:?}").contains("a-secret"));
        assert!(read(" ; ").expect("none").is_empty());
        assert!(ProviderArgs { login_providers: None }.read().expect("none").is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_without_the_secret() {
        let table = [
            ("google id", ProviderError::Words(1, 2)),
            ("google id secret; a b c d e", ProviderError::Words(2, 5)),
            ("okta id secret", ProviderError::Unknown(1, "okta".to_owned())),
            ("Acme https://a.example i s", ProviderError::Name(1, "Acme".to_owned())),
            ("a/b https://a.example i s", ProviderError::Name(1, "a/b".to_owned())),
            (
                "a https://a.example i s; a https://b.example i s",
                ProviderError::Twice("a".to_owned()),
            ),
            (
                "a https://a.example i s; b https://a.example i s",
                ProviderError::SameIssuer("a".to_owned(), "b".to_owned()),
            ),
            (
                "google i s; mine https://accounts.google.com/ i s",
                ProviderError::SameIssuer("google".to_owned(), "mine".to_owned()),
            ),
            ("a http://a.example i s", ProviderError::Issuer("a".to_owned())),
            ("a https://u:p@a.example i s", ProviderError::Issuer("a".to_owned())),
            ("a nonsense i s", ProviderError::Issuer("a".to_owned())),
        ];
        for (text, error) in table {
            assert_eq!(read(text).expect_err("refused"), error, "{text}");
        }
        assert!(read("a http://127.0.0.1:9 i s").is_ok());
    }
}

//! What no single setting can check by itself.

use secrecy::ExposeSecret as _;
use url::Url;

use super::{NetworkArgs, ProviderError, ServeArgs, StorageArgs};

/// Settings that do not go together, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error(
        "Redis counters with a SQLite database: several replicas would share counters but not data. \
         Set SLUICE_DATABASE_URL to a postgres:// address as well, or leave SLUICE_REDIS_URL out; \
         one replica needs no Redis"
    )]
    RedisWithSqlite,
    #[error("the database address must begin with `postgres://`, `postgresql://` or `sqlite://`")]
    DatabaseScheme,
    #[error(
        "`{setting}` must be an http:// or https:// address without user, query or fragment; it is `{url}`"
    )]
    PublicUrl { setting: &'static str, url: String },
    #[error(
        "`--listen` and `{other}` are the same address; give each its own port, or leave `{other}` out"
    )]
    SameAddress { other: &'static str },
    #[error(
        "`--proxy-listen` with `--role control`: this process serves no proxy; leave one of the two out"
    )]
    ProxyListenWithoutProxy,
    #[error(
        "`--example-server yes` without private upstreams: the example listens on loopback, where \
         no upstream may be; add `--allow-private-upstreams yes`, or leave the example out"
    )]
    ExampleUnreachable,
    #[error(
        "`--allowed-hosts` has an entry that is no host name: `{0}`; write names or addresses without scheme and port"
    )]
    AllowedHost(String),
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl ServeArgs {
    /// Checks all settings against each other.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        self.network.check()?;
        self.providers.read()?;
        self.storage.check()
    }
}

impl StorageArgs {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let database = self.database();
        let scheme = database.expose_secret().split(':').next().unwrap_or_default();
        if !["postgres", "postgresql", "sqlite"].contains(&scheme) {
            return Err(SettingsError::DatabaseScheme);
        }
        if self.redis_url.is_some() && scheme == "sqlite" {
            return Err(SettingsError::RedisWithSqlite);
        }
        Ok(())
    }
}

impl NetworkArgs {
    fn check(&self) -> Result<(), SettingsError> {
        public("--public-url", &self.public_url)?;
        if let Some(url) = &self.proxy_public_url {
            public("--proxy-public-url", url)?;
        }
        let same = |other: Option<std::net::SocketAddr>| {
            other.is_some_and(|other| other == self.listen && other.port() != 0)
        };
        if same(self.proxy_listen) {
            return Err(SettingsError::SameAddress { other: "--proxy-listen" });
        }
        if same(self.metrics_listen) {
            return Err(SettingsError::SameAddress { other: "--metrics-listen" });
        }
        if self.proxy_listen.is_some() && !self.role.serves_proxy() {
            return Err(SettingsError::ProxyListenWithoutProxy);
        }
        let places = self.places();
        if places.example_server && !places.private_upstreams {
            return Err(SettingsError::ExampleUnreachable);
        }
        match self.allowed_hosts.iter().find(|host| !is_host(host.trim())) {
            Some(host) => Err(SettingsError::AllowedHost(host.clone())),
            None => Ok(()),
        }
    }
}

fn is_host(text: &str) -> bool {
    url::Host::parse(text).is_ok() && !text.contains('%')
}

fn public(setting: &'static str, url: &Url) -> Result<(), SettingsError> {
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if ["http", "https"].contains(&url.scheme()) && url.host().is_some() && plain {
        return Ok(());
    }
    // A password in the address must not reach the terminal.
    let mut shown = url.clone();
    if shown.set_username("").is_ok() {
        shown.set_password(None).ok();
    }
    Err(SettingsError::PublicUrl { setting, url: shown.to_string() })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn check(arguments: &[&str]) -> Result<(), SettingsError> {
        let all = ["sluice"].iter().chain(arguments);
        Only::try_parse_from(all).expect("the arguments parse").serve.check()
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let same = ["--listen", "127.0.0.1:81", "--proxy-listen", "127.0.0.1:81"];
        let table: [(&[&str], Result<(), SettingsError>); 10] = [
            (&[], Ok(())),
            (&["--redis-url", "redis://r"], Err(SettingsError::RedisWithSqlite)),
            (&["--redis-url", "redis://r", "--database-url", "postgres://d"], Ok(())),
            (
                &["--login-providers", "okta id secret"],
                Err(SettingsError::Provider(ProviderError::Unknown(1, "okta".to_owned()))),
            ),
            (&["--database-url", "mysql://d"], Err(SettingsError::DatabaseScheme)),
            (&same, Err(SettingsError::SameAddress { other: "--proxy-listen" })),
            (
                &["--role", "control", "--proxy-listen", "127.0.0.1:82"],
                Err(SettingsError::ProxyListenWithoutProxy),
            ),
            (
                &["--listen", "0.0.0.0:1", "--example-server", "yes"],
                Err(SettingsError::ExampleUnreachable),
            ),
            (
                &["--allowed-hosts", "https://a.example"],
                Err(SettingsError::AllowedHost("https://a.example".to_owned())),
            ),
            (
                &["--public-url", "http://ann:secret@h/"],
                Err(SettingsError::PublicUrl {
                    setting: "--public-url",
                    url: "http://h/".to_owned(),
                }),
            ),
        ];
        for (arguments, expected) in table {
            assert_eq!(check(arguments), expected, "{arguments:?}");
        }
    }
}

//! Where Sluice listens, what it is called from outside, and whom it believes.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use ipnet::IpNet;
use url::{Host, Url};

use super::words::{AutoSwitch, Part, SignupWord};

/// Addresses, names and trust.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Where dashboard, API and proxy listen.
    #[arg(long, env = "SLUICE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// An address for the proxy alone; `--listen` then serves no `/mcp`.
    #[arg(long, env = "SLUICE_PROXY_LISTEN", value_name = "ADDRESS")]
    pub(crate) proxy_listen: Option<SocketAddr>,
    /// Where `/metrics` is served; without it on the main address, to loopback clients only.
    #[arg(long, env = "SLUICE_METRICS_LISTEN", value_name = "ADDRESS")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Which half of Sluice this process is.
    #[arg(long, env = "SLUICE_ROLE", value_enum, default_value_t = Part::All)]
    pub(crate) role: Part,
    /// The address that people use: pages, cookies and proxy URLs are built from it.
    #[arg(
        long,
        env = "SLUICE_PUBLIC_URL",
        default_value = "http://localhost:8080",
        value_name = "URL"
    )]
    pub(crate) public_url: Url,
    /// The address that agents use for `/mcp`, when it is another one.
    #[arg(long, env = "SLUICE_PROXY_PUBLIC_URL", value_name = "URL")]
    pub(crate) proxy_public_url: Option<Url>,
    /// Host names that are answered; any other `Host` gets 421. Default: the public URLs' hosts, and
    /// all loopback names when listening on loopback.
    #[arg(long, env = "SLUICE_ALLOWED_HOSTS", value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Networks whose `X-Forwarded-*` headers are believed.
    #[arg(long, env = "SLUICE_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network, value_name = "CIDR,…")]
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Whether upstream servers may have private or loopback addresses.
    #[arg(long, env = "SLUICE_ALLOW_PRIVATE_UPSTREAMS", value_enum, default_value_t = AutoSwitch::Auto)]
    pub(crate) allow_private_upstreams: AutoSwitch,
    /// Whether the built-in example server runs, on a loopback port of its own.
    #[arg(long, env = "SLUICE_EXAMPLE_SERVER", value_enum, default_value_t = AutoSwitch::Auto)]
    pub(crate) example_server: AutoSwitch,
    /// Who may make an account.
    #[arg(long, env = "SLUICE_SIGNUP", value_enum, default_value_t = SignupWord::Open)]
    pub(crate) signup: SignupWord,
}

/// What follows from the network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Listen addresses and public URLs are all loopback.
    pub(crate) loopback: bool,
    pub(crate) private_upstreams: bool,
    pub(crate) example_server: bool,
    /// Lower case, without port.
    pub(crate) hosts: Vec<String>,
}

impl NetworkArgs {
    /// The URL that proxy addresses are built from.
    pub(crate) fn proxy_url(&self) -> &Url {
        self.proxy_public_url.as_ref().unwrap_or(&self.public_url)
    }

    /// Resolves what is left to the circumstances.
    pub(crate) fn places(&self) -> Places {
        let listens = self.proxy_listen.iter().chain([&self.listen]);
        let loopback = listens.clone().all(|address| address.ip().is_loopback())
            && self.urls().all(is_loopback);
        let private_upstreams = self.allow_private_upstreams.resolve(loopback);
        // The example is a loopback server itself: left alone, it is off where it could not be reached.
        let example = self.example_server.resolve(loopback && private_upstreams);
        Places {
            loopback,
            private_upstreams,
            example_server: example && self.role.serves_control(),
            hosts: self.hosts(listens.clone().any(|address| address.ip().is_loopback())),
        }
    }

    fn urls(&self) -> impl Iterator<Item = &Url> {
        self.proxy_public_url.iter().chain([&self.public_url])
    }

    fn hosts(&self, on_loopback: bool) -> Vec<String> {
        let mut hosts: Vec<String> = if self.allowed_hosts.is_empty() {
            self.urls().filter_map(Url::host_str).map(bare).collect()
        } else {
            self.allowed_hosts.iter().map(|host| bare(host)).collect()
        };
        if self.allowed_hosts.is_empty() && on_loopback {
            hosts.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        }
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// Whether a URL's host is this machine and nothing else.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A host as requests are compared with it: lower case, an IPv6 address without its brackets.
fn bare(host: &str) -> String {
    host.trim().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// A network, or one address as a network of one.
fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is no network; write `10.0.0.0/8` or one address"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        network: NetworkArgs,
    }

    fn places(arguments: &[&str]) -> Places {
        let all = ["sluice"].iter().chain(arguments);
        Only::try_parse_from(all).expect("the arguments are good").network.places()
    }

    #[test]
    fn auto_is_yes_only_where_addresses_and_public_url_are_loopback() {
        let table: [(&[&str], bool); 9] = [
            (&[], true),
            (&["--listen", "[::1]:80", "--public-url", "http://[::1]"], true),
            (&["--public-url", "http://sluice.localhost:8080"], true),
            (&["--listen", "0.0.0.0:8080"], false),
            (&["--public-url", "https://sluice.example.com"], false),
            (&["--proxy-listen", "10.0.0.1:81"], false),
            (&["--proxy-public-url", "https://mcp.example.com"], false),
            (&["--listen", "0.0.0.0:8080", "--allow-private-upstreams", "yes"], true),
            (&["--allow-private-upstreams", "no"], false),
        ];
        for (arguments, expected) in table {
            assert_eq!(places(arguments).private_upstreams, expected, "{arguments:?}");
        }
        assert!(
            !places(&["--listen", "0.0.0.0:8080", "--allow-private-upstreams", "yes"])
                .example_server
        );
        assert!(!places(&["--allow-private-upstreams", "no"]).example_server);
        assert!(places(&["--listen", "0.0.0.0:8080", "--example-server", "yes"]).example_server);
    }

    #[test]
    fn hosts_follow_the_public_urls_and_loopback() {
        let table: [(&[&str], &[&str]); 4] = [
            (&[], &["127.0.0.1", "::1", "localhost"]),
            (
                &["--public-url", "https://S.example.com", "--listen", "0.0.0.0:1"],
                &["s.example.com"],
            ),
            (
                &["--public-url", "https://s.example.com"],
                &["127.0.0.1", "::1", "localhost", "s.example.com"],
            ),
            (&["--allowed-hosts", "a.example,B.example"], &["a.example", "b.example"]),
        ];
        for (arguments, expected) in table {
            assert_eq!(places(arguments).hosts, expected, "{arguments:?}");
        }
    }

    #[test]
    fn a_trusted_proxy_is_a_network_or_an_address() {
        assert_eq!(network("10.0.0.0/8").map(|net| net.to_string()), Ok("10.0.0.0/8".to_owned()));
        assert_eq!(network(" ::1 ").map(|net| net.to_string()), Ok("::1/128".to_owned()));
        assert!(network("proxy.example").is_err());
    }
}

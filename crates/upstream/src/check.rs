//! Checks an upstream's address when it is saved. The words never tell what listens where.

use std::time::Duration;

use url::{Host, Url};

use crate::addresses::is_bad_port;
use crate::connect::ConnectFault;
use crate::resolve::Resolver;

const MAX_LENGTH: usize = 2_048;
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is wrong with an address, in words for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    #[error("give the server's address, such as https://example.com/mcp")]
    Empty,
    #[error("the address is longer than 2,048 characters")]
    TooLong,
    #[error("this is not a web address; one looks like https://example.com/mcp")]
    Unreadable,
    #[error("the address begins with `{0}:`, and only `https:` and `http:` can be used")]
    Scheme(String),
    #[error(
        "the address holds a user name or password; put credentials into the server's headers instead"
    )]
    UserInfo,
    #[error("the host is spelt in an unusual way; write {0} if that is what you mean")]
    OddHost(String),
    #[error("port {0} is not a port for web servers")]
    Port(u16),
    #[error("the host's name cannot be found; check its spelling")]
    UnknownHost,
    #[error(
        "the host is {0}; this Sluice connects to public addresses only (the operator can change that with --allow-private-upstreams)"
    )]
    Private(&'static str),
    #[error("the address leads to another server than the one it was given by")]
    OtherOrigin,
}

impl UrlProblem {
    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty => "url_empty",
            Self::TooLong => "url_too_long",
            Self::Unreadable => "url_unreadable",
            Self::Scheme(_) => "url_scheme",
            Self::UserInfo => "url_userinfo",
            Self::OddHost(_) => "url_odd_host",
            Self::Port(_) => "url_port",
            Self::UnknownHost => "url_unknown_host",
            Self::Private(_) => "url_private",
            Self::OtherOrigin => "url_other_origin",
        }
    }
}

/// Reads an address and checks all that can be checked without asking for names.
pub(crate) fn read(text: &str) -> Result<Url, UrlProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UrlProblem::Empty);
    }
    if text.len() > MAX_LENGTH {
        return Err(UrlProblem::TooLong);
    }
    // The URL standard drops some of these silently and reads others as `/`.
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(UrlProblem::Unreadable);
    }
    let mut url = Url::parse(text).map_err(|_| UrlProblem::Unreadable)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlProblem::Scheme(url.scheme().chars().take(20).collect()));
    }
    if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
        return Err(UrlProblem::UserInfo);
    }
    check_host(&url, text)?;
    match url.port() {
        Some(port) if is_bad_port(port) => return Err(UrlProblem::Port(port)),
        _ => url.set_fragment(None),
    }
    Ok(url)
}

/// The part between `//` and the path, as it was typed.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest.trim_start_matches('/'));
    rest.split(['/', '?', '#']).next().unwrap_or("")
}

/// An address written as a number, with leading zeros and the like, hides where it leads.
fn check_host(url: &Url, text: &str) -> Result<(), UrlProblem> {
    let host = url.host().ok_or(UrlProblem::Unreadable)?;
    let typed = authority(text);
    let typed = match typed.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => typed,
    };
    let plain = match &host {
        Host::Ipv4(address) => typed == address.to_string(),
        Host::Ipv6(_) => true,
        Host::Domain(name) => !name.ends_with('.') && !typed.contains('%') && !name.is_empty(),
    };
    if plain {
        Ok(())
    } else {
        Err(UrlProblem::OddHost(host.to_string().trim_end_matches('.').to_owned()))
    }
}

/// All of [`read`], and every address that the name stands for now.
pub(crate) async fn check(resolver: &Resolver, text: &str) -> Result<Url, UrlProblem> {
    let url = read(text)?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    let checked = tokio::time::timeout(RESOLVE_TIMEOUT, resolver.checked(host, port)).await;
    match checked.unwrap_or(Err(ConnectFault::Dns)) {
        Ok(_) => Ok(url),
        Err(ConnectFault::Refused(what)) => Err(UrlProblem::Private(what)),
        Err(_) => Err(UrlProblem::UnknownHost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Result<String, &'static str> {
        read(text).map(|url| url.to_string()).map_err(|problem| problem.code())
    }

    #[test]
    fn spellings_are_sorted() {
        let fine = [
            ("https://example.com/mcp", "https://example.com/mcp"),
            (" HTTPS://Example.COM/mcp/?a=b#top ", "https://example.com/mcp/?a=b"),
            ("http://8.8.8.8:8080/", "http://8.8.8.8:8080/"),
            ("https://[2606:4700::1111]/mcp", "https://[2606:4700::1111]/mcp"),
            ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        ];
        for (text, read) in fine {
            assert_eq!(codes(text).as_deref(), Ok(read), "{text}");
        }
        for text in [
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://example.com./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http://134744072/",
        ] {
            assert_eq!(codes(text), Err("url_odd_host"), "{text}");
        }
        for text in [
            "http://user:pw@example.com/",
            "http://user@example.com/",
            "http://@example.com/",
            "http://:@example.com/",
            "http://a@b@example.com/",
            "https:/user@example.com/",
        ] {
            assert_eq!(codes(text), Err("url_userinfo"), "{text}");
        }
        for text in
            ["file:///etc/hosts", "ftp://example.com/", "javascript:alert(1)", "gopher://x/"]
        {
            assert_eq!(codes(text), Err("url_scheme"), "{text}");
        }
        for text in [
            "example.com/mcp",
            "https://",
            "https://exa mple.com/",
            "https://a\u{0}b/",
            "http://a\tb/",
            "https:\\\\example.com\\",
            "http://[::1",
            "http://example.com:99999/",
            "http://1.2.3.4.5/",
        ] {
            assert_eq!(codes(text), Err("url_unreadable"), "{text}");
        }
        assert_eq!(codes("http://example.com:25/"), Err("url_port"));
        assert_eq!(codes("  "), Err("url_empty"));
        assert_eq!(
            codes(&format!("https://example.com/{}", "a".repeat(2_048))),
            Err("url_too_long")
        );
    }
}

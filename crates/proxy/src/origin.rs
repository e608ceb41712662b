//! Which web origins may call: the gateway's own and, on loopback, loopback
//! ones. Anything else is a page that tries to use its visitor's network.

use http::{HeaderMap, header};
use url::{Host, Url};

#[derive(Debug)]
pub(crate) struct Origins {
    allowed: Vec<String>,
    loopback: bool,
}

impl Origins {
    pub(crate) fn new(allowed: &[String], loopback: bool) -> Self {
        let allowed = allowed.iter().filter_map(|origin| normal(origin)).collect();
        Self { allowed, loopback }
    }

    /// The first foreign origin of a request, if it names one.
    pub(crate) fn foreign<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        headers
            .get_all(header::ORIGIN)
            .into_iter()
            .find(|value| !value.to_str().is_ok_and(|origin| self.allows(origin)))
            .map(http::HeaderValue::as_bytes)
    }

    fn allows(&self, origin: &str) -> bool {
        normal(origin).is_some_and(|origin| self.allowed.contains(&origin))
            || (self.loopback && is_loopback(origin))
    }
}

/// `scheme://host[:port]` as browsers write it; none for anything with more in it.
fn normal(origin: &str) -> Option<String> {
    let url = Url::parse(origin).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let web = matches!(url.scheme(), "http" | "https");
    (bare && web && url.username().is_empty()).then(|| url.origin().ascii_serialization())
}

fn is_loopback(origin: &str) -> bool {
    let url = normal(origin).and_then(|origin| Url::parse(&origin).ok());
    match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(origins: &Origins, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, origin.parse().expect("a header value"));
        origins.foreign(&headers).is_some()
    }

    #[test]
    fn only_own_and_loopback_origins_may_call() {
        let local = Origins::new(&["https://sluice.example".to_owned()], true);
        for own in [
            "https://sluice.example",
            "https://sluice.example:443",
            "https://SLUICE.example",
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:8080",
        ] {
            assert!(!foreign(&local, own), "{own}");
        }
        for other in [
            "https://evil.example",
            "http://sluice.example",
            "https://sluice.example.evil.example",
            "https://sluice.example:8443",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "null",
            "",
            "file://",
            "https://sluice.example/path",
            "https://sluice.example@evil.example",
        ] {
            assert!(foreign(&local, other), "{other}");
        }
        let public = Origins::new(&["https://sluice.example".to_owned()], false);
        assert!(foreign(&public, "http://localhost:3000"));
        assert!(public.foreign(&HeaderMap::new()).is_none());
    }

    #[test]
    fn one_foreign_origin_among_several_is_enough() {
        let origins = Origins::new(&[], true);
        let mut headers = HeaderMap::new();
        headers.append(header::ORIGIN, "http://localhost".parse().expect("a header value"));
        headers.append(header::ORIGIN, "https://evil.example".parse().expect("a header value"));
        assert!(origins.foreign(&headers).is_some());
    }
}

//! What every page carries around its content: theme, assets, and who is looking.

use http::HeaderMap;
use http::header::COOKIE;

use crate::assets;

/// The `<head>` of a page.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// The reader's choice; without one the system decides.
    pub(crate) theme: Option<&'static str>,
    /// Path and query of this page, for links that come back to it.
    pub(crate) path: String,
    pub(crate) css: String,
    pub(crate) js: String,
    pub(crate) mark: String,
}

impl Head {
    /// From the request's cookies and address.
    pub(crate) fn new(headers: &HeaderMap, uri: &http::Uri) -> Self {
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        Self {
            theme: theme(headers),
            path: path.to_owned(),
            css: assets::url("sluice.css"),
            js: assets::url("sluice.js"),
            mark: assets::url("mark.svg"),
        }
    }

    /// The switch in the footer: value, word, whether it is the current one.
    pub(crate) fn themes(&self) -> [(&'static str, &'static str, bool); 3] {
        [
            ("auto", "Auto", self.theme.is_none()),
            ("light", "Light", self.theme == Some("light")),
            ("dark", "Dark", self.theme == Some("dark")),
        ]
    }
}

fn theme(headers: &HeaderMap) -> Option<&'static str> {
    match cookie(headers, crate::theme::COOKIE)? {
        "light" => Some("light"),
        "dark" => Some("dark"),
        _ => None,
    }
}

/// A cookie's value as sent.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// The frame of a public page.
#[derive(Debug, Clone)]
pub(crate) struct PublicFrame {
    pub(crate) head: Head,
    /// Which entry of the top bar is the current one.
    pub(crate) section: &'static str,
    pub(crate) signed_in: bool,
    /// The page's own address for search engines.
    pub(crate) canonical: String,
    /// The public address, without a slash at the end.
    pub(crate) base: String,
}

impl PublicFrame {
    /// What social sites show beside a link to this page: their readers take no SVG.
    pub(crate) fn image(&self) -> String {
        format!("{}{}", self.base, assets::url("card.png"))
    }
}

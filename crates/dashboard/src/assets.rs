//! Static files, embedded in the binary and served under an address that changes with their bytes.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

use crate::page::not_found_plain;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../static");

/// The first characters of a hash over all files, so that one deployment has one address space.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for file in FILES.files() {
        hash.update(file.path().as_os_str().as_encoded_bytes());
        hash.update(file.contents());
    }
    hash.finalize().iter().take(6).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
});

/// The address of a file.
pub(crate) fn url(name: &str) -> String {
    format!("/static/{}/{name}", *VERSION)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// `GET /static/{version}/{name}`. A page of the previous deployment may still ask with its version:
/// it gets today's file, uncached.
pub(crate) fn get((version, name): (String, String)) -> Response {
    let Some(file) = FILES.get_file(&name) else { return not_found_plain() };
    let cache =
        if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    ([(CONTENT_TYPE, content_type(&name)), (CACHE_CONTROL, cache)], file.contents()).into_response()
}

/// Bytes of a file; none where there is none.
#[cfg(test)]
pub(crate) fn size(name: &str) -> Option<usize> {
    FILES.get_file(name).map(|file| file.contents().len())
}

/// The handler of [`get`].
pub(crate) async fn handler(Path(parts): Path<(String, String)>) -> Response {
    get(parts)
}

/// `GET /favicon.ico`: browsers ask for it whatever the page says.
pub(crate) async fn favicon() -> Response {
    get((VERSION.clone(), "mark.svg".to_owned()))
}

/// Every template's text, for tests that look through them all.
#[cfg(test)]
pub(crate) fn template_sources() -> Vec<String> {
    static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../templates");
    fn walk(dir: &Dir<'_>, out: &mut Vec<String>) {
        out.extend(dir.files().filter_map(|file| file.contents_utf8().map(ToOwned::to_owned)));
        for inner in dir.dirs() {
            walk(inner, out);
        }
    }
    let mut out = Vec::new();
    walk(&TEMPLATES, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_immutable_under_todays_version_only() {
        for (version, cache) in [(VERSION.as_str(), "immutable"), ("000000000000", "no-cache")] {
            let answer = get((version.to_owned(), "sluice.css".to_owned()));
            let header = answer.headers()[CACHE_CONTROL].to_str().expect("ASCII").to_owned();
            assert!(header.contains(cache), "{header}");
        }
        assert_eq!(get((VERSION.clone(), "../Cargo.toml".to_owned())).status(), 404);
    }

    #[test]
    fn the_first_load_stays_small() {
        let size = |name| FILES.get_file(name).expect(name).contents().len();
        assert!(size("sluice.js") <= 20 * 1024, "script is {} bytes", size("sluice.js"));
        assert!(size("sluice.css") <= 48 * 1024, "style is {} bytes", size("sluice.css"));
    }

    #[test]
    fn no_template_has_inline_style_or_script() {
        for text in template_sources() {
            assert!(!text.contains(" style="), "inline style in {text}");
            assert!(!text.contains(" onclick"), "inline handler in {text}");
            for (at, _) in text.match_indices("<script") {
                assert!(text[at..].starts_with("<script type=\"module\" src="), "{}", &text[at..]);
            }
        }
    }
}

//! A browser: cookies are kept, forms are found in the page and sent with their hidden fields.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

pub(crate) const PASSWORD: &str = "a long enough password";
pub(crate) const MARKUP: &str = "<img src=x onerror=alert(1)>";

/// What came back.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Page {
    /// Where a redirect leads.
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.body);
        self.headers[LOCATION].to_str().expect("ASCII")
    }

    /// The page says this; markup aside.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        let plain = plain(&self.body);
        assert!(plain.contains(text), "`{text}` is not on the page:\n{plain}");
        self
    }

    /// The value of the input or text area of this name.
    pub(crate) fn value(&self, name: &str) -> String {
        fields(&self.body)
            .into_iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .unwrap_or_default()
    }

    /// Every `href` on the page.
    pub(crate) fn links(&self) -> Vec<String> {
        self.body
            .split(" href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .map(unescape)
            .collect()
    }
}

/// The next piece of a stream; empty at its end.
pub(crate) async fn piece(body: &mut Body) -> String {
    match body.frame().await {
        Some(Ok(frame)) => {
            let data = frame.into_data().unwrap_or_default();
            String::from_utf8_lossy(&data).into_owned()
        }
        _ => String::new(),
    }
}

/// Text without tags, entities resolved, white space as one blank.
pub(crate) fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
    }
    unescape(&out).split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn unescape(text: &str) -> String {
    text.replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let at = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    Some(unescape(&tag[at..at + tag[at..].find('"')?]))
}

/// Names and values of what a form would send.
fn fields(html: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for piece in html.split("<input").skip(1) {
        let tag = &piece[..piece.find('>').unwrap_or(piece.len())];
        let kind = attribute(tag, "type").unwrap_or_default();
        let ticked = !matches!(kind.as_str(), "checkbox" | "radio") || tag.contains(" checked");
        if let (Some(name), true) = (attribute(tag, "name"), ticked) {
            out.push((name, attribute(tag, "value").unwrap_or_default()));
        }
    }
    for piece in html.split("<textarea").skip(1) {
        let (tag, rest) = piece.split_once('>').expect("a closed tag");
        let text = rest.split("</textarea>").next().unwrap_or_default();
        if let Some(name) = attribute(tag, "name") {
            out.push((name, unescape(text.strip_prefix('\n').unwrap_or(text))));
        }
    }
    for piece in html.split("<select").skip(1) {
        let (tag, rest) = piece.split_once('>').expect("a closed tag");
        let options = rest.split("</select>").next().unwrap_or_default();
        let chosen = options.split("<option").skip(1).find(|option| option.contains(" selected"));
        if let (Some(name), Some(chosen)) = (attribute(tag, "name"), chosen) {
            out.push((name, attribute(chosen, "value").unwrap_or_default()));
        }
    }
    out
}

/// Keeps cookies.
pub(crate) struct Browser {
    router: Router,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    /// One that has been nowhere yet.
    pub(crate) fn new(router: Router) -> Self {
        Self { router, cookies: BTreeMap::new() }
    }

    pub(crate) fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.clone()
    }

    pub(crate) fn set_cookies(&mut self, cookies: BTreeMap<String, String>) {
        self.cookies = cookies;
    }

    async fn send(&mut self, request: http::request::Builder, body: String) -> Page {
        let cookies: Vec<String> = self.cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let request = request
            .header("host", "localhost:8080")
            .header(ACCEPT, "text/html,*/*;q=0.8")
            .header(COOKIE, cookies.join("; "))
            .body(Body::from(body))
            .expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = answer.into_parts();
        for set in parts.headers.get_all(SET_COOKIE) {
            let set = set.to_str().expect("ASCII");
            let (name, value) =
                set.split(';').next().and_then(|p| p.split_once('=')).expect("a pair");
            if set.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let body = body.collect().await.expect("a body").to_bytes();
        Page {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send(Request::builder().method(Method::GET).uri(path), String::new()).await
    }

    /// What a browser asks for from a link on a page of `site`.
    pub(crate) async fn get_from(&mut self, path: &str, site: &str) -> Page {
        let request = Request::builder().method(Method::GET).uri(path);
        self.send(request.header("sec-fetch-site", site), String::new()).await
    }

    /// The first piece of an answer that goes on.
    pub(crate) async fn first_piece(&mut self, path: &str) -> (Page, Body) {
        let cookies: Vec<String> = self.cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let request = Request::builder()
            .uri(path)
            .header("host", "localhost:8080")
            .header(ACCEPT, "text/event-stream")
            .header(COOKIE, cookies.join("; "))
            .body(Body::empty())
            .expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, mut body) = answer.into_parts();
        let text = piece(&mut body).await;
        (Page { status: parts.status, headers: parts.headers, body: text }, body)
    }

    /// Follows redirects from a GET.
    pub(crate) async fn open(&mut self, path: &str) -> Page {
        let mut page = self.get(path).await;
        for _ in 0..5 {
            if page.status != StatusCode::SEE_OTHER {
                break;
            }
            let to = page.location().to_owned();
            page = self.get(&to).await;
        }
        page
    }

    /// A form with exactly these fields.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body = serde_urlencoded::to_string(fields).expect("a form");
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("origin", "http://localhost:8080");
        self.send(request, body).await
    }

    /// Opens the page at `path`, types `typed` into its form for `action`, and sends it.
    pub(crate) async fn submit_to(
        &mut self,
        path: &str,
        action: &str,
        typed: &[(&str, &str)],
    ) -> Page {
        let page = self.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", plain(&page.body));
        self.go_on(&page, path, action, typed).await
    }

    /// The same on a page that is open already, with what stands in its fields.
    pub(crate) async fn go_on(
        &mut self,
        page: &Page,
        path: &str,
        action: &str,
        typed: &[(&str, &str)],
    ) -> Page {
        let target = action.split('?').next().unwrap_or_default();
        let form = page
            .body
            .split("<form")
            .skip(1)
            .map(|form| form.split("</form>").next().unwrap_or_default())
            .find(|form| {
                let tag = &form[..form.find('>').unwrap_or(0)];
                let here = attribute(tag, "action").unwrap_or_else(|| path.to_owned());
                tag.contains("method=\"post\"") && here.split('?').next() == Some(target)
            })
            .unwrap_or_else(|| panic!("no form for {action} on {path}"));
        let mut all = fields(form);
        for (name, value) in typed {
            match all.iter_mut().find(|(key, _)| key == name) {
                Some((_, old)) => (*value).clone_into(old),
                None => all.push(((*name).to_owned(), (*value).to_owned())),
            }
        }
        let all: Vec<(&str, &str)> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.post(action, &all).await
    }

    /// The same where the form sends to its own page.
    pub(crate) async fn submit(&mut self, path: &str, typed: &[(&str, &str)]) -> Page {
        self.submit_to(path, path.split('?').next().unwrap_or_default(), typed).await
    }

    pub(crate) async fn sign_up(&mut self, email: &str) -> Page {
        let page = self.submit("/signup", &[("email", email), ("password", PASSWORD)]).await;
        assert_eq!(page.location(), "/w");
        page
    }
}

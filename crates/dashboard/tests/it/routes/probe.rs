//! One request as one of the people.

use axum::body::Body;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::scene::{Scene, Things};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Nobody,
    /// A session that was logged out, a token that was revoked.
    Ended,
    /// A session or token whose time is over.
    Expired,
    /// Another workspace's admin.
    Stranger,
    /// The same in their own workspace, with the ids of this one.
    Foreign,
    Viewer,
    Manager,
    Admin,
}

impl Who {
    pub(super) const ALL: [Self; 8] = [
        Self::Nobody,
        Self::Ended,
        Self::Expired,
        Self::Stranger,
        Self::Foreign,
        Self::Viewer,
        Self::Manager,
        Self::Admin,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Ended => "ended",
            Self::Expired => "expired",
            Self::Stranger => "stranger",
            Self::Foreign => "foreign",
            Self::Viewer => "viewer",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }

    pub(super) fn is_member(self) -> bool {
        matches!(self, Self::Viewer | Self::Manager | Self::Admin)
    }
}

/// How somebody proves who they are: to pages by cookies, to the API by a token.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity {
    pub(super) cookies: String,
    pub(super) csrf: String,
    pub(super) token: String,
}

impl Scene {
    /// The methods of a page, as the router itself names them.
    pub(super) async fn methods(&self, path: &str) -> Vec<Method> {
        let path = self.first.fill(path, "acme");
        let request = Request::builder().method("PROBE").uri(&path).header("host", "localhost");
        let answer = self.send(request, String::new()).await;
        let allow = answer.headers().get(ALLOW).and_then(|allow| allow.to_str().ok());
        let allow = allow.unwrap_or_else(|| panic!("{path} names no methods: {answer:?}"));
        let all = allow.split(',').map(|one| one.trim().parse::<Method>().expect("a method"));
        all.filter(|one| *one != Method::HEAD).collect()
    }

    async fn send(&self, request: http::request::Builder, body: String) -> Response<Body> {
        let request = request.body(Body::from(body)).expect("a request");
        self.world.router.clone().oneshot(request).await.expect("infallible")
    }

    /// The status that a request is answered with; 0 where this one has nothing to ask.
    pub(super) async fn probe(
        &self,
        who: Who,
        method: &Method,
        path: &str,
        body: &str,
        things: &Things,
    ) -> u16 {
        if who == Who::Stranger && !path.contains("{ws}") {
            return 0;
        }
        if who != Who::Foreign {
            return self.ask(who, method, path, body, ("acme", things)).await.status().as_u16();
        }
        if !path.contains("{id}") {
            return 0;
        }
        // An id of another workspace is answered as one of nothing at all.
        let foreign = self.ask(who, method, path, body, ("other", things)).await;
        let nothing = Things::made_up(things);
        let made_up = self.ask(who, method, path, body, ("other", &nothing)).await;
        let status = foreign.status().as_u16();
        let (told, of_nothing) = (said(foreign, things).await, said(made_up, &nothing).await);
        let differ = told.lines().zip(of_nothing.lines()).find(|(a, b)| a != b);
        assert!(told == of_nothing, "{method} {path} tells whose an id is: {differ:?}");
        status
    }

    async fn ask(
        &self,
        who: Who,
        method: &Method,
        path: &str,
        body: &str,
        (slug, things): (&str, &Things),
    ) -> Response<Body> {
        let identity = self.identity(who);
        let path = things.fill(path, slug);
        let body = things.fill(body, slug);
        let request = Request::builder()
            .method(method.clone())
            .uri(&path)
            .header("host", "localhost:8080")
            .header("if-match", "*");
        if path.starts_with("/api/") {
            let request = request.header(CONTENT_TYPE, "application/json");
            let request = match identity.token.as_str() {
                "" => request,
                token => request.header(AUTHORIZATION, format!("Bearer {token}")),
            };
            return self.send(request, body).await;
        }
        let request = request
            .header("accept", "text/html")
            .header("origin", "http://localhost:8080")
            .header(COOKIE, &identity.cookies);
        if *method == Method::GET {
            return self.send(request, String::new()).await;
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request, format!("csrf={}&{body}", identity.csrf)).await
    }
}

/// Status and body of an answer, ids aside.
async fn said(answer: Response<Body>, things: &Things) -> String {
    let status = answer.status();
    let id = answer.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    let id = id.unwrap_or("no request id").to_owned();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    let body = String::from_utf8_lossy(&body).replace(&id, "(request id)");
    format!("{status}\n{}", things.without_ids(&body))
}

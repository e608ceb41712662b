//! Error pages: each status has one that says what happened and what to do.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::middleware::from_fn;
use axum::routing::get;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use sluice_control::ProblemCode;
use sluice_web::Problem;
use tower::ServiceExt;

use crate::browser::plain;
use crate::logs::with_calls;
use crate::world::World;

const SAID: &str = "this is what happened";

/// Status, code, title of the page, and what to do.
const PAGES: [(u16, &str, &str, &str); 10] = [
    (403, "role_too_low", "This is not open to you", "Ask an admin of the workspace"),
    (404, "not_found", "There is no such page", "It may have been deleted"),
    (409, "conflict", "Someone was faster", "reload the page to see how it stands now"),
    (412, "stale", "Someone was faster", "make the change again"),
    (413, "too_large", "That was too long", "send less at once"),
    (
        421,
        "wrong_host",
        "Sluice does not answer to this name",
        "The operator can add the name with --allowed-hosts",
    ),
    (422, "invalid_form", "That request could not be read", "Nothing was saved"),
    (429, "rate_limited", "Too many tries", "Wait 7 seconds, then reload this page"),
    (500, "internal", "Something broke", "give the operator the request id"),
    (503, "unavailable", "Something that Sluice needs is down", "Try again in a moment"),
];

async fn broken(Path((status, code)): Path<(u16, String)>) -> Problem {
    let status = StatusCode::from_u16(status).expect("a status");
    let mut problem = Problem::new(status, ProblemCode::of(&code), SAID);
    problem.retry_after_s = (status == StatusCode::TOO_MANY_REQUESTS).then_some(7);
    problem
}

#[tokio::test]
async fn each_status_has_a_page_that_says_what_happened_and_what_to_do() {
    let router = Router::new()
        .route("/{status}/{code}", get(broken))
        .layer(from_fn(sluice_dashboard::error_pages));
    let ask = async |path: String, accept: &str| {
        let request = Request::builder().uri(path).header("accept", accept);
        let request = request.body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        (parts, String::from_utf8_lossy(&body).into_owned())
    };
    for (status, code, title, next) in PAGES {
        let (parts, body) = ask(format!("/{status}/{code}"), "text/html").await;
        assert_eq!(parts.status.as_u16(), status);
        let text = plain(&body);
        assert!(text.contains(title) && text.contains(next), "{status}: {text}");
        assert!(status == 404 || text.contains("This is what happened"), "{status}: {text}");
        assert!(body.contains(&format!("<title>{title}")), "{status}: {body}");
        assert!(body.matches("class=\"btn\"").count() >= 2, "{status} leads on: {body}");
        assert_eq!(parts.headers["cache-control"], "no-store", "{status}");
        if status == 429 {
            assert_eq!(parts.headers["retry-after"], "7");
        }
        // Programs are told as JSON.
        let (parts, body) = ask(format!("/{status}/{code}"), "application/json").await;
        assert_eq!(parts.headers["content-type"], "application/problem+json", "{body}");
    }
}

/// Those that a person meets, met.
#[tokio::test]
async fn people_meet_the_pages_where_they_are() {
    let world = World::new().await;
    let (mut browser, calls) = with_calls(&world, 1).await;
    let server = format!("/w/acme/servers/{}", calls[0].server);
    let missing = browser.get("/w/acme/logs/019a0000-0000-7000-8000-000000000000").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    missing.says("Nothing stands at this address");
    assert!(
        !plain(&missing.body).contains("Start free"),
        "who is signed in is not asked to sign up"
    );
    let long = "x".repeat(3_000_000);
    let new = format!("{server}/policies/new");
    let typed = [("document", long.as_str()), ("press", "save")];
    let refused = browser.submit(&new, &typed).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    refused.says("That was too long").says("send less at once");
    let foreign = browser.post(&new, &[("csrf", "x")]).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    foreign.says("Go back, reload the page and send it again");
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(browser.first_piece("/w/acme/logs/live").await.1);
    }
    let many = browser.get("/w/acme/logs/live").await;
    assert_eq!(many.status, StatusCode::TOO_MANY_REQUESTS);
    many.says("Too many tries").says("then reload this page");
}

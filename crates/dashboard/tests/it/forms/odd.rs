//! What is unusual and good, and what no form of ours sends.

use http::StatusCode;

use super::changes;
use crate::browser::MARKUP;
use crate::world::World;

/// Names of every script are names; so is what looks like markup.
#[tokio::test]
async fn unusual_names_are_taken_as_they_are() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    for label in ["Zürich 北京 😀", MARKUP, "'; DROP TABLE users; --", "{{7*7}}"] {
        let page = browser.submit(&format!("{path}/grants/new"), &[("label", label)]).await;
        assert_eq!(page.status, StatusCode::OK, "{label}");
        page.says("slg_");
        browser.get("/w/acme/grants").await.says(label);
    }
}

/// What the page's own form cannot send is refused with the field named, and saves nothing.
#[tokio::test]
async fn fields_that_a_form_does_not_have_are_refused_by_name() {
    let world = World::new().await;
    let (mut browser, path) = world.connected().await;
    let before = changes(&mut browser).await;
    for (page, action, good) in [
        ("/workspaces/new".to_owned(), "/workspaces/new".to_owned(), ("name", "Other")),
        (format!("{path}/grants/new"), format!("{path}/grants/new"), ("label", "other")),
        (format!("{path}/settings"), format!("{path}/settings"), ("name", "renamed")),
        ("/w/acme/settings".to_owned(), "/w/acme/settings/name".to_owned(), ("name", "Other")),
    ] {
        let answer = browser.submit_to(&page, &action, &[good, ("is_admin", "1")]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{action}");
        answer.says("The form has no field is_admin").says("Nothing was saved");
        let csrf = browser.get(&page).await.value("csrf");
        let twice = [("csrf", csrf.as_str()), good, (good.0, "another")];
        let answer = browser.post(&action, &twice).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{action}");
        answer.says(&format!("The form has the field {} twice", good.0));
    }
    assert_eq!(changes(&mut browser).await, before, "something was saved");
}

/// Bodies that are no form at all.
#[tokio::test]
async fn what_is_no_form_is_refused_in_words() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let csrf = browser.get("/workspaces/new").await.value("csrf");
    let huge = "x".repeat(2 << 20);
    let answer = browser.post("/workspaces/new", &[("csrf", &csrf), ("name", &huge)]).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    answer.says("That was too long");
    let many: Vec<(String, &str)> = (0..6_000).map(|n| (format!("f{n}"), "")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let answer = browser.post("/workspaces/new", &many).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

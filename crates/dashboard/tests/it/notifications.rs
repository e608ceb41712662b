//! The page where people say how they are told.

use http::StatusCode;
use sluice_testkit::WebhookSink;

use crate::browser::Browser;
use crate::world::World;

const PAGE: &str = "/w/acme/notifications";
const ENDPOINTS: &str = "/w/acme/notifications/endpoints";

#[tokio::test]
async fn a_webhook_is_made_tested_changed_and_removed() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    browser.get(PAGE).await.says("No channel yet").says("This Sluice sends no mail");
    let sink = WebhookSink::start().await;
    let url = sink.url("hook?token=tok-9x");
    let odd = [("name", ""), ("kind", "webhook"), ("url", "ftp://example.com")];
    let odd = browser.submit_to(PAGE, ENDPOINTS, &odd).await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
    odd.says("Give it a name.").says("only https: and http: can be used");
    let typed = [("name", "ops"), ("kind", "webhook"), ("url", url.as_str())];
    let made = browser.submit_to(PAGE, ENDPOINTS, &typed).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.body);
    let secret =
        made.body.split("id=\"secret-once\">").nth(1).and_then(|rest| rest.split('<').next());
    let secret = secret.expect("shown once").to_owned();
    assert!(secret.starts_with("whsec_"));
    let list = browser.get(PAGE).await;
    list.says("ops").says("Webhook").says("On");
    let one = list.links().into_iter().find(|link| link.starts_with(ENDPOINTS)).expect("a link");
    for path in [PAGE, one.as_str(), "/w/acme/audit"] {
        let page = browser.get(path).await;
        assert!(!page.body.contains(&secret) && !page.body.contains("tok-9x"), "{path}");
    }
    let tested = browser.submit_to(&one, &format!("{one}/test"), &[]).await;
    browser.get(tested.location()).await.says("The test message was taken.").says("204 in");
    assert_eq!(sink.posted()[0].json()["type"], "test");
    sink.answer(500, None);
    let tested = browser.submit_to(&one, &format!("{one}/test"), &[]).await;
    browser.get(tested.location()).await.says("The test did not arrive: it answered 500.");
    browser.get(&format!("{PAGE}?status=dead")).await.says("Given up").says("Send anew");
    replays(&mut browser).await;
    let rotated = browser.submit_to(&one, &format!("{one}/rotate"), &[]).await;
    rotated.says("The webhook's secret");
    assert!(!rotated.body.contains(&secret));
    browser.get(&one).await.says("The secret before signs until");
    let off = browser
        .post(
            &one,
            &[
                ("csrf", &browser_csrf(&rotated.body)),
                ("name", "ops 2"),
                ("event", "approval.decided"),
                ("revision", "2"),
            ],
        )
        .await;
    assert_eq!(off.location(), one);
    browser.get(&one).await.says("Saved ops 2.").says("off");
    let stale = browser
        .post(&one, &[("csrf", &browser_csrf(&rotated.body)), ("name", "ops 3"), ("revision", "2")])
        .await;
    stale.says("Somebody else changed it since you read it");
    let gone = browser.submit_to(&one, &format!("{one}/delete"), &[]).await;
    browser.get(gone.location()).await.says("Removed").says("No channel yet");
    assert_eq!(browser.get(&one).await.status, StatusCode::NOT_FOUND);
}

/// Sends the newest message of the log anew.
async fn replays(browser: &mut Browser) {
    let replay = browser.get(PAGE).await.body;
    let replay = replay
        .split("action=\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|path| path.ends_with("/replay"))
        .expect("a form")
        .to_owned();
    let again = browser.submit_to(PAGE, &replay, &[]).await;
    browser.get(again.location().split('#').next().expect("a path")).await.says("It is sent anew.");
}

fn browser_csrf(body: &str) -> String {
    let at = body.find("name=\"csrf\" value=\"").expect("a token") + 19;
    body[at..].split('"').next().expect("it ends").to_owned()
}

#[tokio::test]
async fn escalation_is_set_and_odd_times_are_told_at_the_field() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    let action = "/w/acme/notifications/escalation";
    for (minutes, words) in [
        ("soon", "Give a whole number of minutes."),
        ("0", "Give 1 minute to 7 days"),
        ("99999", "Give 1 minute to 7 days"),
    ] {
        let odd = browser.submit_to(PAGE, action, &[("minutes", minutes)]).await;
        assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY, "{minutes}");
        odd.says(words);
        assert_eq!(odd.value("minutes"), minutes);
    }
    let saved = browser.submit_to(PAGE, action, &[("minutes", "15")]).await;
    assert_eq!(browser.get(saved.location()).await.value("minutes"), "15");
    browser.submit_to(PAGE, action, &[("minutes", "")]).await;
    assert_eq!(browser.get(PAGE).await.value("minutes"), "");
    browser.get("/w/acme/audit").await.says("workspace.set_escalation");
}

//! Signing in by an identity provider, in a browser.

use http::StatusCode;
use secrecy::SecretString;
use sluice_control::{Provider, ProviderKind};
use sluice_limits::Counters;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::fake_issuer::{CLIENT_ID, CLIENT_SECRET};
use sluice_testkit::{FakeIssuer, TestClock};

use crate::browser::{Browser, PASSWORD};
use crate::world::World;

async fn vouched() -> (World, FakeIssuer) {
    let clock = TestClock::at("2026-11-30T12:00:00Z");
    let issuer = FakeIssuer::start(clock.now().timestamp()).await;
    let acme = Provider {
        name: "acme".to_owned(),
        label: "Acme <b>".to_owned(),
        kind: ProviderKind::Oidc,
        issuer: issuer.url(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: SecretString::from(CLIENT_SECRET),
    };
    let counters = Counters::in_memory(clock.function());
    let fresh = FreshDatabase::sqlite();
    (World::vouched(fresh, clock, counters, None, vec![acme]).await, issuer)
}

/// Goes to the provider by a link here, and gives where it leads back to.
async fn there_and_back(browser: &mut Browser, issuer: &FakeIssuer, link: &str) -> String {
    let to = browser.get(link).await.location().to_owned();
    assert!(to.starts_with(&issuer.url()), "{to}");
    format!("/login/with/acme/callback?{}", issuer.consent(&to))
}

#[tokio::test]
async fn a_button_signs_a_newcomer_in_and_leads_on() {
    let (world, issuer) = vouched().await;
    let mut browser = world.browser();
    let page = browser.get("/login?next=/account").await;
    page.says("Continue with Acme <b>");
    assert!(!page.body.contains("Acme <b>"), "a label is text");
    let link = "/login/with/acme?next=/account";
    assert!(page.links().contains(&link.to_owned()), "{:?}", page.links());
    browser.get("/signup").await.says("Continue with Acme");
    let back = there_and_back(&mut browser, &issuer, link).await;
    // Another browser cannot take the answer.
    let mut thief = world.browser();
    assert_eq!(thief.get(&back).await.location(), "/login");
    thief.get("/login").await.says("begun in another browser");
    assert_eq!(browser.get(&back).await.location(), "/account");
    browser
        .get("/account")
        .await
        .says("ann@example.test")
        .says("Acme <b> ann@example.test, last used just now");
    assert!(!browser.cookies().contains_key("sluice_flow"), "good for one answer");
    // The same answer again, signed in or not, opens nothing.
    assert_eq!(browser.get(&back).await.location(), "/account");
    browser.get("/account").await.says("begun in another browser");
}

#[tokio::test]
async fn an_account_is_linked_from_its_page_by_its_owner() {
    let (world, issuer) = vouched().await;
    let mut ann = world.admin().await;
    let mut other = world.browser();
    let back = there_and_back(&mut other, &issuer, "/login/with/acme").await;
    assert_eq!(other.get(&back).await.location(), "/login");
    other
        .get("/login")
        .await
        .says("There is an account for ann@example.test; sign in to it, then link");
    let typed = |password| [("provider", "acme"), ("password", password)];
    let page = ann.submit_to("/account", "/account/link-provider", &typed("not it at all")).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("This is not your password.");
    let page = ann.submit_to("/account", "/account/link-provider", &typed(PASSWORD)).await;
    page.says("Continue to Acme <b>");
    let links = page.links();
    let to = links.iter().find(|link| link.starts_with(&issuer.url())).expect("a link");
    let back = format!("/login/with/acme/callback?{}", issuer.consent(to));
    // Brought to somebody else's browser, it links nothing.
    let mut eve = world.browser();
    eve.sign_up("eve@example.test").await;
    assert_eq!(eve.get(&back).await.location(), "/account");
    eve.get("/account").await.says("begun in another browser");
    assert_eq!(ann.get(&back).await.location(), "/account");
    ann.get("/account").await.says("Linked Acme <b>.").says("last used just now");
    let back = there_and_back(&mut other, &issuer, "/login/with/acme").await;
    assert_eq!(other.get(&back).await.location(), "/w");
    let page = ann.get("/account").await;
    let at = page.body.find("/account/identities/").expect("a form");
    let action = page.body[at..].split('"').next().expect("its address").to_owned();
    assert_eq!(ann.submit_to("/account", &action, &[]).await.location(), "/account");
    ann.get("/account").await.says("Unlinked.").says("Link Acme <b>");
}

#[tokio::test]
async fn what_goes_wrong_at_the_provider_is_told_where_one_signs_in() {
    let (world, issuer) = vouched().await;
    let mut browser = world.browser();
    let back = there_and_back(&mut browser, &issuer, "/login/with/acme").await;
    let state = back.split("state=").nth(1).expect("a state").to_owned();
    let refused = format!("/login/with/acme/callback?error=access_denied&state={state}");
    assert_eq!(browser.get(&refused).await.location(), "/login");
    browser.get("/login").await.says("Acme <b> did not sign you in");
    issuer.tamper(|header, _| header["alg"] = "none".into());
    let back = there_and_back(&mut browser, &issuer, "/login/with/acme").await;
    assert_eq!(browser.get(&back).await.location(), "/login");
    browser.get("/login").await.says("was refused: its algorithm is none that is taken");
    assert_eq!(browser.get("/login/with/nobody").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/account").await.status, StatusCode::SEE_OTHER, "nobody is signed in");
}

#[tokio::test]
async fn a_workspace_asks_for_a_provider_on_its_settings_page() {
    let (world, issuer) = vouched().await;
    let mut ann = world.admin().await;
    let (at, action) = ("/w/acme/settings", "/w/acme/settings/provider");
    let page = ann.submit_to(at, action, &[("provider", "acme")]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.says("Sign in by Acme <b> yourself first, at /login/with/acme");
    let typed = [("provider", "acme"), ("password", PASSWORD)];
    let page = ann.submit_to("/account", "/account/link-provider", &typed).await;
    let links = page.links();
    let to = links.iter().find(|link| link.starts_with(&issuer.url())).expect("a link");
    let back = format!("/login/with/acme/callback?{}", issuer.consent(to));
    assert_eq!(ann.get(&back).await.location(), "/account");
    // Who is signed in by the password signs in once more, by the provider.
    let mut by_password = world.browser();
    by_password.set_cookies(ann.cookies());
    let back = there_and_back(&mut ann, &issuer, "/login/with/acme?next=/w/acme/settings").await;
    assert_eq!(ann.get(&back).await.location(), at);
    assert_eq!(ann.submit_to(at, action, &[("provider", "acme")]).await.location(), at);
    ann.get(at).await.says("Saved how members sign in.").says("By Acme <b> alone");
    let page = by_password.get("/w/acme/").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    page.says("asks you to sign in by Acme <b>").says("/login/with/acme");
    by_password.get("/account").await.says("ann@example.test");
    assert_eq!(ann.submit_to(at, action, &[("provider", "")]).await.location(), at);
    assert_eq!(by_password.get("/w/acme/").await.status, StatusCode::OK);
}

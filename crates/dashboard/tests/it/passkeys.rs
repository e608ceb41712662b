//! Passkeys, from the account's page to the sign-in page, as the script of the pages sends them.

use http::StatusCode;
use sluice_testkit::SoftPasskey;

use crate::browser::{Browser, PASSWORD, Page};
use crate::world::World;

const EMAIL: &str = "ann@example.test";

/// What the page gives its script to ask.
fn asked(page: &Page) -> serde_json::Value {
    let text = page.body.split("data-question=\"").nth(1).expect("a question");
    let text = text.split('"').next().unwrap_or_default();
    let text = text.replace("&#34;", "\"").replace("&quot;", "\"");
    serde_json::from_str(&text).expect("JSON")
}

async fn sign_in(browser: &mut Browser, path: &str, passkey: &SoftPasskey, user: &str) -> Page {
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("/passkey.js\""), "{}", page.body);
    let csrf = page.value("csrf");
    let step = if path.contains("code") { "second" } else { "alone" };
    let fields = [("csrf", csrf.as_str()), ("step", step)];
    let question = browser.post("/login/passkey/question", &fields).await;
    assert_eq!(question.status, StatusCode::OK, "{}", question.body);
    let question: serde_json::Value = serde_json::from_str(&question.body).expect("JSON");
    let made = passkey.sign_in(question["challenge"].as_str().expect("a challenge"));
    let text = |bytes: &[u8]| SoftPasskey::text(bytes);
    let (credential, client_data) = (text(&passkey.credential), text(&made.client_data));
    let (data, signature) = (text(&made.authenticator_data), text(&made.signature));
    let fields = [
        ("credential", credential.as_str()),
        ("client_data", &client_data),
        ("authenticator_data", &data),
        ("signature", &signature),
        ("user", user),
    ];
    let page = browser.get(path).await;
    browser.go_on(&page, path, "/login/passkey", &fields).await
}

#[tokio::test]
async fn a_passkey_is_made_used_and_taken_away() {
    let world = World::new().await;
    let mut ann = world.admin().await;
    ann.get("/account").await.says("Passkeys");
    let page = ann.get("/account/passkeys").await;
    page.says("From then on your password alone signs you in no more");
    let typed = [("name", "My <b>phone</b>"), ("password", "wrong")];
    let wrong = ann.submit_to("/account/passkeys", "/account/passkeys/begin", &typed).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let typed = [("name", "My <b>phone</b>"), ("password", PASSWORD)];
    let begun = ann.submit_to("/account/passkeys", "/account/passkeys/begin", &typed).await;
    let question = asked(&begun);
    assert_eq!((&question["site"], &question["email"]), (&"localhost".into(), &EMAIL.into()));
    let user = question["user"].as_str().expect("a person").to_owned();
    let mut passkey = SoftPasskey::es256();
    let (client_data, attestation) =
        passkey.register(question["challenge"].as_str().expect("a challenge"));
    let (client_data, attestation) =
        (SoftPasskey::text(&client_data), SoftPasskey::text(&attestation));
    let fields = [("client_data", client_data.as_str()), ("attestation", &attestation)];
    let codes = ann.go_on(&begun, "/account/passkeys/begin", "/account/passkeys", &fields).await;
    codes.says("ecovery codes");
    let page = ann.get("/account/passkeys").await;
    page.says("My <b>phone</b>").says("never used");
    assert!(!page.body.contains("<b>phone"));
    ann.get("/account/second-factor").await.says("is asked for").says("Make new codes");

    // The password is half of it now.
    let mut other = world.browser();
    let half = other.submit("/login", &[("email", EMAIL), ("password", PASSWORD)]).await;
    assert!(half.location().starts_with("/login/code"), "{}", half.location());
    passkey.counter = 2;
    assert_eq!(sign_in(&mut other, "/login/code", &passkey, "").await.location(), "/w");
    other.get("/account").await.says(EMAIL);
    // Alone it goes where somebody was going.
    let mut third = world.browser();
    passkey.counter = 3;
    let done = sign_in(&mut third, "/login?next=%2Fw%2Facme%2Fgrants", &passkey, &user).await;
    assert_eq!(done.location(), "/w/acme/grants");
    third.get("/account").await.says(EMAIL);
    // A wrong one is told on the page to sign in on.
    let mut eve = world.browser();
    let refused = sign_in(&mut eve, "/login", &SoftPasskey::es256(), &user).await;
    assert_eq!(refused.location(), "/login");
    eve.get("/login").await.says("This passkey was not accepted");

    let page = ann.get("/account/passkeys").await;
    let id = page.body.split("/account/passkeys/").filter_map(|rest| rest.split('/').next());
    let id = id.filter(|id| id.len() == 36).last().expect("an id");
    let path = format!("/account/passkeys/{id}/remove");
    let gone = ann.go_on(&page, "/account/passkeys", &path, &[("password", PASSWORD)]).await;
    assert_eq!(gone.location(), "/account/passkeys");
    let mut last = world.browser();
    let login = last.submit("/login", &[("email", EMAIL), ("password", PASSWORD)]).await;
    assert_eq!(login.location(), "/w");
}

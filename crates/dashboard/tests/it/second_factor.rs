//! Two-step sign-in in a browser: set up, asked for, recovered from, turned off.

use chrono::TimeDelta;
use http::StatusCode;
use sluice_store::{second_factor, users};
use sluice_vault::{Place, TOTP_PERIOD_S, TotpSecret};

use crate::browser::{Browser, PASSWORD, Page};
use crate::world::World;

const EMAIL: &str = "ann@example.test";
const AT: &str = "/account/second-factor";

async fn code(world: &World) -> String {
    let mut tx = world.db.read().await.expect("reads");
    let conn = &mut tx.conn();
    let user = users::find_by_email(conn, EMAIL).await.expect("answers").expect("there").id;
    let sealed =
        second_factor::find(conn, user).await.expect("answers").expect("begun").sealed_secret;
    let secret = world.vault.open(Place::totp_secret(user), &sealed).expect("opens");
    let secret = TotpSecret::from_slice(&secret).expect("a secret");
    secret.code(world.control.now().timestamp() / TOTP_PERIOD_S)
}

fn next_step(world: &World) {
    world.clock.advance(TimeDelta::seconds(TOTP_PERIOD_S));
}

/// The recovery codes that stand on the page.
fn codes(page: &Page) -> Vec<String> {
    let list = page.body.split("class=\"card codes\"").nth(1).expect("a list");
    let list = list.split("</ul>").next().expect("its end");
    list.split("<code>")
        .skip(1)
        .filter_map(|it| Some(it.split("</code>").next()?.to_owned()))
        .collect()
}

/// Sets it up, and gives the recovery codes.
async fn set_up(world: &World, browser: &mut Browser) -> Vec<String> {
    let action = format!("{AT}/begin");
    let begun = browser.submit_to(AT, &action, &[("password", PASSWORD)]).await;
    assert_eq!(begun.status, StatusCode::OK);
    let confirm = format!("{AT}/confirm");
    let shown = browser.go_on(&begun, AT, &confirm, &[("code", &code(world).await)]).await;
    assert_eq!(shown.status, StatusCode::OK);
    next_step(world);
    codes(&shown)
}

#[tokio::test]
async fn it_is_set_up_by_picture_or_text_and_confirmed_by_a_code() {
    let world = World::new().await;
    let mut browser = world.admin().await;
    browser.get("/account").await.says("Off. With it, signing in also asks");
    let action = format!("{AT}/begin");
    let wrong = browser.submit_to(AT, &action, &[("password", "not it at all")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    wrong.says("This is not your password.");
    assert!(!wrong.body.contains("<svg class=\"qr\""), "nothing is shown without the password");
    let begun = browser.submit_to(AT, &action, &[("password", PASSWORD)]).await;
    assert!(begun.body.contains("<svg class=\"qr\" role=\"img\""), "{}", begun.body);
    assert!(
        begun
            .body
            .contains("href=\"otpauth://totp/Sluice%20localhost:ann%40example%2Etest?secret=")
    );
    assert_eq!(begun.headers[http::header::CACHE_CONTROL], "no-store");
    assert!(!begun.body.contains("<script>"));
    let confirm = format!("{AT}/confirm");
    let again = browser.go_on(&begun, AT, &confirm, &[("code", "000000x")]).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.says("This code is wrong");
    let secret = |page: &Page| {
        let rest = page.body.split("?secret=").nth(1).expect("a secret");
        rest.split('&').next().expect("its end").to_owned()
    };
    assert_eq!(secret(&again), secret(&begun), "the app was given this one");
    let shown = browser.go_on(&again, AT, &confirm, &[("code", &code(&world).await)]).await;
    assert_eq!(codes(&shown).len(), 10);
    assert_eq!(shown.headers[http::header::CACHE_CONTROL], "no-store");
    browser
        .get("/account")
        .await
        .says("signing in asks for a code")
        .says("10 recovery codes left.");
    let page = browser.get(AT).await;
    assert!(!page.body.contains(&secret(&begun)), "the secret is never shown again");
}

#[tokio::test]
async fn signing_in_asks_for_the_code_and_leads_on() {
    let world = World::new().await;
    let mut ann = world.admin().await;
    let codes = set_up(&world, &mut ann).await;
    let mut other = world.browser();
    assert_eq!(other.get("/login/code").await.location(), "/login");
    let first = [("email", EMAIL), ("password", PASSWORD)];
    let page = other.submit_to("/login?next=/w/acme/logs", "/login", &first).await;
    assert_eq!(page.location(), "/login/code?next=/w/acme/logs");
    let at = page.location().to_owned();
    assert_eq!(other.get("/account").await.location(), "/login?next=%2Faccount", "not in yet");
    let page = other.submit(&at, &[("code", "123456x")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("This code is wrong");
    assert_eq!(page.value("code"), "", "a code is never sent back");
    let half = other.cookies();
    assert_eq!(
        other.submit(&at, &[("code", &code(&world).await)]).await.location(),
        "/w/acme/logs"
    );
    other.get("/account").await.says(EMAIL);
    assert!(!other.cookies().contains_key("sluice_half"), "{:?}", other.cookies());
    // What was half a login is worth nothing afterwards.
    let mut thief = world.browser();
    thief.set_cookies(half);
    next_step(&world);
    assert_eq!(
        thief.submit(&at, &[("code", &codes[0])]).await.location(),
        "/login?next=/w/acme/logs"
    );
    thief.get("/login").await.says("sign in again");
    // A recovery code does as well.
    let page = thief.submit("/login", &first).await;
    let at = page.location().to_owned();
    assert_eq!(thief.submit(&at, &[("code", &codes[0].to_lowercase())]).await.location(), "/w");
    thief.get("/account").await.says("9 recovery codes left.");
}

#[tokio::test]
async fn it_is_turned_off_and_renewed_with_a_code_only() {
    let world = World::new().await;
    let mut ann = world.admin().await;
    let codes = set_up(&world, &mut ann).await;
    let (renew, end) = (format!("{AT}/codes"), format!("{AT}/end"));
    for (action, field) in [(&renew, "renew_code"), (&end, "end_code")] {
        let page = ann.submit_to(AT, action, &[(field, "no code")]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.body.contains(&format!("id=\"{field}-error\"")), "{}", page.body);
        assert_eq!(page.body.matches("class=\"error\"").count(), 1);
    }
    let page = ann.submit_to(AT, &renew, &[("renew_code", &code(&world).await)]).await;
    let new = self::codes(&page);
    assert_eq!(new.len(), 10);
    assert!(new.iter().all(|code| !codes.contains(code)));
    let page = ann.submit_to(AT, &end, &[("end_code", &codes[0])]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "the older ones ended");
    assert_eq!(ann.submit_to(AT, &end, &[("end_code", &new[0])]).await.location(), "/account");
    ann.get("/account").await.says("Two-step sign-in is off.");
    let mut other = world.browser();
    let first = [("email", EMAIL), ("password", PASSWORD)];
    assert_eq!(other.submit("/login", &first).await.location(), "/w");
}

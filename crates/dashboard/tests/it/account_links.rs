//! Signing in by mail, and what the pages say where there is none.

use http::StatusCode;
use secrecy::SecretString;
use sluice_limits::Counters;
use sluice_testkit::{SmtpServer, TestClock};
use sluice_upstream::{Mailer, MailerOptions};

use crate::browser::{Browser, PASSWORD};
use crate::world::World;

async fn with_mail() -> (World, SmtpServer) {
    let server = SmtpServer::start().await;
    let options = MailerOptions {
        url: SecretString::from(server.url()),
        from: "Sluice <sluice@example.com>".to_owned(),
        hello: "localhost".to_owned(),
        extra_roots: Vec::new(),
    };
    let mailer = Mailer::new(&options).expect("the settings are good");
    let clock = TestClock::at("2026-11-30T12:00:00Z");
    let counters = Counters::in_memory(clock.function());
    (World::with_mailer(clock, counters, Some(mailer)).await, server)
}

/// The path of the link in the newest mail, after so many in all.
async fn link(world: &World, mails: &SmtpServer, count: usize) -> String {
    told(world, mails, count).await;
    let link = mails.mails()[count - 1].link("/account/link/").expect("a link");
    link.strip_prefix("http://localhost:8080").expect("of this place").to_owned()
}

/// Sends what is to be sent until so many mails came in all.
async fn told(world: &World, mails: &SmtpServer, count: usize) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while mails.mails().len() < count {
        assert!(std::time::Instant::now() < deadline, "no mail comes");
        world.control.deliver_due().await.expect("sends");
        tokio::task::yield_now().await;
    }
}

async fn ask(browser: &mut Browser, email: &str, purpose: &str) -> String {
    let page = browser.submit("/forgot", &[("email", email), ("purpose", purpose)]).await;
    assert_eq!(page.status, StatusCode::OK);
    page.says(&format!("If there is an account for {email}, a mail is on its way."));
    page.body
}

#[tokio::test]
async fn a_link_by_mail_signs_in_and_sets_a_password() {
    let (world, mails) = with_mail().await;
    // Signing up says the same whether there is an account, and opens nothing by itself.
    let mut ann = world.browser();
    let typed = [("email", "ann@example.test"), ("password", PASSWORD)];
    let page = ann.submit("/signup?next=%2Fworkspaces%2Fnew", &typed).await;
    page.says("Look into your mail").says("A mail is on its way to ann@example.test.");
    let of_new = crate::browser::plain(&page.body);
    assert_eq!(ann.get("/account").await.status, StatusCode::SEE_OTHER);
    let confirm = link(&world, &mails, 1).await;
    ann.get(&confirm).await.says("The one that you typed when you made the account.");
    let page = ann.submit_to(&confirm, &confirm, &[("password", "somebody else's")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("have a link to sign in mailed instead");
    let done = ann.submit_to(&confirm, &confirm, &[("password", PASSWORD)]).await;
    assert_eq!(done.location(), "/workspaces/new");
    ann.get("/account").await.says("ann@example.test");
    let mut again = world.browser();
    let second = again.submit("/signup?next=%2Fworkspaces%2Fnew", &typed).await;
    assert_eq!(crate::browser::plain(&second.body), of_new);
    assert_eq!(second.status, StatusCode::OK);
    told(&world, &mails, 2).await;
    let mut other = world.browser();
    other.get("/login").await.says("Sign in by mail, or set a new password");
    // Known or not, the page is the same.
    let known = ask(&mut other, "ann@example.test", "sign_in").await;
    let unknown = ask(&mut other, "eve@example.test", "sign_in").await;
    assert_eq!(known.replace("ann@", "eve@").len(), unknown.len());
    let sign_in = link(&world, &mails, 3).await;
    for _ in 0..2 {
        other.get(&sign_in).await.says("Sign in").says("ann@example.test");
    }
    assert_eq!(
        other.get("/account").await.status,
        StatusCode::SEE_OTHER,
        "opening signs nobody in"
    );
    assert_eq!(other.submit(&sign_in, &[]).await.location(), "/w");
    other.get("/account").await.says("ann@example.test");
    assert_eq!(other.get(&sign_in).await.status, StatusCode::NOT_FOUND);
    assert!(
        !ann.get("/account").await.body.contains("Confirm your address"),
        "the address is proven"
    );
    assert_eq!(ann.get(&confirm).await.status, StatusCode::NOT_FOUND);

    let mut third = world.browser();
    ask(&mut third, "ann@example.test", "reset").await;
    let reset = link(&world, &mails, 4).await;
    let page = third.submit(&reset, &[("password", "short")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.says("at least 10 characters");
    assert_eq!(third.submit(&reset, &[("password", "a new long password")]).await.location(), "/w");
    for browser in [&mut ann, &mut other] {
        assert_eq!(
            browser.get("/account").await.status,
            StatusCode::SEE_OTHER,
            "every login ended"
        );
    }
    let old = [("email", "ann@example.test"), ("password", PASSWORD)];
    assert_eq!(ann.submit("/login", &old).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn wishes_that_cannot_be_met_are_told_in_words() {
    let (world, _mails) = with_mail().await;
    let mut browser = world.browser();
    for (email, purpose, told) in [
        ("", "sign_in", "Give your e-mail address"),
        ("nothing", "reset", "This is not an e-mail address"),
        ("ann@example.test", "verify", "Choose whether to sign in or to set a new password."),
        ("ann@example.test", "", "Choose whether to sign in or to set a new password."),
    ] {
        let page = browser.submit("/forgot", &[("email", email), ("purpose", purpose)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{email} {purpose}");
        page.says(told);
    }
    assert_eq!(browser.get("/account/link/sll_nonsense").await.status, StatusCode::NOT_FOUND);
    let world = World::new().await;
    let mut browser = world.browser();
    browser.get("/login").await.says("This Sluice sends no mail");
    browser.get("/forgot").await.says("sluice admin reset-password");
}

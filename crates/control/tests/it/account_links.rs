//! Links that are mailed to a person: what they open, once, for whom, and what nobody learns.

use chrono::TimeDelta;
use secrecy::ExposeSecret as _;
use sluice_control::{SignUp, SignedUp, Signup};
use sluice_domain::LinkPurpose;
use sluice_store::Db;
use sluice_store::users;
use sluice_testkit::smtp_server::Received;
use sluice_testkit::{SmtpServer, on_both};

use crate::common::{PASSWORD, World, code, complete, origin, secret};
use crate::notices::mailer;

const EMAIL: &str = "ann@example.test";

pub(crate) async fn with_mail(db: Db) -> (World, SmtpServer) {
    let server = SmtpServer::start().await;
    let world = World::with(db, Signup::Open, Some(mailer(&server)), true).await;
    (world, server)
}

/// The link's token in the newest mail, after so many in all.
pub(crate) async fn token(world: &World, mails: &SmtpServer, count: usize) -> String {
    let got = mailed(world, mails, count).await;
    let newest = got.last().expect("a mail");
    let link = newest.link("/account/link/").expect("a link");
    let link = link.split('?').next().unwrap_or_default();
    link.rsplit_once('/').expect("its token").1.to_owned()
}

/// Sends what is to be sent until so many mails came in all.
pub(crate) async fn mailed(world: &World, mails: &SmtpServer, count: usize) -> Vec<Received> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while mails.mails().len() < count {
        assert!(std::time::Instant::now() < deadline, "no mail comes");
        world.control.deliver_due().await.expect("sends");
        tokio::task::yield_now().await;
    }
    mails.mails()
}

async fn verified(world: &World) -> bool {
    let mut tx = world.db.read().await.expect("reads");
    let user = users::find_by_email(&mut tx.conn(), EMAIL).await.expect("answers").expect("there");
    user.verified_at.is_some()
}

on_both! {
    async fn an_address_is_confirmed_by_the_link_that_signing_up_mails(db: Db) {
        let (world, mails) = with_mail(db).await;
        let login = world.sign_up(EMAIL).await.expect("signs up");
        let actor = world.actor(&login).await;
        let first = token(&world, &mails, 1).await;
        assert!(mails.mails()[0].raw.contains("Subject: Confirm your e-mail address for Sluice"));
        assert!(!world.control.is_verified(&actor).await.expect("answers"));
        // A new one ends the old one.
        world.control.send_verification(&actor).await.expect("sends");
        let link = token(&world, &mails, 2).await;
        assert_eq!(code(world.control.link_card(&secret(&first)).await), "not_found");
        let card = world.control.link_card(&secret(&link)).await.expect("shows");
        assert_eq!((card.purpose, card.email.as_str()), (LinkPurpose::Verify, EMAIL));
        // It neither signs in nor sets a password.
        assert_eq!(code(world.control.log_in_by_link(&secret(&link), &origin()).await), "not_found");
        assert_eq!(code(world.control.reset_by_link(&secret(&link), secret("another long one"), &origin()).await), "not_found");
        assert!(!verified(&world).await, "looking confirms nothing");
        let confirm = async |actor, typed| {
            world.control.verify_email(&secret(&link), actor, secret(typed), &origin()).await
        };
        // The link alone confirms nothing: somebody else may have made the account.
        let bob = world.person("bob@example.test").await;
        for stranger in [None, Some(&bob)] {
            assert_eq!(code(confirm(stranger, "not the password").await), "wrong_password");
        }
        assert!(!verified(&world).await);
        let done = confirm(Some(&actor), "").await.expect("its owner is signed in");
        assert_eq!((done.email.as_str(), done.entry.is_none()), (EMAIL, true));
        assert!(verified(&world).await);
        assert_eq!(code(confirm(Some(&actor), "").await), "not_found");
        world.control.send_verification(&actor).await.expect("nothing to do");
        let told = mailed(&world, &mails, 3).await;
        assert_eq!((told.len(), told[2].to.as_str()), (3, "bob@example.test"));
    }

    async fn a_mailed_link_signs_in_once_and_in_time(db: Db) {
        let (world, mails) = with_mail(db).await;
        world.sign_up(EMAIL).await.expect("signs up");
        token(&world, &mails, 1).await;
        world.control.ask_link(" ANN@example.test ", LinkPurpose::SignIn, &origin()).await.expect("asks");
        let link = token(&world, &mails, 2).await;
        assert_eq!(mails.mails()[1].to, EMAIL);
        let login = complete(world.control.log_in_by_link(&secret(&link), &origin()).await.expect("signs in"));
        assert_eq!(world.actor(&login).await.email, EMAIL);
        assert!(verified(&world).await, "whoever has the mail has the address");
        assert_eq!(code(world.control.log_in_by_link(&secret(&link), &origin()).await), "not_found");
        world.control.ask_link(EMAIL, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let late = token(&world, &mails, 3).await;
        world.clock.advance(TimeDelta::minutes(15));
        assert_eq!(code(world.control.log_in_by_link(&secret(&late), &origin()).await), "not_found");
        // What is over is forgotten.
        world.clock.advance(TimeDelta::days(3));
        assert!(world.control.sweep().await.expect("sweeps").links > 0);
    }

    async fn a_new_password_by_mail_ends_every_login_and_every_other_link(db: Db) {
        let (world, mails) = with_mail(db).await;
        let login = world.sign_up(EMAIL).await.expect("signs up");
        token(&world, &mails, 1).await;
        world.control.ask_link(EMAIL, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let sign_in = token(&world, &mails, 2).await;
        world.control.ask_link(EMAIL, LinkPurpose::Reset, &origin()).await.expect("asks");
        let link = token(&world, &mails, 3).await;
        let weak = world.control.reset_by_link(&secret(&link), secret("short"), &origin()).await;
        assert_eq!(code(weak), "too_short");
        let new = complete(world.control.reset_by_link(&secret(&link), secret("another long one"), &origin()).await.expect("sets"));
        assert_eq!(world.actor(&new).await.email, EMAIL);
        assert_eq!(world.control.who(login.token.expose_secret(), "").await.expect("answers"), None);
        assert_eq!(code(world.control.log_in(EMAIL, secret(PASSWORD), &origin()).await), "bad_credentials");
        world.control.log_in(EMAIL, secret("another long one"), &origin()).await.expect("the new one");
        for used in [&link, &sign_in] {
            assert_eq!(code(world.control.link_card(&secret(used)).await), "not_found");
        }
        let told = mailed(&world, &mails, 4).await;
        assert!(told[3].raw.contains("Subject: Your password for Sluice was changed"), "{}", told[3].raw);
        // So is whoever changes it knowing the old one.
        let actor = world.actor(&new).await;
        world.control.change_password(&actor, secret("another long one"), secret("yet another one")).await.expect("changes");
        mailed(&world, &mails, 5).await;
    }

    async fn an_address_without_an_account_gets_the_same_answer_and_no_mail(db: Db) {
        let (world, mails) = with_mail(db).await;
        world.sign_up(EMAIL).await.expect("signs up");
        token(&world, &mails, 1).await;
        for purpose in [LinkPurpose::SignIn, LinkPurpose::Reset] {
            world.control.ask_link("nobody@example.test", purpose, &origin()).await.expect("the same answer");
        }
        assert_eq!(code(world.control.ask_link("no address", LinkPurpose::Reset, &origin()).await), "bad_email");
        world.control.ask_link(EMAIL, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let got = mailed(&world, &mails, 2).await;
        assert!(got.iter().all(|mail| mail.to == EMAIL), "{got:?}");
        // Nobody's mailbox is filled, whoever is behind the address.
        for email in [EMAIL, "nobody@example.test"] {
            let mut refused = String::new();
            for _ in 0..6 {
                if let Err(error) = world.control.ask_link(email, LinkPurpose::SignIn, &origin()).await {
                    refused = error.code().to_string();
                }
            }
            assert_eq!(refused, "too_many_attempts", "{email}");
        }
    }

    async fn without_mail_it_is_said_and_nothing_is_kept(world: World) {
        world.sign_up(EMAIL).await.expect("signs up");
        assert_eq!(code(world.control.ask_link(EMAIL, LinkPurpose::Reset, &origin()).await), "no_mail");
        let form = SignUp { email: "bob@example.test".into(), password: secret(PASSWORD), name: String::new(), invite: None, next: String::new() };
        let SignedUp::In(entry) = world.control.sign_up(form, &origin()).await.expect("signs up") else {
            panic!("no mail is sent");
        };
        let actor = world.actor(&complete(entry)).await;
        assert_eq!(code(world.control.send_verification(&actor).await), "no_mail");
        assert_eq!(world.control.sweep().await.expect("sweeps").links, 0);
    }
}

//! Whether an address has an account is told to nobody: the same answer, the same work, whatever is tried.

use chrono::TimeDelta;
use sluice_control::{ControlError, SignUp, Signup};
use sluice_domain::{LinkPurpose, Role};
use sluice_store::{Db, users};
use sluice_testkit::{SmtpServer, on_both};

use crate::account_links::{mailed, token, with_mail};
use crate::common::{PASSWORD, World, code, complete, origin, secret};
use crate::notices::mailer;
use crate::second_factor::with_factor;

const ANN: &str = "ann@example.test";
const EVE: &str = "eve@example.test";

fn form(email: &str, password: &str) -> SignUp {
    SignUp {
        email: email.to_owned(),
        password: secret(password),
        name: String::new(),
        invite: None,
        next: String::new(),
    }
}

/// What somebody is told, and how many Argon2 runs it took.
async fn told<T: std::fmt::Debug>(
    world: &World,
    asked: impl Future<Output = Result<T, ControlError>>,
) -> (String, u64) {
    let before = world.control.password_runs();
    let answer = match asked.await {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{} {error}", error.code()),
    };
    (answer, world.control.password_runs() - before)
}

async fn change(world: &World, email: &str, how: &str) {
    let mut tx = world.db.begin().await.expect("begins");
    let conn = &mut tx.conn();
    let user = users::find_by_email(conn, email).await.expect("answers").expect("there");
    match how {
        "disabled" => drop(users::set_disabled(conn, user.id, true).await.expect("switches off")),
        _ => drop(users::set_password(conn, user.id, None).await.expect("takes it away")),
    }
    tx.commit().await.expect("commits");
}

on_both! {
    async fn signing_up_says_the_same_whether_there_is_an_account(db: Db) {
        let (world, mails) = with_mail(db).await;
        let of_new = told(&world, world.control.sign_up(form(ANN, PASSWORD), &origin())).await;
        assert_eq!(of_new, ("Mailed".to_owned(), 1));
        let link = token(&world, &mails, 1).await;
        world.control.verify_email(&secret(&link), None, secret(PASSWORD), &origin()).await.expect("confirms");
        // With any password, the right one too, and also where the account is switched off.
        for password in ["another long password", PASSWORD] {
            assert_eq!(told(&world, world.control.sign_up(form("ANN@example.test", password), &origin())).await, of_new);
        }
        let mail = &mailed(&world, &mails, 3).await[2];
        assert!(mail.raw.contains("Subject: You have an account at Sluice already"), "{}", mail.raw);
        assert_eq!(mail.to, ANN);
        assert_eq!(mail.link("/account/link/"), None, "it opens nothing");
        change(&world, ANN, "disabled").await;
        assert_eq!(told(&world, world.control.sign_up(form(ANN, PASSWORD), &origin())).await, of_new);
        // The account is as it was: what was typed since opens nothing.
        let tried = world.control.log_in(ANN, secret("another long password"), &origin()).await;
        assert_eq!(code(tried), "bad_credentials");
    }

    async fn what_was_typed_opens_nothing_until_the_mail_is_followed(db: Db) {
        let (world, mails) = with_mail(db).await;
        let wrong = told(&world, world.control.log_in(EVE, secret(PASSWORD), &origin())).await;
        world.control.sign_up(form(ANN, PASSWORD), &origin()).await.expect("signs up");
        assert_eq!(told(&world, world.control.log_in(ANN, secret(PASSWORD), &origin())).await, wrong, "else two steps would tell");
        let first = token(&world, &mails, 1).await;
        // Asked for anew, by somebody else perhaps: the newest password and the newest link alone.
        world.control.sign_up(form(ANN, "another long password"), &origin()).await.expect("signs up");
        let link = token(&world, &mails, 2).await;
        assert_eq!(code(world.control.link_card(&secret(&first)).await), "not_found");
        let confirm = async |typed| world.control.verify_email(&secret(&link), None, secret(typed), &origin()).await;
        assert_eq!(code(confirm(PASSWORD).await), "wrong_password");
        let done = confirm("another long password").await.expect("confirms");
        assert_eq!(done.email, ANN);
        let login = complete(done.entry.expect("and signs in"));
        let actor = world.actor(&login).await;
        assert!(world.control.is_verified(&actor).await.expect("answers"));
        world.control.log_in(ANN, secret("another long password"), &origin()).await.expect("from now on");
    }

    async fn a_link_to_sign_in_makes_the_account_its_readers_alone(db: Db) {
        let (world, mails) = with_mail(db).await;
        // Somebody signs up with an address that is not theirs.
        world.control.sign_up(form(ANN, "a password of mallory"), &origin()).await.expect("signs up");
        token(&world, &mails, 1).await;
        world.control.ask_link(ANN, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let link = token(&world, &mails, 2).await;
        complete(world.control.log_in_by_link(&secret(&link), &origin()).await.expect("signs in"));
        let tried = world.control.log_in(ANN, secret("a password of mallory"), &origin()).await;
        assert_eq!(code(tried), "bad_credentials");
        // The same for an account from before there was mail, with a session that is open.
        let eve = world.person(EVE).await;
        token(&world, &mails, 3).await;
        world.control.ask_link(EVE, LinkPurpose::SignIn, &origin()).await.expect("asks");
        let link = token(&world, &mails, 4).await;
        let login = complete(world.control.log_in_by_link(&secret(&link), &origin()).await.expect("signs in"));
        let actor = world.actor(&login).await;
        assert_eq!(world.control.logins(&actor).await.expect("lists").len(), 1, "the older one ended");
        assert_eq!(code(world.control.log_in(EVE, secret(PASSWORD), &origin()).await), "bad_credentials");
        assert_eq!(eve.user, actor.user);
    }

    async fn what_nobody_proves_is_forgotten(db: Db) {
        let (world, mails) = with_mail(db).await;
        world.control.sign_up(form(ANN, PASSWORD), &origin()).await.expect("signs up");
        let link = token(&world, &mails, 1).await;
        world.clock.advance(TimeDelta::days(3) + TimeDelta::seconds(1));
        assert_eq!(code(world.control.verify_email(&secret(&link), None, secret(PASSWORD), &origin()).await), "not_found");
        assert_eq!(world.control.sweep().await.expect("sweeps").pending, 1);
        let mut tx = world.db.read().await.expect("reads");
        assert_eq!(users::find_by_email(&mut tx.conn(), ANN).await.expect("answers"), None);
    }

    async fn an_invitation_tells_nothing_of_the_address_and_waits_for_the_mail(db: Db) {
        let (world, mails) = with_mail(db).await;
        let admin = world.workspace("Acme", "olga@example.test").await;
        world.person(ANN).await;
        token(&world, &mails, 2).await;
        let mut answers = Vec::new();
        for (count, email) in [(3, ANN), (4, EVE)] {
            let invited = world.control.invite(&admin, email, Role::Viewer).await.expect("invites");
            let form = SignUp { invite: Some(invited.token), ..form(email, "another long password") };
            answers.push(told(&world, world.control.sign_up(form, &origin())).await);
            mailed(&world, &mails, count).await;
        }
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[1], ("Mailed".to_owned(), 1));
        let members = world.control.members(&admin, sluice_control::Page::first(9)).await.expect("lists");
        assert_eq!(members.items.len(), 1, "nobody joined before the address was proven");
        let link = mails.mails()[3].link("/account/link/").expect("a link");
        assert!(link.contains("?next=%2Fjoin%2Fsli%5F"), "{link}");
    }

    async fn signing_in_says_and_costs_the_same(db: Db) {
        let (world, _mails) = with_mail(db).await;
        for email in [ANN, "off@example.test", "bare@example.test"] {
            world.person(email).await;
        }
        world.control.sign_up(form("new@example.test", PASSWORD), &origin()).await.expect("signs up");
        change(&world, "off@example.test", "disabled").await;
        change(&world, "bare@example.test", "no password").await;
        let of_nobody = told(&world, world.control.log_in(EVE, secret(PASSWORD), &origin())).await;
        assert_eq!(of_nobody.1, 1, "a hash of no password is run against");
        for (email, password) in [
            (ANN, "not her password"),
            ("off@example.test", PASSWORD),
            ("bare@example.test", PASSWORD),
            ("new@example.test", PASSWORD),
        ] {
            let answer = told(&world, world.control.log_in(email, secret(password), &origin())).await;
            assert_eq!(answer, of_nobody, "{email}");
        }
        // Who has a second factor is known only to who has the password.
        let dora = world.person("dora@example.test").await;
        with_factor(&world, &dora).await;
        let answer = told(&world, world.control.log_in("dora@example.test", secret("not hers"), &origin())).await;
        assert_eq!(answer, of_nobody);
    }

    async fn asking_for_a_link_says_and_costs_the_same(db: Db) {
        let (world, _mails) = with_mail(db).await;
        world.person(ANN).await;
        for purpose in [LinkPurpose::SignIn, LinkPurpose::Reset] {
            let known = told(&world, world.control.ask_link(ANN, purpose, &origin())).await;
            let unknown = told(&world, world.control.ask_link(EVE, purpose, &origin())).await;
            assert_eq!(known, unknown);
            assert_eq!(known, ("()".to_owned(), 0));
        }
    }

    async fn without_mail_guessing_addresses_is_bounded(world: World) {
        world.sign_up(ANN).await.expect("signs up");
        let from = origin();
        let try_once = || world.control.sign_up(form(ANN, "not her password"), &from);
        assert_eq!(code(try_once().await), "email_taken");
        for _ in 0..9 {
            assert_eq!(code(try_once().await), "email_taken");
        }
        assert_eq!(code(try_once().await), "too_many_attempts");
        // Nor are many addresses tried from one place; what is refused without a hash counts as well.
        for _ in 0..188 {
            let form = SignUp { invite: Some(secret("no invitation")), ..form(EVE, PASSWORD) };
            assert_eq!(code(world.control.sign_up(form, &origin()).await), "not_found");
        }
        assert_eq!(code(world.control.sign_up(form(EVE, PASSWORD), &origin()).await), "too_many_attempts");
    }

    async fn who_may_not_sign_up_learns_no_more_with_mail(db: Db) {
        let server = SmtpServer::start().await;
        let world = World::with(db, Signup::Closed, Some(mailer(&server)), true).await;
        let of_new = told(&world, world.control.sign_up(form(EVE, PASSWORD), &origin())).await;
        let mut tx = world.db.begin().await.expect("begins");
        users::create(&mut tx.conn(), ANN, "", None, world.control.now()).await.expect("makes");
        tx.commit().await.expect("commits");
        let of_taken = told(&world, world.control.sign_up(form(ANN, PASSWORD), &origin())).await;
        assert_eq!(of_new, of_taken);
        assert!(of_new.0.starts_with("signup_closed"), "{of_new:?}");
    }
}

//! Signing in by an identity provider: what is believed of it, whose account it opens, and what it never
//! does.

use std::collections::HashMap;

use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sluice_control::{
    Actor, ControlError, Entry, EventFilter, LoggedIn, Page, Provider, ProviderAnswer,
    ProviderFlow, ProviderKind, ProviderOutcome, Signup,
};
use sluice_domain::Role;
use sluice_store::{Db, login_sessions, users};
use sluice_testkit::FakeIssuer;
use sluice_testkit::fake_issuer::{CLIENT_ID, CLIENT_SECRET};
use sluice_testkit::on_both;
use url::Url;

use crate::common::{PASSWORD, World, code, complete, origin, secret};

const ANN: &str = "ann@example.test";

/// Changes header and claims of an ID token.
type Change = fn(&mut Value, &mut Value);

fn provider(name: &str, issuer: &FakeIssuer, kind: ProviderKind) -> Provider {
    Provider {
        name: name.to_owned(),
        label: "Acme".to_owned(),
        kind,
        issuer: issuer.url(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: SecretString::from(CLIENT_SECRET),
    }
}

/// An installation with the provider `acme`, and `git`, which is GitHub's kind.
pub(crate) async fn vouched(db: Db, signup: Signup) -> (World, FakeIssuer) {
    let mut world = World::with_signup(db, signup).await;
    let issuer = FakeIssuer::start(world.control.now().timestamp()).await;
    let providers = vec![
        provider("acme", &issuer, ProviderKind::Oidc),
        provider("git", &issuer, ProviderKind::GitHub),
    ];
    world.control = world.vouched_by(providers);
    (world, issuer)
}

fn answer(query: &str) -> ProviderAnswer {
    let pairs: HashMap<String, String> =
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let get = |name: &str| pairs.get(name).cloned().unwrap_or_default();
    let iss = pairs.get("iss").cloned();
    ProviderAnswer { code: get("code"), state: get("state"), error: get("error"), iss }
}

async fn begin(world: &World, name: &str, next: &str) -> ProviderFlow {
    world.control.begin_with_provider(name, next, &origin()).await.expect("begins")
}

async fn finish(
    world: &World,
    name: &str,
    flow: &ProviderFlow,
    query: &str,
) -> Result<ProviderOutcome, ControlError> {
    let cookie = Some(&flow.cookie);
    world.control.finish_with_provider(name, cookie, &answer(query), None, &origin()).await
}

/// Goes there, consents, and comes back.
pub(crate) async fn sign_in(
    world: &World,
    issuer: &FakeIssuer,
) -> Result<ProviderOutcome, ControlError> {
    let flow = begin(world, "acme", "").await;
    finish(world, "acme", &flow, &issuer.consent(&flow.url)).await
}

#[track_caller]
pub(crate) fn entered(outcome: Result<ProviderOutcome, ControlError>) -> LoggedIn {
    match outcome.expect("signs in") {
        ProviderOutcome::Entered { entry, .. } => complete(entry),
        ProviderOutcome::Linked { .. } => panic!("nobody asked to link"),
    }
}

pub(crate) async fn link(
    world: &World,
    issuer: &FakeIssuer,
    actor: &Actor,
) -> Result<(), ControlError> {
    let flow = world.control.begin_link(actor, "acme", secret(PASSWORD)).await?;
    let came = answer(&issuer.consent(&flow.url));
    let cookie = Some(&flow.cookie);
    world
        .control
        .finish_with_provider("acme", cookie, &came, Some(actor), &origin())
        .await
        .map(drop)
}

on_both! {
    async fn a_newcomer_gets_an_account_and_comes_back_to_it(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let first = entered(sign_in(&world, &issuer).await);
        let actor = world.actor(&first).await;
        assert_eq!((actor.email.as_str(), actor.name.as_str()), (ANN, "Ann"));
        assert!(world.control.is_verified(&actor).await.expect("answers"), "the provider verified it");
        // The provider's own name for the person decides, not the address.
        issuer.person(json!({"sub": "ann-1", "email": "new@example.test", "email_verified": false}));
        let again = entered(sign_in(&world, &issuer).await);
        assert_eq!(again.user, first.user);
        issuer.person(json!({"sub": "somebody-else", "email": ANN, "email_verified": true}));
        assert_eq!(code(sign_in(&world, &issuer).await), "link_first");
        // The login remembers the way, and no password opens the account.
        let mut tx = world.db.read().await.expect("reads");
        let logins = login_sessions::list(&mut tx.conn(), first.user, world.control.now()).await.expect("lists");
        assert!(logins.iter().all(|login| login.issuer == Some(issuer.url())));
        tx.commit().await.expect("ends");
        assert_eq!(code(world.control.log_in(ANN, secret(""), &origin()).await), "bad_credentials");
    }

    async fn an_account_is_linked_by_its_owner_alone(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let admin = world.workspace("Acme", ANN).await;
        let actor = admin.actor.clone();
        let refused = sign_in(&world, &issuer).await.expect_err("the address is not enough");
        assert_eq!(refused.code(), "link_first");
        assert_eq!(code(world.control.begin_link(&actor, "acme", secret("wrong password")).await), "wrong_password");
        link(&world, &issuer, &actor).await.expect("links");
        assert_eq!(entered(sign_in(&world, &issuer).await).user, actor.user);
        let mine = world.control.identities(&actor).await.expect("lists");
        assert_eq!((mine.len(), mine[0].label.as_str(), mine[0].email.as_str()), (1, "Acme", ANN));
        // One provider's person is one account's, and one account has one person there.
        let bob = world.person("bob@example.test").await;
        assert_eq!(code(link(&world, &issuer, &bob).await), "identity_taken");
        issuer.person(json!({"sub": "ann-2", "email": ANN, "email_verified": true}));
        assert_eq!(code(link(&world, &issuer, &actor).await), "identity_taken");
        issuer.person(json!({"sub": "ann-1", "email": ANN, "email_verified": true}));
        // Whose they are is theirs to take away.
        assert_eq!(code(world.control.unlink_identity(&bob, mine[0].id).await), "not_found");
        world.control.unlink_identity(&actor, mine[0].id).await.expect("unlinks");
        assert_eq!(code(sign_in(&world, &issuer).await), "link_first");
        let filter = EventFilter { object_kind: Some("user".to_owned()), ..EventFilter::default() };
        let events = world.control.admin_events(&admin, &filter, Page::first(9)).await.expect("lists");
        let actions: Vec<_> = events.items.iter().map(|event| event.action.as_str()).collect();
        assert_eq!(actions, ["user.identity_unlink", "user.identity_link"]);
    }

    async fn the_last_way_in_stays(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let login = entered(sign_in(&world, &issuer).await);
        let actor = world.actor(&login).await;
        let mine = world.control.identities(&actor).await.expect("lists");
        assert_eq!(code(world.control.unlink_identity(&actor, mine[0].id).await), "last_way_in");
        let mut tx = world.db.begin().await.expect("begins");
        users::set_password(&mut tx.conn(), actor.user, Some("a hash")).await.expect("sets");
        tx.commit().await.expect("commits");
        world.control.unlink_identity(&actor, mine[0].id).await.expect("unlinks");
    }

    async fn a_link_is_made_by_who_began_it_and_nobody_else(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let ann = world.person(ANN).await;
        let eve = world.person("eve@example.test").await;
        let flow = world.control.begin_link(&eve, "acme", secret(PASSWORD)).await.expect("begins");
        let came = answer(&issuer.consent(&flow.url));
        let cookie = Some(&flow.cookie);
        for (other, told) in [(Some(&ann), "provider_flow"), (None, "provider_flow")] {
            // Each asks with a code of its own, which is used up.
            let flow_code = answer(&issuer.consent(&flow.url)).code;
            let came = ProviderAnswer { code: flow_code, ..came.clone() };
            let done = world.control.finish_with_provider("acme", cookie, &came, other, &origin()).await;
            assert_eq!(code(done), told);
        }
        assert!(world.control.identities(&ann).await.expect("lists").is_empty());
    }

    async fn what_a_provider_says_is_believed_only_if_it_is_signed_for_us_and_now(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let table: [(&str, Change); 13] = [
            ("nonce", |_, claims| claims["nonce"] = json!("of another sign-in")),
            ("no nonce", |_, claims| claims["nonce"] = Value::Null),
            ("aud", |_, claims| claims["aud"] = json!("another client")),
            ("several aud", |_, claims| claims["aud"] = json!([CLIENT_ID, "another client"])),
            ("azp", |_, claims| claims["azp"] = json!("another client")),
            ("iss", |_, claims| claims["iss"] = json!("http://127.0.0.1:1")),
            ("expired", |_, claims| claims["exp"] = json!(claims["iat"].as_i64().map(|at| at - 61))),
            ("future", |_, claims| claims["iat"] = json!(claims["iat"].as_i64().map(|at| at + 3_600))),
            ("nobody", |_, claims| claims["sub"] = Value::Null),
            ("none", |header, _| header["alg"] = json!("none")),
            ("shared secret", |header, _| header["alg"] = json!("HS256")),
            ("another way to sign", |header, _| header["alg"] = json!("RS256")),
            ("unknown key", |header, _| header["kid"] = json!("key-of-nobody")),
        ];
        for (what, change) in table {
            issuer.tamper(change);
            assert_eq!(code(sign_in(&world, &issuer).await), "provider_answer", "{what}");
        }
        issuer.honest();
        entered(sign_in(&world, &issuer).await);
    }

    async fn an_address_that_is_not_verified_makes_no_account(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        for verified in [json!(false), json!("no"), Value::Null] {
            issuer.person(json!({"sub": "ann-1", "email": ANN, "email_verified": verified}));
            assert_eq!(code(sign_in(&world, &issuer).await), "email_unverified");
        }
        issuer.person(json!({"sub": "ann-1", "email": "no address", "email_verified": true}));
        assert_eq!(code(sign_in(&world, &issuer).await), "bad_email");
        let mut tx = world.db.read().await.expect("reads");
        assert_eq!(users::find_by_email(&mut tx.conn(), ANN).await.expect("answers"), None);
    }

    async fn an_answer_is_taken_once_from_the_browser_that_asked(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let (mine, other) = (begin(&world, "acme", "/w/x").await, begin(&world, "acme", "").await);
        let came = issuer.consent(&mine.url);
        let get = |flow: &ProviderFlow, name: &str| {
            let url = Url::parse(&flow.url).expect("an address");
            url.query_pairs().find(|(key, _)| key == name).expect("is there").1.into_owned()
        };
        for name in ["state", "nonce", "code_challenge"] {
            assert_ne!(get(&mine, name), get(&other, name), "{name}");
        }
        assert_eq!(get(&mine, "redirect_uri"), "http://localhost:8080/login/with/acme/callback");
        // Another browser's cookie, another state, none, another provider's callback.
        assert_eq!(code(finish(&world, "acme", &other, &came).await), "provider_flow");
        let swapped = issuer.consent(&other.url);
        assert_eq!(code(finish(&world, "acme", &mine, &swapped).await), "provider_flow");
        assert_eq!(code(finish(&world, "git", &mine, &came).await), "provider_flow");
        let none = world.control.finish_with_provider("acme", None, &answer(&came), None, &origin()).await;
        assert_eq!(code(none), "provider_flow");
        let forged = ProviderFlow { url: String::new(), cookie: secret("AAAA") };
        assert_eq!(code(finish(&world, "acme", &forged, &came).await), "provider_flow");
        assert_eq!(code(finish(&world, "acme", &mine, &format!("{came}&iss=https://evil.example")).await), "provider_answer");
        let refused = format!("error=access_denied&state={}", get(&mine, "state"));
        assert_eq!(code(finish(&world, "acme", &mine, &refused).await), "provider_refused");
        let Ok(ProviderOutcome::Entered { next, .. }) = finish(&world, "acme", &mine, &came).await else {
            panic!("nothing of this used the code up")
        };
        assert_eq!(next, "/w/x");
        // The provider takes a code once; the verifier belongs to the cookie.
        assert_eq!(code(finish(&world, "acme", &mine, &came).await), "provider_unreachable");
        let late = begin(&world, "acme", "").await;
        let came = issuer.consent(&late.url);
        world.clock.advance(TimeDelta::minutes(10));
        assert_eq!(code(finish(&world, "acme", &late, &came).await), "provider_flow");
    }

    async fn keys_are_changed_under_us_and_looked_for_no_more_than_once_a_minute(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        entered(sign_in(&world, &issuer).await);
        let asked = |path: &str| issuer.asked().iter().filter(|one| *one == path).count();
        entered(sign_in(&world, &issuer).await);
        assert_eq!((asked("/keys"), asked("/.well-known/openid-configuration")), (1, 1), "kept");
        issuer.rotate();
        entered(sign_in(&world, &issuer).await);
        assert_eq!(asked("/keys"), 2);
        issuer.rotate();
        assert_eq!(code(sign_in(&world, &issuer).await), "provider_answer");
        assert_eq!(asked("/keys"), 2, "nobody makes us ask at will");
        world.clock.advance(TimeDelta::minutes(1));
        issuer.at(world.control.now().timestamp());
        entered(sign_in(&world, &issuer).await);
        world.clock.advance(TimeDelta::hours(1));
        issuer.at(world.control.now().timestamp());
        entered(sign_in(&world, &issuer).await);
        assert_eq!(asked("/.well-known/openid-configuration"), 2, "kept for an hour");
    }

    async fn a_provider_that_describes_itself_oddly_is_not_asked_further(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let base = issuer.url();
        let plain = json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "jwks_uri": format!("{base}/keys"),
        });
        for (member, value) in [
            ("issuer", json!(format!("{base}/"))),
            ("issuer", Value::Null),
            ("authorization_endpoint", json!("http://evil.example/authorize")),
            ("token_endpoint", json!("ftp://evil.example")),
            ("jwks_uri", json!("http://169.254.169.254/keys")),
            ("jwks_uri", json!(format!("{base}/nothing"))),
        ] {
            let mut odd = plain.clone();
            odd[member] = value;
            issuer.describes(odd);
            let begun = world.control.begin_with_provider("acme", "", &origin()).await;
            assert_eq!(code(begun), "provider_unreachable", "{member}");
        }
        issuer.honest().takes_basic_alone();
        entered(sign_in(&world, &issuer).await);
        assert_eq!(code(world.control.begin_with_provider("nobody", "", &origin()).await), "not_found");
    }

    async fn whoever_may_not_sign_up_gets_no_account_by_a_provider_either(db: Db) {
        let (world, issuer) = vouched(db, Signup::Invite).await;
        assert_eq!(code(sign_in(&world, &issuer).await), "signup_closed");
        let operator = crate::operator::operator(&world);
        operator.create_user("bob@example.test", secret(PASSWORD)).await.expect("makes");
        let login = complete(world.control.log_in("bob@example.test", secret(PASSWORD), &origin()).await.expect("in"));
        let bob = world.actor(&login).await;
        let workspace = world.control.create_workspace(&bob, "Acme").await.expect("makes");
        let admin = world.control.enter(&bob, &workspace.slug).await.expect("an admin");
        let invited = world.control.invite(&admin, ANN, Role::Viewer).await.expect("invites");
        let other = world.control.invite(&admin, "eve@example.test", Role::Viewer).await.expect("invites");
        for (token, told) in [(&other.token, "invite_for_another"), (&secret("sli_nothing"), "not_found")] {
            let flow = begin(&world, "acme", &format!("/join/{}", token.expose_secret())).await;
            assert_eq!(code(finish(&world, "acme", &flow, &issuer.consent(&flow.url)).await), told);
        }
        let flow = begin(&world, "acme", &format!("/join/{}", invited.token.expose_secret())).await;
        entered(finish(&world, "acme", &flow, &issuer.consent(&flow.url)).await);
    }

    async fn the_second_factor_is_asked_for_whoever_vouches(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let actor = world.person(ANN).await;
        link(&world, &issuer, &actor).await.expect("links");
        let (_, codes) = crate::second_factor::with_factor(&world, &actor).await;
        issuer.at(world.control.now().timestamp());
        let Ok(ProviderOutcome::Entered { entry: Entry::Half(half), .. }) = sign_in(&world, &issuer).await else {
            panic!("the second factor is asked for")
        };
        let login = world.control.finish_login(&half.token, &codes[0], &origin()).await.expect("completes");
        let mut tx = world.db.read().await.expect("reads");
        let logins = login_sessions::list(&mut tx.conn(), login.user, world.control.now()).await.expect("lists");
        let this = logins.iter().find(|one| one.id == login.session).expect("is there");
        assert_eq!(this.issuer, Some(issuer.url()), "the way is remembered over the second step");
    }

    async fn githubs_way_takes_the_primary_verified_address(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        issuer.person(json!({"id": 583_231, "login": "ann", "name": "Ann"}));
        let sign_in = async || {
            let flow = begin(&world, "git", "").await;
            assert!(flow.url.contains("/login/oauth/authorize?") && flow.url.contains("scope=read%3Auser+user%3Aemail"));
            finish(&world, "git", &flow, &issuer.consent(&flow.url)).await
        };
        issuer.emails(json!([
            {"email": "old@example.test", "primary": false, "verified": true},
            {"email": ANN, "primary": true, "verified": false},
        ]));
        assert_eq!(code(sign_in().await), "email_unverified");
        issuer.emails(json!([
            {"email": "old@example.test", "primary": false, "verified": true},
            {"email": ANN, "primary": true, "verified": true},
        ]));
        let login = entered(sign_in().await);
        assert_eq!(login.email, ANN);
        issuer.person(json!({"id": 1, "login": "eve", "name": null}));
        assert_eq!(code(sign_in().await), "link_first");
        issuer.person(json!({"login": "nobody"}));
        assert_eq!(code(sign_in().await), "provider_unreachable");
    }

    async fn an_account_that_is_switched_off_stays_shut(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let login = entered(sign_in(&world, &issuer).await);
        let mut tx = world.db.begin().await.expect("begins");
        users::set_disabled(&mut tx.conn(), login.user, true).await.expect("switches");
        tx.commit().await.expect("commits");
        assert_eq!(code(sign_in(&world, &issuer).await), "account_disabled");
    }
}

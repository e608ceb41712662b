//! Accounts, logins, workspaces, members, invitations, API tokens, idempotency.

use sluice_domain::{Role, WorkspaceId, WorkspaceLimits};
use sluice_store::api_tokens::NewApiToken;
use sluice_store::idempotency::{Begun, KeyOf};
use sluice_store::invites::NewInvite;
use sluice_store::login_sessions::NewLoginSession;
use sluice_store::members::MemberChange;
use sluice_store::{
    Db, StoreError, api_tokens, idempotency, invites, login_sessions, members, users, workspaces,
};
use sluice_testkit::on_both;

use crate::support::{kept, later, now, token, waits_or_is_done, world};

fn is_conflict<T: std::fmt::Debug>(result: &Result<T, StoreError>, name: &str) -> bool {
    matches!(result, Err(StoreError::Conflict { constraint }) if constraint == name)
}

on_both! {
    async fn an_address_has_one_account_in_any_case(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let ann =
            users::create(conn, " Ann.B@Example.test ", "Ann", Some("h"), now()).await.unwrap();
        assert_eq!((ann.email.as_str(), ann.created_at), ("Ann.B@Example.test", kept(now())));
        let again = users::create(conn, "ann.b@example.TEST", "x", None, now()).await;
        assert!(is_conflict(&again, "users_email"), "{again:?}");
        // The refused one did not end the transaction.
        let found = users::find_by_email(conn, "ANN.B@example.test").await.unwrap();
        assert_eq!(found, Some(ann.clone()));
        assert!(users::set_password(conn, ann.id, None).await.unwrap());
        assert!(users::set_verified(conn, ann.id, now()).await.unwrap());
        assert!(users::set_verified(conn, ann.id, later(60)).await.unwrap());
        assert!(users::set_disabled(conn, ann.id, true).await.unwrap());
        assert!(users::rename(conn, ann.id, "Ann B").await.unwrap());
        let found = users::find(conn, ann.id).await.unwrap().unwrap();
        assert_eq!((found.password_hash, found.verified_at), (None, Some(kept(now()))));
        assert!(found.disabled);
        assert_eq!(found.name, "Ann B");
    }

    async fn a_login_lives_until_it_ends(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let user = users::create(conn, "a@example.test", "", None, now()).await.unwrap().id;
        let mut made = Vec::new();
        for seed in ["1", "2", "3"] {
            let hash = token(seed);
            let new = NewLoginSession {
                user,
                token_hash: &hash,
                expires_at: later(60),
                user_agent: "Firefox",
                address: "::1",
                issuer: None,
            };
            made.push(login_sessions::create(conn, new, now()).await.unwrap());
        }
        let hash = token("1");
        let found = login_sessions::find_live(conn, &hash, now()).await.unwrap();
        assert_eq!(found.as_ref(), Some(&made[0]));
        assert_eq!(login_sessions::find_live(conn, &hash, later(60)).await.unwrap(), None);
        assert_eq!(login_sessions::find_live(conn, &token("x"), now()).await.unwrap(), None);
        login_sessions::touch(conn, made[0].id, later(90), "192.0.2.1", later(30)).await.unwrap();
        let found = login_sessions::find_live(conn, &hash, later(60)).await.unwrap().unwrap();
        assert_eq!(found.last_seen_at, kept(later(30)));
        assert_eq!(login_sessions::list(conn, user, now()).await.unwrap().len(), 3);
        assert!(login_sessions::revoke(conn, user, made[1].id).await.unwrap());
        assert!(!login_sessions::revoke(conn, user, made[1].id).await.unwrap());
        assert_eq!(login_sessions::revoke_all(conn, user, Some(made[0].id)).await.unwrap(), 1);
        assert_eq!(login_sessions::list(conn, user, now()).await.unwrap().len(), 1);
        users::set_disabled(conn, user, true).await.unwrap();
        assert_eq!(login_sessions::find_live(conn, &hash, now()).await.unwrap(), None);
        assert_eq!(login_sessions::prune(conn, later(90)).await.unwrap(), 1);
    }

    async fn a_slug_is_taken_for_good_and_leads_on(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "acme").await;
        let b = world(conn, "beta").await;
        assert!(is_conflict(
            &workspaces::create(conn, "acme", "x", None, now()).await,
            "workspaces_slug"
        ));
        assert!(workspaces::change_slug(conn, a.workspace, "acme-inc", now()).await.unwrap());
        let (found, role) =
            workspaces::find_for_member(conn, "acme", a.user).await.unwrap().unwrap();
        assert_eq!((found.slug.as_str(), role), ("acme-inc", Role::Admin));
        // The old slug is nobody else's, whether new or renamed.
        assert!(is_conflict(
            &workspaces::create(conn, "acme", "x", None, now()).await,
            "workspaces_slug"
        ));
        let moved = workspaces::change_slug(conn, b.workspace, "acme", now()).await;
        assert!(is_conflict(&moved, "workspaces_slug"));
        // Back again is fine.
        assert!(workspaces::change_slug(conn, a.workspace, "acme", now()).await.unwrap());
        assert!(workspaces::change_slug(conn, a.workspace, "acme", now()).await.unwrap());
        let found = workspaces::find_by_slug(conn, "acme-inc").await.unwrap().unwrap();
        assert_eq!((found.id, found.slug.as_str()), (a.workspace, "acme"));
        // Last, because it ends the transaction in PostgreSQL.
        let moved = workspaces::change_slug(conn, b.workspace, "acme", now()).await;
        assert!(is_conflict(&moved, "workspaces_slug"), "{moved:?}");
    }

    async fn a_workspace_is_switched_off_renamed_set_and_deleted(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let settings = serde_json::json!({"z": 1, "a": "1.10"});
        assert!(workspaces::rename(conn, a.workspace, "Ä & Co").await.unwrap());
        assert!(workspaces::set_suspended(conn, a.workspace, true, now()).await.unwrap());
        assert!(workspaces::set_settings(conn, a.workspace, &settings, now()).await.unwrap());
        assert!(
            workspaces::set_limits(conn, a.workspace, WorkspaceLimits { grants: Some(5), ..WorkspaceLimits::default() }, now())
                .await
                .unwrap()
        );
        let found = workspaces::find(conn, a.workspace).await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.suspended), ("Ä & Co", true));
        assert_eq!(found.settings.to_string(), r#"{"z":1,"a":"1.10"}"#);
        let counts = workspaces::counts(conn, a.workspace).await.unwrap();
        assert_eq!(
            (counts.servers, counts.policies, counts.grants, counts.members, counts.api_tokens),
            (1, 1, 1, 1, 0)
        );
        assert!(workspaces::delete(conn, a.workspace, now()).await.unwrap());
        assert_eq!(workspaces::find(conn, a.workspace).await.unwrap(), None);
        assert_eq!(workspaces::find_by_slug(conn, "a").await.unwrap(), None);
        assert_eq!(workspaces::list_for_user(conn, a.user).await.unwrap(), []);
        assert!(!workspaces::rename(conn, WorkspaceId::new(), "x").await.unwrap());
    }

    async fn the_last_admin_stays(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let bob = users::create(conn, "bob@example.test", "", None, now()).await.unwrap().id;
        assert!(members::add(conn, a.workspace, bob, Role::Viewer, now()).await.unwrap());
        assert!(!members::add(conn, a.workspace, bob, Role::Admin, now()).await.unwrap());
        let demoted = members::set_role(conn, a.workspace, a.user, Role::Viewer, now()).await;
        assert_eq!(demoted.unwrap(), MemberChange::LastAdmin);
        let removed = members::remove(conn, a.workspace, a.user, now()).await.unwrap();
        assert_eq!(removed, MemberChange::LastAdmin);
        let raised = members::set_role(conn, a.workspace, bob, Role::Admin, now()).await.unwrap();
        assert_eq!(raised, MemberChange::Done);
        // A disabled admin is no admin.
        users::set_disabled(conn, bob, true).await.unwrap();
        let removed = members::remove(conn, a.workspace, a.user, now()).await.unwrap();
        assert_eq!(removed, MemberChange::LastAdmin);
        users::set_disabled(conn, bob, false).await.unwrap();
        let removed = members::remove(conn, a.workspace, a.user, now()).await.unwrap();
        assert_eq!(removed, MemberChange::Done);
        assert_eq!(members::role(conn, a.workspace, bob).await.unwrap(), Some(Role::Admin));
    }

    async fn two_admins_cannot_remove_each_other_at_once(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        let bob =
            users::create(&mut tx.conn(), "bob@example.test", "", None, now()).await.unwrap().id;
        members::add(&mut tx.conn(), a.workspace, bob, Role::Admin, now()).await.unwrap();
        tx.commit().await.unwrap();
        // One is at it and has not committed when the other begins.
        let mut first = db.begin().await.unwrap();
        let done = members::remove(&mut first.conn(), a.workspace, bob, now()).await.unwrap();
        assert_eq!(done, MemberChange::Done);
        let second = tokio::spawn({
            let db = db.clone();
            async move {
                let mut tx = db.begin().await.unwrap();
                members::remove(&mut tx.conn(), a.workspace, a.user, now()).await.unwrap()
            }
        });
        waits_or_is_done(&db, &second).await;
        first.commit().await.unwrap();
        assert_eq!(second.await.unwrap(), MemberChange::LastAdmin);
    }

    async fn an_invitation_is_used_once(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let (old, new) = (token("old"), token("new"));
        let invite = |email, token_hash| NewInvite {
            email,
            role: Role::Viewer,
            token_hash,
            created_by: Some(a.user),
            expires_at: later(60),
        };
        invites::create(conn, a.workspace, invite("Ann.B@example.test", &old[..]), now())
            .await
            .unwrap();
        let made =
            invites::create(conn, a.workspace, invite("ann.b@Example.test", &new[..]), now())
                .await
                .unwrap();
        assert_eq!(invites::find_open(conn, &old, now()).await.unwrap(), None, "replaced");
        assert_eq!(
            invites::list(conn, a.workspace, now(), None, 9).await.unwrap(),
            std::slice::from_ref(&made)
        );
        assert_eq!(invites::find_open(conn, &new, later(60)).await.unwrap(), None, "expired");
        assert!(invites::accept(conn, a.workspace, made.id, now()).await.unwrap());
        assert!(!invites::accept(conn, a.workspace, made.id, now()).await.unwrap());
        assert!(!invites::revoke(conn, a.workspace, made.id, now()).await.unwrap());
        assert_eq!(invites::find_open(conn, &new, now()).await.unwrap(), None);
    }

    async fn an_api_token_can_do_no_more_than_its_maker(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let bob = users::create(conn, "bob@example.test", "", None, now()).await.unwrap().id;
        members::add(conn, a.workspace, bob, Role::Admin, now()).await.unwrap();
        let hash = token("api");
        let new = NewApiToken {
            label: "ci",
            role: Role::Admin,
            token_hash: &hash,
            last4: "abcd",
            created_by: bob,
            expires_at: Some(later(60)),
        };
        let made = api_tokens::create(conn, a.workspace, new, now()).await.unwrap();
        let holder = api_tokens::find_by_hash(conn, &hash, now()).await.unwrap().unwrap();
        assert_eq!(
            (holder.id, holder.role(), holder.workspace_slug.as_str()),
            (made.id, Role::Admin, "a")
        );
        members::set_role(conn, a.workspace, bob, Role::Viewer, now()).await.unwrap();
        let holder = api_tokens::find_by_hash(conn, &hash, now()).await.unwrap().unwrap();
        assert_eq!(holder.role(), Role::Viewer);
        api_tokens::touch(conn, a.workspace, made.id, later(1)).await.unwrap();
        assert_eq!(
            api_tokens::find_by_hash(conn, &hash, later(60)).await.unwrap(),
            None,
            "expired"
        );
        members::remove(conn, a.workspace, bob, now()).await.unwrap();
        assert_eq!(api_tokens::find_by_hash(conn, &hash, now()).await.unwrap(), None, "no member");
        members::add(conn, a.workspace, bob, Role::Viewer, now()).await.unwrap();
        users::set_disabled(conn, bob, true).await.unwrap();
        assert_eq!(api_tokens::find_by_hash(conn, &hash, now()).await.unwrap(), None, "disabled");
        users::set_disabled(conn, bob, false).await.unwrap();
        assert!(api_tokens::find_by_hash(conn, &hash, now()).await.unwrap().is_some());
        assert!(api_tokens::revoke(conn, a.workspace, made.id, now()).await.unwrap());
        assert_eq!(api_tokens::find_by_hash(conn, &hash, now()).await.unwrap(), None, "revoked");
        let listed = api_tokens::list(conn, a.workspace, None, 9).await.unwrap();
        assert_eq!(listed[0].last_used_at, Some(kept(later(1))));
        assert!(listed[0].revoked_at.is_some());
    }

    async fn a_request_with_a_key_acts_once(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let of = KeyOf { workspace: None, actor: uuid::Uuid::now_v7(), key: "k" };
        let old = later(-300);
        assert_eq!(idempotency::begin(conn, of, b"r1", old, now()).await.unwrap(), Begun::New);
        assert_eq!(
            idempotency::begin(conn, of, b"r1", old, now()).await.unwrap(),
            Begun::InProgress
        );
        assert_eq!(idempotency::begin(conn, of, b"r2", old, now()).await.unwrap(), Begun::Mismatch);
        // Never finished, and long ago.
        assert_eq!(
            idempotency::begin(conn, of, b"r1", later(1), later(300)).await.unwrap(),
            Begun::New
        );
        idempotency::finish(conn, of, 201, Some("[]"), b"{}").await.unwrap();
        let answered = Begun::Answered { status: 201, headers: Some("[]".to_owned()), body: b"{}".to_vec() };
        assert_eq!(
            idempotency::begin(conn, of, b"r1", later(900), later(900)).await.unwrap(),
            answered
        );
        assert_eq!(
            idempotency::begin(conn, of, b"r2", later(900), later(900)).await.unwrap(),
            Begun::Mismatch
        );
        idempotency::abandon(conn, of).await.unwrap();
        assert_eq!(idempotency::begin(conn, of, b"r1", old, now()).await.unwrap(), answered);
        let other = KeyOf { key: "k2", ..of };
        assert_eq!(idempotency::begin(conn, other, b"r1", old, now()).await.unwrap(), Begun::New);
        idempotency::abandon(conn, other).await.unwrap();
        assert_eq!(idempotency::begin(conn, other, b"r1", old, now()).await.unwrap(), Begun::New);
        assert_eq!(idempotency::prune(conn, later(900)).await.unwrap(), 2);
    }
}

//! Servers, policies and grants: names, revisions, versions, rotation.

use sluice_domain::{PolicyKind, ServerId};
use sluice_store::grants::{GrantChange, GrantFilter, GrantUse};
use sluice_store::policies::{NewVersion, PolicyDeletion};
use sluice_store::servers::{Health, NewServer, ServerChange};
use sluice_store::{Conn, Db, StoreError, grants, policies, servers};
use sluice_testkit::on_both;

use crate::support::{
    DOCUMENT, grant_named, kept, later, new_grant, new_policy, new_server, now, settings, token,
    version, waits_or_is_done, world,
};

fn is_conflict<T: std::fmt::Debug>(result: &Result<T, StoreError>, name: &str) -> bool {
    matches!(result, Err(StoreError::Conflict { constraint }) if constraint == name)
}

fn server_named<'a>(name: &'a str, settings: &'a sluice_domain::ServerSettings) -> NewServer<'a> {
    NewServer {
        id: ServerId::new(),
        name,
        upstream_url: "https://x.example.test/",
        settings,
        sealed_headers: None,
        header_names: &[],
        is_example: true,
        created_by: None,
    }
}

on_both! {
    async fn what_was_stored_comes_back(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let made = new_server(conn, a.workspace, "second").await;
        let found = servers::find(conn, a.workspace, made.id).await.unwrap().unwrap();
        assert_eq!(found, made);
        assert_eq!(found.settings, settings());
        assert_eq!(found.created_at, kept(now()));
        assert_eq!(servers::find_by_name(conn, a.workspace, "SECOND").await.unwrap(), Some(made));
        let policy = policies::find(conn, a.workspace, a.policy).await.unwrap().unwrap();
        assert_eq!(policy.document, DOCUMENT, "to the byte");
        let grant = grants::find(conn, a.workspace, a.grant).await.unwrap().unwrap();
        assert_eq!((grant.policy_id, grant.revision, grant.networks), (Some(a.policy), 1, vec![]));
    }

    async fn server_names_are_unique_in_any_case_until_deleted(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let settings = settings();
        let second =
            servers::create(conn, a.workspace, server_named("NÖTES", &settings), now()).await;
        assert!(second.is_ok());
        for taken in ["Notes", " notes ", "nötes"] {
            let again =
                servers::create(conn, a.workspace, server_named(taken, &settings), now()).await;
            assert!(is_conflict(&again, "servers_name"), "{taken}: {again:?}");
        }
        assert!(servers::delete(conn, a.workspace, a.server, now()).await.unwrap());
        assert!(!servers::delete(conn, a.workspace, a.server, now()).await.unwrap());
        assert!(
            servers::create(conn, a.workspace, server_named("notes", &settings), now())
                .await
                .is_ok()
        );
        let change = ServerChange { name: Some("NOTES"), ..ServerChange::default() };
        let renamed =
            servers::update(conn, a.workspace, second.unwrap().id, None, change, now()).await;
        assert!(is_conflict(&renamed, "servers_name"), "{renamed:?}");
    }

    async fn a_deleted_server_takes_its_secrets_grants_and_policies_along(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        servers::delete(conn, a.workspace, a.server, later(5)).await.unwrap();
        assert_eq!(servers::find(conn, a.workspace, a.server).await.unwrap(), None);
        assert_eq!(servers::list_sealed(conn, None, 9).await.unwrap(), []);
        assert_eq!(policies::find(conn, a.workspace, a.policy).await.unwrap(), None);
        let grant = grants::find(conn, a.workspace, a.grant).await.unwrap().unwrap();
        assert_eq!(grant.revoked_at, Some(kept(later(5))));
        // The log can still name it and show the policy that decided.
        let names = servers::names(conn, a.workspace).await.unwrap();
        assert_eq!(
            (names[0].id, names[0].name.as_str(), names[0].deleted),
            (a.server, "notes", true)
        );
        assert!(policies::find_version(conn, a.workspace, a.policy, 1).await.unwrap().is_some());
        // Nothing new can be made on it.
        let hash = token("late");
        let made =
            grants::create(conn, a.workspace, a.server, grant_named("x", None, &hash), now()).await;
        assert!(matches!(made, Err(StoreError::DanglingReference)));
        let first = version("{}");
        let made =
            policies::create(conn, a.workspace, a.server, "x", PolicyKind::Custom, first, now())
                .await;
        assert!(matches!(made, Err(StoreError::DanglingReference)));
    }

    async fn nothing_is_made_on_a_server_that_is_being_deleted(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        tx.commit().await.unwrap();
        let mut deleting = db.begin().await.unwrap();
        servers::delete(&mut deleting.conn(), a.workspace, a.server, now()).await.unwrap();
        let making = tokio::spawn({
            let db = db.clone();
            async move {
                let hash = token("late");
                let new = grant_named("late", None, &hash);
                let mut tx = db.begin().await.unwrap();
                let made = grants::create(&mut tx.conn(), a.workspace, a.server, new, now()).await;
                if made.is_ok() {
                    tx.commit().await.unwrap();
                }
                made.map(|grant| grant.id)
            }
        });
        waits_or_is_done(&db, &making).await;
        deleting.commit().await.unwrap();
        let made = making.await.unwrap();
        assert!(matches!(made, Err(StoreError::DanglingReference)), "{made:?}");
        let mut tx = db.read().await.unwrap();
        let route = sluice_store::routes::find(&mut tx.conn(), &a.token).await.unwrap().unwrap();
        assert!(route.grant.revoked);
    }

    async fn a_server_is_edited_only_as_it_was_seen(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let other = sluice_domain::ServerSettings::default();
        let change = ServerChange {
            name: Some("renamed"),
            upstream_url: Some("https://y.example.test/"),
            settings: Some(&other),
            headers: Some((None, &[])),
        };
        let changed = servers::update(conn, a.workspace, a.server, Some(1), change, later(5))
            .await
            .unwrap()
            .unwrap();
        let found = servers::find(conn, a.workspace, a.server).await.unwrap().unwrap();
        assert_eq!(changed, found);
        assert_eq!(
            (found.revision, found.updated_at, found.sealed_headers.clone()),
            (2, kept(later(5)), None)
        );
        let stale =
            servers::update(conn, a.workspace, a.server, Some(1), ServerChange::default(), now())
                .await;
        assert!(matches!(stale, Err(StoreError::Stale { current: 2 })), "{stale:?}");
        let any =
            servers::update(conn, a.workspace, a.server, None, ServerChange::default(), now())
                .await;
        assert_eq!(any.unwrap().unwrap().upstream_url, "https://y.example.test/");
    }

    async fn health_and_rewrapped_keys_are_no_edits(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let failed = Health::Failed { code: "not_mcp", words: "The server answered HTML." };
        assert!(servers::set_health(conn, a.workspace, a.server, failed, later(1)).await.unwrap());
        let found = servers::find(conn, a.workspace, a.server).await.unwrap().unwrap();
        assert_eq!(
            (found.last_error_code.as_deref(), found.last_error_at),
            (Some("not_mcp"), Some(kept(later(1))))
        );
        let read =
            Health::Read { protocol_version: Some("2025-11-25"), server_name: Some("Notes") };
        assert!(servers::set_health(conn, a.workspace, a.server, read, later(2)).await.unwrap());
        let found = servers::find(conn, a.workspace, a.server).await.unwrap().unwrap();
        assert_eq!((found.last_error_code, found.last_error_at), (None, None));
        assert_eq!((found.last_read_at, found.revision), (Some(kept(later(2))), 1));

        let sealed = servers::list_sealed(conn, None, 9).await.unwrap();
        assert_eq!((sealed.len(), sealed[0].sealed_headers.as_slice()), (1, &b"sealed"[..]));
        assert!(servers::reseal(conn, a.workspace, a.server, b"sealed", b"again").await.unwrap());
        assert!(!servers::reseal(conn, a.workspace, a.server, b"sealed", b"lost").await.unwrap());
        assert_eq!(servers::list_sealed(conn, Some(a.server), 9).await.unwrap(), []);
    }

    async fn a_policy_keeps_every_version_and_only_one_editor_wins(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let second = NewVersion { document: "{\"b\":1.10}", author: Some(a.user), note: "looser" };
        let saved = policies::save_version(conn, a.workspace, a.policy, Some(1), second, later(5))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (saved.version, saved.document.as_str(), saved.updated_at),
            (2, "{\"b\":1.10}", kept(later(5)))
        );
        let stale =
            policies::save_version(conn, a.workspace, a.policy, Some(1), second, now()).await;
        assert!(matches!(stale, Err(StoreError::Stale { current: 2 })), "{stale:?}");
        let all = policies::versions(conn, a.workspace, a.policy, None, 9).await.unwrap();
        assert_eq!(all.iter().map(|v| v.version).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((all[0].author, all[0].note.as_str()), (Some(a.user), "looser"));
        assert_eq!(all[1].document, DOCUMENT);
        let below = policies::versions(conn, a.workspace, a.policy, Some(2), 9).await.unwrap();
        assert_eq!(below, all[1..]);
    }

    async fn two_editors_at_once_never_lose_a_version(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        tx.commit().await.unwrap();
        let save = |document: &'static str| {
            let db = db.clone();
            tokio::spawn(async move {
                let mut tx = db.begin().await.unwrap();
                let saved = policies::save_version(
                    &mut tx.conn(),
                    a.workspace,
                    a.policy,
                    Some(1),
                    version(document),
                    now(),
                )
                .await;
                if saved.is_ok() {
                    tx.commit().await.unwrap();
                }
                saved
            })
        };
        let (one, other) = tokio::join!(save("{\"one\":1}"), save("{\"two\":2}"));
        let results = [one.unwrap(), other.unwrap()];
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
        let stale = results.iter().filter(|r| matches!(r, Err(StoreError::Stale { current: 2 })));
        assert_eq!(stale.count(), 1, "{results:?}");
    }

    async fn a_policy_version_cannot_be_rewritten(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        assert_eq!(policies::in_use_by(&mut tx.conn(), a.workspace, a.policy).await.unwrap(), 1);
        let sql = "UPDATE policy_versions SET document = 'x'";
        let done = match tx.conn() {
            Conn::Postgres(c) => sqlx::query(sql).execute(c).await.map(drop),
            Conn::Sqlite(c) => sqlx::query(sql).execute(c).await.map(drop),
        };
        assert!(done.unwrap_err().to_string().contains("cannot be changed"));
    }

    async fn policy_names_and_the_button_are_unique_per_server(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let create = async |conn: &mut Conn<'_>, name: &str, kind| {
            policies::create(conn, a.workspace, a.server, name, kind, version("{}"), now()).await
        };
        let again = create(conn, "STRICT", PolicyKind::Custom).await;
        assert!(is_conflict(&again, "policies_name"), "{again:?}");
        assert_eq!(policies::find_button(conn, a.workspace, a.server).await.unwrap(), None);
        let button = create(conn, "Recommended", PolicyKind::Button).await.unwrap();
        let again = create(conn, "Other", PolicyKind::Button).await;
        assert!(is_conflict(&again, "policies_button"), "{again:?}");
        assert_eq!(
            policies::find_button(conn, a.workspace, a.server).await.unwrap(),
            Some(button.clone())
        );
        let elsewhere = new_server(conn, a.workspace, "other").await;
        new_policy(conn, a.workspace, elsewhere.id, "strict").await;
        let renamed = policies::rename(conn, a.workspace, button.id, "Strict", now()).await;
        assert!(is_conflict(&renamed, "policies_name"), "{renamed:?}");
    }

    async fn a_policy_in_use_is_not_deleted(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let kept = policies::delete(conn, a.workspace, a.policy, now()).await.unwrap();
        assert_eq!(kept, PolicyDeletion::InUse(1));
        grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap();
        let gone = policies::delete(conn, a.workspace, a.policy, now()).await.unwrap();
        assert_eq!(gone, PolicyDeletion::Done);
        assert_eq!(
            policies::delete(conn, a.workspace, a.policy, now()).await.unwrap(),
            PolicyDeletion::Absent
        );
        let hash = token("late");
        let made = grants::create(
            conn,
            a.workspace,
            a.server,
            grant_named("x", Some(a.policy), &hash),
            now(),
        )
        .await;
        assert!(matches!(made, Err(StoreError::DanglingReference)));
        // The name is free again.
        new_policy(conn, a.workspace, a.server, "strict").await;
    }

    async fn grant_labels_are_unique_among_live_ones(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let hash = token("second");
        let again =
            grants::create(conn, a.workspace, a.server, grant_named("AGENT", None, &hash), now())
                .await;
        assert!(is_conflict(&again, "grants_label"), "{again:?}");
        assert!(grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap());
        assert!(!grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap());
        let second = new_grant(conn, a.workspace, a.server, "Agent", None, &hash).await;
        let live = grants::list(conn, a.workspace, GrantFilter::default(), None, 9).await.unwrap();
        assert_eq!(live.iter().map(|g| g.id).collect::<Vec<_>>(), [second.id]);
        let of_policy =
            GrantFilter { policy: Some(a.policy), include_revoked: true, ..GrantFilter::default() };
        let listed = grants::list(conn, a.workspace, of_policy, None, 9).await.unwrap();
        assert_eq!(listed.iter().map(|g| g.id).collect::<Vec<_>>(), [a.grant]);
    }

    async fn a_grant_is_edited_only_as_it_was_seen(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let networks = ["192.0.2.0/24".to_owned()];
        let change = GrantChange {
            label: Some("robot"),
            policy: Some(None),
            expires_at: Some(Some(later(60))),
            observe: Some(true),
            networks: Some(&networks),
        };
        let changed = grants::update(conn, a.workspace, a.grant, Some(1), change, now())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(grants::find(conn, a.workspace, a.grant).await.unwrap(), Some(changed.clone()));
        assert_eq!(
            (changed.revision, changed.policy_id, changed.expires_at),
            (2, None, Some(kept(later(60))))
        );
        let stale = grants::update(conn, a.workspace, a.grant, Some(1), change, now()).await;
        assert!(matches!(stale, Err(StoreError::Stale { current: 2 })));
        grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap();
        let none = grants::update(conn, a.workspace, a.grant, None, change, now()).await.unwrap();
        assert_eq!(none, None);
    }

    async fn the_latest_use_of_a_grant_is_kept(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let used = |at, client: Option<&str>| GrantUse {
            workspace: a.workspace,
            grant: a.grant,
            at,
            client: client.map(str::to_owned),
        };
        grants::touch_last_used(
            conn,
            &[used(later(2), Some("cursor")), used(later(1), Some("old"))],
        )
        .await
        .unwrap();
        grants::touch_last_used(conn, &[used(later(3), None)]).await.unwrap();
        let found = grants::find(conn, a.workspace, a.grant).await.unwrap().unwrap();
        assert_eq!(found.last_used_at, Some(kept(later(3))));
        assert_eq!(found.last_used_client.as_deref(), Some("cursor"));
        assert_eq!(found.revision, 1);
    }

    async fn pages_of_configuration_neither_skip_nor_repeat(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        for n in 0..5 {
            new_server(conn, a.workspace, &format!("s{n}")).await;
        }
        let (mut before, mut seen) = (None, Vec::new());
        loop {
            let page = servers::list(conn, a.workspace, before, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            seen.extend(page.into_iter().map(|server| server.name));
            assert!(seen.len() <= 6, "the pages do not end: {seen:?}");
        }
        assert_eq!(seen, ["s4", "s3", "s2", "s1", "s0", "notes"]);
    }
}

//! Another workspace sees nothing, changes nothing, and cannot be pointed into.

use serde_json::json;
use sluice_domain::{
    ActorKind, ApprovalStatus, CallId, PolicyKind, Role, SecurityEvent, SecurityKind, UserId,
};
use sluice_store::admin_events::{ActorOf, AdminEventFilter, NewAdminEvent};
use sluice_store::api_tokens::NewApiToken;
use sluice_store::approvals::{ApprovalFilter, Decision, Parked};
use sluice_store::calls::{CallFilter, Count};
use sluice_store::grants::{GrantChange, GrantFilter};
use sluice_store::invites::NewInvite;
use sluice_store::members::MemberChange;
use sluice_store::policies::PolicyDeletion;
use sluice_store::servers::{Health, ServerChange};
use sluice_store::tools::Accepted;
use sluice_store::{
    Db, StoreError, admin_events, api_tokens, approvals, calls, grants, idempotency, invites,
    members, policies, security_events, servers, tools, workspaces,
};
use sluice_testkit::on_both;

use crate::support::{
    World, approval, call, grant_named, later, new_server, now, read_tool, token, version, world,
};

async fn two(db: &Db) -> (World, World) {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    let b = world(&mut tx.conn(), "b").await;
    tx.commit().await.expect("commits");
    (a, b)
}

on_both! {
    async fn servers_and_tools_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let read = [read_tool("run", "runs")];
        tools::replace_read(conn, a.workspace, a.server, &read, now()).await.unwrap().unwrap();

        assert_eq!(servers::find(conn, b.workspace, a.server).await.unwrap(), None);
        let shown = servers::list(conn, b.workspace, None, 100).await.unwrap();
        assert_eq!(shown.iter().map(|s| s.id).collect::<Vec<_>>(), [b.server]);
        assert_eq!(servers::names(conn, b.workspace).await.unwrap().len(), 1);
        let change = ServerChange { name: Some("mine"), ..ServerChange::default() };
        let changed = servers::update(conn, b.workspace, a.server, None, change, now()).await;
        assert_eq!(changed.unwrap(), None);
        assert!(!servers::delete(conn, b.workspace, a.server, now()).await.unwrap());
        let failed = Health::Failed { code: "x", words: "x" };
        assert!(!servers::set_health(conn, b.workspace, a.server, failed, now()).await.unwrap());
        assert!(!servers::reseal(conn, b.workspace, a.server, b"sealed", b"x").await.unwrap());

        assert_eq!(tools::list(conn, b.workspace, a.server).await.unwrap(), []);
        assert_eq!(tools::find(conn, b.workspace, a.server, "run").await.unwrap(), None);
        let reread = tools::replace_read(conn, b.workspace, a.server, &[], now()).await;
        assert_eq!(reread.unwrap(), None);
        let hash = &read[0].hash;
        let by = (None, now());
        let accepted = tools::accept(conn, b.workspace, a.server, "run", hash, by).await.unwrap();
        assert_eq!(accepted, Accepted::Absent);

        let untouched = servers::find(conn, a.workspace, a.server).await.unwrap().unwrap();
        assert_eq!((untouched.name.as_str(), untouched.last_error_code), ("notes", None));
        assert_eq!(tools::list(conn, a.workspace, a.server).await.unwrap().len(), 1);
    }

    async fn policies_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(policies::find(conn, b.workspace, a.policy).await.unwrap(), None);
        let by_name = policies::find_by_name(conn, b.workspace, a.server, "strict").await;
        assert_eq!(by_name.unwrap(), None);
        assert_eq!(policies::find_button(conn, b.workspace, a.server).await.unwrap(), None);
        let shown = policies::list(conn, b.workspace, None, None, 100).await.unwrap();
        assert_eq!(shown.iter().map(|p| p.id).collect::<Vec<_>>(), [b.policy]);
        let of_server = policies::list(conn, b.workspace, Some(a.server), None, 100).await;
        assert_eq!(of_server.unwrap(), []);
        assert_eq!(policies::versions(conn, b.workspace, a.policy, None, 9).await.unwrap(), []);
        assert_eq!(policies::find_version(conn, b.workspace, a.policy, 1).await.unwrap(), None);
        let saved = policies::save_version(conn, b.workspace, a.policy, None, version("{}"), now());
        assert_eq!(saved.await.unwrap(), None);
        assert!(!policies::rename(conn, b.workspace, a.policy, "x", now()).await.unwrap());
        assert_eq!(policies::in_use_by(conn, b.workspace, a.policy).await.unwrap(), 0);
        let deleted = policies::delete(conn, b.workspace, a.policy, now()).await.unwrap();
        assert_eq!(deleted, PolicyDeletion::Absent);
        let kept = policies::find(conn, a.workspace, a.policy).await.unwrap().unwrap();
        assert_eq!((kept.version, kept.name.as_str()), (1, "strict"));
    }

    async fn grants_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(grants::find(conn, b.workspace, a.grant).await.unwrap(), None);
        let all = GrantFilter { include_revoked: true, ..GrantFilter::default() };
        let shown = grants::list(conn, b.workspace, all, None, 100).await.unwrap();
        assert_eq!(shown.iter().map(|g| g.id).collect::<Vec<_>>(), [b.grant]);
        let of_server = GrantFilter { server: Some(a.server), ..all };
        assert_eq!(grants::list(conn, b.workspace, of_server, None, 100).await.unwrap(), []);
        let change = GrantChange { observe: Some(true), ..GrantChange::default() };
        let changed = grants::update(conn, b.workspace, a.grant, None, change, now()).await;
        assert_eq!(changed.unwrap(), None);
        let new = (token("stolen"), "1234");
        let rotated =
            grants::rotate(conn, b.workspace, a.grant, (&new.0, new.1), None, now()).await;
        assert_eq!(rotated.unwrap(), None);
        assert!(!grants::revoke(conn, b.workspace, a.grant, now()).await.unwrap());
        let kept = grants::find(conn, a.workspace, a.grant).await.unwrap().unwrap();
        assert_eq!((kept.revision, kept.observe, kept.revoked_at), (1, false, None));
    }

    async fn references_into_another_workspace_are_impossible(db: Db) {
        let (a, b) = two(&db).await;
        // Each failed statement ends its transaction in PostgreSQL.
        for (server, policy) in
            [(b.server, Some(a.policy)), (a.server, None), (a.server, Some(a.policy))]
        {
            let mut tx = db.begin().await.unwrap();
            let hash = token("new");
            let made = grants::create(
                &mut tx.conn(),
                b.workspace,
                server,
                grant_named("x", policy, &hash),
                now(),
            )
            .await;
            assert!(matches!(made, Err(StoreError::DanglingReference)), "{made:?}");
        }
        let mut tx = db.begin().await.unwrap();
        let change = GrantChange { policy: Some(Some(a.policy)), ..GrantChange::default() };
        let moved = grants::update(&mut tx.conn(), b.workspace, b.grant, None, change, now()).await;
        assert!(matches!(moved, Err(StoreError::DanglingReference)), "{moved:?}");
        drop(tx);

        let mut tx = db.begin().await.unwrap();
        let made = policies::create(
            &mut tx.conn(),
            b.workspace,
            a.server,
            "x",
            PolicyKind::Custom,
            version("{}"),
            now(),
        )
        .await;
        assert!(matches!(made, Err(StoreError::DanglingReference)), "{made:?}");
        drop(tx);

        let mut tx = db.begin().await.unwrap();
        let parked =
            approvals::create_or_join(&mut tx.conn(), b.workspace, approval(&a, "d"), 10, now())
                .await;
        assert!(matches!(parked, Err(StoreError::DanglingReference)), "{parked:?}");
        drop(tx);

        // The schema holds it even where a statement forgets: a grant of b with a policy of a.
        let mut tx = db.begin().await.unwrap();
        let sql = "UPDATE grants SET policy_id = $1 WHERE id = $2";
        let forced = match tx.conn() {
            sluice_store::Conn::Postgres(c) => sqlx::query(sql)
                .bind(a.policy.uuid())
                .bind(b.grant.uuid())
                .execute(c)
                .await
                .map(drop),
            sluice_store::Conn::Sqlite(c) => sqlx::query(sql)
                .bind(a.policy.uuid())
                .bind(b.grant.uuid())
                .execute(c)
                .await
                .map(drop),
        };
        let refused = StoreError::from(forced.expect_err("the schema refuses it"));
        assert!(matches!(refused, StoreError::DanglingReference), "{refused:?}");
    }

    async fn a_policy_of_another_server_of_the_same_workspace_is_refused(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let a = world(conn, "a").await;
        let other = new_server(conn, a.workspace, "other").await;
        let hash = token("new");
        let made = grants::create(
            conn,
            a.workspace,
            other.id,
            grant_named("x", Some(a.policy), &hash),
            now(),
        )
        .await;
        assert!(matches!(made, Err(StoreError::DanglingReference)), "{made:?}");
    }

    async fn calls_and_security_events_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let logged = call(&a, "run");
        calls::insert_batch(conn, std::slice::from_ref(&logged)).await.unwrap();
        let all = CallFilter::default();
        assert_eq!(calls::list(conn, b.workspace, &all, None, 100).await.unwrap(), []);
        for filter in [
            CallFilter { server: Some(a.server), ..all },
            CallFilter { grant: Some(a.grant), ..all },
            CallFilter { q: Some("%"), ..all },
            CallFilter { q: Some("run"), ..all },
        ] {
            assert_eq!(calls::list(conn, b.workspace, &filter, None, 100).await.unwrap(), []);
        }
        let id = logged.id.to_string();
        let by_id = CallFilter { q: Some(&id), ..all };
        assert_eq!(calls::list(conn, b.workspace, &by_id, None, 100).await.unwrap(), []);
        assert_eq!(
            calls::list(conn, a.workspace, &by_id, None, 100).await.unwrap(),
            std::slice::from_ref(&logged)
        );
        assert_eq!(calls::find(conn, b.workspace, logged.id).await.unwrap(), None);
        let count = Count { server: None, grant: None, since: later(-60), until: later(60) };
        let days = calls::DaySpan::of(count.since, count.until);
        assert_eq!(calls::reasons(conn, b.workspace, days).await.unwrap(), []);
        assert_eq!(calls::tools_used(conn, b.workspace, days, 9).await.unwrap(), (vec![], vec![]));
        assert_eq!(calls::breakdown(conn, b.workspace, count, 10).await.unwrap(), []);
        assert_eq!(calls::by_day(conn, b.workspace, days).await.unwrap(), []);
        assert_eq!(calls::prune(conn, b.workspace, later(60), 10).await.unwrap(), 0);
        assert_eq!(calls::find(conn, a.workspace, logged.id).await.unwrap(), Some(logged));

        let event = SecurityEvent {
            id: CallId::new(),
            at: now(),
            kind: SecurityKind::RevokedToken,
            workspace: Some(a.workspace),
            grant: Some(a.grant),
            address: "192.0.2.9".to_owned(),
            detail: String::new(),
            times: 1,
        };
        let nobodys =
            SecurityEvent { id: CallId::new(), workspace: None, grant: None, ..event.clone() };
        security_events::insert_batch(conn, &[event, nobodys]).await.unwrap();
        assert_eq!(security_events::list(conn, b.workspace, None, None, 9).await.unwrap(), []);
        assert_eq!(security_events::list(conn, a.workspace, None, None, 9).await.unwrap().len(), 1);
    }

    async fn approvals_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let new = approval(&a, "digest");
        let parked = approvals::create_or_join(conn, a.workspace, new, 10, now()).await.unwrap();
        let Parked::Created(made) = parked else { panic!("{parked:?}") };
        assert_eq!(approvals::find(conn, b.workspace, made.id).await.unwrap(), None);
        let live = approvals::find_live(conn, b.workspace, new.same_call(), now()).await;
        assert_eq!(live.unwrap(), None);
        let all = ApprovalFilter::default();
        assert_eq!(approvals::list(conn, b.workspace, all, None, 9).await.unwrap(), []);
        assert_eq!(approvals::count_pending(conn, b.workspace, None, now()).await.unwrap(), 0);
        let by = Decision { user_id: b.user, approve: true, note: String::new(), at: now(), allow_s: None };
        assert_eq!(approvals::decide(conn, b.workspace, made.id, by).await.unwrap(), None);
        let taken = approvals::take_for_run(conn, b.workspace, made.id, CallId::new(), "r", now());
        assert_eq!(taken.await.unwrap(), None);
        assert!(!approvals::finish(conn, b.workspace, made.id, CallId::new(), now()).await.unwrap());
        assert_eq!(approvals::decisions(conn, b.workspace, made.id).await.unwrap(), []);
        let kept = approvals::find(conn, a.workspace, made.id).await.unwrap().unwrap();
        assert_eq!(kept.status, ApprovalStatus::Pending);
    }

    async fn members_invites_and_tokens_of_another_workspace_do_not_exist(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(members::role(conn, b.workspace, a.user).await.unwrap(), None);
        let shown = members::list(conn, b.workspace, None, 9).await.unwrap();
        assert_eq!(shown.iter().map(|m| m.user_id).collect::<Vec<UserId>>(), [b.user]);
        let changed = members::set_role(conn, b.workspace, a.user, Role::Viewer, now()).await;
        assert_eq!(changed.unwrap(), MemberChange::Absent);
        let removed = members::remove(conn, b.workspace, a.user, now()).await.unwrap();
        assert_eq!(removed, MemberChange::Absent);
        assert_eq!(workspaces::find_for_member(conn, "a", b.user).await.unwrap(), None);
        assert_eq!(workspaces::list_for_user(conn, b.user).await.unwrap().len(), 1);
        assert_eq!(workspaces::counts(conn, b.workspace).await.unwrap().members, 1);

        let hash = token("invite");
        let new = NewInvite {
            email: "new@example.test",
            role: Role::Viewer,
            token_hash: &hash,
            created_by: None,
            expires_at: later(60),
        };
        let invite = invites::create(conn, a.workspace, new, now()).await.unwrap();
        assert_eq!(invites::list(conn, b.workspace, now(), None, 9).await.unwrap(), []);
        assert!(!invites::accept(conn, b.workspace, invite.id, now()).await.unwrap());
        assert!(!invites::revoke(conn, b.workspace, invite.id, now()).await.unwrap());
        assert_eq!(invites::find_open(conn, &hash, now()).await.unwrap(), Some(invite));

        let hash = token("api");
        let new = NewApiToken {
            label: "ci",
            role: Role::Admin,
            token_hash: &hash,
            last4: "abcd",
            created_by: a.user,
            expires_at: None,
        };
        let made = api_tokens::create(conn, a.workspace, new, now()).await.unwrap();
        assert_eq!(api_tokens::list(conn, b.workspace, None, 9).await.unwrap(), []);
        assert!(!api_tokens::revoke(conn, b.workspace, made.id, now()).await.unwrap());
        let holder = api_tokens::find_by_hash(conn, &hash, now()).await.unwrap().unwrap();
        assert_eq!((holder.workspace_id, holder.user_id), (a.workspace, a.user));
    }

    async fn the_audit_log_and_idempotency_keys_are_apart(db: Db) {
        let (a, b) = two(&db).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let actor =
            ActorOf { kind: ActorKind::User, id: Some(a.user.uuid()), name: "a", address: "::1" };
        let after = json!({"name": "notes"});
        let new = NewAdminEvent {
            actor,
            action: "server.create",
            object_kind: "server",
            object_id: "x",
            object_name: "notes",
            before: None,
            after: Some(&after),
        };
        admin_events::append(conn, Some(a.workspace), new, now()).await.unwrap();
        let all = AdminEventFilter::default();
        assert_eq!(admin_events::list(conn, b.workspace, all, None, 9).await.unwrap(), []);
        assert_eq!(admin_events::list(conn, a.workspace, all, None, 9).await.unwrap().len(), 1);
        // The other's chain begins at one.
        let other = admin_events::append(conn, Some(b.workspace), new, now()).await.unwrap();
        assert_eq!(other.seq, 1);

        let of = |workspace| idempotency::KeyOf {
            workspace: Some(workspace),
            actor: a.user.uuid(),
            key: "k",
        };
        let begun =
            idempotency::begin(conn, of(a.workspace), b"h", later(-60), now()).await.unwrap();
        assert_eq!(begun, idempotency::Begun::New);
        idempotency::finish(conn, of(a.workspace), 201, None, b"secret").await.unwrap();
        let begun =
            idempotency::begin(conn, of(b.workspace), b"h", later(-60), now()).await.unwrap();
        assert_eq!(begun, idempotency::Begun::New);
    }
}

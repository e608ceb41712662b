//! The admin audit log's chain: it grows whole under concurrency and shows tampering.

use serde_json::json;
use sluice_domain::{ActorKind, WorkspaceId};
use sluice_store::admin_events::{ActorOf, AdminEventFilter, Broken, NewAdminEvent};
use sluice_store::{Conn, Db, admin_events};
use sluice_testkit::on_both;

use crate::support::{kept, later, now, world};

fn event<'a>(action: &'a str, after: Option<&'a serde_json::Value>) -> NewAdminEvent<'a> {
    NewAdminEvent {
        actor: ActorOf {
            kind: ActorKind::User,
            id: None,
            name: "ann@example.test",
            address: "::1",
        },
        action,
        object_kind: "grant",
        object_id: "g1",
        object_name: "agent",
        before: None,
        after,
    }
}

async fn workspace(db: &Db, name: &str) -> WorkspaceId {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), name).await;
    tx.commit().await.expect("commits");
    a.workspace
}

async fn fill(db: &Db, workspace: WorkspaceId, events: usize) {
    let after = json!({"z": 1, "a": "1.10"});
    let mut tx = db.begin().await.expect("begins");
    for n in 0..events {
        let action = format!("grant.edit{n}");
        admin_events::append(&mut tx.conn(), Some(workspace), event(&action, Some(&after)), now())
            .await
            .expect("appends");
    }
    tx.commit().await.expect("commits");
}

/// Somebody with the database in hand, past the guard against updates.
async fn tamper(db: &Db, sql: &'static str) {
    let mut tx = db.begin().await.expect("begins");
    match tx.conn() {
        Conn::Postgres(conn) => {
            sqlx::raw_sql("DROP TRIGGER admin_events_fixed ON admin_events")
                .execute(&mut *conn)
                .await
                .expect("drops");
            sqlx::query(sql).execute(conn).await.map(drop)
        }
        Conn::Sqlite(conn) => {
            sqlx::raw_sql("DROP TRIGGER admin_events_fixed")
                .execute(&mut *conn)
                .await
                .expect("drops");
            sqlx::query(sql).execute(conn).await.map(drop)
        }
    }
    .expect("tampers");
    tx.commit().await.expect("commits");
}

async fn verify(db: &Db, workspace: WorkspaceId) -> Result<admin_events::Chain, Broken> {
    let mut tx = db.read().await.expect("begins");
    admin_events::verify(&mut tx.conn(), Some(workspace)).await.expect("reads")
}

on_both! {
    async fn events_are_listed_newest_first_and_their_chain_is_whole(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 5).await;
        let chain = verify(&db, a).await.unwrap();
        assert_eq!(
            (chain.events, chain.first_seq, chain.last_seq, chain.head.len()),
            (5, 1, 5, 32)
        );
        let mut tx = db.read().await.unwrap();
        let conn = &mut tx.conn();
        let all = AdminEventFilter::default();
        let listed = admin_events::list(conn, a, all, None, 2).await.unwrap();
        assert_eq!(listed.iter().map(|e| e.seq).collect::<Vec<_>>(), [5, 4]);
        assert_eq!((listed[0].hash.clone(), listed[0].at), (chain.head, kept(now())));
        assert_eq!(listed[0].after.as_deref(), Some(r#"{"z":1,"a":"1.10"}"#));
        let older = admin_events::list(conn, a, all, Some(4), 9).await.unwrap();
        assert_eq!(older.len(), 3);
        let one =
            AdminEventFilter { action: Some("grant.edit2"), object_kind: Some("grant"), ..all };
        assert_eq!(admin_events::list(conn, a, one, None, 9).await.unwrap().len(), 1);
        let late = AdminEventFilter { from: Some(later(1)), ..all };
        assert_eq!(admin_events::list(conn, a, late, None, 9).await.unwrap(), []);
    }

    async fn the_chain_of_no_workspace_is_one_of_its_own(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 2).await;
        let mut tx = db.begin().await.unwrap();
        let made =
            admin_events::append(&mut tx.conn(), None, event("admin.create-user", None), now())
                .await
                .unwrap();
        assert_eq!((made.seq, made.workspace_id), (1, None));
        let chain = admin_events::verify(&mut tx.conn(), None).await.unwrap().unwrap();
        assert_eq!((chain.events, chain.head), (1, made.hash));
    }

    async fn writers_at_once_make_one_whole_chain(db: Db) {
        let a = workspace(&db, "a").await;
        let writers: Vec<_> = (0..6)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    for _ in 0..5 {
                        fill(&db, a, 1).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let chain = verify(&db, a).await.unwrap();
        assert_eq!((chain.events, chain.last_seq), (30, 30));
    }

    async fn an_event_cannot_be_changed_by_a_plain_update(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 1).await;
        let mut tx = db.begin().await.unwrap();
        let sql = "UPDATE admin_events SET action = 'nothing'";
        let done = match tx.conn() {
            Conn::Postgres(conn) => sqlx::query(sql).execute(conn).await.map(drop),
            Conn::Sqlite(conn) => sqlx::query(sql).execute(conn).await.map(drop),
        };
        assert!(done.unwrap_err().to_string().contains("cannot be changed"));
    }

    async fn a_changed_event_is_found(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 4).await;
        tamper(&db, "UPDATE admin_events SET actor_name = 'bob@example.test' WHERE seq = 2").await;
        assert_eq!(verify(&db, a).await, Err(Broken::Changed { seq: 2 }));
    }

    async fn an_event_moved_from_one_column_to_the_next_is_found(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 2).await;
        tamper(
            &db,
            "UPDATE admin_events SET object_id = 'g1a', object_name = 'gent' WHERE seq = 1",
        )
        .await;
        assert_eq!(verify(&db, a).await, Err(Broken::Changed { seq: 1 }));
    }

    async fn a_removed_event_is_found(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 4).await;
        tamper(&db, "DELETE FROM admin_events WHERE seq = 3").await;
        assert_eq!(verify(&db, a).await, Err(Broken::Missing { seq: 3 }));
    }

    async fn an_event_with_a_borrowed_link_is_found(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 4).await;
        tamper(
            &db,
            "UPDATE admin_events SET prev_hash =
                         (SELECT hash FROM admin_events WHERE seq = 1) WHERE seq = 3",
        )
        .await;
        assert_eq!(verify(&db, a).await, Err(Broken::Unlinked { seq: 3 }));
    }

    async fn what_was_cut_off_at_the_start_or_end_shows_in_the_ends(db: Db) {
        let a = workspace(&db, "a").await;
        fill(&db, a, 6).await;
        let whole = verify(&db, a).await.unwrap();
        tamper(&db, "DELETE FROM admin_events WHERE seq IN (1, 6)").await;
        let cut = verify(&db, a).await.unwrap();
        assert_eq!((cut.first_seq, cut.last_seq, cut.events), (2, 5, 4));
        assert_ne!(cut.head, whole.head);
    }
}

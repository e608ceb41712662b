//! The change feed: what writes tell, in order, to every reader, and soon.

use std::time::Duration;

use sluice_domain::{ChangeKind, WorkspaceId};
use sluice_store::servers::ServerChange;
use sluice_store::tools::ReadTool;
use sluice_store::{
    ChangeFeed, Conn, Db, DbOptions, changes, grants, policies, servers, tools, workspaces,
};
use sluice_testkit::db::FreshUrl;
use sluice_testkit::on_both;
use uuid::Uuid;

use crate::support::{later, now, read_tool, version, waits_or_is_done, world};

/// Far more than the feed may take, so that a slow machine does not matter.
const PATIENCE: Duration = Duration::from_secs(20);

async fn next(feed: &mut ChangeFeed) -> Vec<(ChangeKind, Uuid)> {
    let changes =
        tokio::time::timeout(PATIENCE, feed.next()).await.expect("in time").expect("reads");
    changes.into_iter().map(|change| (change.kind, change.object_id)).collect()
}

on_both! {
    async fn every_write_that_touches_a_route_is_told(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        tx.commit().await.unwrap();
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        workspaces::set_suspended(conn, a.workspace, true, now()).await.unwrap();
        servers::update(conn, a.workspace, a.server, None, ServerChange::default(), now())
            .await
            .unwrap();
        tools::replace_read(conn, a.workspace, a.server, &[read_tool("t", "t")], now())
            .await
            .unwrap();
        policies::save_version(conn, a.workspace, a.policy, None, version("{}"), now())
            .await
            .unwrap();
        grants::rotate(conn, a.workspace, a.grant, (&[1; 32], "1111"), None, now()).await.unwrap();
        grants::revoke(conn, a.workspace, a.grant, now()).await.unwrap();
        assert_eq!(feed.look().await.unwrap(), [], "not before the commit");
        tx.commit().await.unwrap();
        assert_eq!(
            next(&mut feed).await,
            [
                (ChangeKind::Workspace, a.workspace.uuid()),
                (ChangeKind::Server, a.server.uuid()),
                (ChangeKind::Tools, a.server.uuid()),
                (ChangeKind::Policy, a.policy.uuid()),
                (ChangeKind::Grant, a.grant.uuid()),
                (ChangeKind::Grant, a.grant.uuid()),
            ]
        );
        assert_eq!(feed.look().await.unwrap(), []);
    }

    async fn what_is_rolled_back_is_not_told(db: Db) {
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let workspace = WorkspaceId::new();
        let mut tx = db.begin().await.unwrap();
        changes::append(&mut tx.conn(), workspace, ChangeKind::Grant, Uuid::now_v7(), now())
            .await
            .unwrap();
        tx.rollback().await.unwrap();
        let told = Uuid::now_v7();
        let mut tx = db.begin().await.unwrap();
        changes::append(&mut tx.conn(), workspace, ChangeKind::Grant, told, now()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(next(&mut feed).await, [(ChangeKind::Grant, told)]);
    }

    async fn a_waiting_reader_is_woken(db: Db) {
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let waiting = tokio::spawn(async move { next(&mut feed).await });
        let told = Uuid::now_v7();
        let mut tx = db.begin().await.unwrap();
        changes::append(&mut tx.conn(), WorkspaceId::new(), ChangeKind::Policy, told, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(waiting.await.unwrap(), [(ChangeKind::Policy, told)]);
    }

    async fn another_process_is_told_too(url: FreshUrl) {
        let server = Db::connect(&url.0, &DbOptions::default()).await.unwrap();
        server.migrate().await.unwrap();
        let command = Db::connect(&url.0, &DbOptions::default()).await.unwrap();
        let mut feed = ChangeFeed::open(&server).await.unwrap();
        let mut tx = command.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        tx.commit().await.unwrap();
        command.close().await;
        let told = next(&mut feed).await;
        assert!(told.contains(&(ChangeKind::Grant, a.grant.uuid())), "{told:?}");
    }

    async fn nothing_is_missed_whatever_order_writers_commit_in(db: Db) {
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut told = Vec::new();
                    for _ in 0..10 {
                        let mut tx = db.begin().await.unwrap();
                        for _ in 0..2 {
                            let id = Uuid::now_v7();
                            changes::append(
                                &mut tx.conn(),
                                WorkspaceId::new(),
                                ChangeKind::Grant,
                                id,
                                now(),
                            )
                            .await
                            .unwrap();
                            told.push(id);
                            // Gives the others the chance to take a number in between.
                            tokio::task::yield_now().await;
                        }
                        tx.commit().await.unwrap();
                    }
                    told
                })
            })
            .collect();
        let mut seen = Vec::new();
        while seen.len() < 160 {
            seen.extend(next(&mut feed).await.into_iter().map(|(_, id)| id));
        }
        let mut told = Vec::new();
        for writer in writers {
            told.extend(writer.await.unwrap());
        }
        seen.sort_unstable();
        told.sort_unstable();
        assert_eq!(seen, told, "each once");
    }

    async fn a_later_number_is_never_seen_before_an_earlier_one(db: Db) {
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let (early, late) = (Uuid::now_v7(), Uuid::now_v7());
        let mut first = db.begin().await.unwrap();
        let workspace = WorkspaceId::new();
        changes::append(&mut first.conn(), workspace, ChangeKind::Grant, early, now())
            .await
            .unwrap();
        if let Conn::Postgres(conn) = first.conn() {
            // As far as a commit goes before it is seen: the number is given.
            sqlx::raw_sql("SET CONSTRAINTS ALL IMMEDIATE").execute(conn).await.unwrap();
        }
        let second = tokio::spawn({
            let db = db.clone();
            async move {
                let mut tx = db.begin().await.unwrap();
                changes::append(&mut tx.conn(), workspace, ChangeKind::Grant, late, now())
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
        });
        waits_or_is_done(&db, &second).await;
        assert_eq!(feed.look().await.unwrap(), [], "the second waits for the first");
        first.commit().await.unwrap();
        second.await.unwrap();
        let mut seen = next(&mut feed).await;
        while seen.len() < 2 {
            seen.extend(next(&mut feed).await);
        }
        assert_eq!(seen, [(ChangeKind::Grant, early), (ChangeKind::Grant, late)]);
    }

    async fn a_read_that_brings_nothing_new_is_no_change(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let a = world(&mut tx.conn(), "a").await;
        let read = [read_tool("t", "t")];
        tools::replace_read(&mut tx.conn(), a.workspace, a.server, &read, now()).await.unwrap();
        tx.commit().await.unwrap();
        let mut feed = ChangeFeed::open(&db).await.unwrap();
        let reread = async |read: &[ReadTool]| {
            let mut tx = db.begin().await.unwrap();
            tools::replace_read(&mut tx.conn(), a.workspace, a.server, read, later(9))
                .await
                .unwrap();
            tx.commit().await.unwrap();
        };
        reread(&read).await;
        assert_eq!(feed.look().await.unwrap(), []);
        // Another rating of the same definition bears on decisions.
        reread(&[ReadTool { severity: sluice_domain::Severity::Critical, ..read[0].clone() }])
            .await;
        assert_eq!(next(&mut feed).await, [(ChangeKind::Tools, a.server.uuid())]);
    }

    async fn pruning_never_takes_a_number_back(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        for n in 0..3 {
            changes::append(conn, WorkspaceId::new(), ChangeKind::Grant, Uuid::now_v7(), later(n))
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        let latest = changes::latest(conn).await.unwrap();
        assert_eq!(changes::since(conn, latest - 2).await.unwrap().len(), 2);
        assert_eq!(changes::prune(conn, later(100)).await.unwrap(), 2);
        assert_eq!(changes::latest(conn).await.unwrap(), latest);
        changes::append(conn, WorkspaceId::new(), ChangeKind::Grant, Uuid::now_v7(), later(9))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.read().await.unwrap();
        assert!(changes::latest(&mut tx.conn()).await.unwrap() > latest);
    }
}

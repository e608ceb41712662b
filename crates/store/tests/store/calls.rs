//! The call log: batches, pages, filters, counts.

use std::collections::BTreeSet;

use sluice_domain::{CallId, CallRecord, Code, Outcome, SecurityEvent, SecurityKind};
use sluice_store::calls::{CallFilter, Count};
use sluice_store::{Db, calls, security_events};
use sluice_testkit::on_both;

use crate::support::{World, call, kept, later, now, world};

async fn begin_with_world(db: &Db) -> World {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    tx.commit().await.expect("commits");
    a
}

async fn insert(db: &Db, batch: &[CallRecord]) -> u64 {
    let mut tx = db.begin().await.expect("begins");
    let new = calls::insert_batch(&mut tx.conn(), batch).await.expect("inserts");
    tx.commit().await.expect("commits");
    new
}

on_both! {
    async fn a_call_comes_back_as_it_was(db: Db) {
        let a = begin_with_world(&db).await;
        let full = CallRecord {
            outcome: Outcome::Limited,
            code: Code::RateLimited,
            rule: "/tools/run/limits/0".into(),
            message: "Ünïcode 🚰 ' \" \\ ;--".into(),
            observed: true,
            counter: Some("run_rate".into()),
            retry_after_s: Some(23),
            trace: Some("[]".into()),
            session: Some("s".into()),
            ..call(&a, "run")
        };
        let bare = CallRecord {
            tool: None,
            policy: None,
            policy_version: None,
            arguments: None,
            client_name: None,
            protocol_version: None,
            client_address: None,
            upstream_status: None,
            outcome: Outcome::Rejected,
            code: Code::Malformed,
            ..call(&a, "")
        };
        assert_eq!(insert(&db, &[full.clone(), bare.clone()]).await, 2);
        let mut tx = db.read().await.unwrap();
        assert_eq!(calls::find(&mut tx.conn(), a.workspace, full.id).await.unwrap(), Some(full));
        assert_eq!(calls::find(&mut tx.conn(), a.workspace, bare.id).await.unwrap(), Some(bare));
        assert_eq!(calls::find(&mut tx.conn(), a.workspace, CallId::new()).await.unwrap(), None);
    }

    async fn one_odd_call_does_not_hold_up_its_batch(db: Db) {
        let a = begin_with_world(&db).await;
        let odd = CallRecord {
            tool: Some("delete_note\0".into()),
            client_name: Some("\0".into()),
            message: "a\0b".into(),
            at: chrono::DateTime::<chrono::Utc>::MAX_UTC,
            ..call(&a, "")
        };
        assert_eq!(insert(&db, &[call(&a, "run"), odd.clone(), call(&a, "run")]).await, 3);
        let mut tx = db.read().await.unwrap();
        let kept = calls::find(&mut tx.conn(), a.workspace, odd.id).await.unwrap().unwrap();
        assert_eq!(
            (kept.tool.as_deref(), kept.message.as_str()),
            (Some("delete_note\u{2400}"), "a\u{2400}b")
        );
        assert_eq!(kept.at.to_rfc3339(), "9999-12-31T23:59:59.999999+00:00");
        let filter =
            CallFilter { tool: Some("delete_note\0"), q: Some("a\0b"), ..CallFilter::default() };
        let found = calls::list(&mut tx.conn(), a.workspace, &filter, None, 9).await.unwrap();
        assert_eq!(found.iter().map(|call| call.id).collect::<Vec<_>>(), [odd.id]);
        let all = CallFilter::default();
        assert_eq!(calls::list(&mut tx.conn(), a.workspace, &all, None, -1).await.unwrap(), []);
        assert_eq!(
            calls::list(&mut tx.conn(), a.workspace, &all, None, i64::MAX).await.unwrap().len(),
            3
        );
    }

    async fn a_batch_sent_twice_counts_once(db: Db) {
        let a = begin_with_world(&db).await;
        // More than one statement's worth on SQLite.
        let batch: Vec<_> = (0..1203).map(|_| call(&a, "run")).collect();
        assert_eq!(insert(&db, &batch).await, 1203);
        assert_eq!(insert(&db, &batch).await, 0);
        assert_eq!(insert(&db, &[]).await, 0);
        // Also within one batch, and what is there stays as it is.
        let fresh = call(&a, "run");
        let altered = CallRecord { message: "forged".into(), ..batch[0].clone() };
        assert_eq!(insert(&db, &[fresh.clone(), fresh, altered]).await, 1);
        let mut tx = db.read().await.unwrap();
        let kept = calls::find(&mut tx.conn(), a.workspace, batch[0].id).await.unwrap().unwrap();
        assert_eq!(kept, batch[0]);
    }

    async fn pages_stay_put_while_calls_come_in(db: Db) {
        let a = begin_with_world(&db).await;
        let old: Vec<_> = (0..50).map(|_| call(&a, "run")).collect();
        insert(&db, &old).await;
        let (mut before, mut seen) = (None, Vec::new());
        loop {
            let mut tx = db.read().await.unwrap();
            let all = CallFilter::default();
            let page = calls::list(&mut tx.conn(), a.workspace, &all, before, 7).await.unwrap();
            drop(tx);
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            seen.extend(page.iter().map(|call| call.id));
            assert!(seen.len() <= old.len(), "the pages do not end: {seen:?}");
            insert(&db, &[call(&a, "run"), call(&a, "run")]).await;
        }
        let expected: Vec<_> = old.iter().rev().map(|call| call.id).collect();
        assert_eq!(seen, expected, "newest first, nothing twice, nothing missed");
    }

    async fn each_filter_narrows_and_they_work_together(db: Db) {
        let a = begin_with_world(&db).await;
        let plain = call(&a, "run");
        let denied = CallRecord {
            outcome: Outcome::Denied,
            code: Code::DenyIfMatched,
            rule: "/tools/pay/deny_if/0".into(),
            message: "Payments over 100 are refused".into(),
            at: kept(later(60)),
            ..call(&a, "pay")
        };
        let other = CallRecord {
            grant: sluice_domain::GrantId::new(),
            grant_label: "Other_1".into(),
            policy: None,
            at: kept(later(120)),
            ..call(&a, "run")
        };
        insert(&db, &[plain.clone(), denied.clone(), other.clone()]).await;
        let none = CallFilter::default();
        let id = denied.id.to_string();
        let table: Vec<(CallFilter<'_>, Vec<&CallRecord>)> = vec![
            (none, vec![&other, &denied, &plain]),
            (CallFilter { server: Some(a.server), ..none }, vec![&other, &denied, &plain]),
            (CallFilter { server: Some(sluice_domain::ServerId::new()), ..none }, vec![]),
            (CallFilter { grant: Some(a.grant), ..none }, vec![&denied, &plain]),
            (CallFilter { policy: Some(a.policy), ..none }, vec![&denied, &plain]),
            (CallFilter { tool: Some("run"), ..none }, vec![&other, &plain]),
            (CallFilter { tool: Some("RUN"), ..none }, vec![]),
            (CallFilter { outcome: Some(Outcome::Denied), ..none }, vec![&denied]),
            (CallFilter { code: Some(Code::DenyIfMatched), ..none }, vec![&denied]),
            (CallFilter { rule: Some("/tools/pay/deny_if/0"), ..none }, vec![&denied]),
            (CallFilter { from: Some(kept(later(60))), ..none }, vec![&other, &denied]),
            (CallFilter { to: Some(kept(later(60))), ..none }, vec![&plain]),
            (CallFilter { from: Some(later(1)), to: Some(later(100)), ..none }, vec![&denied]),
            (CallFilter { q: Some("payments OVER"), ..none }, vec![&denied]),
            (CallFilter { q: Some("other_"), ..none }, vec![&other]),
            (CallFilter { newer: Some(plain.id), ..none }, vec![&other, &denied]),
            (CallFilter { newer: Some(other.id), ..none }, vec![]),
            (CallFilter { q: Some("%"), ..none }, vec![]),
            (CallFilter { q: Some("r_n"), ..none }, vec![]),
            (CallFilter { q: Some("\\"), ..none }, vec![]),
            (CallFilter { q: Some("'"), ..none }, vec![]),
            (CallFilter { q: Some(&id), ..none }, vec![&denied]),
            (
                CallFilter {
                    q: Some("run"),
                    tool: Some("run"),
                    grant: Some(a.grant),
                    outcome: Some(Outcome::Allowed),
                    ..none
                },
                vec![&plain],
            ),
        ];
        let mut tx = db.read().await.unwrap();
        for (filter, expected) in table {
            let found = calls::list(&mut tx.conn(), a.workspace, &filter, None, 100).await.unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        }
        let after =
            calls::list(&mut tx.conn(), a.workspace, &none, Some(other.id), 1).await.unwrap();
        assert_eq!(after, [denied]);
    }

    async fn calls_are_counted_by_server_grant_tool_and_outcome(db: Db) {
        let a = begin_with_world(&db).await;
        let limited = |at| CallRecord {
            outcome: Outcome::Limited,
            code: Code::RateLimited,
            at: kept(at),
            ..call(&a, "run")
        };
        let list = CallRecord { tool: None, method: "tools/list".into(), ..call(&a, "") };
        let early = CallRecord { at: kept(later(-3600)), ..call(&a, "run") };
        let watched = CallRecord { observed: true, ..limited(now()) };
        insert(
            &db,
            &[
                call(&a, "run"),
                call(&a, "run"),
                call(&a, "pay"),
                limited(now()),
                limited(later(60)),
                watched,
                list,
                early,
            ],
        )
        .await;
        let mut tx = db.read().await.unwrap();
        let conn = &mut tx.conn();
        let count = Count { server: None, grant: None, since: later(-60), until: later(61) };
        let top = calls::breakdown(conn, a.workspace, count, 2).await.unwrap();
        assert_eq!(
            (top[0].outcome, top[0].calls, top[0].last_at),
            (Outcome::Limited, 3, kept(later(60)))
        );
        assert_eq!((top[1].tool.as_str(), top[1].calls), ("run", 2));
        let other = Count { grant: Some(sluice_domain::GrantId::new()), ..count };
        assert_eq!(calls::breakdown(conn, a.workspace, other, 2).await.unwrap(), []);
    }

    async fn old_calls_are_forgotten_in_small_steps(db: Db) {
        let a = begin_with_world(&db).await;
        let mut batch: Vec<_> =
            (0..5).map(|n| CallRecord { at: kept(later(n)), ..call(&a, "run") }).collect();
        batch.push(CallRecord { at: kept(later(100)), ..call(&a, "run") });
        insert(&db, &batch).await;
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(calls::prune(conn, a.workspace, later(50), 3).await.unwrap(), 3);
        assert_eq!(calls::prune(conn, a.workspace, later(50), 3).await.unwrap(), 2);
        assert_eq!(calls::prune(conn, a.workspace, later(50), 3).await.unwrap(), 0);
        let left = calls::list(conn, a.workspace, &CallFilter::default(), None, 9).await.unwrap();
        assert_eq!(left, batch[5..]);
    }

    async fn writers_and_readers_do_not_stand_in_each_others_way(db: Db) {
        let a = begin_with_world(&db).await;
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    let batch: Vec<_> = (0..50).map(|_| call(&a, "run")).collect();
                    insert(&db, &batch).await;
                    batch.into_iter().map(|call| call.id).collect::<BTreeSet<_>>()
                })
            })
            .collect();
        // A reader's long look begins before and ends after.
        let mut reader = db.read().await.unwrap();
        let all = CallFilter::default();
        let before = calls::list(&mut reader.conn(), a.workspace, &all, None, 1000).await.unwrap();
        let mut written = BTreeSet::new();
        for writer in writers {
            written.extend(writer.await.unwrap());
        }
        let after = calls::list(&mut reader.conn(), a.workspace, &all, None, 1000).await.unwrap();
        assert_eq!(before, after, "one state for the whole of a read");
        drop(reader);
        let mut tx = db.read().await.unwrap();
        let found = calls::list(&mut tx.conn(), a.workspace, &all, None, 1000).await.unwrap();
        assert_eq!(found.into_iter().map(|call| call.id).collect::<BTreeSet<_>>(), written);
    }

    async fn security_events_are_kept_once_and_pruned(db: Db) {
        let a = begin_with_world(&db).await;
        let event = |kind, at| SecurityEvent {
            id: CallId::new(),
            at: kept(at),
            kind,
            workspace: Some(a.workspace),
            grant: Some(a.grant),
            address: "192.0.2.1".into(),
            detail: "/mcp/x".into(),
            times: 3,
        };
        let batch =
            [event(SecurityKind::ExpiredToken, now()), event(SecurityKind::WrongServer, later(60))];
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        assert_eq!(security_events::insert_batch(conn, &batch).await.unwrap(), 2);
        assert_eq!(security_events::insert_batch(conn, &batch).await.unwrap(), 0);
        let listed = security_events::list(conn, a.workspace, None, None, 9).await.unwrap();
        assert_eq!(listed, [batch[1].clone(), batch[0].clone()]);
        let kind = Some(SecurityKind::WrongServer);
        assert_eq!(
            security_events::list(conn, a.workspace, kind, None, 9).await.unwrap(),
            batch[1..]
        );
        let older =
            security_events::list(conn, a.workspace, None, Some(batch[1].id), 9).await.unwrap();
        assert_eq!(older, batch[..1]);
        // The operator sees those of every workspace, and of none.
        let stranger = SecurityEvent {
            workspace: None,
            grant: None,
            ..event(SecurityKind::BadToken, now())
        };
        let again = [stranger.clone(), SecurityEvent { id: CallId::new(), times: 4, ..stranger }];
        assert_eq!(security_events::insert_batch(conn, &again).await.unwrap(), 2);
        let frequent = security_events::frequent(conn, now(), 2).await.unwrap();
        let told: Vec<_> =
            frequent.iter().map(|one| (one.kind, one.workspace.as_deref(), one.times)).collect();
        assert_eq!(told[0], (SecurityKind::BadToken, None, 7));
        assert_eq!(told[1], (SecurityKind::WrongServer, Some("a"), 3));
        assert_eq!(security_events::prune(conn, later(30), 9).await.unwrap(), 3);
    }
}

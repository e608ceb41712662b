use sluice_domain::{
    CallId, CallRecord, CallTiming, Code, GrantId, Outcome, ServerId, WorkspaceLimits,
};
use sluice_store::calls::CallFilter;
use sluice_store::users;
use sluice_testkit::on_both;

use super::*;

fn now() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn call(workspace: WorkspaceId, days_ago: i64) -> CallRecord {
    CallRecord {
        id: CallId::new(),
        workspace,
        server: ServerId::new(),
        grant: GrantId::new(),
        grant_label: "agent".into(),
        at: now() - TimeDelta::days(days_ago),
        method: "tools/call".into(),
        tool: Some("echo".into()),
        outcome: Outcome::Allowed,
        code: Code::Allowed,
        rule: String::new(),
        message: String::new(),
        policy: None,
        policy_version: None,
        observed: false,
        counter: None,
        retry_after_s: None,
        arguments: None,
        trace: None,
        client_name: None,
        protocol_version: None,
        session: None,
        client_address: None,
        request_bytes: 0,
        response_bytes: 0,
        upstream_status: None,
        timing: CallTiming::default(),
    }
}

/// A workspace with a call of today and of 1, 6, 10 and 100 days ago.
async fn workspace(db: &Db, slug: &str, log_days: Option<u32>) -> WorkspaceId {
    let mut tx = db.begin().await.expect("begins");
    let conn = &mut tx.conn();
    let email = format!("{slug}@example.test");
    let user = users::create(conn, &email, "", None, now()).await.expect("makes");
    let made = workspaces::create(conn, slug, slug, Some(user.id), now()).await.expect("makes");
    let limits = WorkspaceLimits { log_days, ..WorkspaceLimits::default() };
    workspaces::set_limits(conn, made.id, limits, now()).await.expect("sets");
    // As if the log had been written day by day.
    calls::make_days(conn, now() - TimeDelta::days(12), 15).await.expect("makes");
    let rows: Vec<_> = [0, 1, 6, 10, 100].map(|days| call(made.id, days)).into();
    calls::insert_batch(conn, &rows).await.expect("inserts");
    tx.commit().await.expect("commits");
    made.id
}

/// How many days ago the calls were that are left.
async fn left(db: &Db, workspace: WorkspaceId) -> Vec<i64> {
    let mut tx = db.read().await.expect("begins");
    let all = CallFilter::default();
    let rows = calls::list(&mut tx.conn(), workspace, &all, None, 100).await.expect("lists");
    let mut days: Vec<_> = rows.iter().map(|row| (now() - row.at).num_days()).collect();
    days.sort_unstable();
    days
}

fn keeping(calls: Option<i64>) -> Retention {
    Retention { calls: calls.map(TimeDelta::days), security: None, changes: CHANGES_KEPT }
}

on_both! {
    async fn each_workspace_keeps_its_log_as_long_as_it_may(db: Db) {
        let usual = workspace(&db, "usual", None).await;
        let short = workspace(&db, "short", Some(2)).await;
        let long = workspace(&db, "long", Some(7)).await;
        let (rows, days) = keeping(Some(5)).apply(&db, now()).await.expect("applies");
        assert_eq!(left(&db, usual).await, [0, 1]);
        assert_eq!(left(&db, short).await, [0, 1]);
        assert_eq!(left(&db, long).await, [0, 1, 6]);
        // On PostgreSQL the days before the seventh go as a whole, with one row of each workspace.
        let expected = if db.is_sqlite() { (8, 0) } else { (5, 5) };
        assert_eq!((rows, days), expected);
        assert_eq!(keeping(Some(5)).apply(&db, now()).await.expect("applies"), (0, 0));
    }

    async fn a_workspace_that_keeps_its_log_for_ever_keeps_every_day(db: Db) {
        let usual = workspace(&db, "usual", None).await;
        let ever = workspace(&db, "ever", Some(0)).await;
        let (rows, days) = keeping(Some(5)).apply(&db, now()).await.expect("applies");
        assert_eq!((rows, days), (3, 0));
        assert_eq!(left(&db, usual).await, [0, 1]);
        assert_eq!(left(&db, ever).await, [0, 1, 6, 10, 100]);
    }

    async fn a_log_that_is_kept_for_ever_loses_nothing_but_where_a_workspace_says_so(db: Db) {
        let (usual, short) = (workspace(&db, "usual", None).await, workspace(&db, "short", Some(2)).await);
        assert_eq!(keeping(None).apply(&db, now()).await.expect("applies"), (3, 0));
        assert_eq!(left(&db, usual).await, [0, 1, 6, 10, 100]);
        assert_eq!(left(&db, short).await, [0, 1]);
    }
}

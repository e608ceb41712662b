//! Workspaces are apart in the schema itself: on every table that it has, whatever a statement forgets.

use sluice_domain::WorkspaceId;
use sluice_store::{Conn, Db, DbOptions, StoreError, routes};
use sluice_testkit::Plug;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::on_both;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use crate::schema::{Rows, Schema, count, insert, run};
use crate::support::{token, world};

/// Ids of a workspace's things that are kept without a reference: what is written down of the past stays
/// when the thing is gone, and is only ever read together with the workspace.
const BY_NAME_ONLY: [&str; 28] = [
    "admin_events.actor_id",
    "admin_events.chain",
    "admin_events.id",
    "applied_objects.object_id",
    "approval_exceptions.approval_id",
    "approval_exceptions.policy_id",
    "approvals.call_id",
    "approvals.policy_id",
    "approvals.reservation",
    "approvals.run_call_id",
    "call_days.workspace_id",
    "call_tools.server_id",
    "call_tools.workspace_id",
    "calls.grant_id",
    "calls.id",
    "calls.policy_id",
    "calls.server_id",
    "calls.workspace_id",
    "changes.object_id",
    "changes.workspace_id",
    "idempotency_keys.actor_id",
    "idempotency_keys.workspace_id",
    "outbox.subject_id",
    "policy_versions.author",
    "security_events.grant_id",
    "security_events.id",
    "security_events.workspace_id",
    "workspaces.id",
];

/// Given to the public catalogue: read by all, written by its own workspace alone.
const PUBLIC: &str = "catalogue_shared";

/// Two workspaces with one row in every table.
async fn two(conn: &mut Conn<'_>, schema: &Schema) -> (Uuid, Uuid, Rows) {
    let (a, b, mut rows) = (Uuid::now_v7(), Uuid::now_v7(), Rows::new());
    schema.fill(conn, a, &mut rows).await;
    schema.fill(conn, b, &mut rows).await;
    (a, b, rows)
}

on_both! {
    async fn no_table_can_refer_into_another_workspace(db: Db) {
        let mut tx = db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let schema = Schema::read(conn).await;
        let (a, b, rows) = two(conn, &schema).await;
        let mut tried = 0;
        for table in schema.tenant_tables() {
            for reference in &schema.tables[table].references {
                if reference.to == "workspaces" || schema.owner(&reference.to).is_none() {
                    continue;
                }
                // A row of a that refers to what b has.
                let mut values = schema.row(table, a, &rows);
                let there = &rows[&(reference.to.clone(), b)];
                for (here, column) in &reference.pairs {
                    if here != "workspace_id" {
                        values.insert(here.clone(), there[column].clone());
                    }
                }
                run(conn, "SAVEPOINT attempt").await.expect("marks");
                if table == PUBLIC {
                    // Its key is the other's server: that there is one row of it already is not the wall.
                    run(conn, &format!("DELETE FROM {table}")).await.expect("makes room");
                }
                let made = run(conn, &insert(table, &values)).await;
                run(conn, "ROLLBACK TO SAVEPOINT attempt").await.expect("takes back");
                let refused = StoreError::from(made.expect_err(&format!("{table} -> {}", reference.to)));
                assert!(matches!(refused, StoreError::DanglingReference), "{table}: {refused:?}");
                tried += 1;
            }
        }
        assert!(tried >= 11, "the schema was read: {tried}");
    }

    async fn what_names_another_row_without_a_reference_is_known(db: Db) {
        let mut tx = db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let schema = Schema::read(conn).await;
        let mut found = Vec::new();
        for table in schema.tenant_tables() {
            let it = &schema.tables[table];
            let refers = |name: &str| {
                it.references.iter().any(|one| one.pairs.iter().any(|(here, _)| here == name))
            };
            let is_own_id = |name: &str| name == "id" && !BY_NAME_ONLY.contains(&format!("{table}.id").as_str());
            let ids = it.columns.iter().filter(|column| column.is_id());
            let bare = ids.filter(|column| !refers(&column.name) && !is_own_id(&column.name));
            found.extend(bare.map(|column| format!("{table}.{}", column.name)));
        }
        found.sort();
        assert_eq!(found, BY_NAME_ONLY);
    }
}

/// An empty database on PostgreSQL, migrated.
async fn walled() -> (FreshDatabase, Db) {
    let fresh = FreshDatabase::postgres().await;
    let db = fresh.connect().await;
    assert_eq!(db.unwalled_role().await.expect("asks"), None, "the tests' role is an ordinary one");
    (fresh, db)
}

#[tokio::test]
async fn a_role_that_passes_the_walls_by_is_known() {
    let (fresh, _) = walled().await;
    let (url, user) = fresh.superuser().expect("a server");
    let db = Db::connect(&url, &DbOptions::default()).await.expect("connects");
    assert_eq!(db.unwalled_role().await.expect("asks"), Some(user));
}

#[tokio::test]
async fn a_statement_without_its_workspace_sees_and_changes_no_other() {
    let (fresh, db) = walled().await;
    let mut tx = db.begin().await.expect("begins");
    let schema = Schema::read(&mut tx.conn()).await;
    let (a, b, rows) = two(&mut tx.conn(), &schema).await;
    tx.commit().await.expect("commits");
    let tables = schema.tenant_tables();
    assert!(tables.len() >= 23, "{tables:?}");
    for table in tables {
        let owner = schema.owner(table).expect("a tenant's");
        let mut all = db.read().await.expect("begins");
        let own = format!("SELECT count(*) FROM {table} WHERE {owner} = {}", schema.uuid(b));
        let (every, own) = (
            count(&mut all.conn(), &format!("SELECT count(*) FROM {table}")).await,
            count(&mut all.conn(), &own).await,
        );
        assert!(own > 0 && every > own, "{table}: {own} of {every}");
        // The `WHERE` is left out on purpose.
        let mut tx = db.begin_in(WorkspaceId::from_uuid(b)).await.expect("begins");
        let conn = &mut tx.conn();
        let seen = count(conn, &format!("SELECT count(*) FROM {table}")).await;
        let shown = if table == PUBLIC { every } else { own };
        assert_eq!(seen, shown, "{table} shows another workspace's rows");
        if !["policy_versions", "admin_events"].contains(&table) {
            let touched = run(conn, &format!("UPDATE {table} SET {owner} = {owner}")).await;
            assert_eq!(
                touched.expect("updates").cast_signed(),
                own,
                "{table} is changed elsewhere"
            );
        }
        // A row for another workspace is not taken either.
        let foreign = insert(table, &schema.row(table, a, &rows));
        let refused = run(conn, &foreign).await.expect_err(table);
        let code = refused.as_database_error().and_then(|error| error.code().map(Into::into));
        let code: String = code.unwrap_or_default();
        assert_eq!(code, "42501", "{table}: {refused}");
    }
    no_word_is_no_sight(&fresh, &schema).await;
    db.close().await;
    fresh.remove().await;
}

/// A transaction that does not say whose it is sees nothing at all.
async fn no_word_is_no_sight(fresh: &FreshDatabase, schema: &Schema) {
    let mut conn = PgConnection::connect(fresh.url()).await.expect("connects");
    for table in schema.tenant_tables() {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let seen: i64 = sqlx::query_scalar(sql).fetch_one(&mut conn).await.expect("counts");
        assert!(seen == 0 || table == PUBLIC, "{table}: {seen}");
    }
    conn.close().await.expect("closes");
}

#[tokio::test]
async fn the_wall_is_forgotten_with_its_transaction() {
    let (fresh, db) = walled().await;
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    let b = world(&mut tx.conn(), "b").await;
    tx.commit().await.expect("commits");
    // More turns than connections: each one serves both.
    for _ in 0..12 {
        for one in [&a, &b] {
            let mut tx = db.read_in(one.workspace).await.expect("begins");
            let sql = "SELECT count(*) FROM servers WHERE id IN (SELECT server_id FROM grants)";
            assert_eq!(count(&mut tx.conn(), sql).await, 1);
            tx.commit().await.expect("commits");
        }
        let mut tx = db.read().await.expect("begins");
        assert_eq!(count(&mut tx.conn(), "SELECT count(*) FROM servers").await, 2);
        tx.rollback().await.expect("ends");
    }
    db.close().await;
    fresh.remove().await;
}

#[tokio::test]
async fn saying_whose_it_is_costs_no_round_trip() {
    let (fresh, db) = walled().await;
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    tx.commit().await.expect("commits");
    let (plug, url) = Plug::before_url(fresh.url()).await;
    let near = Db::connect(&url, &DbOptions { pool_size: 2, ..DbOptions::default() }).await;
    let near = near.expect("connects");
    // What a plain transaction takes on a pool like it, once its connection stands.
    let plain = PgPoolOptions::new().max_connections(1).connect(&url).await.expect("connects");
    let mut bare = Vec::new();
    for _ in 0..3 {
        let before = plug.sent();
        plain.begin().await.expect("begins").rollback().await.expect("ends");
        bare.push(plug.sent() - before);
    }
    let hash = token("a");
    let (mut ours, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let before = plug.sent();
        near.read_in(a.workspace).await.expect("begins").rollback().await.expect("ends");
        ours.push(plug.sent() - before);
        let before = plug.sent();
        let mut tx = near.read().await.expect("begins");
        let found = routes::find(&mut tx.conn(), &hash).await.expect("reads");
        tx.rollback().await.expect("ends");
        assert!(found.is_some());
        whole.push(plug.sent() - before);
    }
    assert_eq!(ours.last(), bare.last(), "{ours:?} {bare:?}");
    // A route: its grant with the server, the policy, the tools.
    assert_eq!(whole.last().map(|all| all - 3), bare.last().copied(), "{whole:?} {bare:?}");
    plain.close().await;
    near.close().await;
    db.close().await;
    fresh.remove().await;
}

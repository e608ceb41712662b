//! Which columns and rows a database has, for tests that hold code against the schema.

use sluice_store::{Conn, Db};
use uuid::Uuid;

/// `table.column` of every column whose name is like the pattern, in order.
pub async fn named(db: &Db, pattern: &str) -> Vec<String> {
    let mut tx = db.begin().await.expect("begins");
    let names: Result<Vec<String>, _> = match tx.conn() {
        Conn::Postgres(conn) => {
            let sql = "SELECT table_name || '.' || column_name FROM information_schema.columns
                       WHERE table_schema = current_schema() AND column_name LIKE $1";
            sqlx::query_scalar(sql).bind(pattern).fetch_all(conn).await
        }
        Conn::Sqlite(conn) => {
            let sql =
                "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
                       WHERE t.type = 'table' AND c.name LIKE $1";
            sqlx::query_scalar(sql).bind(pattern).fetch_all(conn).await
        }
    };
    let mut names = names.expect("the schema can be asked");
    names.sort();
    names
}

/// `table: rows` of every table that has rows of a workspace, in order.
pub async fn rows_of(db: &Db, workspace: Uuid) -> Vec<String> {
    let mut columns = named(db, "workspace_id").await;
    columns.push("workspaces.id".to_owned());
    let mut rows = Vec::new();
    for column in columns {
        let (table, key) = column.split_once('.').expect("table.column");
        // Both names come from the schema itself.
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE {key} = $1");
        let mut tx = db.begin().await.expect("begins");
        let sql = sqlx::AssertSqlSafe(sql);
        let count: Result<i64, _> = match tx.conn() {
            Conn::Postgres(conn) => sqlx::query_scalar(sql).bind(workspace).fetch_one(conn).await,
            Conn::Sqlite(conn) => sqlx::query_scalar(sql).bind(workspace).fetch_one(conn).await,
        };
        let count = count.expect("rows are counted");
        if count > 0 {
            rows.push(format!("{table}: {count}"));
        }
    }
    rows
}

//! Which columns a database has, for tests that hold code against the schema.

use sluice_store::{Conn, Db};

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

//! Makes a migrated database look as if a newer Sluice had been there.

use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

/// Adds a migration from the future to the database at `url`.
pub async fn pretend(url: &str) {
    const SQL: &str = "INSERT INTO sluice_migrations
         (version, description, success, checksum, execution_time)
         VALUES (99990101, 'from the future', TRUE, '\\x00', 0)";
    let done = if url.starts_with("postgres") {
        let mut conn = PgConnection::connect(url).await.expect("the database answers");
        conn.execute(SQL).await.map(drop)
    } else {
        let mut conn = SqliteConnection::connect(url).await.expect("the file opens");
        conn.execute(SQL).await.map(drop)
    };
    done.expect("the table of migrations is there");
}

//! One SQL text, two databases: the macros bind, run and map on whichever the connection is.

use sqlx::{PgConnection, SqliteConnection};

/// A connection inside a transaction of either database.
#[derive(Debug)]
pub enum Conn<'a> {
    Postgres(&'a mut PgConnection),
    Sqlite(&'a mut SqliteConnection),
}

macro_rules! query_macro { ($d:tt $name:ident) => {
    /// Runs a query on either database and maps its rows.
    macro_rules! $name { ($d conn:expr, $d row:ty, $d sql:expr $d(, $d arg:expr)* $d(,)?) => {
        match $d conn {
            $crate::conn::Conn::Postgres(c) => sqlx::query_as::<_, $crate::column::Record<$d row>>($d sql)
                $d(.bind($crate::column::Bind::stored($d arg)))*.$name(&mut **c).await
                .map($crate::column::Unwrap::unwrapped),
            $crate::conn::Conn::Sqlite(c) => sqlx::query_as::<_, $crate::column::Record<$d row>>($d sql)
                $d(.bind($crate::column::Bind::stored($d arg)))*.$name(&mut **c).await
                .map($crate::column::Unwrap::unwrapped),
        }
    } }
    pub(crate) use $name;
} }
query_macro!($ fetch_one);
query_macro!($ fetch_optional);
query_macro!($ fetch_all);

/// Runs a statement on either database; the number of rows it touched.
macro_rules! execute { ($conn:expr, $sql:expr $(, $arg:expr)* $(,)?) => {
    match $conn {
        $crate::conn::Conn::Postgres(c) => sqlx::query($sql)
            $(.bind($crate::column::Bind::stored($arg)))*.execute(&mut **c).await
            .map(|done| done.rows_affected()),
        $crate::conn::Conn::Sqlite(c) => sqlx::query($sql)
            $(.bind($crate::column::Bind::stored($arg)))*.execute(&mut **c).await
            .map(|done| done.rows_affected()),
    }
} }
pub(crate) use execute;

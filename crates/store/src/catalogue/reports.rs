//! What readers of public pages say is wrong there.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one};
use crate::text::rows;
use crate::{Conn, StoreError};

record! {
    /// A reader's report.
    pub struct Report {
        pub id: Uuid,
        pub at: DateTime<Utc>,
        /// Path and query of the page.
        pub page: String,
        pub text: String,
        /// Empty: they did not say.
        pub contact: String,
    }
}

/// Keeps a report, unless there are `most` already; says whether it did.
pub async fn put_report(
    conn: &mut Conn<'_>,
    report: &Report,
    most: i64,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM catalogue_reports";
    if fetch_one!(conn, Value<i64>, sql)?.0 >= most {
        return Ok(false);
    }
    execute!(
        conn,
        "INSERT INTO catalogue_reports (id, at, page, text, contact) VALUES ($1, $2, $3, $4, $5)",
        report.id,
        report.at,
        report.page.as_str(),
        report.text.as_str(),
        report.contact.as_str()
    )?;
    Ok(true)
}

/// The newest reports.
pub async fn reports(conn: &mut Conn<'_>, limit: i64) -> Result<Vec<Report>, StoreError> {
    let sql = "SELECT id, at, page, text, contact FROM catalogue_reports ORDER BY id DESC LIMIT $1";
    Ok(fetch_all!(conn, Report, sql, rows(limit))?)
}

/// Takes one away; says whether it was there.
pub async fn remove_report(conn: &mut Conn<'_>, id: Uuid) -> Result<bool, StoreError> {
    Ok(execute!(conn, "DELETE FROM catalogue_reports WHERE id = $1", id)? > 0)
}

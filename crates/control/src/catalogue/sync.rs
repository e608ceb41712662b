//! Reads a registry page by page. Each page and how far we are go into the database together, so that a run that
//! was cut short goes on where it stood.

use std::collections::HashSet;
use std::future::Future;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sluice_risk::catalogue::registry::{OFFICIAL, Origin, PageError, page};
use sluice_store::StoreError;
use sluice_store::catalogue::{self, Sync};

use super::Keeper;
use super::keep::{self, Kept};
use crate::ControlError;

/// Records of one page.
const PAGE: u32 = 100;
/// Pages of one run; more than any registry has.
const MOST_PAGES: i64 = 100_000;
/// Records that changed shortly before the last run began are asked for again: clocks differ.
const OVERLAP: TimeDelta = TimeDelta::hours(1);

/// Why a page was not fetched, in words for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Fetches the answer at an address.
pub trait Fetch {
    /// The whole body of a successful answer.
    fn fetch(&self, address: &str) -> impl Future<Output = Result<Vec<u8>, FetchError>> + Send;
}

/// Why a run ended before the end of the list.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    #[error("page {page} was not fetched: {cause}")]
    Fetch { page: i64, cause: FetchError },
    #[error("page {page} cannot be read: {cause}")]
    Page { page: i64, cause: PageError },
    #[error(
        "page {page} names a page that was read already as the next one, so the list has no end"
    )]
    Endless { page: i64 },
    #[error("{0}")]
    Control(#[from] ControlError),
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        Self::Control(error.into())
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SyncReport {
    /// It went on where an earlier run was cut short.
    pub resumed: bool,
    /// It asked only for what changed since then.
    pub since: Option<DateTime<Utc>>,
    pub pages: i64,
    pub kept: Kept,
    /// Records that cannot be read.
    pub skipped: usize,
}

/// A registry's address as records remember it: without what comes behind the host's path.
pub fn origin_of(base: &str) -> String {
    let base = base.trim().trim_end_matches('/');
    let base = base.strip_suffix("/servers").unwrap_or(base);
    let base = base.strip_suffix("/v0.1").unwrap_or(base);
    base.trim_end_matches('/').to_owned()
}

impl Keeper {
    /// Reads a registry to its end. `trusted`: it proves who publishes under a name, as the official one does.
    pub async fn sync(
        &self,
        base: &str,
        trusted: bool,
        full: bool,
        fetch: &impl Fetch,
    ) -> Result<SyncReport, SyncError> {
        let origin = origin_of(base);
        let mut state = self.begin_run(&origin, full).await?;
        let mut report = SyncReport {
            resumed: state.page_cursor.is_some(),
            since: state.since,
            ..SyncReport::default()
        };
        let mut cursors: HashSet<String> = state.page_cursor.iter().cloned().collect();
        loop {
            let number = state.pages + 1;
            let address = address(&state);
            let body = fetch.fetch(&address).await;
            let body = body.map_err(|cause| SyncError::Fetch { page: number, cause })?;
            let today = (self.clock)().format("%Y-%m-%d").to_string();
            let proves_names = trusted || origin == OFFICIAL;
            let of = Origin { base: &origin, proves_names, today: &today };
            let page = page(&body, of).map_err(|cause| SyncError::Page { page: number, cause })?;
            let next = page.next.clone();
            let repeats = next.iter().any(|cursor| !cursors.insert(cursor.clone()));
            report.skipped += page.skipped.len();
            report.kept += self
                .keep_page(&mut state, page.records, next.filter(|_| !repeats), repeats)
                .await?;
            report.pages += 1;
            if repeats || state.pages >= MOST_PAGES {
                return Err(SyncError::Endless { page: number });
            }
            if state.page_cursor.is_none() {
                return Ok(report);
            }
        }
    }

    /// Where to go on, or a new run.
    async fn begin_run(&self, origin: &str, full: bool) -> Result<Sync, SyncError> {
        let mut tx = self.db.read().await?;
        let before = catalogue::find_sync(&mut tx.conn(), origin).await?;
        tx.rollback().await?;
        let complete_at = before.as_ref().and_then(|before| before.complete_at);
        match before {
            Some(before) if before.page_cursor.is_some() && !full => Ok(before),
            _ => Ok(Sync {
                origin: origin.to_owned(),
                page_cursor: None,
                since: complete_at.filter(|_| !full).map(|at| at - OVERLAP),
                began_at: (self.clock)(),
                complete_at,
                pages: 0,
            }),
        }
    }

    /// Page and progress in one transaction. A list that repeats itself is not complete: the next run
    /// begins anew.
    async fn keep_page(
        &self,
        state: &mut Sync,
        records: Vec<sluice_risk::catalogue::registry::Record>,
        next: Option<String>,
        repeats: bool,
    ) -> Result<Kept, SyncError> {
        let now = (self.clock)();
        let mut tx = self.db.begin().await?;
        let kept = keep::keep(&mut tx.conn(), &state.origin, records, now).await?;
        state.pages += 1;
        state.page_cursor = next;
        if state.page_cursor.is_none() && !repeats {
            state.complete_at = Some(state.began_at);
        }
        catalogue::put_sync(&mut tx.conn(), state).await?;
        tx.commit().await?;
        Ok(kept)
    }
}

fn address(state: &Sync) -> String {
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut address = format!("{}/v0.1/servers?limit={PAGE}&version=latest", state.origin);
    if let Some(since) = state.since {
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        address.push_str("&updated_since=");
        address.push_str(&plain(&since));
    }
    if let Some(cursor) = &state.page_cursor {
        address.push_str("&cursor=");
        address.push_str(&plain(cursor));
    }
    address
}

//! The call log and what is counted over it.

use chrono::{DateTime, Utc};
use sluice_domain::{
    CallId, CallRecord, Code, GrantId, Outcome, PolicyId, SecurityEvent, SecurityKind, ServerId,
};
use sluice_store::calls::{self, Breakdown, CallFilter, Count, DaySpan, OfDay};
use sluice_store::grants::GrantsToLookAt;
use sluice_store::servers::ServerName;
use sluice_store::{approvals, grants, security_events, servers, workspaces};

use crate::page::{Page, PageOf};
use crate::{Admin, Control, ControlError, ServerView, Viewer};

/// Which calls a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallsOf {
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
    pub policy: Option<PolicyId>,
    pub tool: Option<String>,
    pub outcome: Option<Outcome>,
    pub code: Option<Code>,
    pub rule: Option<String>,
    /// From this time, included.
    pub from: Option<DateTime<Utc>>,
    /// To this time, not included.
    pub to: Option<DateTime<Utc>>,
    /// Free text, or a call's id.
    pub q: Option<String>,
    /// Only ids after this one.
    pub newer: Option<CallId>,
    /// Only what the overview counts: calls of tools.
    pub tool_calls: bool,
}

/// A filter that was left empty is none.
fn some(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.trim().is_empty())
}

impl CallsOf {
    fn filter(&self) -> CallFilter<'_> {
        CallFilter {
            server: self.server,
            grant: self.grant,
            policy: self.policy,
            tool: some(self.tool.as_ref()),
            outcome: self.outcome,
            code: self.code,
            rule: some(self.rule.as_ref()),
            from: self.from,
            to: self.to,
            q: some(self.q.as_ref()),
            newer: self.newer,
            tool_calls: self.tool_calls,
        }
    }
}

/// What is counted for an overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub since: DateTime<Utc>,
    pub until: DateTime<Utc>,
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
}

impl Span {
    pub(crate) fn count(self) -> Count {
        Count { server: self.server, grant: self.grant, since: self.since, until: self.until }
    }
}

/// The state of a workspace at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    pub servers: i64,
    pub policies: i64,
    /// Live ones.
    pub grants: i64,
    pub members: i64,
    pub pending_approvals: i64,
    /// Grants that need a person's look.
    pub grants_to_look_at: GrantsToLookAt,
    /// Servers whose last contact failed, the latest first; a few of them.
    pub failing: Vec<ServerView>,
    /// Tool calls by day and outcome.
    pub by_day: Vec<OfDay>,
    pub last_call: Option<CallRecord>,
}

/// Rows of the log that one page looks at, where no index finds what is asked for.
pub const LOOKED_AT: i64 = 10_000;
/// Pages that are read for the newest calls that fit.
const NEWEST_PAGES: u32 = 10;
/// Rows of [`Overview::failing`].
const FAILING: i64 = 20;

impl Control {
    /// The calls, newest first. A page may hold fewer than wanted and go on all the same: where a filter has no
    /// index, [`LOOKED_AT`] rows are looked at for it.
    pub async fn calls(
        &self,
        viewer: &Viewer,
        filter: &CallsOf,
        page: Page<CallId>,
    ) -> Result<PageOf<CallRecord, CallId>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found = calls::search(
            &mut tx.conn(),
            viewer.workspace,
            &filter.filter(),
            page.after,
            page.one_more(),
            LOOKED_AT,
        )
        .await?;
        tx.commit().await?;
        let mut cut = page.cut(found.calls, |call| call.id);
        cut.next = cut.next.or(found.looked_to);
        Ok(cut)
    }

    /// The newest calls that fit, at most `limit`, from a bounded number of pages.
    pub(crate) async fn newest_calls(
        &self,
        viewer: &Viewer,
        filter: &CallsOf,
        limit: u32,
    ) -> Result<Vec<CallRecord>, ControlError> {
        let (mut found, mut page) = (Vec::new(), Page::first(limit));
        for _ in 0..NEWEST_PAGES {
            let more = self.calls(viewer, filter, page).await?;
            found.extend(more.items);
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if more.next.is_none() || left == 0 {
                break;
            }
            page = Page { after: more.next, limit: left };
        }
        Ok(found)
    }

    /// One call with its trace.
    pub async fn call(&self, viewer: &Viewer, id: CallId) -> Result<CallRecord, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let call = calls::find(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        call.ok_or(ControlError::NotFound("call"))
    }

    /// The names of all servers that the workspace has or had, for showing the log.
    pub async fn server_names(&self, viewer: &Viewer) -> Result<Vec<ServerName>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let names = servers::names(&mut tx.conn(), viewer.workspace).await?;
        tx.commit().await?;
        Ok(names)
    }

    /// The state of the workspace, with the calls of some days.
    pub async fn overview(&self, viewer: &Viewer, days: DaySpan) -> Result<Overview, ControlError> {
        let (workspace, now) = (viewer.workspace, self.now());
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let counts = workspaces::counts(conn, workspace).await?;
        let pending_approvals = approvals::count_pending(conn, workspace, None, now).await?;
        let grants_to_look_at = grants::to_look_at(conn, workspace, now).await?;
        let failing = servers::list_failing(conn, workspace, FAILING).await?;
        let by_day = calls::by_day(conn, workspace, days).await?;
        let last_call = calls::list(conn, workspace, &CallFilter::default(), None, 1).await?.pop();
        tx.commit().await?;
        Ok(Overview {
            servers: counts.servers,
            policies: counts.policies,
            grants: counts.grants,
            members: counts.members,
            pending_approvals,
            grants_to_look_at,
            failing: failing.into_iter().map(|one| self.server_view(viewer, one)).collect(),
            by_day,
            last_call,
        })
    }

    /// Calls by server, grant, tool and outcome, the most frequent first.
    pub async fn usage(
        &self,
        viewer: &Viewer,
        span: Span,
        limit: u32,
    ) -> Result<Vec<Breakdown>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let usage =
            calls::breakdown(conn, viewer.workspace, span.count(), i64::from(limit)).await?;
        tx.commit().await?;
        Ok(usage)
    }

    /// Refused attempts that a token places in the workspace, newest first.
    pub async fn security_events(
        &self,
        admin: &Admin,
        kind: Option<SecurityKind>,
        page: Page<CallId>,
    ) -> Result<PageOf<SecurityEvent, CallId>, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let found = security_events::list(
            &mut tx.conn(),
            admin.workspace,
            kind,
            page.after,
            page.one_more(),
        )
        .await?;
        tx.commit().await?;
        Ok(page.cut(found, |event| event.id))
    }
}

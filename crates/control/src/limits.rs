//! How limits stand: every counter that a policy in use names, what it counts now, and who is near
//! the edge.

mod reset;
mod survey;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use sluice_domain::{
    Amount, GrantId, OnUnavailable, PolicyId, Reset, Scope, ServerId, Window, WorkspaceId,
};
use sluice_limits::{CounterKey, Health, Reading, Reason, session_owner};

pub use self::reset::CounterForm;
use self::survey::Sessions;
use crate::page::{Page, PageOf};
use crate::{Control, ControlError, Viewer};

/// From so many percent on, a counter is near its edge.
pub const NEAR_PERCENT: u32 = 80;
/// Counters that one look sorts; beyond it a server, policy or grant must be chosen.
pub const MOST_LOOKED_AT: usize = 5_000;
/// Policies that such a look reads.
const MOST_POLICIES: usize = 200;

/// Whose limits are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitsOf {
    pub server: Option<ServerId>,
    pub policy: Option<PolicyId>,
    /// Those that calls of this grant are held to.
    pub grant: Option<GrantId>,
}

/// The place of a counter in the order of lists: stable, whatever it counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LimitKey {
    policy: PolicyId,
    at: usize,
    grant: Option<GrantId>,
    session: Option<String>,
}

/// One counter under one `max`, and how it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitView {
    pub key: LimitKey,
    pub server: ServerId,
    pub policy: PolicyId,
    pub policy_name: String,
    /// Pointers of the limits in the document that share this counter and `max`.
    pub rules: Vec<String>,
    /// The first of them in words.
    pub sentence: String,
    pub counter: String,
    pub window: Window,
    pub reset: Reset,
    pub scope: Scope,
    pub max: Amount,
    pub increment_from: Option<String>,
    pub on_unavailable: OnUnavailable,
    /// Whose counter it is, of scope `grant` and `session`: id and label.
    pub grant: Option<(GrantId, String)>,
    /// None in scope `session`: calls outside a session.
    pub session: Option<String>,
    /// None: the counters cannot be read.
    pub reading: Option<Reading>,
}

impl LimitView {
    /// Percent of `max` that is used, rounded down; none where that means nothing.
    pub fn percent(&self) -> Option<u32> {
        let used = self.reading?.used.billionths();
        let max = self.max.billionths();
        (max > 0).then(|| u32::try_from(used.saturating_mul(100) / max).unwrap_or(u32::MAX))
    }

    /// Whether little or nothing is left.
    pub fn is_near(&self) -> bool {
        self.percent().is_some_and(|percent| percent >= NEAR_PERCENT)
    }

    fn counter_key(&self, workspace: WorkspaceId) -> CounterKey {
        let grant = self.grant.as_ref().map(|(grant, _)| *grant);
        let owner = match (self.scope, grant, &self.session) {
            (Scope::Session, Some(grant), Some(session)) => session_owner(grant, session),
            (Scope::Grant | Scope::Session, Some(grant), _) => grant.to_string(),
            (Scope::Server, ..) => self.server.to_string(),
            _ => workspace.to_string(),
        };
        CounterKey {
            counter: self.counter.clone(),
            window: self.window,
            reset: self.reset,
            scope: self.scope,
            owner,
        }
    }
}

/// Counters by how near they are to their edge, the nearest first.
#[derive(Debug, Clone)]
pub struct Nearest {
    pub rows: Vec<LimitView>,
    /// There are more counters than one look reads.
    pub partial: bool,
    /// Why they could not be read.
    pub fault: Option<Reason>,
}

impl Nearest {
    /// How many are near their edge.
    pub fn near(&self) -> usize {
        self.rows.iter().filter(|row| row.is_near()).count()
    }
}

impl Control {
    /// How the counters' store is doing.
    pub fn counters_health(&self) -> Health {
        self.inner.counters.health()
    }

    /// The limits of policies in use, in a stable order, with how their counters stand.
    pub async fn limits(
        &self,
        viewer: &Viewer,
        of: LimitsOf,
        page: Page<LimitKey>,
    ) -> Result<PageOf<LimitView, LimitKey>, ControlError> {
        let limit = usize::try_from(page.limit.max(1)).unwrap_or(usize::MAX);
        let from = page.after.as_ref();
        let surveyed = self.survey(viewer, of, from, limit + 1, usize::MAX).await?;
        let sessions = self.sessions(viewer.workspace, &surveyed, of.sessions()).await;
        let sessions = sessions.map_err(|failed| away(&failed.reason))?;
        let rows = surveyed.rows(&sessions, from, limit + 1);
        let mut page = page.cut(rows, |row| row.key.clone());
        self.read_counters(viewer.workspace, &mut page.items)
            .await
            .map_err(|reason| away(&reason))?;
        Ok(page)
    }

    /// The same, the nearest to their edge first; with the store away, the limits without their
    /// counts and the reason why.
    pub async fn nearest_limits(
        &self,
        viewer: &Viewer,
        of: LimitsOf,
    ) -> Result<Nearest, ControlError> {
        let surveyed = self.survey(viewer, of, None, MOST_LOOKED_AT, MOST_POLICIES).await?;
        let (sessions, away) = match self.sessions(viewer.workspace, &surveyed, of.sessions()).await
        {
            Ok(sessions) => (sessions, None),
            Err(failed) => (Sessions::new(), Some(failed.reason)),
        };
        let mut rows = surveyed.rows(&sessions, None, MOST_LOOKED_AT + 1);
        let partial = surveyed.partial || rows.len() > MOST_LOOKED_AT;
        rows.truncate(MOST_LOOKED_AT);
        let fault = match away {
            None => self.read_counters(viewer.workspace, &mut rows).await.err(),
            away => away,
        };
        rows.sort_by_cached_key(|row| {
            let resets_in = row.reading.and_then(|reading| reading.resets_in);
            (Reverse(row.percent()), Reverse(resets_in), row.key.clone())
        });
        Ok(Nearest { rows, partial, fault })
    }

    /// Fills in how the counters stand, in as few round trips as they fit in.
    async fn read_counters(
        &self,
        workspace: WorkspaceId,
        rows: &mut [LimitView],
    ) -> Result<(), Reason> {
        let keys: Vec<_> = rows.iter().map(|row| (row.counter_key(workspace), row.max)).collect();
        let readings = self.inner.counters.read(workspace, &keys).await;
        let readings = readings.map_err(|failed| failed.reason)?;
        for (row, reading) in rows.iter_mut().zip(readings) {
            row.reading = Some(reading);
        }
        Ok(())
    }
}

fn away(reason: &Reason) -> ControlError {
    tracing::warn!(%reason, "The counters cannot be read");
    ControlError::Unavailable("the counters' store")
}

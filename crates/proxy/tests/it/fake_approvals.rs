//! Approvals that are kept in memory.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sluice_domain::{ApprovalId, ApprovalStatus, CallId, WorkspaceId};
use sluice_proxy::{
    Approval, ApprovalKey, Approvals, Exception, ParkError, ParkedCall, Released, StoreUnavailable,
};
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) struct Kept {
    pub(crate) key: ApprovalKey,
    pub(crate) approval: Approval,
    pub(crate) released: Vec<Released>,
}

pub(crate) struct FakeApprovals {
    pub(crate) kept: Mutex<Vec<Kept>>,
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) cap: usize,
    pub(crate) held: Mutex<usize>,
    /// Calls that pass without asking, and how often they still may.
    pub(crate) excepted: Mutex<usize>,
}

impl FakeApprovals {
    pub(crate) fn new(cap: usize) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            changed: watch::channel(0).0,
            cap,
            held: Mutex::new(0),
            excepted: Mutex::new(0),
        })
    }

    pub(crate) fn decide(&self, at: usize, status: ApprovalStatus, note: Option<&str>) {
        let approval = &mut self.kept.lock()[at].approval;
        approval.status = status;
        approval.note = note.map(str::to_owned);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn count(&self) -> usize {
        self.kept.lock().len()
    }

    pub(crate) async fn parked(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let enough = changed.wait_for(|_| self.kept.lock().len() >= count);
        timeout(Duration::from_secs(10), enough).await.expect("it is parked").expect("open");
    }

    /// Waits until so many calls are held open.
    pub(crate) async fn held(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let enough = changed.wait_for(|_| *self.held.lock() >= count);
        timeout(Duration::from_secs(10), enough).await.expect("they are held").expect("open");
    }

    pub(crate) fn released(&self, at: usize) -> Vec<Released> {
        self.kept.lock()[at].released.clone()
    }

    pub(crate) async fn told(&self, at: usize, how: Released) {
        let mut changed = self.changed.subscribe();
        let told = changed.wait_for(|_| self.kept.lock()[at].released.contains(&how));
        timeout(Duration::from_secs(10), told).await.expect("it is told").expect("open");
    }
}

impl Approvals for FakeApprovals {
    fn find<'a>(
        &'a self,
        key: &'a ApprovalKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Approval>, StoreUnavailable>> {
        let live = |kept: &&Kept| {
            let same =
                ApprovalKey { policy_version: key.policy_version, ..kept.key.clone() } == *key;
            let done =
                matches!(kept.approval.status, ApprovalStatus::Used | ApprovalStatus::Expired);
            same && !done && kept.approval.expires_at > now
        };
        let found = self.kept.lock().iter().find(live).map(|kept| kept.approval.clone());
        Box::pin(async move { Ok(found) })
    }

    fn excepted<'a>(
        &'a self,
        key: &'a ApprovalKey,
        _: Option<&'a str>,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Exception>, StoreUnavailable>> {
        let mut left = self.excepted.lock();
        let passes = *left > 0 && key.tool == "echo";
        *left -= usize::from(passes);
        let word = passes.then(|| Exception { by: "ann@example.test".to_owned(), until: now });
        Box::pin(async move { Ok(word) })
    }

    fn park(&self, call: ParkedCall) -> BoxFuture<'_, Result<Approval, ParkError>> {
        let mut kept = self.kept.lock();
        if kept.iter().filter(|kept| kept.approval.status == ApprovalStatus::Pending).count()
            >= self.cap
        {
            return Box::pin(async { Err(ParkError::TooMany) });
        }
        let approval = Approval {
            id: ApprovalId::new(),
            status: ApprovalStatus::Pending,
            expires_at: call.at + call.expires,
            note: None,
            reservation: call.reservation,
            demands: call.demands,
            definition_hash: call.definition_hash,
        };
        kept.push(Kept { key: call.key, approval: approval.clone(), released: Vec::new() });
        drop(kept);
        self.changed.send_modify(|count| *count += 1);
        Box::pin(async move { Ok(approval) })
    }

    fn decided(
        &self,
        _: WorkspaceId,
        id: ApprovalId,
    ) -> BoxFuture<'_, Result<Approval, StoreUnavailable>> {
        Box::pin(async move {
            let of = || {
                let kept = self.kept.lock();
                kept.iter().find(|kept| kept.approval.id == id).map(|kept| kept.approval.clone())
            };
            *self.held.lock() += 1;
            self.changed.send_modify(|count| *count += 1);
            let mut changed = self.changed.subscribe();
            loop {
                let approval = of().ok_or(StoreUnavailable)?;
                if approval.status != ApprovalStatus::Pending {
                    return Ok(approval);
                }
                changed.changed().await.map_err(|_| StoreUnavailable)?;
            }
        })
    }

    fn claim(
        &self,
        _: WorkspaceId,
        id: ApprovalId,
        _: CallId,
        _: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<bool, StoreUnavailable>> {
        let mut kept = self.kept.lock();
        let approved = kept.iter_mut().find(|kept| {
            kept.approval.id == id && kept.approval.status == ApprovalStatus::Approved
        });
        let claimed = approved.map(|kept| kept.approval.status = ApprovalStatus::Running).is_some();
        Box::pin(async move { Ok(claimed) })
    }

    fn released(
        &self,
        _: WorkspaceId,
        id: ApprovalId,
        _: CallId,
        how: Released,
        _: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        if let Some(kept) = self.kept.lock().iter_mut().find(|kept| kept.approval.id == id) {
            kept.released.push(how);
            kept.approval.status = match how {
                Released::Ran => ApprovalStatus::Used,
                Released::NotRun => ApprovalStatus::Approved,
                Released::Unknown => ApprovalStatus::Unknown,
            };
        }
        self.changed.send_modify(|count| *count += 1);
        Box::pin(async { Ok(()) })
    }
}

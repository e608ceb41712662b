//! Plays and what must hold in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use secrecy::SecretString;
use sluice_control::{
    ApprovalView, ApprovalsOf, Choice, ControlError, GrantForm, Page, PolicyForm,
};
use sluice_domain::{
    Amount, ApprovalEventKind, ApprovalId, ApprovalStatus, GrantId, PolicyId, Reset, Scope, UserId,
    Window,
};
use sluice_limits::CounterKey;
use sluice_testkit::db::FreshDatabase;
use tokio::task::JoinHandle;

use super::scene::{Replica, Scene, Told, call};
use super::tool::End;

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A client calls at one of the gateways; what it calls may be what another one called.
    Call { at: usize, waits: bool, n: usize },
    /// A client goes away.
    Leave(usize),
    /// A person decides one of the approvals.
    Decide { which: usize, approve: bool, other: bool },
    /// Two people decide at once.
    Race { which: usize, one: bool, two: bool },
    /// The upstream ends a call.
    End { nonsense: bool },
    /// A gateway dies, and another takes its place.
    Crash(usize),
    /// Time passes, and the jobs that go with it.
    Pass { minutes: i64 },
    /// The policy is edited: what bears on the tools, or only what does not.
    Edit { bears: bool },
    /// Everybody comes to where they have to wait.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_usize, any::<bool>(), 0..2_usize).prop_map(|(at, waits, n)| Step::Call { at, waits, n }),
        1 => (0..8_usize).prop_map(Step::Leave),
        4 => (0..8_usize, prop::bool::weighted(0.75), any::<bool>())
            .prop_map(|(which, approve, other)| Step::Decide { which, approve, other }),
        1 => (0..8_usize, any::<bool>(), any::<bool>()).prop_map(|(which, one, two)| Step::Race { which, one, two }),
        3 => prop::bool::weighted(0.25).prop_map(|nonsense| Step::End { nonsense }),
        1 => (0..2_usize).prop_map(Step::Crash),
        2 => prop_oneof![Just(1), Just(3), Just(40)].prop_map(|minutes| Step::Pass { minutes }),
        1 => any::<bool>().prop_map(|bears| Step::Edit { bears }),
        5 => Just(Step::Settle),
    ]
}

fn document(edits: usize, bears: usize) -> String {
    let rules = |hold: &str| {
        format!(
            r#"{{"approve_if":[{{"conditions":[]}}],"approval":{{"hold":"{hold}","expires":"30m"}},
                "limits":[{{"counter":"c","window":"month","max":{}}}]}}"#,
            1_000 + bears
        )
    };
    format!(
        r#"{{"version":"1","default":"deny","description":"{edits}","tools":{{"pay":{},"wire":{}}}}}"#,
        rules("0s"),
        rules("5s")
    )
}

struct Client {
    id: u64,
    at: usize,
    task: JoinHandle<Told>,
    /// It is no longer there.
    left: bool,
}

/// How an approval was decided, once it was.
type Decided = (DateTime<Utc>, Option<UserId>, bool);

struct Play<'a> {
    scene: &'a Scene,
    replicas: [Replica; 2],
    grant: GrantId,
    token: SecretString,
    policy: PolicyId,
    edits: (usize, usize),
    clients: Vec<Client>,
    /// The id of its first call.
    first: u64,
    decided: BTreeMap<ApprovalId, Decided>,
    last: BTreeMap<ApprovalId, ApprovalStatus>,
}

impl<'a> Play<'a> {
    async fn new(scene: &'a Scene) -> Self {
        let name = uuid::Uuid::new_v4().to_string();
        let form =
            PolicyForm { name: Some(name.clone()), document: document(0, 0), note: String::new() };
        let (control, admin) = (&scene.control, &scene.admin);
        let policy = control.create_policy(admin, scene.server, form).await.expect("saves");
        let policy = policy.policy.id;
        let form = GrantForm { label: name, policy: Some(policy), ..GrantForm::default() };
        let made = control.create_grant(admin, scene.server, form).await.expect("makes it");
        Self {
            scene,
            replicas: [scene.replica(), scene.replica()],
            grant: made.grant.id,
            token: made.token,
            policy,
            edits: (0, 0),
            clients: Vec::new(),
            first: scene.next_id(),
            decided: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// All approvals of the play, the oldest first.
    async fn approvals(&self) -> Vec<ApprovalView> {
        let of = ApprovalsOf { grant: Some(self.grant), ..ApprovalsOf::default() };
        let page = Page { after: None, limit: 200 };
        let found = self.scene.control.approvals(&self.scene.admin, &of, page).await;
        let mut items = found.expect("the store answers").items;
        items.sort_by_key(|approval| approval.id);
        items
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Call { at, waits, n } => self.call(at, if waits { "wire" } else { "pay" }, n),
            Step::Leave(which) => {
                let there = self.clients.len().max(1);
                if let Some(client) = self.clients.get_mut(which % there) {
                    client.left = true;
                    client.task.abort();
                }
            }
            Step::Decide { which, approve, other } => {
                self.decide(which, &[(approve, other)]).await;
            }
            Step::Race { which, one, two } => {
                self.decide(which, &[(one, false), (two, true)]).await;
            }
            Step::End { nonsense } => {
                self.scene.tool.end_one(if nonsense { End::Nonsense } else { End::Answer });
            }
            Step::Crash(at) => self.crash(at),
            Step::Pass { minutes } => self.pass(TimeDelta::minutes(minutes)).await,
            Step::Edit { bears } => self.edit(bears).await,
            Step::Settle => self.settle().await,
        }
    }

    fn call(&mut self, at: usize, tool: &'static str, n: usize) {
        let id = self.scene.next_id();
        let state = self.replicas[at].state.clone();
        let made = call(state, self.scene.server, self.token.clone(), id, tool, n);
        let task = tokio::spawn(made);
        self.clients.push(Client { id, at, task, left: false });
    }

    /// One person decides, or two at once: then one wins, and the other hears of it.
    async fn decide(&self, which: usize, how: &[(bool, bool)]) {
        let approvals = self.approvals().await;
        let Some(approval) = approvals.get(which % approvals.len().max(1)) else { return };
        let (id, open) = (approval.id, approval.status == ApprovalStatus::Pending);
        let deciding = how.iter().map(|(approve, other)| async move {
            let choice = if *approve { Choice::approve("yes") } else { Choice::deny("no") };
            let by = if *other { &self.scene.other } else { &*self.scene.admin };
            self.scene.control.decide(by, id, &choice).await
        });
        let results = futures_util::future::join_all(deciding).await;
        let won = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(won, usize::from(open), "{approval:?}: {results:?}");
        let conflict = |error: &ControlError| matches!(error, ControlError::Conflict { .. });
        assert!(results.iter().all(|one| one.as_ref().err().is_none_or(conflict)), "{results:?}");
        self.tell().await;
    }

    async fn tell(&self) {
        let ids: BTreeSet<_> = self.approvals().await.iter().map(|one| one.id).collect();
        self.replicas.iter().for_each(|replica| replica.learn(&ids));
    }

    fn crash(&mut self, at: usize) {
        self.replicas[at].alive.store(false, Ordering::SeqCst);
        for client in self.clients.iter_mut().filter(|client| client.at == at) {
            client.left |= !client.task.is_finished();
            client.task.abort();
        }
        self.replicas[at] = self.scene.replica();
    }

    async fn pass(&self, time: TimeDelta) {
        self.scene.clock.advance(time);
        for replica in &self.replicas {
            replica.beat().await;
        }
        let control = &self.scene.control;
        control.expire_approvals().await.expect("the store answers");
        control.close_lost_releases(false).await.expect("the store answers");
        self.tell().await;
    }

    async fn edit(&mut self, bears: bool) {
        self.edits.0 += 1;
        self.edits.1 += usize::from(bears);
        let document = document(self.edits.0, self.edits.1);
        let form = PolicyForm { name: None, document, note: String::new() };
        let saved = self.scene.control.save_policy(&self.scene.admin, self.policy, None, form);
        saved.await.expect("saves");
        self.tell().await;
    }

    /// Lets every call come to where it waits, for a bounded while: this only makes plays richer.
    async fn settle(&self) {
        for _ in 0..50 {
            let going = self.clients.iter().filter(|client| !client.task.is_finished()).count();
            if going <= *self.scene.held.lock() + self.scene.tool.waiting() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What is decided stays decided, and no state comes after one that it cannot come after.
    async fn look(&mut self) {
        use ApprovalStatus::{Approved, Denied, Expired, Pending, Running, Unknown, Used};
        for approval in self.approvals().await {
            let (id, status) = (approval.id, approval.status);
            let from = self.last.insert(id, status).unwrap_or(Pending);
            let may = match from {
                Pending => true,
                Approved | Running => !matches!(status, Pending | Denied),
                // Its end was late, not lost.
                Unknown => matches!(status, Unknown | Used),
                Denied | Expired | Used => status == from,
            };
            assert!(may, "{id} went from {from:?} to {status:?}");
            if let Some(at) = approval.decided_at {
                let now = (at, approval.decided_by, status != Denied);
                let first = *self.decided.entry(id).or_insert(now);
                assert_eq!(first, now, "the decision about {id} changed");
            }
        }
    }

    /// Ends everything, and looks at what became of it all.
    async fn end(mut self) {
        self.pass(TimeDelta::minutes(31)).await;
        let ended = tokio::time::timeout(Duration::from_mins(1), async {
            while self.clients.iter().any(|client| !client.task.is_finished()) {
                self.scene.tool.end_one(End::Answer);
                // Also for those who wait for a call that was lost.
                self.pass(TimeDelta::seconds(20)).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        ended.await.expect("every call ends");
        // What a gateway says after its client's answer is on its way.
        self.quiet().await;
        self.pass(TimeDelta::minutes(31)).await;
        self.look().await;
        self.runs_are_approved_and_told().await;
        self.charges().await;
        let (control, admin) = (&self.scene.control, &self.scene.admin);
        control.revoke_grant(admin, self.grant).await.expect("revokes");
        control.delete_policy(admin, self.policy, None).await.expect("deletes");
        self.scene.tool.forget();
    }

    /// Waits until no gateway that lives runs anything.
    async fn quiet(&self) {
        let quiet = tokio::time::timeout(Duration::from_mins(1), async {
            loop {
                let approvals = self.approvals().await;
                let lost = |one: &&ApprovalView| one.status == ApprovalStatus::Running;
                if approvals.iter().find(lost).is_none() {
                    return;
                }
                self.pass(TimeDelta::minutes(2)).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        quiet.await.expect("nothing runs for ever");
    }

    async fn runs_are_approved_and_told(&mut self) {
        let mut arrived = self.scene.tool.arrived();
        arrived.retain(|id| *id > self.first);
        let once: BTreeSet<_> = arrived.iter().copied().collect();
        assert_eq!(once.len(), arrived.len(), "a call ran twice");
        for client in self.clients.drain(..) {
            let Ok(told) = client.task.await else {
                assert!(client.left, "a call fell over");
                continue;
            };
            let ran = once.contains(&client.id);
            let not_made = matches!(told, Told::NotMade(_) | Told::Failed { may_have_run: false });
            assert!(!(ran && not_made), "told {told:?} of a call that ran");
        }
        let (mut used, mut unknown) = (0, 0);
        for approval in self.approvals().await {
            match approval.status {
                ApprovalStatus::Used => used += 1,
                ApprovalStatus::Unknown => unknown += 1,
                ApprovalStatus::Denied | ApprovalStatus::Expired => {}
                other => panic!("{other:?} after the end of time"),
            }
            let events = self.scene.control.approval_history(&self.scene.admin, approval.id).await;
            let events = events.expect("the store answers");
            let count = |kind| events.iter().filter(|event| event.kind == kind).count();
            let (released, back) =
                (count(ApprovalEventKind::Released), count(ApprovalEventKind::NotRun));
            assert!(released <= back + 1, "{events:?}");
            let approved = count(ApprovalEventKind::Approved);
            assert!(approved <= 1 && (released == 0 || approved == 1), "{events:?}");
        }
        let ran = arrived.len();
        assert!(
            (used..=used + unknown).contains(&ran),
            "{ran} ran: {used} used, {unknown} unknown"
        );
    }

    /// Kept for what ran or may have, given back for the rest.
    async fn charges(&self) {
        let key = CounterKey {
            counter: "c".to_owned(),
            window: Window::Month,
            reset: Reset::Sliding,
            scope: Scope::Grant,
            owner: self.grant.to_string(),
        };
        let workspace = self.scene.admin.workspace;
        let read = self.scene.counters.read(workspace, &[(key, Amount::whole(1_000))]).await;
        let used = read.expect("the counters answer")[0].used.to_string();
        let kept = |one: &ApprovalView| {
            matches!(one.status, ApprovalStatus::Used | ApprovalStatus::Unknown)
        };
        let kept = self.approvals().await.iter().filter(|one| kept(one)).count();
        assert_eq!(used, kept.to_string(), "charged");
    }
}

async fn played(scene: &Scene, steps: &[Step]) {
    let mut play = Play::new(scene).await;
    for step in steps {
        play.step(*step).await;
        play.look().await;
    }
    play.end().await;
}

/// Plays at random; a fourth as many as `PROPTEST_CASES` says.
fn plays(database: &FreshDatabase, share: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let scene = runtime.block_on(async { Scene::new(database.connect().await).await });
    let config = Config { failure_persistence: None, ..Config::default() };
    let config = Config { cases: config.cases.div_ceil(share), ..config };
    let steps = prop::collection::vec(step(), 1..24);
    TestRunner::new(config)
        .run(&steps, |steps| {
            runtime.block_on(played(&scene, &steps));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn approvals_hold_whatever_happens_on_sqlite() {
    plays(&FreshDatabase::sqlite(), 4);
}

#[test]
fn approvals_hold_whatever_happens_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let database = runtime.block_on(FreshDatabase::postgres());
    plays(&database, 8);
    runtime.block_on(database.remove());
}

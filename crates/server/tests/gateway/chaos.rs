//! The call log on bad days, with real processes: databases that freeze, lock and die, a gateway that is
//! killed, a disk that is full. What was promised is there, once.

use std::collections::BTreeSet;
use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::db::WriteLock;
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, PostgresServer, Setup, Sluice};

use crate::spread::KEYS;
use crate::world::{Agent, World, request_id, setup};

/// How many agents call at once.
const AGENTS: usize = 8;

pub(crate) fn on(postgres: &PostgresServer) -> Setup {
    setup().with("SLUICE_DATABASE_URL", postgres.url()).with("SLUICE_MASTER_KEYS", KEYS)
}

/// A workspace with an agent that may call `echo` freely.
pub(crate) struct Ward {
    pub(crate) world: World,
    pub(crate) agent: Agent,
    pub(crate) upstream: FakeServer,
}

impl Ward {
    pub(crate) async fn start(setup: Setup) -> Self {
        let upstream = FakeServer::start().await;
        upstream.tools(vec![tool("echo", "Read a note")]);
        let world = World::start(setup).await;
        let document = json!({"version": "1", "default": "allow"});
        let agent = world.connect("notes", &upstream.url(), document).await.agent();
        let ward = Self { world, agent, upstream };
        ward.settled().await;
        ward
    }

    /// What was changed has arrived, so that the grant is known from now on, and its first row is written.
    async fn settled(&self) {
        let at = &self.world.sluice;
        // A reading that had begun may have missed something; the second one has not.
        for _ in 0..2 {
            let now = std::time::Instant::now();
            let read = async || {
                metric(at, "sluice_change_feed_lag_seconds").await < now.elapsed().as_secs_f64()
            };
            eventually("the change feed is read", read).await;
        }
        let first = self.calls(1).await;
        self.has_all(&first).await;
    }

    /// Makes that many calls, which must pass; the ids that their agents were given.
    async fn calls(&self, count: usize) -> BTreeSet<String> {
        let at = &self.world.sluice;
        let some = |agent: usize| async move {
            let mut ids = Vec::new();
            for _ in (agent..count).step_by(AGENTS) {
                ids.push(passing(&self.agent, at).await);
            }
            ids
        };
        let ids = futures_util::future::join_all((0..AGENTS).map(some)).await;
        let ids: BTreeSet<String> = ids.into_iter().flatten().collect();
        assert_eq!(ids.len(), count);
        ids
    }

    /// Waits until all these are in the log, and tells how many calls it has; each must be there once.
    pub(crate) async fn has_all(&self, ids: &BTreeSet<String>) -> usize {
        let there = async || ids.is_subset(&self.logged().await.into_iter().collect());
        eventually("every call is in the log", there).await;
        let logged = self.logged().await;
        let once: BTreeSet<&String> = logged.iter().collect();
        assert_eq!(once.len(), logged.len(), "a row is there twice");
        logged.len()
    }

    /// The ids of all calls in the log that were forwarded.
    async fn logged(&self) -> Vec<String> {
        let path =
            format!("/workspaces/{}/calls.ndjson?outcome=allowed&tool=echo", self.world.workspace);
        let answer = self.world.rest(Method::GET, &path, Value::Null).await;
        let text = answer.text();
        let row = |line: &str| -> Value { serde_json::from_str(line).expect("a row") };
        text.lines().map(|line| row(line)["id"].as_str().expect("an id").to_owned()).collect()
    }
}

/// One call, made again while the log has no room for it; its id.
async fn passing(agent: &Agent, at: &Sluice) -> String {
    loop {
        match call(agent, at).await {
            (id, code) if code == "passed" => return id,
            (_, code) => assert_eq!(code, "log_unavailable"),
        }
    }
}

/// One call: its id, and `passed` or the code of its refusal.
pub(crate) async fn call(agent: &Agent, at: &Sluice) -> (String, String) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {}}});
    let answer = agent.post(at, request.to_string()).await;
    let json = answer.json();
    let code = crate::world::decision(&json)["code"].as_str().map(str::to_owned);
    let passed = || {
        assert!(crate::world::passed(&json), "{json}");
        "passed".to_owned()
    };
    (request_id(&answer.headers).to_owned(), code.unwrap_or_else(passed))
}

async fn readiness(at: &Sluice) -> (u16, Value) {
    let answer = at.send(Method::GET, "/readyz", &[], "").await;
    (answer.status.as_u16(), answer.json()["checks"]["call_log"].clone())
}

/// The sum of a metric's lines that begin so; 0 without any.
async fn metric(at: &Sluice, begins: &str) -> f64 {
    let text = at.send(Method::GET, "/metrics", &[], "").await.text();
    let lines = text.lines().filter(|line| line.starts_with(begins));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Waits for what has no event of its own.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), waiting).await;
    in_time.unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// Until so many call rows have been put into files.
async fn aside(at: &Sluice, rows: f64) {
    let aside = async || metric(at, "sluice_log_aside_total{log=\"call\"").await >= rows;
    eventually("the rows are on the disk", aside).await;
}

/// More rows than fit into memory.
const MANY: usize = 400;

#[tokio::test]
async fn a_database_that_freezes_under_load_gets_every_row_once() {
    let postgres = PostgresServer::start();
    let ward = Ward::start(on(&postgres).with("SLUICE_LOG_QUEUE", "100")).await;
    let before = ward.calls(50).await;
    postgres.freeze();
    let meanwhile = ward.calls(MANY).await;
    let (status, log) = readiness(&ward.world.sluice).await;
    assert_eq!((status, &log["status"]), (200, &json!("degraded")), "{log}");
    postgres.thaw();
    let after = ward.calls(50).await;
    let all = before.into_iter().chain(meanwhile).chain(after).collect();
    assert_eq!(ward.has_all(&all).await, MANY + 101, "and the one at the start");
    assert!(metric(&ward.world.sluice, "sluice_log_aside_total{log=\"call\"").await > 0.0);
    let ready = async || readiness(&ward.world.sluice).await.1["status"] == "ready";
    eventually("nothing waits", ready).await;
    ward.world.sluice.stop().await;
}

#[tokio::test]
async fn a_locked_sqlite_file_gets_every_row_once() {
    let ward = Ward::start(setup().with("SLUICE_LOG_QUEUE", "100")).await;
    let file = ward.world.sluice.setup().data_dir().join("sluice.db");
    let lock = WriteLock::on(&file).await;
    let meanwhile = ward.calls(MANY).await;
    lock.release().await;
    assert_eq!(ward.has_all(&meanwhile).await, MANY + 1);
    ward.world.sluice.stop().await;
}

#[tokio::test]
async fn a_gateway_killed_with_rows_on_disk_writes_them_once_when_it_starts_again() {
    let postgres = PostgresServer::start();
    let mut ward = Ward::start(on(&postgres)).await;
    postgres.freeze();
    let meanwhile = ward.calls(MANY).await;
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    aside(&ward.world.sluice, MANY as f64).await;
    let setup = ward.world.sluice.setup().clone();
    ward.world.sluice.crash().await;
    postgres.thaw();
    ward.world.sluice = setup.serve().await;
    let rows = ward.has_all(&meanwhile).await;
    assert_eq!(rows, MANY + 1);
    // Once more: what is in the files is read again, and nothing is doubled.
    ward.world.sluice.stop().await;
    ward.world.sluice = setup.serve().await;
    assert_eq!(ward.has_all(&meanwhile).await, rows);
    ward.world.sluice.stop().await;
}

#[tokio::test]
async fn a_stop_while_the_database_is_away_leaves_the_rows_to_the_next_start() {
    let mut postgres = PostgresServer::start();
    let mut ward = Ward::start(on(&postgres).with("SLUICE_SHUTDOWN_GRACE", "1s")).await;
    postgres.kill();
    let meanwhile = ward.calls(20).await;
    let setup = ward.world.sluice.setup().clone();
    ward.world.sluice.stop().await;
    postgres.restart();
    ward.world.sluice = setup.serve().await;
    ward.has_all(&meanwhile).await;
    ward.world.sluice.stop().await;
}

/// Calls until nothing has room for another row; those that passed.
async fn until_full(ward: &Ward) -> BTreeSet<String> {
    let (at, mut passed) = (&ward.world.sluice, BTreeSet::new());
    for _ in 0..10_000 {
        match call(&ward.agent, at).await {
            (id, code) if code == "passed" => {
                passed.insert(id);
            }
            (_, code) => {
                assert_eq!(code, "log_unavailable");
                let (status, log) = readiness(at).await;
                if status == 503 {
                    assert_eq!(log["status"], "unavailable", "{log}");
                    return passed;
                }
            }
        }
    }
    panic!("10,000 calls passed, and there is room for fewer");
}

/// The log has no room left, in `setup`: calls are refused before their server learns of them, and
/// what passed is there in the end.
async fn refused_when_full(postgres: &PostgresServer, setup: Setup) {
    let ward = Ward::start(setup.with("SLUICE_LOG_QUEUE", "100")).await;
    let before = ward.upstream.calls_of("echo");
    postgres.freeze();
    let passed = until_full(&ward).await;
    assert_eq!(ward.upstream.calls_of("echo") - before, passed.len(), "the refused call went on");
    postgres.thaw();
    ward.has_all(&passed).await;
    let again = async || call(&ward.agent, &ward.world.sluice).await.1 == "passed";
    eventually("calls pass again", again).await;
    ward.world.sluice.stop().await;
}

#[tokio::test]
async fn with_memory_and_files_full_calls_are_refused_before_their_server_learns_of_them() {
    let postgres = PostgresServer::start();
    refused_when_full(&postgres, on(&postgres).with("SLUICE_LOG_SPILL", "16KiB")).await;
}

#[tokio::test]
async fn a_full_disk_is_as_a_full_log_and_breaks_nothing() {
    let postgres = PostgresServer::start();
    refused_when_full(&postgres, on(&postgres).with_full_disk(16)).await;
}

#[tokio::test]
async fn with_memory_and_files_full_calls_go_on_unlogged_where_the_setting_says_so() {
    let postgres = PostgresServer::start();
    let setup = on(&postgres).with("SLUICE_LOG_UNAVAILABLE", "allow");
    let setup = setup.with("SLUICE_LOG_SPILL", "0").with("SLUICE_LOG_QUEUE", "100");
    let ward = Ward::start(setup).await;
    postgres.freeze();
    // The queue and one batch.
    ward.calls(700).await;
    let (status, log) = readiness(&ward.world.sluice).await;
    assert_eq!((status, &log["status"]), (200, &json!("degraded")), "{log}");
    assert!(metric(&ward.world.sluice, "sluice_log_lost_total{log=\"call\"").await >= 99.0);
    postgres.thaw();
    let ready = async || readiness(&ward.world.sluice).await.1["status"] == "ready";
    eventually("it comes back", ready).await;
    ward.world.sluice.stop().await;
}

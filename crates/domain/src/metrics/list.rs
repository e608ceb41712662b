//! The list.

use super::{Counter, Family, Histogram, Kind, Label, Told};
use crate::words::words;
use crate::{Code, Outcome, SecurityKind};

words!(
    /// The two logs.
    Log, "log" {
        Call = "call",
        Security = "security",
    }
);

words!(
    /// Kinds of requests, for latencies.
    Asked, "kind of request" {
        /// `tools/call`.
        Call = "call",
        /// `tools/list`.
        List = "list",
        /// `initialize`.
        Initialize = "initialize",
        Other = "other",
    }
);

impl Asked {
    /// Of a request with this method.
    pub fn of(method: &str) -> Self {
        match method {
            "tools/call" => Self::Call,
            "tools/list" => Self::List,
            "initialize" => Self::Initialize,
            _ => Self::Other,
        }
    }
}

words!(
    /// How an upstream answered a request.
    Answered, "answer of an upstream" {
        Success = "2xx",
        Redirect = "3xx",
        ClientError = "4xx",
        /// Our credentials were refused.
        Unauthorized = "unauthorized",
        ServerError = "5xx",
        Unreachable = "unreachable",
        Tls = "tls",
        ConnectTimedOut = "connect_timeout",
        TimedOut = "timeout",
        Cut = "cut",
        NotHttp = "not_http",
    }
);

words!(
    /// Where counters live.
    CounterStore, "store of counters" {
        Memory = "memory",
        Redis = "redis",
    }
);

words!(
    /// Pools of database connections.
    Pool, "pool" {
        /// PostgreSQL's.
        All = "all",
        /// SQLite's writer.
        Write = "write",
        /// SQLite's readers.
        Read = "read",
    }
);

words!(
    /// What a connection of a pool does.
    Use, "use" {
        Busy = "busy",
        Idle = "idle",
        /// Not opened; might be.
        Free = "free",
    }
);

words!(
    /// What is sent to an OpenTelemetry collector.
    Signal, "signal" {
        Traces = "traces",
        Logs = "logs",
    }
);

const LOG: Label = Label { name: "log", values: Log::WORDS };
const ASKED: Label = Label { name: "method", values: Asked::WORDS };
const STORE: Label = Label { name: "store", values: CounterStore::WORDS };
const SIGNAL: Label = Label { name: "signal", values: Signal::WORDS };

/// Bounds for what should take no time, in microseconds.
const QUICK: &[u64] = &[
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 2_500_000,
];
/// For what others do.
const REMOTE: &[u64] = &[
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];
/// For what waits for a person.
const PATIENT: &[u64] = &[
    1_000_000,
    5_000_000,
    15_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
    1_800_000_000,
    3_600_000_000,
];

macro_rules! list {
    ($($name:ident: $type:ty = $made:expr;)+) => {
        $(pub static $name: $type = $made;)+

        /// All of them, as they are shown.
        pub static ALL: &[&dyn Family] = &[$(&$name),+];
    };
}

list! {
    REQUESTS: Counter<2> = Counter::new(
        "sluice_requests_total",
        &[Label { name: "outcome", values: Outcome::WORDS }, Label { name: "code", values: Code::WORDS }],
        "requests through the proxy, by what became of them; the words of the log",
    ).sparse();
    GATEWAY: Histogram<1> = Histogram::new(
        "sluice_gateway_seconds", &[ASKED], QUICK,
        "the gateway's own part of a request: all of it but limits, approval and upstream",
    );
    LIMITS: Histogram<0> = Histogram::new(
        "sluice_limits_seconds", &[], QUICK,
        "how long the counters took for a call that has limits",
    );
    APPROVAL: Histogram<0> = Histogram::new(
        "sluice_approval_seconds", &[], PATIENT,
        "how long a call was held for a person",
    );
    UPSTREAM: Histogram<1> = Histogram::new(
        "sluice_upstream_seconds", &[ASKED], REMOTE,
        "from sending a request to the end of its server's answer",
    );
    UPSTREAM_ANSWERS: Counter<1> = Counter::new(
        "sluice_upstream_answers_total", &[Label { name: "answer", values: Answered::WORDS }],
        "requests to servers, by how they were answered: the class of the status, or what failed",
    );
    UPSTREAM_CONNECTIONS: Told<0> = Told::new(
        "sluice_upstream_connections", Kind::Gauge, &[],
        "connections to servers that are open",
    );
    UPSTREAM_CONNECTED: Told<0> = Told::new(
        "sluice_upstream_connected_total", Kind::Counter, &[],
        "connections to servers that were made",
    );
    UPSTREAM_POOLS: Told<0> = Told::new(
        "sluice_upstream_pools", Kind::Gauge, &[],
        "servers to which connections are kept",
    );
    SECURITY_EVENTS: Counter<1> = Counter::new(
        "sluice_security_events_total", &[Label { name: "kind", values: SecurityKind::WORDS }],
        "attempts refused at the door: bad, expired and revoked tokens, foreign web pages, unknown servers",
    );
    LOG_WAITING: Told<1> = Told::new(
        "sluice_log_waiting", Kind::Gauge, &[LOG],
        "rows of a log that wait in memory",
    );
    LOG_CAPACITY: Told<1> = Told::new(
        "sluice_log_capacity", Kind::Gauge, &[LOG],
        "how many may wait there (`--log-queue`)",
    );
    LOG_ASIDE_KIB: Told<1> = Told::new(
        "sluice_log_aside_kibibytes", Kind::Gauge, &[LOG],
        "what waits in files, because the database takes no rows",
    );
    LOG_ASIDE: Counter<1> = Counter::new(
        "sluice_log_aside_total", &[LOG],
        "rows that were put into files",
    );
    LOG_WRITTEN: Counter<1> = Counter::new(
        "sluice_log_written_total", &[LOG],
        "rows that the database took",
    );
    LOG_LOST: Counter<1> = Counter::new(
        "sluice_log_lost_total", &[LOG],
        "rows that are not in the log: there was no room, or they were damaged or refused",
    );
    FEED_LAG: Told<0> = Told::new(
        "sluice_change_feed_lag_seconds", Kind::Gauge, &[],
        "how long ago changes were last read; revocations arrive no later",
    );
    LIMITS_UP: Told<1> = Told::new(
        "sluice_limits_up", Kind::Gauge, &[STORE],
        "1 while the counters answer",
    );
    LIMITS_FAULTS: Told<1> = Told::new(
        "sluice_limits_faults_total", Kind::Counter, &[STORE],
        "times that they did not",
    );
    LIMITS_UNAVAILABLE: Counter<0> = Counter::new(
        "sluice_limits_unavailable_total", &[],
        "calls whose limits could not be asked",
    );
    LIMITS_REFUNDS_WAITING: Told<0> = Told::new(
        "sluice_limits_refunds_waiting", Kind::Gauge, &[],
        "charges that are still to be given back",
    );
    LIMITS_REFUNDS_LOST: Told<0> = Told::new(
        "sluice_limits_refunds_lost_total", Kind::Counter, &[],
        "charges that never were",
    );
    COUNTERS: Told<0> = Told::new(
        "sluice_counters", Kind::Gauge, &[],
        "counters in this process that count something; none are shown while they are in Redis",
    );
    REDIS_COMMANDS: Told<0> = Told::new(
        "sluice_redis_commands_total", Kind::Counter, &[],
        "scripts that Redis was asked to run",
    );
    REDIS_WAITING: Told<0> = Told::new(
        "sluice_redis_waiting", Kind::Gauge, &[],
        "scripts whose answer is awaited on the one connection that calls share",
    );
    REDIS_CONNECTED: Told<0> = Told::new(
        "sluice_redis_connected_total", Kind::Counter, &[],
        "times that this connection was made",
    );
    DATABASE_CONNECTIONS: Told<2> = Told::new(
        "sluice_database_connections", Kind::Gauge,
        &[Label { name: "pool", values: Pool::WORDS }, Label { name: "use", values: Use::WORDS }],
        "connections to the database, and how many more there may be",
    );
    ROUTES: Told<0> = Told::new("sluice_routes", Kind::Gauge, &[], "grants kept compiled");
    SESSIONS: Told<0> = Told::new(
        "sluice_sessions", Kind::Gauge, &[],
        "MCP sessions of this replica",
    );
    OPEN_REQUESTS: Told<0> = Told::new(
        "sluice_open_requests", Kind::Gauge, &[],
        "requests and event streams that are open",
    );
    TELEMETRY_SENT: Counter<1> = Counter::new(
        "sluice_telemetry_sent_total", &[SIGNAL],
        "spans and log lines that the OpenTelemetry collector took",
    );
    TELEMETRY_LOST: Counter<1> = Counter::new(
        "sluice_telemetry_lost_total", &[SIGNAL],
        "those that it did not take, or that there was no room for",
    );
    TASKS: Told<0> = Told::new(
        "sluice_tasks", Kind::Gauge, &[],
        "tasks of the process; they should not grow without end",
    );
    MEMORY: Told<0> = Told::new(
        "sluice_resident_bytes", Kind::Gauge, &[],
        "memory of the process (on Linux)",
    );
    FILES: Told<0> = Told::new(
        "sluice_open_files", Kind::Gauge, &[],
        "descriptors that the process has open (on Linux)",
    );
    BUILD: Told<1> = Told::new(
        "sluice_build_info", Kind::Gauge,
        &[Label { name: "version", values: &[env!("CARGO_PKG_VERSION")] }],
        "1; its label says which version runs",
    );
}

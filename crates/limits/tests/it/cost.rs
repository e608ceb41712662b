//! What a call costs: so many commands to Redis, as Redis itself saw them.

use sluice_domain::{GrantId, ReservationId, Scope, WorkspaceId};
use sluice_limits::{CounterKey, Counters, Demand, RedisOptions, session_owner};
use sluice_testkit::{RedisMonitor, RedisServer};

use crate::store::{calendar, demand, of, weighing};

/// One limit of each kind and scope.
fn limits() -> [Demand; 4] {
    let limit = demand("s", "minute", "100");
    let owner = session_owner(GrantId::new(), "session");
    let key = CounterKey { scope: Scope::Session, owner, ..limit.key.clone() };
    [
        demand("a", "minute", "100"),
        of("w", weighing("0.5", demand("b", "day", "100"))),
        calendar(demand("c", "month", "100")),
        Demand { key, ..limit },
    ]
}

#[tokio::test]
async fn a_call_costs_one_round_trip_a_refund_a_second_and_no_limits_none() {
    let redis = RedisServer::start();
    let counters =
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine");
    let (workspace, limits, none) = (WorkspaceId::new(), limits(), [demand("0", "minute", "0")]);
    let keys: Vec<_> = limits.iter().map(|limit| (limit.key.clone(), limit.max)).collect();
    let reserve = async |id, limits: &[Demand]| {
        counters.reserve(workspace, id, limits).await.expect("available").granted
    };
    let refund = async |id, limits: &[Demand]| {
        counters.refund(workspace, id, limits).await.expect("available");
    };
    let rebook = async |old, new| {
        counters.rebook(workspace, old, &limits, new, &limits).await.expect("available").granted
    };
    // The first use of each script sends its text.
    let (id, new) = (ReservationId::new(), ReservationId::new());
    assert!(reserve(id, &limits).await && rebook(id, new).await);
    refund(new, &limits).await;
    counters.read(workspace, &keys).await.expect("available");

    let mut monitor = RedisMonitor::on(&redis).await;
    let mut costs = async |what: &str, expected: usize| {
        let seen = monitor.seen().await;
        assert_eq!(seen.len(), expected, "{what}: {seen:?}");
        for command in &seen {
            is_one_script_on_one_shard(workspace, command);
        }
    };
    let (id, new) = (ReservationId::new(), ReservationId::new());
    assert!(reserve(id, &limits).await);
    costs("a call with four limits", 1).await;
    assert!(reserve(id, &limits).await);
    costs("the same, repeated", 1).await;
    assert!(!reserve(ReservationId::new(), &none).await);
    costs("a refused call", 1).await;
    assert!(rebook(id, new).await);
    costs("a parked call that is released", 1).await;
    refund(new, &limits).await;
    costs("a refund", 1).await;
    counters.read(workspace, &keys).await.expect("available");
    costs("a look at four counters", 1).await;
    assert!(reserve(id, &[]).await);
    refund(id, &[]).await;
    costs("a call without limits", 0).await;
}

/// One script, one hash tag, and no time of ours: the server's own clock counts.
fn is_one_script_on_one_shard(workspace: WorkspaceId, command: &str) {
    let words: Vec<&str> = command.split("\" \"").map(|word| word.trim_matches('"')).collect();
    assert_eq!(words[0], "EVALSHA", "{command}");
    let count: usize = words[2].parse().expect("the number of keys");
    assert!(count > 0, "{command}");
    for key in &words[3..3 + count] {
        assert!(key.starts_with(&format!("sluice:{{{workspace}}}:")), "{key}");
    }
    assert_eq!(words[3 + count], "", "the first argument is the time: {command}");
}

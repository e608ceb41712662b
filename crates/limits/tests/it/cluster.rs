//! A cluster of three masters: a call's keys are on one shard, and every shard knows the scripts.

use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Reason, RedisOptions};
use sluice_testkit::RedisCluster;

use crate::store::{demand, of};

#[tokio::test]
async fn limits_hold_on_every_shard_of_a_cluster() {
    // F-R6.
    let cluster = RedisCluster::start();
    let counters =
        Counters::redis(&cluster.url(), RedisOptions::default()).await.expect("an address");
    let limits = [demand("n", "hour", "2"), of("w", demand("broad", "day", "100"))];
    for _ in 0..20 {
        // Twenty workspaces: some on each of the three shards.
        let workspace = WorkspaceId::new();
        let (parked, released) = (ReservationId::new(), ReservationId::new());
        assert!(counters.reserve(workspace, parked, &limits).await.expect("available").granted);
        let moved = counters.rebook(workspace, parked, &limits, released, &limits).await;
        assert!(moved.expect("available").granted);
        for granted in [true, false, false] {
            let reserved = counters.reserve(workspace, ReservationId::new(), &limits).await;
            assert_eq!(reserved.expect("available").granted, granted);
        }
        counters.refund(workspace, released, &limits).await.expect("available");
        let keys: Vec<_> = limits.iter().map(|limit| (limit.key.clone(), limit.max)).collect();
        let read = counters.read(workspace, &keys).await.expect("available");
        assert_eq!(read.iter().map(|r| r.used.to_string()).collect::<Vec<_>>(), ["1", "1"]);
    }
    let bindings = counters.bindings(2);
    for owner in 0..10 {
        let owner = format!("grant-{owner}");
        let ttl = std::time::Duration::from_mins(1);
        assert!(bindings.put(&owner, "s", b"v", ttl).await.expect("available"));
        assert_eq!(bindings.get(&owner, "s", ttl).await.expect("available"), Some(b"v".to_vec()));
    }
    assert!(counters.health().is_well());
}

#[tokio::test]
async fn a_cluster_addressed_as_one_server_is_named_as_such() {
    let cluster = RedisCluster::start();
    let node = cluster.masters()[0].url();
    let counters = Counters::redis(&node, RedisOptions::default()).await.expect("an address");
    // Which shard a workspace is on is chance: of twenty, some are elsewhere.
    for _ in 0..20 {
        let limit = [demand("n", "hour", "2")];
        if let Err(failed) =
            counters.reserve(WorkspaceId::new(), ReservationId::new(), &limit).await
        {
            assert_eq!(failed.reason, Reason::IsCluster);
            return;
        }
    }
    panic!("no workspace was on another shard");
}

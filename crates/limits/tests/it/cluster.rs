//! Several servers: a cluster, whose shards all know the scripts, and a master that Sentinels name.

use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Reason, RedisOptions};
use sluice_testkit::{RedisCluster, RedisServer};

use crate::store::{demand, eventually, of};

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
async fn a_slot_that_moves_to_another_master_takes_its_counts_along() {
    let cluster = RedisCluster::start();
    let counters =
        Counters::redis(&cluster.url(), RedisOptions::default()).await.expect("an address");
    let (workspace, limit) = (WorkspaceId::new(), [demand("n", "hour", "3")]);
    let reserve = async || counters.reserve(workspace, ReservationId::new(), &limit).await;
    let given_back = ReservationId::new();
    counters.reserve(workspace, given_back, &limit).await.expect("available");
    assert!(reserve().await.expect("available").granted);
    // MOVED, and that without a fault.
    cluster.move_slot_of(&format!("{{{workspace}}}"));
    assert!(reserve().await.expect("followed").granted);
    assert!(!reserve().await.expect("available").granted, "the counts went along");
    counters.refund(workspace, given_back, &limit).await.expect("available");
    assert!(reserve().await.expect("available").granted, "and so did the reservations");
    assert_eq!(counters.health().faults, 0);
    cluster.move_slot_of(&format!("{{{workspace}}}"));
    assert!(!reserve().await.expect("followed back").granted);
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

#[tokio::test]
async fn a_failover_is_followed() {
    let (master, replica) = (RedisServer::start(), RedisServer::start());
    let try_to_ask = async |server: &RedisServer, words: &[&str]| -> redis::RedisResult<String> {
        let client = redis::Client::open(server.url()).expect("an address");
        let mut connection = client.get_multiplexed_async_connection().await?;
        let answer = redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await?;
        Ok(redis::from_redis_value(answer).unwrap_or_default())
    };
    let ask = async |server: &RedisServer, words: &[&str]| {
        try_to_ask(server, words).await.expect("it obeys")
    };
    ask(&replica, &["REPLICAOF", "127.0.0.1", &master.address().port().to_string()]).await;
    let in_step = async || ask(&master, &["INFO", "replication"]).await.contains("state=online");
    eventually("the replica is in step", in_step).await;
    let sentinel = RedisServer::start_sentinel(&master);
    // On a busy machine it must not begin a failover of its own.
    let patience = ["SENTINEL", "SET", "mymaster", "down-after-milliseconds", "60000"];
    ask(&sentinel, &patience).await;
    let known = async || ask(&sentinel, &["INFO", "sentinel"]).await.contains("slaves=1");
    eventually("the Sentinel knows the replica", known).await;

    let url = format!("redis-sentinel://{}/mymaster", sentinel.address());
    let counters = Counters::redis(&url, RedisOptions::default()).await.expect("an address");
    let (workspace, limit) = (WorkspaceId::new(), [demand("n", "hour", "2")]);
    let reserve = async || counters.reserve(workspace, ReservationId::new(), &limit).await;
    assert!(reserve().await.expect("available").granted);
    // The charge must have reached the replica: what had not is lost, as is said. (`WAIT` would wait
    // for the writes of its own connection, which has none.)
    let offset = async |server: &RedisServer| {
        let told = ask(server, &["INFO", "replication"]).await;
        let line = told.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
        line.and_then(|offset| offset.parse::<u64>().ok()).expect("an offset")
    };
    let written = offset(&master).await;
    let arrived = async || offset(&replica).await >= written;
    eventually("the charge reaches the replica", arrived).await;
    // A Sentinel promotes nobody before it has looked at the replica for some seconds.
    let agrees =
        async || try_to_ask(&sentinel, &["SENTINEL", "FAILOVER", "mymaster"]).await.is_ok();
    eventually("the Sentinel agrees to a failover", agrees).await;
    // A Sentinel cuts every client of a server whose role it changes, this test's among them.
    let plays = async |server: &RedisServer, role: &str| {
        try_to_ask(server, &["INFO", "replication"]).await.is_ok_and(|told| told.contains(role))
    };
    eventually("the replica is promoted", async || plays(&replica, "role:master").await).await;
    eventually("the master is demoted", async || plays(&master, "role:slave").await).await;
    let mut second = reserve().await;
    if second.is_err() {
        // The Sentinel may name the old master a moment longer.
        eventually("the new master is found", async || counters.health().is_well()).await;
        second = reserve().await;
    }
    assert!(second.expect("available").granted);
    assert!(!reserve().await.expect("available").granted, "the count went along");
}

//! Messages between replicas.

use std::time::Duration;

use sluice_limits::{Counters, Pushed, RedisOptions, Relay};
use sluice_testkit::{RedisCluster, RedisServer, TestClock};

use crate::store::eventually;

async fn counters(redis: &RedisServer) -> Counters {
    counters_at(&redis.url()).await
}

async fn counters_at(url: &str) -> Counters {
    Counters::redis(url, RedisOptions::default()).await.expect("an address")
}

/// Reads until something comes.
async fn received(relay: &Relay) -> Vec<u8> {
    let reading = async {
        loop {
            if let Some(message) = relay.next().await.expect("available") {
                return message;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("it comes")
}

#[tokio::test]
async fn messages_arrive_in_order_at_the_replica_they_are_for() {
    let redis = RedisServer::start();
    let (one, two) = (counters(&redis).await, counters(&redis).await);
    let (one, two) = (one.relay("one"), two.relay("two"));
    assert_eq!(one.push("two", b"early").await, Ok(Pushed::Nobody), "nobody reads yet");
    assert_eq!(two.next().await, Ok(None));
    let large = vec![0xff; sluice_limits::MAX_RELAYED];
    for message in [b"a".as_slice(), &large, b"\x00c"] {
        assert_eq!(one.push("two", message).await, Ok(Pushed::Done));
    }
    for message in [b"a".as_slice(), &large, b"\x00c"] {
        assert_eq!(received(&two).await, message);
    }
    assert_eq!(one.push("three", b"x").await, Ok(Pushed::Nobody));
    assert!(one.is_shared() && one.address() == "one");
}

#[tokio::test]
async fn a_message_wakes_the_reader_that_waits() {
    let redis = RedisServer::start();
    let (one, two) = (counters(&redis).await.relay("one"), counters(&redis).await.relay("two"));
    two.next().await.expect("available");
    let reading = tokio::spawn({
        let two = two.clone();
        async move { received(&two).await }
    });
    assert_eq!(one.push("two", b"now").await, Ok(Pushed::Done));
    assert_eq!(reading.await.expect("read"), b"now");
}

#[tokio::test]
async fn a_mailbox_holds_only_so_much() {
    let redis = RedisServer::start();
    let (one, two) = (counters(&redis).await.relay("one"), counters(&redis).await.relay("two"));
    two.next().await.expect("available");
    let mut taken = 0;
    while one.push("two", b"m").await == Ok(Pushed::Done) {
        taken += 1;
        assert!(taken <= 1_000);
    }
    assert_eq!(one.push("two", b"m").await, Ok(Pushed::Full));
    received(&two).await;
    assert_eq!(one.push("two", b"m").await, Ok(Pushed::Done));
}

#[tokio::test]
async fn reading_goes_on_when_the_store_is_back() {
    let mut redis = RedisServer::start();
    let (one, two) = (counters(&redis).await.relay("one"), counters(&redis).await.relay("two"));
    two.next().await.expect("available");
    redis.kill();
    eventually("reading fails", async || two.next().await.is_err()).await;
    redis.restart();
    eventually("reading goes on", async || two.next().await.is_ok()).await;
    eventually("writing goes on", async || one.push("two", b"m").await == Ok(Pushed::Done)).await;
    assert_eq!(received(&two).await, b"m");
}

#[tokio::test]
async fn a_process_alone_has_nobody_to_write_to() {
    let alone = Counters::in_memory(TestClock::at("2026-11-30T09:00:00Z").function()).relay("one");
    assert!(!alone.is_shared());
    assert_eq!(alone.push("one", b"m").await, Ok(Pushed::Nobody));
}

/// Each of several replicas writes to each: their mailboxes lie on different masters of a cluster.
async fn each_writes_to_each(url: &str) {
    let names = ["one", "two", "three", "four"];
    let (mut relays, mut readers) = (Vec::new(), Vec::new());
    for name in names {
        let relay = counters_at(url).await.relay(name);
        let own = relay.clone();
        readers.push(tokio::spawn(async move {
            let mut came = Vec::new();
            while came.len() < names.len() {
                came.push(String::from_utf8(received(&own).await).expect("text"));
            }
            came
        }));
        relays.push(relay);
    }
    for from in &relays {
        for to in names {
            let message = format!("{} to {to}", from.address());
            let written = async || from.push(to, message.as_bytes()).await == Ok(Pushed::Done);
            eventually("the other reads its mailbox", written).await;
        }
    }
    for (to, reader) in names.iter().zip(readers) {
        let came = reader.await.expect("all came");
        assert_eq!(came, names.map(|from| format!("{from} to {to}")));
    }
}

#[tokio::test]
async fn messages_pass_in_a_cluster() {
    let cluster = RedisCluster::start();
    each_writes_to_each(&cluster.url()).await;
}

#[tokio::test]
async fn messages_pass_behind_a_sentinel() {
    let master = RedisServer::start();
    let sentinel = RedisServer::start_sentinel(&master);
    each_writes_to_each(&format!("redis-sentinel://{}/mymaster", sentinel.address())).await;
}

//! Messages between replicas.

use std::time::Duration;

use sluice_limits::{Counters, Pushed, RedisOptions, Relay};
use sluice_testkit::{RedisServer, TestClock};

use crate::store::eventually;

async fn counters(redis: &RedisServer) -> Counters {
    Counters::redis(&redis.url(), RedisOptions::default()).await.expect("an address")
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
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("it comes")
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

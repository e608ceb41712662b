//! The whole contract, body by body, on the stores that are dear to start: a cluster, a master that
//! a Sentinel names, and Valkey.

use sluice_testkit::{RedisCluster, RedisServer};

use crate::contract::BODIES;
use crate::store::Store;

async fn the_contract_holds(url: &str) {
    assert!(BODIES.len() > 25);
    for (name, body) in BODIES {
        let store = Store::at(url).await;
        assert!(store.counters.health().is_well(), "before {name}: {:?}", store.counters.health());
        let counters = store.counters.clone();
        body(store).await;
        assert!(counters.health().is_well(), "after {name}: {:?}", counters.health());
    }
}

#[tokio::test]
async fn on_a_cluster() {
    the_contract_holds(&RedisCluster::start().url()).await;
}

#[tokio::test]
async fn through_a_sentinel() {
    let master = RedisServer::start();
    let sentinel = RedisServer::start_sentinel(&master);
    the_contract_holds(&format!("redis-sentinel://{}/mymaster", sentinel.address())).await;
}

#[tokio::test]
async fn on_valkey() {
    let valkey = RedisServer::start_valkey();
    the_contract_holds(&valkey.url().replace("redis://", "valkey://")).await;
}

//! A Redis Cluster of a test's own: three masters without replicas.

use std::time::{Duration, Instant};

use crate::redis_server::{RedisServer, free_port};

/// The slots of each master (Redis Cluster specification: 16,384 in all).
const SHARES: [(u16, u16); 3] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];

/// A private Redis Cluster.
#[derive(Debug)]
pub struct RedisCluster {
    masters: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three masters and waits until each knows the others.
    pub fn start() -> Self {
        let masters: Vec<RedisServer> = SHARES
            .iter()
            .map(|_| {
                let bus = free_port().to_string();
                RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus])
            })
            .collect();
        for (master, (first, last)) in masters.iter().zip(SHARES) {
            ask(master, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
        }
        for master in &masters {
            let port = master.address().port().to_string();
            let bus = bus_port(master);
            ask(&masters[0], &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let cluster = Self { masters };
        cluster.wait_until_joined();
        cluster
    }

    /// `redis-cluster://127.0.0.1:<port>,…`
    pub fn url(&self) -> String {
        let nodes: Vec<String> =
            self.masters.iter().map(|node| node.address().to_string()).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// The masters, in the order of their slots.
    pub fn masters(&self) -> &[RedisServer] {
        &self.masters
    }

    /// Moves the slot of a key from the master that has it to another one, with all its keys.
    pub fn move_slot_of(&self, key: &str) {
        let slot: u16 = query(&self.masters[0], &["CLUSTER", "KEYSLOT", key]);
        let slot = slot.to_string();
        let has = |master: &&RedisServer| {
            let count = ["CLUSTER", "COUNTKEYSINSLOT", &slot];
            query::<i64>(master, &count) > 0
        };
        let from = self.masters.iter().find(has).expect("the slot has keys");
        let mut others = self.masters.iter().filter(|master| master.address() != from.address());
        let to = others.next().expect("there are three");
        let id = |master: &RedisServer| query::<String>(master, &["CLUSTER", "MYID"]);
        let (from_id, to_id) = (id(from), id(to));
        ask(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        ask(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
        let keys: Vec<String> = query(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]);
        let port = to.address().port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        ask(from, &words);
        for master in [to, from] {
            ask(master, &["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
        }
    }

    fn wait_until_joined(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.masters.iter().all(|master| {
            let info = ask(master, &["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        }) {
            assert!(Instant::now() < deadline, "the cluster did not form within 20 s");
            // There is no event to wait for: nodes tell nobody that they have met.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn bus_port(master: &RedisServer) -> String {
    // `<id> <ip>:<port>@<bus port> myself,master …`
    let nodes = ask(master, &["CLUSTER", "NODES"]);
    let myself = nodes.lines().find(|line| line.contains("myself")).expect("a node knows itself");
    let bus = myself.split('@').nth(1).and_then(|rest| rest.split([' ', ',']).next());
    bus.expect("a node has a bus port").to_owned()
}

fn ask(node: &RedisServer, words: &[&str]) -> String {
    query(node, words)
}

fn query<T: redis::FromRedisValue>(node: &RedisServer, words: &[&str]) -> T {
    let client = redis::Client::open(node.url()).expect("the address is an address");
    let mut connection = client.get_connection().expect("the node listens");
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query(&mut connection).expect("the node obeys")
}

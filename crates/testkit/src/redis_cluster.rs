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
    let client = redis::Client::open(node.url()).expect("the address is an address");
    let mut connection = client.get_connection().expect("the node listens");
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query(&mut connection).expect("the node obeys")
}

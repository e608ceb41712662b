//! One live connection, whichever kind of Redis is at its other end.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, RedisResult, TlsMode, Value,
};

use super::address::Address;

/// A shared connection; clones share the socket.
#[derive(Clone)]
pub(crate) enum Link {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects anew. A Sentinel is asked each time, so that a failover is followed. `patience`: the bound
    /// on an answer; none where whoever asks has one of their own.
    pub(crate) async fn open(
        address: &Address,
        timeout: Duration,
        patience: Option<Duration>,
    ) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(patience);
        match address {
            Address::Single(node) => {
                let client = Client::open(node.as_ref().clone())?;
                client.get_multiplexed_async_connection_with_config(&config).await.map(Self::Node)
            }
            Address::Cluster(nodes) => {
                let client = ClusterClient::builder(nodes.iter().cloned())
                    .connection_timeout(timeout)
                    .response_timeout(timeout)
                    .build()?;
                client.get_async_connection().await.map(Self::Cluster)
            }
            Address::Sentinel { sentinels, master, node } => {
                let mut client = sentinel_builder(sentinels, master, node)?.build()?;
                client.get_async_connection_with_config(&config).await.map(Self::Node)
            }
        }
    }

    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::Node(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        };
        answer.and_then(Value::extract_error)
    }
}

fn sentinel_builder(
    sentinels: &[ConnectionAddr],
    master: &str,
    node: &ConnectionInfo,
) -> RedisResult<SentinelClientBuilder> {
    let settings = node.redis_settings();
    let mut builder =
        SentinelClientBuilder::new(sentinels.iter().cloned(), master, SentinelServerType::Master)?
            .set_client_to_redis_db(settings.db());
    if let Some(username) = settings.username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = settings.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if matches!(node.addr(), ConnectionAddr::TcpTls { .. }) {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_tls_mode(TlsMode::Secure);
    }
    Ok(builder)
}

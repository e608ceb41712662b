//! Addresses of Redis: a single server, a cluster, or a master that Sentinels know.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// Why an address is not usable. Never holds the address, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    #[error(
        "the scheme is not one of redis, rediss, redis-cluster, rediss-cluster, redis-sentinel, rediss-sentinel"
    )]
    Scheme,
    #[error("not a Redis address such as redis://user:password@host:6379/0")]
    Unreadable,
    #[error("a Sentinel address ends with the master's name: redis-sentinel://host:26379/mymaster")]
    NoMasterName,
    #[error("a cluster has only database 0")]
    ClusterDatabase,
}

/// Where Redis is. The parts hold credentials: no `Debug`.
pub(crate) enum Address {
    Single(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel { sentinels: Vec<ConnectionAddr>, master: String, node: Box<ConnectionInfo> },
}

pub(crate) fn parse(url: &str) -> Result<Address, RedisUrlError> {
    let (scheme, rest) = url.trim().split_once("://").ok_or(RedisUrlError::Unreadable)?;
    let scheme = scheme.to_ascii_lowercase().replace("valkey", "redis");
    let (plain, kind) = match scheme.split_once('-') {
        None => (scheme.as_str(), "single"),
        Some((plain, kind)) => (plain, kind),
    };
    if !matches!(plain, "redis" | "rediss") {
        return Err(RedisUrlError::Scheme);
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    match kind {
        "single" => node(plain, rest).map(|node| Address::Single(Box::new(node))),
        "cluster" if !matches!(path, "" | "0") => Err(RedisUrlError::ClusterDatabase),
        "cluster" => hosts(plain, authority).map(Address::Cluster),
        "sentinel" => sentinel(plain, authority, path),
        _ => Err(RedisUrlError::Scheme),
    }
}

fn node(scheme: &str, rest: &str) -> Result<ConnectionInfo, RedisUrlError> {
    format!("{scheme}://{rest}").into_connection_info().map_err(|_| RedisUrlError::Unreadable)
}

/// `user:password@a:1,b:2` as one address a host.
fn hosts(scheme: &str, authority: &str) -> Result<Vec<ConnectionInfo>, RedisUrlError> {
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
        None => (String::new(), authority),
    };
    hosts.split(',').map(|host| node(scheme, &format!("{credentials}{host}"))).collect()
}

fn sentinel(scheme: &str, authority: &str, path: &str) -> Result<Address, RedisUrlError> {
    let (master, database) = path.split_once('/').unwrap_or((path, "0"));
    if master.is_empty() {
        return Err(RedisUrlError::NoMasterName);
    }
    let nodes = hosts(scheme, authority)?;
    let sentinels = nodes.iter().map(|node| node.addr().clone()).collect();
    let database = database.parse().map_err(|_| RedisUrlError::Unreadable)?;
    let first = nodes.into_iter().next().ok_or(RedisUrlError::Unreadable)?;
    let settings = first.redis_settings().clone().set_db(database);
    let node = Box::new(first.set_redis_settings(settings));
    Ok(Address::Sentinel { sentinels, master: master.to_owned(), node })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_of_address_are_read() {
        let kind = |url| match parse(url) {
            Ok(Address::Single(node)) => format!("single {}", node.addr()),
            Ok(Address::Cluster(nodes)) => format!("cluster {}", nodes.len()),
            Ok(Address::Sentinel { sentinels, master, node }) => {
                format!("{} of {master} db {}", sentinels.len(), node.redis_settings().db())
            }
            Err(error) => format!("{error:?}"),
        };
        for (url, read) in [
            ("redis://127.0.0.1:7000/2", "single 127.0.0.1:7000"),
            ("valkey://:s3cret@cache", "single cache:6379"),
            ("redis-cluster://u:p@a:1,b:2,c:3", "cluster 3"),
            ("redis-cluster://a:1/4", "ClusterDatabase"),
            ("redis-sentinel://:p@a:26379,b:26379/main/3", "2 of main db 3"),
            ("redis-sentinel://a:26379", "NoMasterName"),
            ("http://a", "Scheme"),
            ("redis-ring://a", "Scheme"),
            ("a:6379", "Unreadable"),
            ("redis://a:port", "Unreadable"),
        ] {
            assert_eq!(kind(url), read, "{url}");
        }
    }
}

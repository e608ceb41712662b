//! Names to addresses: asked once a connection, and every address checked.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::addresses;
use crate::connect::ConnectFault;

/// More addresses than any honest name has.
const MAX_ADDRESSES: usize = 32;

/// A resolver in place of the system's, for tests.
pub type Resolve = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Where a checked address is connected to in its place, for tests.
pub type Dial = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Resolver {
    pub(crate) allow_private: bool,
    pub(crate) instead: Option<Resolve>,
    pub(crate) dial: Option<Dial>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("allow_private", &self.allow_private)
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// All addresses of a host, if every one of them may be connected to.
    pub(crate) async fn checked(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, ConnectFault> {
        if addresses::is_bad_port(port) {
            return Err(ConnectFault::Refused("a port that is not for HTTP"));
        }
        let found = self.resolve(host, port).await.map_err(|_| ConnectFault::Dns)?;
        if found.is_empty() {
            return Err(ConnectFault::Dns);
        }
        for address in &found {
            addresses::check(*address, self.allow_private)
                .map_err(|refusal| ConnectFault::Refused(refusal.what()))?;
        }
        Ok(found.into_iter().take(MAX_ADDRESSES).map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// The same, but no private address, whatever the operator allows.
    pub(crate) fn strict(&self) -> Self {
        Self { allow_private: false, ..self.clone() }
    }

    /// Where to connect for these.
    pub(crate) fn dialled(&self, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        match &self.dial {
            None => addresses,
            Some(dial) => addresses.into_iter().map(|address| dial(address)).collect(),
        }
    }

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        if let Some(resolve) = &self.instead {
            resolve(host)
        } else {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
    }
}

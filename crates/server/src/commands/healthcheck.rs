//! `sluice healthcheck`: asks the Sluice on this machine whether it is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use http::Method;

use crate::failure::{Failure, Outcome};
use crate::{client, say};

const PATIENCE: Duration = Duration::from_secs(5);

/// Settings of `sluice healthcheck`.
#[derive(Debug, Args)]
pub(crate) struct HealthcheckArgs {
    /// Where the server listens.
    #[arg(long, env = "SLUICE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
}

pub(crate) async fn run(args: HealthcheckArgs) -> Outcome {
    let address = reachable(args.listen);
    let answer = tokio::time::timeout(PATIENCE, readiness(address)).await;
    let (ready, body) = answer
        .unwrap_or_else(|_| Err(anyhow!("no answer within {} s", PATIENCE.as_secs())))
        .with_context(|| format!("no Sluice answers on {address}"))
        .map_err(|error| {
            Failure::dependency(error).remedy("is it running, and is SLUICE_LISTEN the same here?")
        })?;
    say!("{body}");
    if ready { Ok(()) } else { Err(Failure::bad(anyhow!("Sluice on {address} is not ready"))) }
}

/// An address that listens on every interface is asked on loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn readiness(address: SocketAddr) -> anyhow::Result<(bool, String)> {
    let (status, body) = client::send(address, Method::GET, "/readyz", &[], String::new()).await?;
    Ok((status.is_success(), String::from_utf8_lossy(&body).into_owned()))
}

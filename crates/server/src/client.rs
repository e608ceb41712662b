//! A small HTTP client for the commands that talk to a Sluice on this machine.

use std::net::SocketAddr;

use anyhow::Context as _;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends one request; the status and the whole body.
pub(crate) async fn send(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request =
        Request::builder().method(method).uri(path).header("host", address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

//! A small HTTP client over plain TCP: one connection a request, nothing added, nothing followed.

use std::net::SocketAddr;

use ::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; of an event stream the last event's data.
    pub fn json(&self) -> Value {
        let text = self.text();
        let json = match text.lines().rev().find_map(|line| line.strip_prefix("data:")) {
            Some(data) if !text.trim_start().starts_with(['{', '[']) => data,
            _ => &text,
        };
        serde_json::from_str(json).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's text, empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
}

impl Opened {
    /// The next piece of the body; `None` at its end. An error is a connection that broke off.
    pub async fn piece(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads the rest.
    pub async fn whole(self) -> Result<Answer, hyper::Error> {
        let body = self.body.collect().await?.to_bytes();
        Ok(Answer { status: self.status, headers: self.headers, body })
    }
}

/// Sends one request to `address` and gives the answer as soon as its head is there.
pub async fn open(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> std::io::Result<Opened> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(std::io::Error::other)?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).map_err(std::io::Error::other)?;
    let response = sender.send_request(request).await.map_err(std::io::Error::other)?;
    let (parts, body) = response.into_parts();
    Ok(Opened { status: parts.status, headers: parts.headers, body })
}

/// Sends one request and reads the whole answer.
pub async fn send(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> std::io::Result<Answer> {
    open(address, method, path, headers, body).await?.whole().await.map_err(std::io::Error::other)
}

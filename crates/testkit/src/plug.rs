//! A relay in front of a TCP service that a test can pull out: what was connected breaks, and
//! nobody gets in until it is put back.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// See the module's head. Ends with the value.
#[derive(Debug)]
pub struct Plug {
    address: SocketAddr,
    pulled: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Plug {
    /// A relay to `target` on a loopback port of its own.
    pub async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (pulled, state) = watch::channel(false);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if !*state.borrow() {
                    tokio::spawn(relay(stream, target, state.clone()));
                }
            }
        });
        Self { address, pulled, task }
    }

    /// The same for the server of a database address, and the address that leads through it.
    pub async fn before_url(url: &str) -> (Self, String) {
        let mut url: url::Url = url.parse().expect("the address is a URL");
        let host = url.host_str().expect("it names a host").to_owned();
        let port = url.port().unwrap_or(5432);
        let mut found = tokio::net::lookup_host((host, port)).await.expect("the host is known");
        let plug = Self::before(found.next().expect("it has an address")).await;
        url.set_host(Some("127.0.0.1")).expect("a host can be set");
        url.set_port(Some(plug.address.port())).expect("a port can be set");
        (plug, url.into())
    }

    /// Where to connect instead.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection, and refuses new ones.
    pub fn pull(&self) {
        self.pulled.send_replace(true);
    }

    /// Lets connections through again.
    pub fn put_back(&self) {
        self.pulled.send_replace(false);
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.pulled.send_replace(true);
        self.task.abort();
    }
}

async fn relay(mut stream: TcpStream, target: SocketAddr, mut pulled: watch::Receiver<bool>) {
    let Ok(mut other) = TcpStream::connect(target).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut stream, &mut other) => {}
        _ = pulled.wait_for(|pulled| *pulled) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_pulled_plug_breaks_what_is_connected_and_lets_nobody_in() {
        let echo = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let plug = Plug::before(echo.local_addr().expect("an address")).await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        let mut byte = [0];
        let mut connected = TcpStream::connect(plug.address()).await.expect("connects");
        connected.write_all(b"a").await.expect("sent");
        assert_eq!(connected.read(&mut byte).await.expect("echoed"), 1);
        plug.pull();
        assert!(matches!(connected.read(&mut byte).await, Ok(0) | Err(_)));
        let mut refused = TcpStream::connect(plug.address()).await.expect("accepted and closed");
        assert!(matches!(refused.read(&mut byte).await, Ok(0) | Err(_)));
        plug.put_back();
        let mut again = TcpStream::connect(plug.address()).await.expect("connects");
        again.write_all(b"b").await.expect("sent");
        assert_eq!(again.read(&mut byte).await.expect("echoed"), 1);
    }
}

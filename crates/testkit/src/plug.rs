//! A relay in front of a TCP service that a test can pull out, so that what was connected breaks and
//! nobody gets in; or hold, so that nothing passes while everything stands.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Through,
    Held,
    Pulled,
}

/// See the module's head. Ends with the value.
#[derive(Debug)]
pub struct Plug {
    address: SocketAddr,
    state: watch::Sender<State>,
    sent: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl Plug {
    /// A relay to `target` on a loopback port of its own.
    pub async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (state, sent) = (watch::channel(State::Through).0, watch::channel(0).0);
        let (states, counts) = (state.subscribe(), sent.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if *states.borrow() != State::Pulled {
                    tokio::spawn(relay(stream, target, states.clone(), counts.clone()));
                }
            }
        });
        Self { address, state, sent, task }
    }

    /// The same for the server of a database address, and the address that leads through it.
    pub async fn before_url(url: &str) -> (Self, String) {
        let mut url: url::Url = url.parse().expect("the address is a URL");
        let host = url.host_str().expect("it names a host").to_owned();
        let port = url.port().expect("it names a port");
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
        self.state.send_replace(State::Pulled);
    }

    /// Keeps everything that is sent to the service, until [`Self::put_back`].
    pub fn hold(&self) {
        self.state.send_replace(State::Held);
    }

    /// Lets everything through again, what was held first.
    pub fn put_back(&self) {
        self.state.send_replace(State::Through);
    }

    /// How many pieces have been sent towards the service so far.
    pub fn sent(&self) -> usize {
        *self.sent.borrow()
    }

    /// Waits until so many pieces have been sent towards the service, held ones too; half a minute.
    pub async fn until_sent(&self, count: usize) {
        let mut sent = self.sent.subscribe();
        let enough = sent.wait_for(|sent| *sent >= count);
        let enough = tokio::time::timeout(Duration::from_secs(30), enough).await;
        enough.expect("it is sent").expect("the plug outlives its watcher");
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.state.send_replace(State::Pulled);
        self.task.abort();
    }
}

async fn relay(
    stream: TcpStream,
    target: SocketAddr,
    mut states: watch::Receiver<State>,
    sent: watch::Sender<usize>,
) {
    let Ok(other) = TcpStream::connect(target).await else { return };
    let ((from_client, mut to_client), (mut from_service, to_service)) =
        (stream.into_split(), other.into_split());
    let there = pass(from_client, to_service, states.clone(), sent);
    tokio::select! {
        () = there => {}
        _ = tokio::io::copy(&mut from_service, &mut to_client) => {}
        _ = states.wait_for(|state| *state == State::Pulled) => {}
    }
}

/// Passes on what the client sends, piece by piece, as soon as nothing holds it.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut states: watch::Receiver<State>,
    sent: watch::Sender<usize>,
) {
    let (mut held, mut piece, mut ended) = (Vec::new(), [0; 16 * 1024], false);
    loop {
        let holds = *states.borrow_and_update() == State::Held;
        if !holds && !held.is_empty() && to.write_all(&std::mem::take(&mut held)).await.is_err() {
            return;
        }
        // What a client sent before it hung up still arrives.
        if ended && !holds {
            return;
        }
        tokio::select! {
            read = from.read(&mut piece), if !ended => match read {
                Ok(count) if count > 0 => {
                    held.extend_from_slice(&piece[..count]);
                    sent.send_modify(|sent| *sent += 1);
                }
                _ => ended = true,
            },
            changed = states.changed() => if changed.is_err() { return },
        }
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
        plug.hold();
        connected.write_all(b"c").await.expect("sent");
        plug.until_sent(2).await;
        plug.put_back();
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

//! Connections that are counted for as long as they are open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How connections to upstreams are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Open now.
    pub open: u64,
    /// Made since the start.
    pub made: u64,
    /// Pools that they are kept in, one a server.
    pub pools: u64,
}

/// Counts of connections. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    open: AtomicU64,
    made: AtomicU64,
}

impl Tally {
    pub(crate) fn counted(&self, stream: TcpStream) -> Counted {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        self.0.made.fetch_add(1, Ordering::Relaxed);
        Counted { stream, tally: self.clone() }
    }

    pub(crate) fn read(&self, pools: u64) -> Connections {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Connections { open: read(&self.0.open), made: read(&self.0.made), pools }
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Counted {
    stream: TcpStream,
    tally: Tally,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.tally.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection for Counted {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

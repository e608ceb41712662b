//! A client's connection, as it is read and written: a request whose length can be read in two ways is
//! refused, and an answer that nobody takes is not kept for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a client may take nothing of an answer that waits for it.
pub(crate) const UNREAD_FOR: Duration = Duration::from_mins(1);
/// As much of a line as tells which header it is.
const LINE: usize = 20;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    inner: S,
    heads: Heads,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, heads: Heads::default(), patience: UNREAD_FOR, stuck: None }
    }

    /// An error once writing has been waited for too long.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.stuck = None;
            return wrote;
        }
        let until = Instant::now() + self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.heads.look(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.written(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.written(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Looks for heads that give both `Transfer-Encoding` and `Content-Length`. hyper goes by the first, drops
/// the second and tells nobody, while a proxy in front may have gone by the second (RFC 9112 section 6.1).
/// Bodies are looked at too, which does no harm: no JSON has a line that begins like one of these.
#[derive(Debug, Default)]
struct Heads {
    line: Vec<u8>,
    length: usize,
    coded: bool,
    counted: bool,
    /// The connection speaks HTTP/2, which has no such lines.
    framed: bool,
}

impl Heads {
    /// Spoils the end of such a head, so that it is answered with 400 like any other that cannot be read.
    fn look(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() && !self.framed {
            let end = memchr::memchr(b'\n', &bytes[at..]).map(|found| at + found);
            let piece = &bytes[at..end.unwrap_or(bytes.len())];
            self.length += piece.len();
            let room = LINE.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(&piece[..room]);
            let Some(end) = end else { return };
            if self.ends_badly() {
                bytes[end] = 0;
            }
            at = end + 1;
        }
    }

    /// Ends a line; true if it was the end of a head with both headers.
    fn ends_badly(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let blank = line.is_empty() || line == b"\r";
        if std::mem::take(&mut self.length) <= 1 && blank {
            return std::mem::take(&mut self.coded) & std::mem::take(&mut self.counted);
        }
        let is = |name: &str| {
            let begins = line.get(..name.len());
            begins.is_some_and(|begins| begins.eq_ignore_ascii_case(name.as_bytes()))
        };
        self.coded |= is("transfer-encoding:");
        self.counted |= is("content-length:");
        self.framed |= line.starts_with(b"PRI * HTTP/2.0");
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn spoilt(text: &str) -> bool {
        let verdicts: Vec<bool> = [1, 3, 7, text.len()]
            .iter()
            .map(|size| {
                let mut heads = Heads::default();
                let mut bytes = text.as_bytes().to_vec();
                bytes.chunks_mut(*size).for_each(|chunk| heads.look(chunk));
                bytes != text.as_bytes()
            })
            .collect();
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{text:?}");
        verdicts[0]
    }

    #[test]
    fn a_head_with_two_lengths_is_spoilt_in_either_order() {
        for text in [
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:5\r\nhost: x\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
            "POST / HTTP/1.1\ncontent-length: 5\ntransfer-encoding: chunked\n\n",
            "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: x\r\n\r\n",
        ] {
            assert!(spoilt(text), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_left_alone() {
        for text in [
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nPOST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nx: transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ncontent-length: 1\r\ntransfer-encoding: x\r\n\r\n",
        ] {
            assert!(!spoilt(text), "{text:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_given_up() {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut guarded = Guarded { patience: Duration::from_millis(20), ..Guarded::new(ours) };
        let wrote = guarded.write_all(&[0; 64]).await;
        assert_eq!(wrote.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(theirs);
        // Who takes it is waited for.
        let (ours, mut reader) = tokio::io::duplex(16);
        let mut guarded = Guarded::new(ours);
        let mut taken = [0; 64];
        let reading = tokio::io::AsyncReadExt::read_exact(&mut reader, &mut taken);
        let (wrote, read) = tokio::join!(guarded.write_all(&[0; 64]), reading);
        assert!(wrote.is_ok() && read.is_ok());
    }
}

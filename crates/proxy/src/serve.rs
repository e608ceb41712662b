//! Sends on to another replica what comes on an HTTP+SSE stream that this one reads.

use std::collections::VecDeque;
use std::sync::Arc;

use sluice_domain::ServerId;
use sluice_mcp::RawId;
use tokio::sync::mpsc;

use crate::bridge::{Bridge, Item, Ticket};
use crate::remote::{Remote, Reply, STILL_EVERY, Serving, What, Word};
use crate::state::Inner;

/// Where what is sent on comes from.
enum Origin {
    Answer(Ticket),
    Rest(VecDeque<Item>, mpsc::Receiver<Item>),
}

impl Origin {
    async fn next(&mut self) -> Option<Item> {
        match self {
            Self::Answer(ticket) => ticket.next().await,
            Self::Rest(backlog, items) => match backlog.pop_front() {
                Some(item) => Some(item),
                None => items.recv().await,
            },
        }
    }
}

/// Answers another replica's question about a stream, and sends on what it asks for.
pub(crate) async fn serve(
    inner: Arc<Inner>,
    from: String,
    ask: String,
    bridge: String,
    server: ServerId,
    what: What,
) {
    let remote = inner.remote.clone();
    let found = inner.bridges.get(&bridge, server);
    let (reply, origin) = match &found {
        None => (Reply::Gone, None),
        Some(found) => answer(&inner, found, &bridge, &what),
    };
    let serving = origin.and_then(|origin| Some((origin, remote.serve(&from, &ask)?)));
    let reply = Word::Reply { ask: ask.clone(), reply };
    if remote.say(&from, &reply, b"").await.is_err() {
        return;
    }
    if let Some((origin, serving)) = serving {
        // A use of the stream keeps it open.
        let used = move || inner.bridges.get(&bridge, server).is_some();
        send_on(&remote, &from, &ask, origin, &serving, used).await;
    }
}

fn answer(
    inner: &Inner,
    found: &Arc<Bridge>,
    bridge: &str,
    what: &What,
) -> (Reply, Option<Origin>) {
    let here = || Reply::Here { endpoint: found.endpoint.url.to_string() };
    let origin = match what {
        What::Answer { id, token } => {
            RawId::parse(id).and_then(|id| found.wait_for(id, token.as_deref())).map(Origin::Answer)
        }
        What::Listen => found.listen().map(|(backlog, items)| Origin::Rest(backlog, items)),
        What::End => {
            inner.bridges.remove(bridge);
            return (here(), None);
        }
    };
    match origin {
        Some(origin) => (here(), Some(origin)),
        None => (Reply::Taken, None),
    }
}

async fn send_on(
    remote: &Remote,
    from: &str,
    ask: &str,
    mut origin: Origin,
    serving: &Serving,
    used: impl Fn() -> bool,
) {
    let mut seq = 0;
    loop {
        let item = tokio::select! {
            () = serving.stop.cancelled() => return,
            item = origin.next() => item,
            () = tokio::time::sleep(STILL_EVERY) => {
                let word = Word::Still { ask: ask.to_owned(), from: remote.address().to_owned() };
                if used() && remote.say(from, &word, b"").await.is_ok() {
                    continue;
                }
                return;
            }
        };
        let Some(item) = item else {
            let _ = remote.say(from, &Word::Over { ask: ask.to_owned() }, b"").await;
            return;
        };
        if remote.send_on(from, ask, &mut seq, &item).await.is_err() || item.last {
            return;
        }
    }
}

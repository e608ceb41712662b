//! The links of the audit log: what a hash covers, and checking one after the other.

use sha2::{Digest, Sha256};

use super::AdminEvent;

/// A chain whose links are whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain {
    pub events: u64,
    /// 1, unless older events were removed.
    pub first_seq: i64,
    pub last_seq: i64,
    /// The last event's hash; empty if there is none.
    pub head: Vec<u8>,
}

/// The first event that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("event {seq} was changed")]
    Changed { seq: i64 },
    #[error("event {seq} does not follow the one before it")]
    Unlinked { seq: i64 },
    #[error("event {seq} is missing")]
    Missing { seq: i64 },
}

impl Chain {
    /// Adds the next event, if it fits.
    pub(super) fn add(&mut self, event: &AdminEvent) -> Result<(), Broken> {
        let seq = event.seq;
        if self.events == 0 {
            self.first_seq = seq;
            if seq == 1 && event.prev_hash != [0; 32] {
                return Err(Broken::Unlinked { seq });
            }
        } else if seq != self.last_seq + 1 {
            return Err(Broken::Missing { seq: self.last_seq + 1 });
        } else if event.prev_hash != self.head {
            return Err(Broken::Unlinked { seq });
        }
        if hash(event) != event.hash {
            return Err(Broken::Changed { seq });
        }
        self.events += 1;
        self.last_seq = seq;
        self.head.clone_from(&event.hash);
        Ok(())
    }
}

/// SHA-256 over every column, each with its length before it.
pub(super) fn hash(event: &AdminEvent) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut part = |bytes: Option<&[u8]>| match bytes {
        None => hash.update(u64::MAX.to_be_bytes()),
        Some(bytes) => {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
    };
    part(Some(b"sluice admin event 1"));
    part(Some(&event.prev_hash));
    part(Some(event.chain.as_bytes()));
    part(Some(&event.seq.to_be_bytes()));
    part(Some(event.id.uuid().as_bytes()));
    part(event.workspace_id.map(|id| *id.uuid().as_bytes()).as_ref().map(<[u8; 16]>::as_slice));
    part(Some(&event.at.timestamp_micros().to_be_bytes()));
    part(Some(event.actor_kind.as_str().as_bytes()));
    part(event.actor_id.as_ref().map(|id| id.as_bytes().as_slice()));
    part(Some(event.actor_name.as_bytes()));
    part(Some(event.address.as_bytes()));
    part(Some(event.action.as_bytes()));
    part(Some(event.object_kind.as_bytes()));
    part(Some(event.object_id.as_bytes()));
    part(Some(event.object_name.as_bytes()));
    part(event.before.as_ref().map(String::as_bytes));
    part(event.after.as_ref().map(String::as_bytes));
    hash.finalize().to_vec()
}

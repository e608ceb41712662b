//! The bounded queue between the data path and whoever writes the call log. A
//! place is taken before a call is forwarded, so that no forwarded call can go
//! unrecorded because the queue filled up meanwhile.

use sluice_domain::CallRecord;
use tokio::sync::mpsc;

/// The sending end. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallLog(mpsc::Sender<CallRecord>);

/// The queue holds as many records as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call log is full")]
pub struct LogFull;

/// A place in the queue that nobody else can take.
#[derive(Debug)]
pub struct LogPlace(mpsc::OwnedPermit<CallRecord>);

impl CallLog {
    /// A queue of `capacity` records. Drain the receiver in batches; what was received is the
    /// receiver's to keep until it is stored.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<CallRecord>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(sender), receiver)
    }

    /// Takes a place for one record.
    pub fn place(&self) -> Result<LogPlace, LogFull> {
        self.0.clone().try_reserve_owned().map(LogPlace).map_err(|_| LogFull)
    }

    /// How many places are free.
    pub fn free(&self) -> usize {
        self.0.capacity()
    }

    /// How many places there are.
    pub fn capacity(&self) -> usize {
        self.0.max_capacity()
    }
}

impl LogPlace {
    /// Puts the record in its place.
    pub fn put(self, record: CallRecord) {
        self.0.send(record);
    }
}

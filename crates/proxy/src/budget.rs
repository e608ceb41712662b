//! Memory for messages of upstreams that are held until they are complete,
//! counted over all calls together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// What a single message may hold without asking.
pub(crate) const FREE: usize = 64 * 1024;

/// The shared pot.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    left: Arc<AtomicUsize>,
}

/// One message's share; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    taken: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), taken: 0 }
    }
}

impl Share {
    /// Makes the share fit `held` bytes; false if the pot is empty, and then nothing changes.
    pub(crate) fn fit(&mut self, held: usize) -> bool {
        let wanted = held.saturating_sub(FREE);
        let left = &self.budget.left;
        if wanted <= self.taken {
            left.fetch_add(self.taken - wanted, Ordering::Relaxed);
        } else {
            let more = wanted - self.taken;
            let take = |left: usize| left.checked_sub(more);
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return false;
            }
        }
        self.taken = wanted;
        true
    }
}

impl Share {
    /// Bytes that hold the share until the last of them was sent.
    pub(crate) fn keep(self, bytes: Bytes) -> Bytes {
        if self.taken == 0 {
            return bytes;
        }
        Bytes::from_owner(Kept { bytes, _share: self })
    }
}

/// Bytes and what they cost.
struct Kept {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_held_as_long_as_its_bytes() {
        let budget = Budget::new(100);
        let mut share = budget.share();
        assert!(share.fit(FREE + 100));
        let kept = share.keep(Bytes::from_static(b"abc"));
        let part = kept.slice(1..);
        drop(kept);
        assert!(!budget.share().fit(FREE + 1) && part == "bc");
        drop(part);
        assert!(budget.share().fit(FREE + 100));
    }

    #[test]
    fn shares_come_back() {
        let budget = Budget::new(100);
        let mut one = budget.share();
        assert!(one.fit(FREE) && one.fit(FREE + 80));
        let mut two = budget.share();
        assert!(two.fit(FREE) && !two.fit(FREE + 30) && two.fit(FREE + 20));
        assert!(one.fit(0));
        assert!(two.fit(FREE + 100));
        drop(two);
        assert!(one.fit(FREE + 100));
    }
}

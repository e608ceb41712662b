//! How many requests and streams each grant has open at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_domain::GrantId;

#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCount(Arc<Mutex<HashMap<GrantId, usize>>>);

/// One open request or stream.
#[derive(Debug)]
pub(crate) struct OpenPlace {
    count: OpenCount,
    grant: GrantId,
}

impl OpenCount {
    /// Takes a place; none if the grant has as many open as it may.
    pub(crate) fn enter(&self, grant: GrantId, max: usize) -> Option<OpenPlace> {
        let mut counts = self.0.lock();
        let count = counts.entry(grant).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(OpenPlace { count: self.clone(), grant })
    }

    /// How many are open, all grants together.
    pub(crate) fn total(&self) -> usize {
        self.0.lock().values().sum()
    }
}

impl Drop for OpenPlace {
    fn drop(&mut self) {
        let mut counts = self.count.0.lock();
        if let Some(count) = counts.get_mut(&self.grant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.grant);
            }
        }
    }
}

//! Keeps out of lists of tools what the grant must not see.

use std::sync::Arc;

use sluice_mcp::{Era, ListProblem, SplicedList, splice_tools};

use crate::cache::Entry;
use crate::decide;
use crate::state::Inner;

/// Filters the lists of one request or stream.
pub(crate) struct ListFilter {
    inner: Arc<Inner>,
    era: Era,
}

impl ListFilter {
    pub(crate) const fn new(inner: Arc<Inner>, era: Era) -> Self {
        Self { inner, era }
    }

    /// The message without the tools that must not be seen; none if it may pass as it is.
    pub(crate) fn apply(
        &self,
        message: &[u8],
        entry: &Entry,
    ) -> Result<Option<Vec<u8>>, ListProblem> {
        let route = &entry.route;
        let mut keep = |name: &str| decide::lists(route, name);
        let list: SplicedList = splice_tools(message, &mut keep, self.era == Era::Modern)?;
        let record = &route.record;
        if !list.tools.is_empty() {
            let known = |name: &str| route.tool(name).is_some();
            let seen = &self.inner.seen;
            if seen.remember(record.grant.id, record.server.id, &list.tools, known) {
                self.inner.tools_seen.seen(record.workspace, record.server.id);
            }
        }
        Ok(list.body)
    }
}

//! Keeps out of answers what the grant must not see: tools in lists, and capabilities of methods that
//! the server's settings deny.

use std::sync::Arc;

use sluice_domain::{Access, ServerSettings};
use sluice_mcp::{
    Era, ListProblem, Message, MessageKind, SplicedList, splice_tools, without_capabilities,
};

use crate::cache::Entry;
use crate::decide;
use crate::state::Inner;

/// What the answers of a request or stream may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `tools/list`, or a stream on which its answer may come again.
    Lists,
    /// `initialize` or `server/discover`.
    Hello,
    /// Anything else. A list of tools may come all the same, where a client used an id twice.
    Other,
}

/// Filters the answers of one request or stream.
pub(crate) struct AnswerFilter {
    inner: Arc<Inner>,
    era: Era,
    asked: Asked,
}

impl AnswerFilter {
    pub(crate) const fn new(inner: Arc<Inner>, era: Era, asked: Asked) -> Self {
        Self { inner, era, asked }
    }

    /// Whether an answer must be seen whole before any of it is passed on.
    pub(crate) fn holds(&self) -> bool {
        self.asked != Asked::Other
    }

    /// Whether a message has to go through [`Self::apply`].
    pub(crate) fn concerns(&self, message: &Message) -> bool {
        message.lists_tools || (self.holds() && message.kind == MessageKind::Result)
    }

    /// The message without what must not be seen; none if it may pass as it is. `session`: it has one.
    pub(crate) async fn apply(
        &self,
        message: &[u8],
        entry: &Entry,
        session: bool,
    ) -> Result<Option<Vec<u8>>, ListProblem> {
        match self.asked {
            Asked::Hello => {
                let denied = denied(&entry.route.record.server.settings, session);
                without_capabilities(message, &denied)
            }
            Asked::Lists | Asked::Other => self.list(message, entry).await,
        }
    }

    fn cut(&self, message: &[u8], entry: &Entry) -> Result<SplicedList, ListProblem> {
        let mut keep = |name: &str| decide::lists(&self.inner, &entry.route, name);
        splice_tools(message, &mut keep, self.era == Era::Modern)
    }

    async fn list(&self, message: &[u8], entry: &Entry) -> Result<Option<Vec<u8>>, ListProblem> {
        let route = &entry.route;
        let mut list = self.cut(message, entry)?;
        if list.tools.is_empty() {
            return Ok(list.body);
        }
        let seen = &self.inner.seen;
        let news = seen.compare(route, &list.tools, &*self.inner.tools_seen);
        if news.turned {
            list = self.cut(message, entry)?;
        }
        seen.remember(route, &list.tools).await;
        if news.first || !news.tell.is_empty() {
            let (workspace, server) = (route.record.workspace, route.record.server.id);
            self.inner.tools_seen.seen(workspace, server, news.tell);
        }
        Ok(list.body)
    }
}

/// The capabilities of what is refused. Lists of tasks need a session, which keeps grants apart.
fn denied(settings: &ServerSettings, session: bool) -> Vec<&'static [&'static str]> {
    let (resources, prompts) =
        (settings.resources == Access::Deny, settings.prompts == Access::Deny);
    [
        (resources, &["resources"][..]),
        (prompts, &["prompts"]),
        (resources && prompts, &["completions"]),
        (!session, &["tasks", "list"]),
    ]
    .into_iter()
    .filter_map(|(denied, path)| denied.then_some(path))
    .collect()
}

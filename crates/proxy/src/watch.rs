//! Lets an open stream notice that its grant was revoked or its route changed.

use std::sync::Arc;
use std::time::Duration;

use sluice_domain::ServerId;
use sluice_vault::TokenHash;

use crate::cache::Entry;
use crate::carry;
use crate::session::Session;
use crate::state::Inner;

/// How often a stream looks by itself, in case the feed is silent, and shows that its session is used.
const LOOK: Duration = Duration::from_secs(30);

/// The route that a stream lives by.
pub(crate) struct Watch {
    inner: Arc<Inner>,
    token: TokenHash,
    pub(crate) entry: Arc<Entry>,
    session: Option<Arc<Session>>,
    /// Ends the stream when the gateway stops.
    ends_at_stop: bool,
}

/// What a watched stream is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// The route is another one now, and may list other tools.
    ListChanged,
    /// Nothing new.
    Same,
    /// The stream must end.
    Ended,
}

impl Watch {
    pub(crate) const fn new(
        inner: Arc<Inner>,
        token: TokenHash,
        entry: Arc<Entry>,
        session: Option<Arc<Session>>,
        ends_at_stop: bool,
    ) -> Self {
        Self { inner, token, entry, session, ends_at_stop }
    }

    /// The stream belongs to a session.
    pub(crate) const fn has_session(&self) -> bool {
        self.session.is_some()
    }

    fn server(&self) -> ServerId {
        self.entry.route.record.server.id
    }

    /// Waits until the grant may be used no longer; may be dropped and called again.
    pub(crate) async fn ended(&mut self) {
        while self.news().await != News::Ended {}
    }

    /// Waits for news; may be dropped and called again.
    pub(crate) async fn news(&mut self) -> News {
        let now = (self.inner.clock)();
        let expires = self.entry.route.record.grant.expires_at;
        let left = expires.map(|at| (at - now).to_std().unwrap_or_default());
        let look = LOOK.min(self.inner.options.session_idle / 4);
        tokio::select! {
            () = self.entry.changed.cancelled() => {}
            () = self.inner.stop.cancelled(), if self.ends_at_stop => return News::Ended,
            () = tokio::time::sleep(left.map_or(look, |left| left.min(look))) => {}
        }
        // Boxed: a stream that waits holds no room for it.
        Box::pin(self.look()).await
    }

    /// Looks at the route.
    async fn look(&mut self) -> News {
        if let Some(session) = &self.session {
            self.inner.sessions.keep(session, &self.entry).await;
            carry::keep(&self.inner, session);
        }
        let Ok(Some(entry)) = self.inner.cache.find(&self.token).await else { return News::Ended };
        if entry.route.admits(Some(self.server()), (self.inner.clock)()).is_err() {
            return News::Ended;
        }
        let (old, new) = (&self.entry.route.record, &entry.route.record);
        let changed = old.policy != new.policy
            || old.tools != new.tools
            || old.grant.observe != new.grant.observe
            || old.server.settings != new.server.settings;
        self.entry = entry;
        if changed { News::ListChanged } else { News::Same }
    }
}

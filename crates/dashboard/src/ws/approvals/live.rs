//! `/w/{ws}/approvals/live`: tells an open inbox that something changed, as server-sent events. What
//! changed is read from the page itself.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use sluice_control::{ApprovalNews, ApprovalsOf, Control, Page, Viewer};
use sluice_domain::ApprovalStatus;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::desk::Desk;
use crate::ws::watching::{LONGEST, LOOK, still_welcome};

struct Feed {
    control: Control,
    viewer: Viewer,
    news: Receiver<ApprovalNews>,
    until: Instant,
    first: bool,
}

pub(crate) async fn events(desk: Desk<Viewer>) -> Response {
    let feed = Feed {
        news: desk.control.approval_news(),
        control: desk.control,
        viewer: desk.who,
        until: Instant::now() + LONGEST,
        first: true,
    };
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(event), feed))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(LOOK)).into_response()
}

impl Feed {
    /// The next thing to tell; none ends the stream.
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.first) {
            return self.state().await;
        }
        loop {
            if Instant::now() >= self.until {
                return None;
            }
            match tokio::time::timeout(LOOK, self.news.recv()).await {
                Ok(Ok(ApprovalNews::Changed(workspace))) if workspace == self.viewer.workspace => {
                    return self.state().await;
                }
                Ok(Ok(ApprovalNews::Changed(_))) => {}
                // It lagged behind: something may have been of this workspace.
                Ok(Err(RecvError::Lagged(_))) => return self.state().await,
                Ok(Ok(ApprovalNews::Stop) | Err(RecvError::Closed)) => return None,
                Err(_) => self.still_welcome().await?,
            }
        }
    }

    /// None once the reader has signed out or is no member any more.
    async fn still_welcome(&mut self) -> Option<()> {
        self.viewer = still_welcome(&self.control, &self.viewer).await?;
        Some(())
    }

    async fn state(&mut self) -> Option<Event> {
        self.still_welcome().await?;
        let pending = self.control.pending_approvals(&self.viewer).await.ok()?;
        // Of however many wait: the inbox's first page has the riskiest, not the newest.
        let of = ApprovalsOf { status: Some(ApprovalStatus::Pending), ..ApprovalsOf::default() };
        let found = self.control.approvals(&self.viewer, &of, Page::first(1)).await.ok()?;
        let newest = found.items.first().map(|approval| {
            json!({"id": approval.id, "tool": approval.tool, "grant": approval.grant_label})
        });
        let state = json!({"pending": pending, "newest": newest});
        Some(Event::default().event("approvals").data(state.to_string()))
    }
}

//! Finding a workspace's things by a part of their names.

use sluice_store::find::{self, Hits};

use crate::{Control, ControlError, Viewer};

/// Of each kind.
const MOST: i64 = 6;

impl Control {
    /// Servers, tools, policies and live grants that have the text in their names.
    pub async fn find(&self, viewer: &Viewer, text: &str) -> Result<Hits, ControlError> {
        let text: String = text.trim().chars().take(100).collect();
        if text.is_empty() {
            return Ok(Hits::default());
        }
        let mut tx = self.read_in(viewer.workspace).await?;
        let hits = find::by_name(&mut tx.conn(), viewer.workspace, &text, MOST).await?;
        tx.commit().await?;
        Ok(hits)
    }
}

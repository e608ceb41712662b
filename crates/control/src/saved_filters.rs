//! A member's own names for filters of the log.

use sluice_domain::FilterId;
use sluice_store::saved_filters::{self, SavedFilter};

use crate::codes;
use crate::{Control, ControlError, Viewer, text};

/// Of one member in one workspace.
const MOST: usize = 30;
/// Bytes of the filters.
const LONGEST: usize = 2_000;

impl Control {
    /// The reader's own, by name.
    pub async fn saved_filters(&self, viewer: &Viewer) -> Result<Vec<SavedFilter>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let user = viewer.actor.user;
        let found = saved_filters::list(&mut tx.conn(), viewer.workspace, user).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Keeps filters, as the page's address has them, under a name.
    pub async fn save_filter(
        &self,
        viewer: &Viewer,
        name: &str,
        query: &str,
    ) -> Result<FilterId, ControlError> {
        let name = text::name("/name", name).map_err(|fault| ControlError::Invalid(vec![fault]))?;
        if query.is_empty() || query.len() > LONGEST {
            let detail = "choose some filters first, and not too long ones";
            return Err(ControlError::invalid("/query", codes::REQUIRED, detail));
        }
        let (workspace, user) = (viewer.workspace, viewer.actor.user);
        let mut tx = self.begin_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        if saved_filters::list(conn, workspace, user).await?.len() >= MOST {
            let detail = format!("{MOST} filters are saved already; delete one first");
            let (code, retry_after_s) = (codes::TOO_MANY_FILTERS, None);
            return Err(ControlError::TooMany { code, retry_after_s, detail });
        }
        let id = saved_filters::create(conn, workspace, user, (&name, query), self.now()).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Forgets one of the reader's own.
    pub async fn forget_filter(&self, viewer: &Viewer, id: FilterId) -> Result<(), ControlError> {
        let mut tx = self.begin_in(viewer.workspace).await?;
        let (workspace, user) = (viewer.workspace, viewer.actor.user);
        if !saved_filters::delete(&mut tx.conn(), workspace, user, id).await? {
            return Err(ControlError::NotFound("saved filter"));
        }
        tx.commit().await?;
        Ok(())
    }
}

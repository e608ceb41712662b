//! What a workspace gives to the public catalogue, with its consent, and takes back. One record an address, fed by
//! the server that agreed first; what it is made of names no workspace.

use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use sluice_domain::{ServerId, ServerSettings, ToolDefinition, WorkspaceId};
use sluice_risk::catalogue::shared::{self, Private, published};
use sluice_store::catalogue::{self as stored, SharedTools};
use sluice_store::servers::Server;
use sluice_store::{Conn, servers, workspaces};

use super::keep;
use crate::codes;
use crate::{Control, ControlError, Fault, Viewer};

/// Where such records come from, as the store says it.
pub(super) const ORIGIN: &str = "shared";

/// What of a server stands in the public catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The record's place in URLs.
    pub slug: String,
    pub tools: usize,
    /// Tools that stay at home, because their definitions hold something private.
    pub withheld: usize,
}

impl Control {
    /// What of a server stands in the public catalogue; `None`: nothing.
    pub async fn publication(
        &self,
        viewer: &Viewer,
        server: ServerId,
    ) -> Result<Option<Publication>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found = stored::find_shared(&mut tx.conn(), viewer.workspace, server).await?;
        tx.commit().await?;
        let Some(found) = found else { return Ok(None) };
        let count = |number: i64| usize::try_from(number).unwrap_or_default();
        let tools = definitions(&found)?.len();
        Ok(Some(Publication { slug: found.slug, tools, withheld: count(found.withheld) }))
    }

    /// Only what everybody can reach may be published.
    pub(crate) async fn check_publishing(
        &self,
        settings: &ServerSettings,
        url: &str,
    ) -> Result<(), Fault> {
        if !settings.publish_tools {
            return Ok(());
        }
        let refuse = |why: String| {
            let detail = format!("the tools of this server cannot be published: {why}");
            Fault::new("/publish_tools", codes::NOT_PUBLIC, detail)
        };
        shared::slug(url).map_err(|why| refuse(why.to_string()))?;
        let led = self.inner.upstream.check_public(url).await;
        led.map_err(|problem| refuse(problem.to_string()))
    }

    /// Gives what was just read from the server at its address, if its workspace agreed and still does. `public`:
    /// the address led to the public internet when it was read.
    pub(crate) async fn give(
        &self,
        conn: &mut Conn<'_>,
        read: (&Server, &[ToolDefinition]),
        public: bool,
        now: DateTime<Utc>,
    ) -> Result<(), ControlError> {
        let (asked, tools) = read;
        let workspace = asked.workspace_id;
        let Some(server) = servers::find(conn, workspace, asked.id).await? else { return Ok(()) };
        if !server.settings.publish_tools {
            return take_back(conn, workspace, server.id, now).await;
        }
        // Before the workspace is read: one that is being deleted or suspended takes all back under this lock.
        stored::lock_shared(conn).await?;
        let home = workspaces::find(conn, workspace).await?.filter(|one| !one.suspended);
        let same = server.upstream_url == asked.upstream_url;
        let place = shared::slug(&server.upstream_url).ok().filter(|_| public);
        let (Some(home), Some(slug), true) = (home, place, same) else {
            if same {
                take_back(conn, workspace, server.id, now).await?;
            }
            return Ok(());
        };
        let private = self.private(&server, [&home.name, &home.slug])?;
        let host = host(&server.upstream_url);
        let (kept, withheld) = published(tools, host, &private);
        let before = stored::find_shared(conn, workspace, server.id).await?;
        if before.as_ref().is_some_and(|before| before.slug != slug) {
            take_back(conn, workspace, server.id, now).await?;
        }
        let given = SharedTools {
            server_id: server.id,
            slug,
            address: server.upstream_url.clone(),
            definitions: serde_json::to_string(&kept).map_err(ControlError::internal)?,
            withheld: i64::try_from(withheld).unwrap_or(i64::MAX),
            since: before.map_or(now, |before| before.since),
        };
        stored::put_shared(conn, workspace, &given).await?;
        let feeder = stored::feeder(conn, &given.slug).await?;
        match feeder.filter(|feeder| feeder.server_id == server.id) {
            Some(feeder) => show(conn, &feeder, now).await,
            None => Ok(()),
        }
    }

    /// What must not be told of a server.
    fn private(&self, server: &Server, names: [&String; 2]) -> Result<Private, ControlError> {
        let (workspace, id) = (server.workspace_id, server.id);
        let headers = match server.sealed_headers.as_deref() {
            Some(sealed) => self.inner.vault.open_headers(workspace, id, sealed),
            None => Ok(sluice_vault::UpstreamHeaders::default()),
        };
        let headers = headers.map_err(ControlError::internal)?;
        let values = headers.0.iter().map(|(_, value)| value.expose_secret().to_owned()).collect();
        let names = names.into_iter().chain([&server.name]).cloned().collect();
        Ok(Private { values, names })
    }
}

/// The host of an address that has a place.
fn host(address: &str) -> &str {
    address.trim_start_matches("https://").split('/').next().unwrap_or_default()
}

fn definitions(shared: &SharedTools) -> Result<Vec<ToolDefinition>, ControlError> {
    serde_json::from_str(&shared.definitions).map_err(ControlError::internal)
}

/// Makes the record of what feeds it, or brings it up to date.
async fn show(
    conn: &mut Conn<'_>,
    feeder: &SharedTools,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let since = feeder.since.format("%Y-%m-%d").to_string();
    // A stored address had a place when it was stored.
    let Ok(record) = shared::record(&feeder.address, definitions(feeder)?, &since) else {
        return Ok(());
    };
    keep::keep(conn, ORIGIN, vec![record], now).await?;
    Ok(())
}

/// Takes back what a server gave. What others gave at that address, if they did, is shown in its place, in a record
/// of its own: nothing of this one stays, neither tools nor what changed.
pub(crate) async fn take_back(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    if stored::find_shared(conn, workspace, server).await?.is_none() {
        return Ok(());
    }
    stored::lock_shared(conn).await?;
    let Some(given) = stored::find_shared(conn, workspace, server).await? else { return Ok(()) };
    let feeder = stored::feeder(conn, &given.slug).await?;
    stored::remove_shared(conn, workspace, server).await?;
    if feeder.is_some_and(|feeder| feeder.server_id == server) {
        stored::remove_record(conn, &given.slug, ORIGIN).await?;
        stored::note_change(conn).await?;
        if let Some(next) = stored::feeder(conn, &given.slug).await? {
            show(conn, &next, now).await?;
        }
    }
    Ok(())
}

/// Takes back all that a workspace gave.
pub(crate) async fn take_back_all(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    stored::lock_shared(conn).await?;
    for server in stored::sharing(conn, workspace).await? {
        take_back(conn, workspace, server, now).await?;
    }
    Ok(())
}

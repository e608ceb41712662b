//! Finding a workspace's things by a part of their names.

use sluice_domain::{GrantId, PolicyId, ServerId, WorkspaceId};

use crate::column::record;
use crate::conn::fetch_all;
use crate::text::{contains, key, rows};
use crate::{Conn, StoreError};

record! {
    pub struct ServerHit {
        pub id: ServerId,
        pub name: String,
    }
}

record! {
    pub struct ToolHit {
        pub server_id: ServerId,
        pub server: String,
        pub name: String,
    }
}

record! {
    pub struct PolicyHit {
        pub id: PolicyId,
        pub server: String,
        pub name: String,
    }
}

record! {
    /// A live grant.
    pub struct GrantHit {
        pub id: GrantId,
        pub server: String,
        pub label: String,
    }
}

/// What has the text in its name; of each kind so many, the shortest names first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits {
    pub servers: Vec<ServerHit>,
    pub tools: Vec<ToolHit>,
    pub policies: Vec<PolicyHit>,
    pub grants: Vec<GrantHit>,
}

/// Looks for the text in names, in any case.
pub async fn by_name(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    text: &str,
    most: i64,
) -> Result<Hits, StoreError> {
    let (text, most) = (contains(&key(text)), rows(most));
    let servers = fetch_all!(
        conn,
        ServerHit,
        r"SELECT id, name FROM servers
          WHERE workspace_id = $1 AND deleted_at IS NULL AND name_key LIKE $2 ESCAPE '\'
          ORDER BY length(name), name, id LIMIT $3",
        workspace,
        &text,
        most
    )?;
    let tools = fetch_all!(
        conn,
        ToolHit,
        r"SELECT t.server_id, s.name AS server, t.name FROM tools t
          JOIN servers s ON s.workspace_id = t.workspace_id AND s.id = t.server_id
          WHERE t.workspace_id = $1 AND t.state <> 'gone' AND s.deleted_at IS NULL
            AND lower(t.name) LIKE $2 ESCAPE '\'
          ORDER BY length(t.name), t.name, s.name, t.id LIMIT $3",
        workspace,
        &text,
        most
    )?;
    let policies = fetch_all!(
        conn,
        PolicyHit,
        r"SELECT p.id, s.name AS server, p.name FROM policies p
          JOIN servers s ON s.workspace_id = p.workspace_id AND s.id = p.server_id
          WHERE p.workspace_id = $1 AND p.deleted_at IS NULL AND p.name_key LIKE $2 ESCAPE '\'
          ORDER BY length(p.name), p.name, s.name, p.id LIMIT $3",
        workspace,
        &text,
        most
    )?;
    let grants = fetch_all!(
        conn,
        GrantHit,
        r"SELECT g.id, s.name AS server, g.label FROM grants g
          JOIN servers s ON s.workspace_id = g.workspace_id AND s.id = g.server_id
          WHERE g.workspace_id = $1 AND g.revoked_at IS NULL AND g.label_key LIKE $2 ESCAPE '\'
          ORDER BY length(g.label), g.label, s.name, g.id LIMIT $3",
        workspace,
        &text,
        most
    )?;
    Ok(Hits { servers, tools, policies, grants })
}

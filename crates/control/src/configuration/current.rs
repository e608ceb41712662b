//! What stands in the workspace now, read in one piece, with credentials opened: they are compared,
//! and never shown.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use sluice_domain::{GrantId, ObjectKind, PolicyId, ServerId, ServerSettings};
use sluice_store::configuration::{self, AppliedObject};
use sluice_store::grants::{self, Grant, GrantFilter};
use sluice_store::join_domains::{self, JoinDomain};
use sluice_store::policies::{self, Policy};
use sluice_store::servers::{self, Server};
use sluice_store::workspaces::{self, Counts};
use sluice_store::{Conn, StoreError};
use sluice_vault::UpstreamHeaders;
use uuid::Uuid;

use super::wanted::key;
use crate::providers::required::required;
use crate::{Admin, Control, ControlError, Viewer};

/// Rows that are read in one go.
const PIECE: i64 = 1_000;

/// The whole of a workspace's configuration.
#[derive(Debug)]
pub(super) struct Current {
    /// The workspace's shown name.
    pub(super) name: String,
    /// The e-mail domains whose people may join, by name.
    pub(super) join_domains: Vec<JoinDomain>,
    /// The issuer of the identity provider that members come by.
    pub(super) provider: Option<String>,
    /// After how many seconds others are told of a call that nobody decided.
    pub(super) escalate_after: Option<i64>,
    /// By name.
    pub(super) servers: Vec<CurrentServer>,
    pub(super) applied: Vec<AppliedObject>,
    pub(super) counts: Counts,
}

/// A server with what hangs on it, by name.
#[derive(Debug)]
pub(super) struct CurrentServer {
    pub(super) row: Server,
    pub(super) headers: UpstreamHeaders,
    pub(super) policies: Vec<Policy>,
    /// Live ones.
    pub(super) grants: Vec<Grant>,
}

impl CurrentServer {
    pub(super) fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.iter().find(|policy| key(&policy.name) == key(name))
    }

    pub(super) fn policy_name(&self, id: Option<PolicyId>) -> Option<&str> {
        let policy = self.policies.iter().find(|policy| Some(policy.id) == id)?;
        Some(&policy.name)
    }

    pub(super) fn state(&self) -> String {
        server_state(&self.row.name, &self.row.upstream_url, &self.headers.0, &self.row.settings)
    }

    pub(super) fn grant_state(&self, grant: &Grant) -> String {
        let policy = self.policy_name(grant.policy_id);
        let at = grant.expires_at.map(|at| at.timestamp_micros());
        grant_state(&grant.label, policy, at, grant.observe, &grant.networks)
    }
}

impl Current {
    pub(super) fn server(&self, name: &str) -> Option<&CurrentServer> {
        self.servers.iter().find(|server| key(&server.row.name) == key(name))
    }

    /// What was applied under this name.
    pub(super) fn applied(&self, kind: ObjectKind, path: &str) -> Option<&AppliedObject> {
        self.applied.iter().find(|one| one.kind == kind && one.path == path)
    }

    /// How the object was left when it was applied.
    pub(super) fn left(&self, kind: ObjectKind, object: Uuid) -> Option<&AppliedObject> {
        self.applied.iter().find(|one| one.kind == kind && one.object_id == object)
    }
}

impl Control {
    /// Reads the workspace's configuration in one piece.
    pub(super) async fn current(&self, admin: &Admin) -> Result<Current, ControlError> {
        let mut tx = self.read_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let workspace = admin.workspace;
        let row = workspaces::find(conn, workspace).await?;
        let row = row.ok_or(ControlError::NotFound("workspace"))?;
        let provider = required(&row.settings).map(str::to_owned);
        let escalate_after = workspaces::escalate_after(conn, workspace).await?;
        let join_domains = join_domains::list(conn, workspace).await?;
        let counts = workspaces::counts(conn, workspace).await?;
        let applied = configuration::list(conn, workspace).await?;
        let rows = all_servers(conn, admin).await?;
        let mut policies = all_policies(conn, admin).await?;
        let mut grants = all_grants(conn, admin).await?;
        tx.commit().await?;
        let mut servers = Vec::new();
        for row in rows {
            let headers = self.opened(admin, &row)?;
            let policies = policies.remove(&row.id).unwrap_or_default();
            let grants = grants.remove(&row.id).unwrap_or_default();
            servers.push(CurrentServer { row, headers, policies, grants });
        }
        servers.sort_by_cached_key(|server| key(&server.row.name));
        Ok(Current {
            name: row.name,
            join_domains,
            provider,
            escalate_after,
            servers,
            applied,
            counts,
        })
    }

    fn opened(&self, admin: &Admin, server: &Server) -> Result<UpstreamHeaders, ControlError> {
        let Some(sealed) = &server.sealed_headers else { return Ok(UpstreamHeaders::default()) };
        let opened = self.inner.vault.open_headers(admin.workspace, server.id, sealed);
        opened.map_err(ControlError::internal)
    }
}

async fn all_servers(conn: &mut Conn<'_>, viewer: &Viewer) -> Result<Vec<Server>, StoreError> {
    let mut all: Vec<Server> = Vec::new();
    loop {
        let after = all.last().map(|last| last.id);
        let page = servers::list(conn, viewer.workspace, after, PIECE).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// By server, each by name.
async fn all_policies(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
) -> Result<BTreeMap<ServerId, Vec<Policy>>, StoreError> {
    let mut all: BTreeMap<ServerId, Vec<Policy>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = policies::list(conn, viewer.workspace, None, after, PIECE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for policy in page {
            all.entry(policy.server_id).or_default().push(policy);
        }
    }
    for of_server in all.values_mut() {
        of_server.sort_by_cached_key(|policy| key(&policy.name));
    }
    Ok(all)
}

/// By server, each by label; live ones.
async fn all_grants(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
) -> Result<BTreeMap<ServerId, Vec<Grant>>, StoreError> {
    let mut all: BTreeMap<ServerId, Vec<Grant>> = BTreeMap::new();
    let mut after: Option<GrantId> = None;
    loop {
        let live = GrantFilter::default();
        let page = grants::list(conn, viewer.workspace, live, after, PIECE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for grant in page {
            all.entry(grant.server_id).or_default().push(grant);
        }
    }
    for of_server in all.values_mut() {
        of_server.sort_by_cached_key(|grant| key(&grant.label));
    }
    Ok(all)
}

/// Settings that differ from the defaults, in the order of the settings.
pub(super) fn named_settings(settings: &ServerSettings) -> Vec<(String, serde_json::Value)> {
    let fields = |settings: &ServerSettings| match serde_json::to_value(settings) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let usual = fields(&ServerSettings::default());
    let named = fields(settings).into_iter();
    named.filter(|(name, value)| usual.get(name) != Some(value)).collect()
}

/// All of a server that a file can say, as text: equal texts, equal servers.
pub(super) fn server_state(
    name: &str,
    url: &str,
    headers: &[(String, SecretString)],
    settings: &ServerSettings,
) -> String {
    let headers: BTreeMap<_, _> =
        headers.iter().map(|(name, value)| (name.to_lowercase(), value.expose_secret())).collect();
    serde_json::json!([name, url, headers, named_settings(settings)]).to_string()
}

pub(super) fn policy_state(name: &str, document: &str) -> String {
    serde_json::json!([name, document]).to_string()
}

pub(super) fn grant_state(
    label: &str,
    policy: Option<&str>,
    expires_at_us: Option<i64>,
    observe: bool,
    networks: &[String],
) -> String {
    serde_json::json!([label, policy, expires_at_us, observe, networks]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_the_defaults_is_named() {
        assert_eq!(named_settings(&ServerSettings::default()), []);
        let odd = ServerSettings { hold_poisoned: false, idle_timeout_s: 7, ..Default::default() };
        let named = named_settings(&odd);
        assert_eq!(
            named,
            [("hold_poisoned".into(), false.into()), ("idle_timeout_s".into(), 7.into())]
        );
    }

    #[test]
    fn a_servers_state_knows_no_order_of_headers() {
        let pair = |name: &str, value: &str| (name.to_owned(), SecretString::from(value));
        let state = |headers: &[_]| server_state("s", "u", headers, &ServerSettings::default());
        let (a, b) = (pair("X-A", "1"), pair("x-b", "2"));
        assert_eq!(state(&[a.clone(), b.clone()]), state(&[b, pair("x-a", "1")]));
        assert_ne!(state(&[a]), state(&[pair("X-A", "2")]));
    }
}

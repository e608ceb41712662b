//! A compiled route: one grant's server, policy and tools, immutable, ready to
//! decide calls without another look at the store.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use ipnet::IpNet;
use sha2::{Digest, Sha256};
use sluice_domain::{RouteRecord, RouteTool, SecurityKind, ServerId, ToolState};
use sluice_policy::{CompiledPolicy, InputSchema, ToolFacts};
use sluice_upstream::Target;
use sluice_vault::Vault;

use crate::mirror::{Mirror, mirrors};
use crate::prepared::PreparedCharges;

/// A grant's policy.
#[derive(Debug)]
pub(crate) enum RoutePolicyState {
    /// None is attached: every call is refused.
    None,
    /// The stored text does not compile any more: every call is refused.
    Unreadable,
    Compiled(Box<CompiledPolicy>),
}

/// See the module's head.
pub(crate) struct Route {
    pub(crate) record: RouteRecord,
    pub(crate) policy: RoutePolicyState,
    /// None if the upstream's address or credentials cannot be used.
    pub(crate) target: Option<Target>,
    networks: Vec<Option<IpNet>>,
    index: HashMap<String, usize>,
    schemas: Vec<OnceLock<Pinned>>,
    pub(crate) prepared: PreparedCharges,
    weight: u32,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route").field("grant", &self.record.grant.id).finish_non_exhaustive()
    }
}

impl Route {
    pub(crate) fn compile(record: RouteRecord, vault: &Vault) -> Self {
        let policy = match &record.policy {
            None => RoutePolicyState::None,
            Some(policy) => match sluice_policy::compile(&policy.document) {
                Ok(compiled) => RoutePolicyState::Compiled(Box::new(compiled)),
                Err(problems) => {
                    tracing::error!(
                        policy = %policy.id, version = policy.version, problems = problems.len(),
                        "A stored policy does not compile; its grants are refused every call"
                    );
                    RoutePolicyState::Unreadable
                }
            },
        };
        let target = Target::from_route(vault, &record)
            .inspect_err(|error| {
                tracing::error!(server = %record.server.id, %error, "Cannot use a server's address or credentials");
            })
            .ok();
        let index =
            record.tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        // A network that cannot be read matches nobody.
        let networks = record.grant.networks.iter().map(|text| text.parse().ok()).collect();
        let schemas = record.tools.iter().map(|_| OnceLock::new()).collect();
        let weight = weigh(&record);
        let prepared = PreparedCharges::default();
        Self { record, policy, target, networks, index, schemas, prepared, weight }
    }

    /// Roughly its size in memory.
    pub(crate) const fn weight(&self) -> u32 {
        self.weight
    }

    /// Whether the grant may be used on this server now; otherwise what the security log says.
    pub(crate) fn admits(
        &self,
        server: Option<ServerId>,
        now: DateTime<Utc>,
    ) -> Result<(), SecurityKind> {
        if self.record.grant.revoked || self.record.suspended {
            return Err(SecurityKind::RevokedToken);
        }
        if self.record.grant.expires_at.is_some_and(|at| at <= now) {
            return Err(SecurityKind::ExpiredToken);
        }
        match server {
            Some(server) if server == self.record.server.id => Ok(()),
            Some(_) => Err(SecurityKind::WrongServer),
            None => Err(SecurityKind::UnknownServer),
        }
    }

    /// Whether the grant may be used from this address.
    pub(crate) fn admits_address(&self, address: Option<IpAddr>) -> bool {
        self.networks.is_empty()
            || address.is_some_and(|address| {
                let address = address.to_canonical();
                self.networks.iter().flatten().any(|network| network.contains(&address))
            })
    }

    /// A tool of the server's own list.
    pub(crate) fn tool(&self, name: &str) -> Option<&RouteTool> {
        let tool = self.index.get(name).map(|at| &self.record.tools[*at])?;
        (tool.state != ToolState::Gone).then_some(tool)
    }

    /// What the policy may know of a tool; `seen`: the grant was shown it in a list.
    pub(crate) fn facts(&self, name: &str, seen: bool) -> ToolFacts {
        let tool = self.tool(name);
        let state = tool.map(|tool| tool.state);
        ToolFacts {
            known: tool.is_some() || seen,
            changed: state == Some(ToolState::Changed),
            held: state == Some(ToolState::Held),
            category: tool.map(|tool| tool.category),
            severity: tool.map(|tool| tool.severity),
        }
    }

    /// Digest of the rules that bear on a tool.
    pub(crate) fn rules_digest(&self, name: &str) -> [u8; 32] {
        let rules = match &self.policy {
            RoutePolicyState::Compiled(policy) => policy.rules_text(name),
            RoutePolicyState::None | RoutePolicyState::Unreadable => String::new(),
        };
        Sha256::digest(rules.as_bytes()).into()
    }

    /// Why `arguments` do not fit the tool's reviewed input schema, or why that cannot be told, in words
    /// that repeat no value.
    pub(crate) fn schema_problem(&self, name: &str, arguments: &str) -> Option<String> {
        self.pinned(name)?.schema.as_ref()?.problem(arguments)
    }

    /// Whether a header that repeats an argument of a call says something else than the argument.
    pub(crate) fn header_differs(&self, name: &str, headers: &HeaderMap, arguments: &str) -> bool {
        let pinned = self.pinned(name);
        pinned.is_some_and(|p| p.mirrors.iter().any(|mirror| mirror.differs(headers, arguments)))
    }

    fn pinned(&self, name: &str) -> Option<&Pinned> {
        let at = *self.index.get(name)?;
        let schema = self.record.tools[at].input_schema.as_deref();
        Some(self.schemas[at].get_or_init(|| Pinned::read(schema)))
    }
}

/// What is made of a tool's pinned input schema.
#[derive(Debug, Default)]
struct Pinned {
    /// None: the tool has no schema, and anything fits.
    schema: Option<InputSchema>,
    mirrors: Vec<Mirror>,
}

impl Pinned {
    fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::default() };
        let schema = InputSchema::read(text);
        let document = schema.is_usable().then(|| serde_json::from_str(text).ok()).flatten();
        let mirrors = document.map(|document| mirrors(&document)).unwrap_or_default();
        Self { schema: Some(schema), mirrors }
    }
}

fn weigh(record: &RouteRecord) -> u32 {
    let policy = record.policy.as_ref().map_or(0, |policy| policy.document.len() * 4);
    let tools: usize = record
        .tools
        .iter()
        .map(|tool| 256 + tool.name.len() + tool.input_schema.as_ref().map_or(0, String::len) * 2)
        .sum();
    u32::try_from(4_096 + policy + tools).unwrap_or(u32::MAX)
}

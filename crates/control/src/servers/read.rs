//! Reading a server's tools: asked of the upstream, rated, stored, and told what changed.

use sluice_domain::{ServerId, ServerSettings, ToolDefinition, WorkspaceId};
use sluice_risk::{classify, findings};
use sluice_store::servers::{self, Health, Server};
use sluice_store::tools::{self, ReadChanges, ReadTool};
use sluice_upstream::{Target, ToolsRead, definition_hash};

use crate::codes::{self, ProblemCode};
use crate::{Admin, Control, ControlError};

/// What a read of the tools changed, by name.
pub type ReadReport = ReadChanges;

/// Why the tools could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFailure {
    /// A stable word.
    pub code: ProblemCode,
    /// What happened and what to do.
    pub words: String,
}

impl From<ReadFailure> for ControlError {
    fn from(failure: ReadFailure) -> Self {
        Self::Upstream { code: failure.code, words: failure.words }
    }
}

impl Control {
    /// Reads the tools from the upstream now, and says what changed.
    pub async fn refresh(&self, admin: &Admin, id: ServerId) -> Result<ReadReport, ControlError> {
        let server = self.server_row(admin, id).await?;
        Ok(self.read_server(admin, &server).await??)
    }

    pub(super) async fn read_server(
        &self,
        admin: &Admin,
        server: &Server,
    ) -> Result<Result<ReadReport, ReadFailure>, ControlError> {
        self.read_tools_of(admin.workspace, server).await
    }

    /// Reads the tools of a server again because an agent was shown something new. Whatever
    /// happens is noted with the server.
    pub async fn reread(
        &self,
        workspace: WorkspaceId,
        id: ServerId,
    ) -> Result<Result<ReadReport, ReadFailure>, ControlError> {
        let mut tx = self.read_in(workspace).await?;
        let server = servers::find(&mut tx.conn(), workspace, id).await?;
        tx.commit().await?;
        let server = server.ok_or(ControlError::NotFound("server"))?;
        self.read_tools_of(workspace, &server).await
    }

    /// Notes definitions that a list which passed by showed to agents, and that are not as reviewed.
    pub async fn shown(
        &self,
        workspace: WorkspaceId,
        id: ServerId,
        definitions: Vec<ToolDefinition>,
    ) -> Result<Option<ReadReport>, ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(workspace).await?;
        let server = servers::find(&mut tx.conn(), workspace, id).await?;
        let server = server.ok_or(ControlError::NotFound("server"))?;
        let rated: Vec<ReadTool> =
            definitions.into_iter().map(|tool| rate(tool, &server.settings)).collect();
        let report = tools::note_shown(&mut tx.conn(), workspace, id, &rated, now).await?;
        tx.commit().await?;
        Ok(report)
    }

    /// No transaction is open while the upstream works.
    async fn read_tools_of(
        &self,
        workspace: WorkspaceId,
        server: &Server,
    ) -> Result<Result<ReadReport, ReadFailure>, ControlError> {
        let read = self.ask(workspace, server).await;
        let public = server.settings.publish_tools
            && self.inner.upstream.check_public(&server.upstream_url).await.is_ok();
        let now = self.now();
        let mut tx = self.begin_in(workspace).await?;
        let conn = &mut tx.conn();
        let failure = match read {
            Ok(read) => {
                let rate = |tool: &ToolDefinition| rate(tool.clone(), &server.settings);
                let rated: Vec<ReadTool> = read.tools.iter().map(rate).collect();
                let report = tools::replace_read(conn, workspace, server.id, &rated, now).await?;
                self.give(conn, (server, &read.tools), public, now).await?;
                let health = Health::Read {
                    protocol_version: Some(&read.protocol_version),
                    server_name: read.server_name.as_deref(),
                };
                servers::set_health(conn, workspace, server.id, health, now).await?;
                tx.commit().await?;
                let report = report.ok_or(ControlError::NotFound("server"))?;
                return Ok(Ok(report));
            }
            Err(failure) => failure,
        };
        let health = Health::Failed { code: failure.code.as_str(), words: &failure.words };
        servers::set_health(conn, workspace, server.id, health, now).await?;
        tx.commit().await?;
        tracing::info!(%workspace, server = %server.id, code = %failure.code, "Could not read tools");
        Ok(Err(failure))
    }

    async fn ask(&self, workspace: WorkspaceId, server: &Server) -> Result<ToolsRead, ReadFailure> {
        let target = Target::build(
            &self.inner.vault,
            workspace,
            server.id,
            &server.upstream_url,
            server.sealed_headers.as_deref(),
            &server.settings,
            server.revision,
        )
        .map_err(|error| ReadFailure {
            code: codes::SERVER_UNUSABLE,
            words: format!("{error}; edit the server's address or credentials"),
        })?;
        self.inner.upstream.read_tools(&target, self.now()).await.map_err(|error| ReadFailure {
            code: ProblemCode::of(error.code()),
            words: format!("{error}. {}", error.advice()),
        })
    }
}

fn rate(definition: ToolDefinition, settings: &ServerSettings) -> ReadTool {
    let (rating, findings) = (classify(&definition), findings(&definition));
    let json = |value: Result<serde_json::Value, _>| value.unwrap_or_default();
    ReadTool {
        hash: definition_hash(&definition),
        category: rating.category,
        severity: rating.severity,
        hold: settings.hold_poisoned && !findings.is_empty(),
        rating: json(serde_json::to_value(&rating)),
        findings: json(serde_json::to_value(&findings)),
        definition,
    }
}

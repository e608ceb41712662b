//! `sluice audit`: checks the chains of the admin audit log, and writes them out. Works beside a
//! running server.

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use sluice_control::operator::{ChainReport, ChainState, Operator};
use sluice_web::export::{self, EventBody};

use crate::commands::admin::{operator, refused};
use crate::failure::{Failure, Outcome};
use crate::say;
use crate::settings::StorageArgs;

/// The admin audit log.
#[derive(Debug, Args)]
pub(crate) struct AuditCommand {
    #[command(subcommand)]
    what: Audit,
}

#[derive(Debug, Subcommand)]
enum Audit {
    /// Checks that no event was changed or removed: of one workspace, or of all.
    ///
    /// What was cut off at the end cannot be seen from the rest: note the newest hash elsewhere, and
    /// give it as --head.
    Verify {
        /// The workspace's slug; all chains without it.
        #[arg(long)]
        workspace: Option<String>,
        /// A hash that was noted earlier and must still be there.
        #[arg(long, value_name = "HASH", requires = "workspace")]
        head: Option<String>,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Writes a workspace's events to standard output, oldest first.
    Export {
        /// The workspace's slug.
        #[arg(long)]
        workspace: String,
        /// How they are written.
        #[arg(long, value_enum, default_value_t = Format::Ndjson)]
        format: Format,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Ndjson,
    Csv,
}

impl Format {
    fn written(self) -> export::Format {
        match self {
            Self::Ndjson => export::Format::Ndjson,
            Self::Csv => export::Format::Csv,
        }
    }
}

pub(crate) async fn run(command: AuditCommand) -> Outcome {
    match command.what {
        Audit::Verify { workspace, head, storage } => {
            let operator = operator(&storage).await?;
            let found = operator.verify_audit(workspace.as_deref(), head.as_deref()).await;
            report(&found.map_err(refused)?)
        }
        Audit::Export { workspace, format, storage } => {
            export(&operator(&storage).await?, &workspace, format).await
        }
    }
}

fn report(chains: &[ChainReport]) -> Outcome {
    let mut broken = 0;
    for chain in chains {
        let name = chain.workspace.as_deref().map_or_else(
            || "the installation's own chain".to_owned(),
            |slug| format!("workspace {slug}"),
        );
        match &chain.state {
            ChainState::Whole { events: 0, .. } => say!("{name}: no events"),
            ChainState::Whole { events, head } => say!("{name}: {events} events, head {head}"),
            ChainState::Broken(words) => {
                broken += 1;
                say!("{name}: BROKEN: {words}");
            }
        }
    }
    match broken {
        0 => Ok(()),
        1 => Err(Failure::bad(anyhow!("one chain is broken, see above"))),
        many => Err(Failure::bad(anyhow!("{many} chains are broken, see above"))),
    }
}

async fn export(operator: &Operator, workspace: &str, format: Format) -> Outcome {
    let chain = operator.find_workspace(workspace).await.map_err(refused)?;
    let written = format.written();
    if let Some(head) = written.head::<EventBody>() {
        say!("{head}");
    }
    let mut after = 0;
    loop {
        let piece = operator.audit_after(chain, after).await.map_err(refused)?;
        let Some(last) = piece.last() else { return Ok(()) };
        after = last.seq;
        for event in piece {
            say!("{}", written.line(&EventBody::from(event)));
        }
    }
}

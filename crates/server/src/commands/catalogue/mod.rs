//! `sluice catalogue`: fills the public catalogue from registries and files, and shows its records. Works beside
//! a running server, which sees what changed within seconds.

mod fetch;
mod import;
mod show;

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use sluice_control::catalogue::{Keeper, SyncError, SyncReport, origin_of};
use sluice_risk::catalogue::registry::OFFICIAL;
use url::Url;
use uuid::Uuid;

use self::fetch::Fetcher;
use crate::commands::admin::refused;
use crate::failure::{Failure, Outcome};
use crate::open::{self, Schema};
use crate::settings::StorageArgs;
use crate::{clock, data_dir, say};

/// `sluice catalogue …`
#[derive(Debug, Args)]
pub(crate) struct CatalogueCommand {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Reads a registry (`GET /v0.1/servers`) to its end: at first all of it, later what changed since.
    ///
    /// A run that was cut short goes on where it stood. Registries tell no tools; `import` does.
    Sync {
        /// The registry's address.
        #[arg(long, default_value = OFFICIAL, value_name = "URL")]
        registry: String,
        /// This registry lets only a name's owner publish under it, as the official one does.
        #[arg(long)]
        trust_names: bool,
        /// Begins anew and reads all of it.
        #[arg(long)]
        full: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Keeps records of a file: one JSON object a line, an array, or a registry's page. A record is what a
    /// registry tells of a server, with its `tools` beside it where they are known.
    Import {
        /// The file; `-` for standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Shows what readers of public pages reported as mistakes, newest first.
    Reports {
        /// Takes this report away, once it was seen to.
        #[arg(long, value_name = "ID")]
        close: Option<Uuid>,
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Shows a record: its grade with every signal, its tools with their risk, and what changed.
    Show {
        /// Its name, such as `io.github.owner/name`, or its place in `/tools/…`.
        name: String,
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

pub(crate) async fn run(command: CatalogueCommand) -> Outcome {
    match command.task {
        Task::Sync { registry, trust_names, full, storage } => {
            sync(&registry, trust_names, full, &storage).await
        }
        Task::Import { file, storage } => import::run(&keeper(&storage).await?, &file).await,
        Task::Reports { close, json, storage } => {
            reports(&keeper(&storage).await?, close, json).await
        }
        Task::Show { name, json, storage } => {
            let found = keeper(&storage).await?.find(&name).await.map_err(refused)?;
            let record = found.ok_or_else(|| {
                Failure::bad(anyhow!("the catalogue has no record `{}`", show::plain(&name)))
                    .remedy("search for it on the page /tools of a running Sluice")
            })?;
            if json {
                say!("{}", show::value(&record));
            } else {
                say!("{}", show::text(&record));
            }
            Ok(())
        }
    }
}

async fn reports(keeper: &Keeper, close: Option<Uuid>, json: bool) -> Outcome {
    const MOST: i64 = 1_000;
    if let Some(id) = close {
        let there = keeper.close_report(id).await.map_err(refused)?;
        return if there { Ok(()) } else { Err(Failure::bad(anyhow!("there is no report {id}"))) };
    }
    for report in keeper.reports(MOST).await.map_err(refused)? {
        if json {
            say!("{}", show::report(&report));
        } else {
            let at = report.at.format("%Y-%m-%d %H:%M UTC");
            let contact = if report.contact.is_empty() { "no contact" } else { &report.contact };
            say!(
                "{at}  {}  {}\n  {}\n  {}",
                report.id,
                show::plain(&report.page),
                show::plain(&report.text),
                show::plain(contact)
            );
        }
    }
    Ok(())
}

async fn keeper(storage: &StorageArgs) -> Outcome<Keeper> {
    storage.check().map_err(Failure::settings)?;
    data_dir::prepare(storage)?;
    let db = open::database(storage, Schema::FillEmpty).await?;
    Ok(Keeper::new(db, clock::function()))
}

async fn sync(registry: &str, trust: bool, full: bool, storage: &StorageArgs) -> Outcome {
    let origin = origin_of(registry);
    let url = Url::parse(&origin).context("the registry's address cannot be read");
    let url = url.map_err(Failure::settings)?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !matches!(url.scheme(), "http" | "https") || !plain {
        return Err(Failure::settings(anyhow!(
            "`{}` is no registry's address",
            show::plain(&origin)
        ))
        .remedy(format!("give one such as {OFFICIAL}, without a user, a query or a fragment")));
    }
    let keeper = keeper(storage).await?;
    match keeper.sync(&origin, trust, full, &Fetcher::new()).await {
        Ok(report) => {
            say!("{}", told(&origin, &report));
            Ok(())
        }
        Err(error @ SyncError::Fetch { .. }) => Err(Failure::dependency(anyhow!(error))
            .remedy("run the same command again: it goes on at this page")),
        Err(error @ SyncError::Page { .. }) => Err(Failure::bad(anyhow!(error)).remedy(
            "check that the address is an MCP registry's; the same command goes on at this page",
        )),
        Err(error @ SyncError::Endless { .. }) => Err(Failure::bad(anyhow!(error)).remedy(
            "tell the registry's operator; what was read is kept, and the next run begins anew",
        )),
        Err(SyncError::Control(error)) => Err(refused(error)),
    }
}

fn told(origin: &str, report: &SyncReport) -> String {
    let kept = report.kept;
    let scope = match (report.resumed, report.since) {
        (true, _) => "went on where the last run stood".to_owned(),
        (false, Some(since)) => {
            format!("asked for what changed since {}", since.format("%Y-%m-%d %H:%M UTC"))
        }
        (false, None) => "asked for all records".to_owned(),
    };
    format!(
        "Read {origin} to its end ({} pages; {scope}): {} records are new, {} changed, {} as they were, \
         {} not taken (older or less proven), {} could not be read.",
        report.pages, kept.added, kept.changed, kept.unchanged, kept.refused, report.skipped
    )
}

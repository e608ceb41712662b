//! `sluice migrate`: brings the database up to this version, safe to run several times at once.

use clap::Args;

use crate::failure::Outcome;
use crate::open::{self, Schema};
use crate::settings::{LogArgs, StorageArgs};
use crate::{data_dir, say, telemetry};

/// Settings of `sluice migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(args: MigrateArgs) -> Outcome {
    telemetry::start(&args.log)?;
    args.storage.check().map_err(crate::failure::Failure::settings)?;
    if args.storage.sqlite_file().is_some() {
        data_dir::prepare(&args.storage)?;
    }
    let db = open::database(&args.storage, Schema::Untouched).await?;
    let state = db.migrate().await.map_err(|error| open::explain(error, &args.storage))?;
    db.close().await;
    if state.found == state.known {
        say!("The database is up to date (schema {}).", state.known);
    } else {
        say!("Migrated the database from schema {} to {}.", state.found, state.known);
    }
    Ok(())
}

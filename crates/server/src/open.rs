//! Opens what a command works on: the database and the vault, with words for what can be wrong.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use secrecy::{ExposeSecret as _, SecretString};
use sluice_store::{Db, DbOptions, StoreError};
use sluice_vault::{KeyFileError, Vault, load_or_create};

use crate::failure::{Failure, Outcome};
use crate::settings::StorageArgs;

/// How a command treats the schema that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// Fills an empty database; an older schema is refused, since a server may be running on it.
    FillEmpty,
    /// Leaves it to the caller; makes the SQLite file if there is none.
    Untouched,
    /// Looks only.
    Leave,
}

/// Connects to the database.
pub(crate) async fn database(storage: &StorageArgs, schema: Schema) -> Outcome<Db> {
    let options = DbOptions {
        pool_size: storage.database_connections,
        acquire_timeout: Duration::from_secs(5),
        create_if_missing: schema != Schema::Leave,
    };
    let url = storage.database();
    let db = Db::connect(url.expose_secret(), &options).await.map_err(|e| explain(e, storage))?;
    match schema {
        Schema::FillEmpty => {
            if db.schema().await.map_err(|e| explain(e, storage))?.found == 0 {
                db.migrate().await.map_err(|e| explain(e, storage))?;
            }
            db.require_current_schema().await.map_err(|e| explain(e, storage))?;
        }
        Schema::Untouched | Schema::Leave => {}
    }
    Ok(db)
}

/// Reads the master keys, making the key file if no keys are given and there is none.
pub(crate) fn vault(storage: &StorageArgs) -> Outcome<Arc<Vault>> {
    let keys = match &storage.keys.master_keys {
        Some(keys) => keys.clone(),
        None => key_file(storage)?,
    };
    Vault::from_keys(&keys).map(Arc::new).map_err(|error| {
        Failure::settings(error).remedy("correct --master-keys (SLUICE_MASTER_KEYS)")
    })
}

fn key_file(storage: &StorageArgs) -> Outcome<SecretString> {
    let file = storage.key_file();
    load_or_create(&file, "k1").map_err(|error| {
        let remedy = match &error {
            KeyFileError::Open { .. } => None,
            KeyFileError::Damaged { .. } | KeyFileError::NotText { .. } => Some(format!(
                "restore {0} from a backup. If there is none, move it away: Sluice makes a new key, \
                 and upstream credentials must be entered again",
                file.display()
            )),
            _ => Some("give this user access to the data directory (--data-dir)".to_owned()),
        };
        let failure = Failure::settings(error);
        match remedy {
            Some(remedy) => failure.remedy(remedy),
            None => failure,
        }
    })
}

/// What it means that row-level security does not hold for Sluice's role.
pub(crate) fn unwalled(role: &str) -> String {
    format!(
        "the role `{role}` passes PostgreSQL's row-level security by, so the second wall between workspaces \
         does not stand; let Sluice connect as the database's owner, neither a superuser nor with BYPASSRLS"
    )
}

/// What a failure of the database means for the operator.
pub(crate) fn explain(error: StoreError, storage: &StorageArgs) -> Failure {
    let place = match storage.sqlite_file() {
        Some(file) => format!("the SQLite file {}", file.display()),
        None => "the database of SLUICE_DATABASE_URL".to_owned(),
    };
    let remedy = match &error {
        StoreError::Unavailable(_) => {
            let failure =
                Failure::dependency(anyhow!(error).context(format!("cannot use {place}")));
            return failure.remedy(if storage.sqlite_file().is_some() {
                "check that the file and its directory can be written and that the disk is not full"
            } else {
                "check that PostgreSQL runs, and the address, user and password of SLUICE_DATABASE_URL"
            });
        }
        StoreError::NewerSchema { .. } => format!(
            "{place} was migrated by a newer Sluice: start that version, or restore a backup from \
             before the upgrade"
        ),
        StoreError::OlderSchema { .. } => {
            "run `sluice migrate`, or start `sluice serve`".to_owned()
        }
        StoreError::AlreadyServed { .. } => {
            "SQLite serves one replica: stop the other one, or use \
             PostgreSQL and Redis (SLUICE_DATABASE_URL, SLUICE_REDIS_URL)"
                .to_owned()
        }
        StoreError::NotSluice { .. } => {
            format!("{place} belongs to something else; name another with SLUICE_DATABASE_URL")
        }
        StoreError::Address(_) => "correct SLUICE_DATABASE_URL".to_owned(),
        _ => return Failure::bad(anyhow!(error).context(format!("cannot use {place}"))),
    };
    Failure::settings(error).remedy(remedy)
}

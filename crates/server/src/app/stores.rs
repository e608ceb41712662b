//! What everything else stands on: database, keys, counters, and the locks that keep a second
//! `serve` away.

use std::fs::File;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use sluice_limits::{Counters, RedisOptions};
use sluice_store::{Db, ServingLock};
use sluice_vault::Vault;
use tracing::{info, warn};

use crate::failure::{Failure, Outcome};
use crate::open::{self, Schema};
use crate::settings::StorageArgs;
use crate::{clock, data_dir};

pub(super) struct Stores {
    pub(super) db: Db,
    pub(super) vault: Arc<Vault>,
    pub(super) counters: Counters,
    pub(super) locks: (Option<File>, Option<ServingLock>),
}

impl Stores {
    /// Opens all, migrating the database if it is this process that serves it.
    pub(super) async fn open(storage: &StorageArgs) -> Outcome<Self> {
        data_dir::prepare(storage)?;
        let data_lock = data_dir::lock(storage)?;
        let vault = open::vault(storage)?;
        let db = open::database(storage, Schema::Untouched).await?;
        let explain = |error| open::explain(error, storage);
        let serving_lock = db.lock_for_serving().map_err(explain)?;
        db.migrate().await.map_err(explain)?;
        if let Some(role) = db.unwalled_role().await.map_err(explain)? {
            warn!("{}", open::unwalled(&role));
        }
        let counters = counters(storage).await?;
        Ok(Self { db, vault, counters, locks: (data_lock, serving_lock) })
    }
}

async fn counters(storage: &StorageArgs) -> Outcome<Counters> {
    let Some(url) = &storage.redis_url else {
        let counters = Counters::in_memory(clock::function());
        match counters.load(&storage.counters_file()).await {
            Ok(0) => {}
            Ok(count) => info!(count, "Counters of the last run go on"),
            Err(error) => warn!(%error, "The saved counters cannot be read; limits begin anew"),
        }
        return Ok(counters);
    };
    let counters = Counters::redis(url.expose_secret(), RedisOptions::default())
        .await
        .map_err(|error| Failure::settings(error).remedy("correct SLUICE_REDIS_URL"))?;
    if let Some(fault) = counters.probe().await.fault {
        warn!(%fault, "Redis does not answer; calls with limits are refused until it does");
    }
    Ok(counters)
}

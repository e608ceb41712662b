//! Routes from the database.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sluice_domain::RouteRecord;
use sluice_proxy::{Routes, StoreUnavailable};
use sluice_store::{Db, StoreError, routes};
use sluice_vault::TokenHash;
use tracing::{error, warn};

/// An agent waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads routes from the database.
#[derive(Debug)]
pub(crate) struct StoredRoutes(pub(crate) Db);

impl Routes for StoredRoutes {
    fn load<'a>(
        &'a self,
        token: &'a TokenHash,
    ) -> BoxFuture<'a, Result<Option<RouteRecord>, StoreUnavailable>> {
        async move {
            match tokio::time::timeout(PATIENCE, find(&self.0, token)).await {
                Ok(Ok(found)) => Ok(found),
                Ok(Err(error)) if error.is_unavailable() => {
                    warn!(error = ?error, "A grant's route cannot be read");
                    Err(StoreUnavailable)
                }
                // Refused all the same: a route that cannot be read decides nothing.
                Ok(Err(error)) => {
                    error!(error = ?error, "A grant's route cannot be read");
                    Err(StoreUnavailable)
                }
                Err(_) => {
                    warn!("A grant's route cannot be read in time");
                    Err(StoreUnavailable)
                }
            }
        }
        .boxed()
    }
}

async fn find(db: &Db, token: &TokenHash) -> Result<Option<RouteRecord>, StoreError> {
    let mut tx = db.read().await?;
    let found = routes::find(&mut tx.conn(), token.as_bytes()).await?;
    tx.rollback().await?;
    Ok(found)
}

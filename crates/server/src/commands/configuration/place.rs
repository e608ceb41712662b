//! The database of this machine, with what `control` needs to work on it.

use std::sync::Arc;

use clap::Args;
use sluice_control::operator::Operator;
use sluice_control::{Admin, Bounds, Control, ControlParts, ControlSettings, Signup};
use sluice_limits::Counters;
use sluice_upstream::{Upstream, UpstreamOptions};
use sluice_vault::Passwords;
use url::Url;

use crate::commands::admin::refused;
use crate::failure::{Failure, Outcome};
use crate::open::{self, Schema};
use crate::settings::{NetworkArgs, StorageArgs};
use crate::{clock, data_dir};

/// The settings of the server beside which this works, so that both see the same.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    #[command(flatten)]
    pub(super) storage: StorageArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
}

/// An open installation.
pub(super) struct Local {
    pub(super) control: Control,
    operator: Operator,
}

impl Local {
    pub(super) async fn open(args: &PlaceArgs) -> Outcome<Self> {
        let network = &args.network;
        let private = network.places().private_upstreams;
        let urls = (network.public_url.clone(), network.proxy_url().clone());
        Self::with(&args.storage, private, urls).await
    }

    /// For a command that only reads: what it connects to and is reached at does not matter.
    pub(super) async fn open_storage(storage: &StorageArgs) -> Outcome<Self> {
        let nowhere = Url::parse("http://localhost").map_err(Failure::bad)?;
        Self::with(storage, false, (nowhere.clone(), nowhere)).await
    }

    async fn with(storage: &StorageArgs, private: bool, urls: (Url, Url)) -> Outcome<Self> {
        storage.check().map_err(Failure::settings)?;
        data_dir::prepare(storage)?;
        let vault = open::vault(storage)?;
        let db = open::database(storage, Schema::FillEmpty).await?;
        let options = UpstreamOptions { allow_private: private, ..UpstreamOptions::default() };
        let parts = ControlParts {
            db: db.clone(),
            vault: Arc::clone(&vault),
            upstream: Arc::new(Upstream::new(options)),
            // No call is decided here.
            counters: Counters::in_memory(clock::function()),
            mailer: None,
            passwords: Passwords::new(),
            settings: ControlSettings {
                public_url: urls.0,
                proxy_public_url: urls.1,
                signup: Signup::Closed,
                example_url: None,
                bounds: Bounds::default(),
                providers: Vec::new(),
            },
        };
        let control = Control::new(parts, clock::function());
        Ok(Self { control, operator: Operator::new(db, vault, clock::function()) })
    }

    pub(super) async fn enter(&self, slug: &str) -> Outcome<Admin> {
        self.operator.enter(slug).await.map_err(|error| {
            let missing = error.code() == "not_found";
            let failure = refused(error);
            if missing {
                failure.remedy(format!("`{slug}` is no workspace's slug here"))
            } else {
                failure
            }
        })
    }
}

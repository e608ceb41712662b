//! `sluice rotate-keys`: wraps everything sealed with the current master key.

use clap::Args;
use sluice_control::operator::{Operator, Rewrapped};

use crate::commands::admin;
use crate::failure::Outcome;
use crate::open::{self, Schema};
use crate::settings::StorageArgs;
use crate::{clock, say};

/// Wraps everything sealed with the current master key, so that older keys can be dropped: upstream
/// credentials, arguments of parked calls, answers kept for a repeat, notifications and their channels,
/// second factors of people.
///
/// First put the new key before the old one (`SLUICE_MASTER_KEYS`, or the file `master.keys` in the
/// data directory; `openssl rand -base64 32` makes one) and restart every replica; then run this;
/// then drop the old key. It works beside a running server, and may be run again at any time.
#[derive(Debug, Args)]
pub(crate) struct RotateKeysArgs {
    #[command(flatten)]
    storage: StorageArgs,
}

pub(crate) async fn run(args: RotateKeysArgs) -> Outcome {
    let storage = &args.storage;
    storage.check().map_err(crate::failure::Failure::settings)?;
    let vault = open::vault(storage)?;
    let current = vault.current_key_id().to_owned();
    let db = open::database(storage, Schema::FillEmpty).await?;
    let operator = Operator::new(db, vault, clock::function());
    let moved = operator.rewrap_all().await.map_err(admin::refused)?;
    let Rewrapped { credentials, arguments, answers, endpoints, messages, second_factors } = moved;
    say!(
        "Wrapped with the key `{current}`: the credentials of {credentials} servers, the arguments of \
         {arguments} parked calls, {answers} kept answers, {endpoints} channels, {messages} messages and {second_factors} second factors."
    );
    Ok(())
}

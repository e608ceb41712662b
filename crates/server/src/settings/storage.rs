//! Where data and keys live.

use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use sluice_store::Db;

/// Database, counters and keys; every command that touches them takes these.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Storage")]
pub(crate) struct StorageArgs {
    /// The directory of the SQLite file, generated keys and saved counters.
    #[arg(long, env = "SLUICE_DATA_DIR", default_value = "./sluice-data", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// `postgres://…`, or `sqlite://…` for a single replica [default: `sluice.db` in the data directory].
    #[arg(long, env = "SLUICE_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<SecretString>,
    /// `redis://…` or `rediss://…`, `redis-cluster://…`, `redis-sentinel://…`; without it counters live in this process.
    #[arg(long, env = "SLUICE_REDIS_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) redis_url: Option<SecretString>,
    #[command(flatten)]
    pub(crate) keys: MasterKeys,
    /// Database connections that this process may hold.
    #[arg(long, env = "SLUICE_DATABASE_CONNECTIONS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=500), value_name = "N")]
    pub(crate) database_connections: u32,
}

/// The keys that encrypt what is stored.
#[derive(Debug, Clone, Args)]
pub(crate) struct MasterKeys {
    /// Keys that encrypt stored upstream credentials: `id:base64,…`, the first is current [default: generated into the data directory].
    #[arg(long, env = "SLUICE_MASTER_KEYS", hide_env_values = true, value_name = "KEYS")]
    pub(crate) master_keys: Option<SecretString>,
}

impl StorageArgs {
    /// The database's address, the default filled in.
    pub(crate) fn database(&self) -> SecretString {
        self.database_url
            .clone()
            .unwrap_or_else(|| Db::address_of_file(&self.data_dir.join("sluice.db")).into())
    }

    /// The SQLite file, where the database is one.
    pub(crate) fn sqlite_file(&self) -> Option<PathBuf> {
        let Some(url) = &self.database_url else { return Some(self.data_dir.join("sluice.db")) };
        let path = url.expose_secret().strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        Some(PathBuf::from(path.split('?').next().unwrap_or(path)))
    }

    /// Where in-process counters wait between a clean stop and the next start.
    pub(crate) fn counters_file(&self) -> PathBuf {
        self.data_dir.join("counters.json")
    }

    /// The generated keys.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.data_dir.join("master.keys")
    }

    /// Whether anything of this process is kept in the data directory.
    pub(crate) fn needs_data_dir(&self) -> bool {
        self.keys.master_keys.is_none()
            || self.redis_url.is_none()
            || self.sqlite_file().is_some_and(|file| within(&self.data_dir, &file))
    }
}

fn within(directory: &Path, file: &Path) -> bool {
    file.starts_with(directory)
}

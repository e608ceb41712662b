//! `sluice doctor`: checks settings, database, Redis, clock and keys, and says what to do.

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use secrecy::ExposeSecret as _;
use sluice_limits::{Counters, RedisOptions};
use sluice_store::Db;

use crate::failure::{Failure, Outcome};
use crate::open::{self, Schema};
use crate::settings::ServeArgs;
use crate::{clock, data_dir, say};

/// Settings of `sluice doctor`: those of `sluice serve`, so that both see the same.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

pub(crate) async fn run(args: DoctorArgs) -> Outcome {
    let mut report = Report::default();
    let serve = &args.serve;
    report
        .note("settings", serve.check().map_err(Failure::settings).map(|()| "fit together".into()));
    report.note(
        "data directory",
        data_dir::prepare(&serve.storage).map(|()| "can be written".into()),
    );
    report.note(
        "keys",
        open::vault(&serve.storage)
            .map(|vault| format!("current key `{}`", vault.current_key_id())),
    );
    match open::database(&serve.storage, Schema::Leave).await {
        Ok(db) => {
            report.note("database", schema(&db, serve).await);
            if !db.is_sqlite() {
                match db.unwalled_role().await.map_err(|error| open::explain(error, &serve.storage))
                {
                    Ok(Some(role)) => say!("warn  row security: {}", open::unwalled(&role)),
                    held => report.note("row security", held.map(|_| "holds for this role".into())),
                }
            }
            report.note("clock", time(&db, serve).await);
        }
        Err(failure) => report.note("database", Err(failure)),
    }
    report.note("counters", counters(serve).await);
    let places = serve.network.places();
    report.note("upstreams", Ok(private(places.private_upstreams).to_owned()));
    report.end()
}

fn private(allowed: bool) -> &'static str {
    if allowed {
        "may have private and loopback addresses"
    } else {
        "must have public addresses (--allow-private-upstreams)"
    }
}

async fn schema(db: &Db, serve: &ServeArgs) -> Outcome<String> {
    let state = db.schema().await.map_err(|error| open::explain(error, &serve.storage))?;
    if state.found == 0 {
        return Ok("answers; empty, `sluice serve` will fill it".to_owned());
    }
    db.require_current_schema().await.map_err(|error| open::explain(error, &serve.storage))?;
    Ok(format!("answers; schema {}", state.found))
}

/// Replicas decide by their own clocks; the database's stands for the others'.
async fn time(db: &Db, serve: &ServeArgs) -> Outcome<String> {
    let theirs = db.clock().await.map_err(|error| open::explain(error, &serve.storage))?;
    let apart = apart(clock::now(), theirs);
    if apart > TimeDelta::seconds(2) {
        let text = format!("this clock and the database's are {} s apart", apart.num_seconds());
        return Err(Failure::bad(anyhow!(text)).remedy("let NTP set both clocks"));
    }
    Ok("agrees with the database's".to_owned())
}

fn apart(a: DateTime<Utc>, b: DateTime<Utc>) -> TimeDelta {
    (a - b).abs()
}

async fn counters(serve: &ServeArgs) -> Outcome<String> {
    let Some(url) = &serve.storage.redis_url else {
        return Ok("in this process (one replica)".to_owned());
    };
    let counters = Counters::redis(url.expose_secret(), RedisOptions::default())
        .await
        .map_err(|error| Failure::settings(error).remedy("correct SLUICE_REDIS_URL"))?;
    match counters.probe().await.fault {
        None => Ok("Redis answers".to_owned()),
        Some(fault) => {
            let remedy = "check that Redis runs, and the address and password of SLUICE_REDIS_URL";
            Err(Failure::dependency(fault).remedy(remedy))
        }
    }
}

#[derive(Default)]
struct Report {
    worst: Option<Failure>,
}

impl Report {
    fn note(&mut self, what: &str, found: Outcome<String>) {
        match found {
            Ok(text) => say!("ok    {what}: {text}"),
            Err(failure) => {
                let words = failure.to_string().replace("sluice: ", "").replace('\n', "\n      ");
                say!("FAIL  {what}: {words}");
                if self.worst.as_ref().is_none_or(|worst| worst.exit() < failure.exit()) {
                    self.worst = Some(failure);
                }
            }
        }
    }

    /// The exit code is the worst finding's.
    fn end(self) -> Outcome {
        match self.worst {
            None => Ok(()),
            Some(worst) => Err(worst.summed_up("something is wrong, see above")),
        }
    }
}

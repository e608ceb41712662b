//! Reads records from a file, however large, and keeps them in batches.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use sluice_control::catalogue::{Keeper, Kept};
use sluice_risk::catalogue::registry::{Origin, Record, Skipped, record};

use crate::commands::admin::refused;
use crate::failure::{Failure, Outcome};
use crate::{clock, say};

/// One line, which is one record.
const MOST_LINE: u64 = 64 * 1024 * 1024;
/// A file that is one JSON value.
const MOST_WHOLE: u64 = 512 * 1024 * 1024;
/// What goes into one transaction.
const RECORDS: usize = 200;
const TOOLS: usize = 4_000;

pub(super) async fn run(keeper: &Keeper, file: &Path) -> Outcome {
    let shown = file.display().to_string();
    let input: Box<dyn std::io::Read + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        let opened = std::fs::File::open(file).with_context(|| format!("cannot read {shown}"));
        Box::new(opened.map_err(Failure::settings)?)
    };
    let today = clock::now().format("%Y-%m-%d").to_string();
    let origin = Origin { base: "file", proves_names: false, today: &today };
    let mut input = BufReader::with_capacity(1024 * 1024, input);
    let mut batch = Batch::default();
    let mut number = 0;
    loop {
        number += 1;
        let line = line(&mut input).with_context(|| format!("line {number} of {shown}"));
        let Some(line) = line.map_err(Failure::bad)? else { break };
        let text = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(value) => batch.take(value, origin),
            Err(_) if batch.is_untouched() => {
                let whole = whole(text.to_vec(), &mut input).with_context(|| shown.clone());
                batch.take(whole.map_err(|error| Failure::bad(error).remedy(FORMS))?, origin);
            }
            Err(error) => {
                batch.flush(keeper).await?;
                return Err(Failure::bad(anyhow!("line {number} of {shown} is not JSON: {error}"))
                    .remedy(
                        "correct the line and run the command again; what came before it is kept",
                    ));
            }
        }
        while batch.is_full() {
            batch.flush(keeper).await?;
        }
    }
    batch.flush(keeper).await?;
    let Batch { kept, skipped, .. } = batch;
    say!(
        "Read {shown}: {} records are new, {} changed, {} as they were, {} not taken (a registry's record \
         stands), {} could not be read; {} tools are new, changed or gone.",
        kept.added,
        kept.changed,
        kept.unchanged,
        kept.refused,
        skipped.len(),
        kept.tools
    );
    match skipped.first() {
        Some(why) if kept == Kept::default() => {
            Err(Failure::bad(anyhow!("no record could be read: {why}")).remedy(FORMS))
        }
        _ => Ok(()),
    }
}

const FORMS: &str =
    "give one record a line, an array of records, or a registry's page: {\"servers\": […]}";

#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    skipped: Vec<Skipped>,
    kept: Kept,
    taken: bool,
}

impl Batch {
    fn is_untouched(&self) -> bool {
        !self.taken
    }

    fn take(&mut self, value: Value, origin: Origin<'_>) {
        self.taken = true;
        let items = match value {
            Value::Array(items) => items,
            Value::Object(mut object) => match object.remove("servers") {
                Some(Value::Array(items)) => items,
                _ => vec![Value::Object(object)],
            },
            other => vec![other],
        };
        for item in &items {
            match record(item, origin) {
                Ok(record) => self.records.push(record),
                Err(why) => self.skipped.push(why),
            }
        }
    }

    fn is_full(&self) -> bool {
        let tools: usize = self.records.iter().map(|record| record.entry.tools.len()).sum();
        self.records.len() >= RECORDS || tools >= TOOLS
    }

    async fn flush(&mut self, keeper: &Keeper) -> Outcome {
        while !self.records.is_empty() {
            let mut tools = 0;
            let fits = self.records.iter().take(RECORDS).take_while(|record| {
                tools += record.entry.tools.len();
                tools <= TOOLS
            });
            let count = fits.count().max(1);
            let part = self.records.drain(..count).collect();
            self.kept += keeper.keep("file", part).await.map_err(refused)?;
        }
        Ok(())
    }
}

fn line(input: &mut impl BufRead) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.take(MOST_LINE + 1).read_until(b'\n', &mut line)?;
    if line.len() as u64 > MOST_LINE {
        return Err(anyhow!("it is longer than {} MiB", MOST_LINE / 1024 / 1024));
    }
    Ok((read > 0).then_some(line))
}

/// The rest of a file that is one value over many lines.
fn whole(mut text: Vec<u8>, input: &mut impl BufRead) -> anyhow::Result<Value> {
    input.take(MOST_WHOLE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST_WHOLE {
        return Err(anyhow!(
            "it is larger than {} MiB; write one record a line",
            MOST_WHOLE / 1024 / 1024
        ));
    }
    serde_json::from_slice(&text).context("it is not JSON")
}

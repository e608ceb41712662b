//! `cargo xtask fuzz`: builds the fuzz targets with coverage and lets each run for a bounded time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::{find, run};

/// Counts edges and watches comparisons. Flags of the stable compiler; our code holds no unsafe
/// block, so the coverage is what matters and an address sanitizer is not needed.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Bounds of one run: an input that takes longer, or memory beyond this, is a finding like a panic.
const BOUNDS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=8192"];

/// Targets whose one input costs as much as so many of the others'.
const DEAR: [(&str, u32); 1] = [("policy_decisions", 25)];

/// How far a run goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// Whatever the machine does in the time, going on with what was kept.
    Seconds(u32),
    /// A number of inputs, beginning with the checked-in seeds alone: a faster machine walks no further, so
    /// that the same change meets the same inputs again.
    Inputs(u32),
}

impl Bound {
    /// The folder of a target's corpus, and the fuzzing engine's words for the bound.
    fn of(self, name: &str) -> Result<(PathBuf, String)> {
        let corpus = run::target().join("fuzz");
        let (folder, bound) = match self {
            Self::Seconds(seconds) => {
                (corpus.join("corpus").join(name), format!("-max_total_time={seconds}"))
            }
            Self::Inputs(inputs) => {
                let folder = corpus.join("walk").join(name);
                if folder.exists() {
                    std::fs::remove_dir_all(&folder)?;
                }
                let cost = DEAR.iter().find(|(dear, _)| *dear == name).map_or(1, |(_, cost)| *cost);
                (folder, format!("-runs={}", inputs / cost))
            }
        };
        std::fs::create_dir_all(&folder)?;
        Ok((folder, bound))
    }
}

/// Lines of a failed run that are shown.
const SHOWN: usize = 60;

/// Runs one target, or all of them side by side, each as far as its bound.
/// A walk that begins with the same `seed` is the same, so that CI's red is the change's doing.
pub(crate) fn run(bound: Bound, seed: u32, only: Option<&str>) -> Result<ExitCode> {
    let folder = run::root().join("fuzz");
    let targets = targets(&folder, only)?;
    // The fuzzing engine is written in C++.
    find::all(&[&find::CXX])?;
    let programs = build(&folder)?;
    let mut fine = true;
    let width = std::thread::available_parallelism().map_or(1, usize::from);
    for wave in targets.chunks(width) {
        let started: Result<Vec<_>> =
            wave.iter().map(|name| Run::start(&folder, &programs, name, bound, seed)).collect();
        for run in started? {
            fine &= run.finish()?;
        }
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files in `fuzz/targets`, or the one that is asked for.
fn targets(folder: &Path, only: Option<&str>) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder.join("targets")).context("fuzz/targets")?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    match only {
        None => Ok(names),
        Some(name) if names.iter().any(|other| other == name) => Ok(vec![name.to_owned()]),
        Some(name) => bail!("no fuzz target `{name}`; there are {}", names.join(", ")),
    }
}

/// Builds all targets; where their programs lie.
fn build(folder: &Path) -> Result<PathBuf> {
    let version = run::output(Command::new("rustc").arg("-vV")).context("rustc -vV")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not name its host")?;
    // Paths in the programs move addresses, which the engine takes for numbers worth trying.
    let flags = format!("{COVERAGE} --remap-path-prefix={}=.", run::root().display());
    let target = run::target().join("fuzz");
    let mut build = Command::new("cargo");
    // With `--target` the flags are for the targets alone, not for build scripts and macros.
    build.args(["build", "--quiet", "--release", "--locked", "--target", host, "--target-dir"]);
    build.arg(&target).current_dir(folder).env("RUSTFLAGS", flags);
    run::done(&mut build)?;
    Ok(target.join(host).join("release"))
}

/// A target at work.
struct Run {
    name: String,
    child: Child,
    log: PathBuf,
    /// Where the engine leaves what it found.
    found: PathBuf,
    /// Where that is kept.
    findings: PathBuf,
    since: Instant,
}

impl Run {
    fn start(folder: &Path, programs: &Path, name: &str, bound: Bound, seed: u32) -> Result<Self> {
        let (work, bound) = bound.of(name)?;
        let findings = folder.join("regressions").join(name);
        std::fs::create_dir_all(&findings)?;
        let dictionary = folder.join("dictionaries").join(format!("{name}.dict"));
        let layout = Layout::new(&work, &programs.join(name), &dictionary)?;
        layout.take(&folder.join("seeds").join(name))?;
        layout.take(&findings)?;
        let mut command = unmoved();
        command.args(BOUNDS).arg(bound).arg(format!("-seed={seed}"));
        command.args(["-reload=0", "-print_final_stats=1", "-verbosity=1"]);
        if dictionary.is_file() {
            command.arg(format!("-dict={DICTIONARY}"));
        }
        command.arg("-artifact_prefix=found/").arg(format!("-seed_inputs={}", layout.inputs()?));
        command.arg("corpus").current_dir(&layout.0).env_clear().env("RUST_BACKTRACE", "1");
        let log = layout.0.join("log");
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let found = layout.0.join("found");
        Ok(Self { name: name.to_owned(), child, log, found, findings, since: Instant::now() })
    }

    /// Waits for the end and says how it went.
    fn finish(mut self) -> Result<bool> {
        let status = self.child.wait()?;
        let told = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
        let (name, seconds) = (&self.name, self.since.elapsed().as_secs());
        if status.success() {
            let runs = figure(&told, "stat::number_of_executed_units:").unwrap_or("?");
            println!("{name}: {runs} inputs in {seconds} s, nothing found");
            return Ok(true);
        }
        for entry in std::fs::read_dir(&self.found)? {
            let entry = entry?;
            std::fs::copy(entry.path(), self.findings.join(entry.file_name()))?;
        }
        let lines: Vec<&str> = told.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(SHOWN)..].join("\n"));
        println!(
            "{name}: FOUND SOMETHING ({status}). The input lies in {}; keep it there: the ordinary \
             tests run it from now on.",
            self.findings.display()
        );
        Ok(false)
    }
}

/// Names within a run's folder.
const PROGRAM: &str = "./target";
const DICTIONARY: &str = "words.dict";

/// A folder in which everything a run needs has the same name wherever it lies: names stand on the
/// program's stack, and move the addresses that the engine takes for numbers worth trying.
struct Layout(PathBuf);

impl Layout {
    fn new(work: &Path, program: &Path, dictionary: &Path) -> Result<Self> {
        for gone in ["inputs", "found"] {
            let folder = work.join(gone);
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
        }
        for folder in ["inputs", "found", "corpus"] {
            std::fs::create_dir_all(work.join(folder))?;
        }
        std::fs::copy(program, work.join(PROGRAM)).context("the target's program")?;
        if dictionary.is_file() {
            std::fs::copy(dictionary, work.join(DICTIONARY))?;
        }
        Ok(Self(work.to_owned()))
    }

    /// Copies the inputs of a folder.
    fn take(&self, folder: &Path) -> Result<()> {
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            std::fs::copy(entry.path(), self.0.join("inputs").join(entry.file_name()))?;
        }
        Ok(())
    }

    /// All of them, in the order of their names: a folder's own order is its file system's.
    fn inputs(&self) -> Result<String> {
        let entries = std::fs::read_dir(self.0.join("inputs"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.map(|name| format!("inputs/{name}")).collect();
        names.sort();
        Ok(names.join(","))
    }
}

/// The run's program, at the same addresses every time where the machine allows that.
fn unmoved() -> Command {
    let fixed = Command::new("setarch").args(["-R", "true"]).output();
    if !fixed.is_ok_and(|output| output.status.success()) {
        return Command::new(PROGRAM);
    }
    let mut command = Command::new("setarch");
    command.args(["-R", PROGRAM]);
    command
}

fn figure<'t>(told: &'t str, label: &str) -> Option<&'t str> {
    told.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
}

//! `sluice export`, `import` and `apply`: a workspace's configuration as files. They work on the
//! database beside a running server, as the operator; or through the REST API with `--url`, with
//! nothing but a token.

mod folder;
mod place;
mod remote;
mod show;
mod tokens;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use sluice_api::configuration::{AppliedBody, PlanBody};
use sluice_control::configuration::{MAIN, Options};

use self::folder::Folder;
use self::place::{Local, PlaceArgs};
use self::remote::{Ask, Remote, RemoteArgs};
use self::tokens::Tokens;
use crate::commands::admin::{operator, refused};
use crate::failure::{Failure, Outcome};
use crate::say;
use crate::settings::StorageArgs;

/// Writes a workspace's configuration down: `workspace.yaml`, and a file for each policy.
///
/// Secrets are written as references, tokens not at all.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The workspace's slug.
    #[arg(long)]
    workspace: String,
    /// The directory to write to, made if it is missing.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    storage: StorageArgs,
}

/// Makes what a directory of files asks for and the workspace does not have.
///
/// What is there and different is left alone and refused, unless `--overwrite` says otherwise;
/// nothing is ever deleted.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The directory that `sluice export` wrote.
    directory: PathBuf,
    /// The workspace's slug; with --create also a name.
    #[arg(long)]
    workspace: String,
    /// Makes the workspace if it is missing, with the person of --email as its admin.
    #[arg(long, requires = "email")]
    create: bool,
    /// Who is the admin of a workspace that is made; the account is made if it is missing.
    #[arg(long)]
    email: Option<String>,
    /// Changes what is there and different.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Brings a workspace to what a file says, showing first what changes.
///
/// Applied twice, the second time changes nothing. What somebody changed by hand since is refused.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// `workspace.yaml`, or the directory that it lies in.
    #[arg(short, long, value_name = "FILE|DIR")]
    file: PathBuf,
    /// The workspace's slug.
    #[arg(long)]
    workspace: String,
    /// Deletes what was applied earlier and the file no longer names.
    #[arg(long)]
    prune: bool,
    /// Changes also what somebody changed by hand, or made without applying it.
    #[arg(long)]
    overwrite_drift: bool,
    /// Why, for the policies' versions: a commit, a ticket.
    #[arg(long, default_value = "", value_name = "TEXT")]
    note: String,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// How a plan is shown and carried out.
#[derive(Debug, Args)]
struct HowArgs {
    /// Shows the plan and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Where the tokens of new grants go: one JSON object a line, into a new file that only its
    /// owner may read; `-` is standard output. Without it no grant is made.
    #[arg(long, value_name = "FILE")]
    tokens_file: Option<PathBuf>,
}

pub(crate) async fn export(args: ExportArgs) -> Outcome {
    let files = if let Some(remote) = args.remote.open()? {
        remote.export(&args.workspace).await?
    } else {
        let place = Local::open_storage(&args.storage).await?;
        let admin = place.enter(&args.workspace).await?;
        place.control.export_configuration(&admin).await.map_err(refused)?
    };
    folder::write(&args.to, &files)?;
    let policies = files.len().saturating_sub(1);
    say!("Wrote {MAIN} and {policies} policies to {}.", args.to.display());
    Ok(())
}

pub(crate) async fn import(args: ImportArgs) -> Outcome {
    let folder = Folder::read(&args.directory)?;
    let slug = match &args.email {
        Some(email) if args.create && !args.how.dry_run => {
            let operator = operator(&args.place.storage).await?;
            operator.create_workspace(email, &args.workspace).await.map_err(refused)?
        }
        _ => args.workspace.clone(),
    };
    let options = Options {
        overwrite: args.overwrite,
        take_tokens: args.how.tokens_file.is_some(),
        note: format!("Imported by `sluice import` from {}", args.directory.display()),
        ..Options::default()
    };
    let way = "`--overwrite` changes what is there; `--dry-run` shows what that would be";
    locally(&args.place, &args.how, &slug, folder, options, way).await
}

pub(crate) async fn apply(args: ApplyArgs) -> Outcome {
    let folder = Folder::read(&args.file)?;
    let options = Options {
        prune: args.prune,
        overwrite: args.overwrite_drift,
        take_tokens: args.how.tokens_file.is_some(),
        remember: true,
        note: args.note.clone(),
    };
    if let Some(remote) = args.remote.open()? {
        return remotely(&remote, &args, folder, &options).await;
    }
    locally(&args.place, &args.how, &args.workspace, folder, options, DRIFT_WAY).await
}

const DRIFT_WAY: &str = "take the change over into the files, or run with `--overwrite-drift`";
const TOKENS_WAY: &str =
    "say where the tokens of new grants go: `--tokens-file FILE`, or `--tokens-file -`";

/// On the database, as the operator.
async fn locally(
    place: &PlaceArgs,
    how: &HowArgs,
    slug: &str,
    folder: Folder,
    options: Options,
    way: &str,
) -> Outcome {
    let place = Local::open(place).await?;
    let admin = place.enter(slug).await?;
    let (files, secrets) = (&folder.files, &folder.secrets);
    let plan = place.control.plan_configuration(&admin, files, secrets, &options).await;
    let plan = plan.map_err(|error| show::unusable(&folder, error))?;
    let body = PlanBody::from(&plan);
    if !how.json {
        show::plan(slug, &body);
    }
    if let Some(failure) = stop(how, &body, way)? {
        return Err(failure);
    }
    if how.dry_run {
        return Ok(());
    }
    let mut tokens = Tokens::new(how.tokens_file.as_deref(), how.json);
    tokens.prepare(&body)?;
    let done = place.control.apply_configuration(&admin, plan, &mut |made| tokens.keep(made)).await;
    let done = done.map_err(show::halted)?;
    let applied = AppliedBody { plan: body, tokens: tokens.shown(), warnings: done.warnings };
    show::applied(how.json, &applied);
    Ok(())
}

/// Through the REST API.
async fn remotely(remote: &Remote, args: &ApplyArgs, folder: Folder, options: &Options) -> Outcome {
    let (how, slug) = (&args.how, args.workspace.as_str());
    let ask = Ask::new(&folder, options);
    let body = remote.plan(slug, &ask).await?;
    if !how.json {
        show::plan(slug, &body);
    }
    if let Some(failure) = stop(how, &body, DRIFT_WAY)? {
        return Err(failure);
    }
    if how.dry_run {
        return Ok(());
    }
    let mut tokens = Tokens::new(how.tokens_file.as_deref(), how.json);
    tokens.prepare(&body)?;
    let applied = remote.apply(slug, &ask, &mut tokens).await?;
    show::applied(how.json, &AppliedBody { tokens: tokens.shown(), ..applied });
    Ok(())
}

/// Says why the plan will not be carried out, where it will not. A dry run shows it as JSON here.
fn stop(how: &HowArgs, plan: &PlanBody, way: &str) -> Outcome<Option<Failure>> {
    if how.json && (how.dry_run || plan.refusal.is_some()) {
        show::json(plan)?;
    }
    let Some(refusal) = &plan.refusal else { return Ok(None) };
    if how.dry_run && refusal.code == "tokens_wanted" {
        return Ok(None);
    }
    let way = if refusal.code == "tokens_wanted" { TOKENS_WAY } else { way };
    Ok(Some(Failure::bad(anyhow!("{}", refusal.detail)).remedy(way)))
}

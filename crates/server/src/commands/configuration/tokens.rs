//! Where the tokens of new grants go: a file of their own that only its owner may read, written and
//! flushed one by one, or standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use sluice_api::configuration::{PlanBody, TokenBody};
use sluice_control::configuration::NewGrantToken;

use crate::failure::{Failure, Outcome};
use crate::say;

/// Takes tokens as they are made.
#[derive(Debug)]
pub(super) struct Tokens {
    path: Option<PathBuf>,
    /// Standard output is one JSON object, which holds them.
    in_answer: bool,
    file: Option<File>,
    kept: Vec<TokenBody>,
}

impl Tokens {
    pub(super) fn new(path: Option<&Path>, json: bool) -> Self {
        let in_answer = json && path == Some(Path::new("-"));
        Self { path: path.map(Path::to_owned), in_answer, file: None, kept: Vec::new() }
    }

    /// Makes the file, if the plan makes grants. Nothing is overwritten.
    pub(super) fn prepare(&mut self, plan: &PlanBody) -> Outcome {
        let grants = plan.changes.iter().any(|one| one.action == "create" && one.kind == "grant");
        let Some(path) = self.path.as_deref().filter(|path| *path != Path::new("-") && grants)
        else {
            return Ok(());
        };
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = made
            .with_context(|| format!("cannot make the file {} for the tokens", path.display()))
            .map_err(|error| {
                Failure::settings(error).remedy("name a file that is not there yet")
            })?;
        self.file = Some(file);
        Ok(())
    }

    pub(super) fn keep(&mut self, made: &NewGrantToken) -> io::Result<()> {
        self.keep_body(TokenBody::from(made))
    }

    pub(super) fn keep_body(&mut self, token: TokenBody) -> io::Result<()> {
        let line = serde_json::to_string(&token)?;
        if let Some(file) = &mut self.file {
            writeln!(file, "{line}")?;
            file.sync_data()?;
        } else if self.in_answer {
            self.kept.push(token);
        } else {
            say!("{line}");
        }
        Ok(())
    }

    /// The tokens that the answer shows.
    pub(super) fn shown(&mut self) -> Vec<TokenBody> {
        std::mem::take(&mut self.kept)
    }

    /// Keeps what an answer brought, or says which grants must be given new tokens.
    pub(super) fn keep_all(&mut self, tokens: Vec<TokenBody>) -> Outcome {
        for token in tokens {
            let grant = token.grant.clone();
            self.keep_body(token).map_err(|error| {
                let error = anyhow!(error).context(format!("the token of `{grant}` was lost"));
                Failure::bad(error).remedy("give the grant a new token (rotate)")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use sluice_api::configuration::{ChangeBody, SummaryBody};

    use super::*;

    fn plan(action: &str) -> PlanBody {
        let change = ChangeBody {
            action: action.to_owned(),
            kind: "grant".to_owned(),
            server: Some("s".to_owned()),
            name: "g".to_owned(),
            fields: Vec::new(),
            document: Vec::new(),
            drift: None,
            notes: Vec::new(),
        };
        let summary = SummaryBody { create: 0, update: 0, delete: 0, unchanged: 0, orphan: 0 };
        PlanBody { changes: vec![change], summary, unmanaged: 0, refusal: None }
    }

    #[test]
    fn the_file_is_its_owners_alone_and_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        let mut idle = Tokens::new(Some(&path), false);
        idle.prepare(&plan("unchanged")).expect("no grant, no file");
        assert!(!path.exists());
        let mut tokens = Tokens::new(Some(&path), false);
        tokens.prepare(&plan("create")).expect("makes it");
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = |name: &str| name.to_owned();
        let body = TokenBody {
            server: text("s"),
            server_id: text("1"),
            grant: text("g"),
            grant_id: text("2"),
            proxy_url: text("u"),
            token: text("slg_x"),
        };
        tokens.keep_body(body).expect("keeps");
        let line = std::fs::read_to_string(&path).expect("reads");
        assert!(line.contains("slg_x") && line.ends_with('\n'), "{line}");
        assert!(Tokens::new(Some(&path), false).prepare(&plan("create")).is_err());
    }
}

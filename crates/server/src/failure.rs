//! How a command fails: an exit code, what is wrong, and what to do about it.

use std::fmt;
use std::process::ExitCode;

/// Exit codes are part of the outside contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The thing checked is bad.
    Bad = 1,
    /// Usage or settings.
    Settings = 2,
    /// A dependency is down.
    Dependency = 3,
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    remedy: Option<String>,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn bad(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Bad, error: error.into(), remedy: None }
    }

    pub(crate) fn settings(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Settings, error: error.into(), remedy: None }
    }

    pub(crate) fn dependency(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Dependency, error: error.into(), remedy: None }
    }

    /// Adds the way out.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same exit code in other words.
    pub(crate) fn retold(self, error: impl Into<anyhow::Error>) -> Self {
        Self { exit: self.exit, error: error.into(), remedy: None }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The same exit code under one short sentence, where the details were told already.
    pub(crate) fn summed_up(self, sentence: &'static str) -> Self {
        Self { exit: self.exit, error: anyhow::anyhow!(sentence), remedy: None }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sluice: {}", self.error)?;
        let mut said = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            // Some libraries paste their cause into their own text.
            if !said.contains(&cause) {
                write!(f, "\n  because: {cause}")?;
                said = cause;
            }
        }
        match &self.remedy {
            Some(remedy) => write!(f, "\n  what to do: {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let error = anyhow::anyhow!("address in use").context("cannot listen");
        let failure = Failure::settings(error).remedy("stop the other process");
        assert_eq!(
            failure.to_string(),
            "sluice: cannot listen\n  because: address in use\n  what to do: stop the other process"
        );
        assert_eq!(failure.code(), ExitCode::from(2));
    }
}

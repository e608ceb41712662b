//! "Report a mistake": anybody may, a few times an hour; the operator reads them.

use sluice_store::catalogue::{self, Report};
use uuid::Uuid;

use super::Keeper;
use crate::codes;
use crate::{Control, ControlError, Fault, Origin};

/// Reports that wait for the operator; more are not taken.
const MOST: i64 = 5_000;
const MOST_TEXT: usize = 4_000;
const LEAST_TEXT: usize = 5;
const MOST_PAGE: usize = 512;
const MOST_CONTACT: usize = 254;

/// What a reader wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportForm {
    /// Path and query of the page.
    pub page: String,
    pub text: String,
    /// May be empty.
    pub contact: String,
}

impl ReportForm {
    fn check(&self) -> Result<(), ControlError> {
        let length = self.text.trim().chars().count();
        let mut faults = Vec::new();
        if !(LEAST_TEXT..=MOST_TEXT).contains(&length) {
            let words = format!("say in {LEAST_TEXT} to {MOST_TEXT} characters what is wrong");
            faults.push(Fault::new("/text", codes::TEXT_LENGTH, words));
        }
        if self.contact.chars().count() > MOST_CONTACT {
            let words = format!("at most {MOST_CONTACT} characters");
            faults.push(Fault::new("/contact", codes::CONTACT_LENGTH, words));
        }
        let local = self.page.starts_with('/') && !self.page.starts_with("//");
        if !local || self.page.len() > MOST_PAGE || self.page.chars().any(char::is_control) {
            let words = "this is no page of this site".to_owned();
            faults.push(Fault::new("/page", codes::PAGE, words));
        }
        if faults.is_empty() { Ok(()) } else { Err(ControlError::Invalid(faults)) }
    }
}

impl Control {
    /// Keeps a reader's report.
    pub async fn report_mistake(
        &self,
        form: &ReportForm,
        from: &Origin,
    ) -> Result<(), ControlError> {
        form.check()?;
        self.inner.throttle.report(&from.address).await?;
        let report = Report {
            id: Uuid::now_v7(),
            at: self.now(),
            page: form.page.clone(),
            text: form.text.trim().to_owned(),
            contact: form.contact.trim().to_owned(),
        };
        let mut tx = self.begin().await?;
        let taken = catalogue::put_report(&mut tx.conn(), &report, MOST).await?;
        tx.commit().await?;
        if taken { Ok(()) } else { Err(ControlError::full("reports", MOST)) }
    }
}

impl Keeper {
    /// What readers reported, newest first.
    pub async fn reports(&self, limit: i64) -> Result<Vec<Report>, ControlError> {
        let mut tx = self.db.read().await?;
        let found = catalogue::reports(&mut tx.conn(), limit).await?;
        tx.rollback().await?;
        Ok(found)
    }

    /// Takes a report away once it was seen to; says whether it was there.
    pub async fn close_report(&self, id: Uuid) -> Result<bool, ControlError> {
        let mut tx = self.db.begin().await?;
        let there = catalogue::remove_report(&mut tx.conn(), id).await?;
        tx.commit().await?;
        Ok(there)
    }
}

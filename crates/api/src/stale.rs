//! A stale edit is answered with the other's change.

use serde::Serialize;
use sluice_control::ControlError;
use sluice_web::Problem;

/// The refusal; if somebody else was faster, with what stands now as `current`.
pub(crate) async fn with_current<T: Serialize>(
    error: ControlError,
    current: impl Future<Output = Result<T, Problem>>,
) -> Problem {
    let stale = matches!(error, ControlError::Stale { .. });
    let problem = Problem::from(error);
    if !stale {
        return problem;
    }
    let current = current.await.ok().and_then(|current| serde_json::to_value(current).ok());
    match current {
        Some(current) => problem.with("current", current),
        None => problem,
    }
}

//! Pages are added through a list that remembers them, so that one test can try each as everybody
//! (`tests/it/routes`): a page that is not in its table fails it.

use axum::Router;
use axum::routing::MethodRouter;

use crate::DashboardState;

/// A router that knows its paths.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    router: Router<DashboardState>,
    paths: Vec<&'static str>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn route(mut self, path: &'static str, to: MethodRouter<DashboardState>) -> Self {
        self.paths.push(path);
        Self { router: self.router.route(path, to), paths: self.paths }
    }

    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.paths.extend(others.paths);
        Self { router: self.router.merge(others.router), paths: self.paths }
    }

    pub(crate) fn into_router(self) -> Router<DashboardState> {
        self.router
    }

    pub(crate) fn into_paths(self) -> Vec<&'static str> {
        self.paths
    }
}

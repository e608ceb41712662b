//! Pages, forms, catalogue and docs, rendered on the server. Pages call `control` and show what it
//! says; nothing is decided here.

mod account;
mod approve;
mod assets;
mod auth;
mod catalogue;
mod clients;
mod desk;
mod errors;
mod faults;
mod filters;
mod flash;
mod frame;
mod markdown;
mod next;
mod page;
mod public;
mod routes;
mod start;
mod theme;
mod trace;
mod ui;
mod visitor;
mod ws;

use axum::Router;
use axum::extract::FromRef;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use sluice_control::Control;
use sluice_web::WebState;
use tower_http::compression::CompressionLayer;

pub use errors::error_pages;
use routes::Routes;

/// What the pages need of the rest of the program. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DashboardState {
    web: WebState,
    watchers: ws::watching::Watchers,
}

impl DashboardState {
    /// Everything comes through what the API uses as well.
    pub fn new(web: WebState) -> Self {
        Self { web, watchers: ws::watching::Watchers::default() }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.web.control
    }

    /// The public address, without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        self.web.settings.public_url.as_str().trim_end_matches('/')
    }

    /// Cookies are marked `Secure`.
    pub(crate) fn secure(&self) -> bool {
        self.web.settings.public_url.scheme() == "https"
    }
}

impl FromRef<DashboardState> for WebState {
    fn from_ref(state: &DashboardState) -> Self {
        state.web.clone()
    }
}

/// Every page, as its path is written here.
fn pages() -> Routes {
    Routes::new()
        .merge(public::routes())
        .merge(auth::routes())
        .merge(auth::code::routes())
        .merge(auth::links::routes())
        .merge(auth::providers::routes())
        .merge(auth::passkey::routes())
        .merge(account::routes())
        .merge(account::second_factor::routes())
        .merge(account::passkeys::routes())
        .merge(start::routes())
        .merge(ws::routes())
        .merge(approve::routes())
        .route("/theme", get(theme::get))
        .route("/static/{version}/{name}", get(assets::handler))
        .route("/favicon.ico", get(assets::favicon))
}

/// The paths of every page that [`router`] serves.
pub fn paths() -> Vec<&'static str> {
    pages().into_paths()
}

/// Every page. Put `sluice_web::wrap` around it.
pub fn router(state: DashboardState) -> Router {
    pages()
        .into_router()
        .fallback(errors::fallback)
        .method_not_allowed_fallback(sluice_web::method_not_allowed)
        .layer(from_fn_with_state(state.clone(), flash::clear))
        .layer(from_fn(error_pages))
        .layer(CompressionLayer::new())
        .with_state(state)
}

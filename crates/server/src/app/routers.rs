//! Which address serves which routes.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use sluice_api::ApiState;
use sluice_control::Control;
use sluice_dashboard::DashboardState;
use sluice_proxy::ProxyState;
use sluice_web::{Guard, WebSettings, WebState, not_found};

use crate::front::Front;
use crate::health::{self, Watched};
use crate::settings::{Places, ServeArgs};

/// What each address serves.
pub(super) struct Apps {
    pub(super) main: Front,
    pub(super) proxy: Option<Front>,
    pub(super) metrics: Option<Front>,
}

pub(super) fn build(
    args: &ServeArgs,
    places: &Places,
    control: Control,
    proxy: &ProxyState,
    watched: &Watched,
) -> Apps {
    let network = &args.network;
    let web = WebState::new(
        control,
        WebSettings {
            public_url: network.public_url.clone(),
            allowed_hosts: places.hosts.clone(),
            trusted_proxies: network.trusted_proxies.clone(),
        },
    );
    let role = network.role;
    let probes = || health::probes(watched.clone()).merge(not_offered());
    let scrape = |shared| health::metrics(watched.clone(), proxy.clone(), shared);
    let mut main = probes();
    if network.metrics_listen.is_none() {
        main = main.merge(scrape(true));
    }
    main = if role.serves_control() { main.merge(pages(&web)) } else { main.fallback(not_found) };
    main = sluice_web::wrap(main, &web);
    if role.serves_control() {
        main = main.layer(middleware::from_fn(error_pages));
    }
    let data_path = || Some((proxy.clone(), Guard::new(&web)));
    let here = role.serves_proxy() && network.proxy_listen.is_none();
    let apart = || sluice_web::wrap(probes().fallback(not_found), &web);
    Apps {
        main: Front::new(here.then(data_path).flatten(), main),
        proxy: network.proxy_listen.map(|_| Front::new(data_path(), apart())),
        metrics: network.metrics_listen.map(|_| Front::new(None, scrape(false))),
    }
}

fn pages(web: &WebState) -> Router {
    sluice_api::router(ApiState { web: web.clone() })
        .merge(sluice_dashboard::router(DashboardState::new(web.clone())))
}

/// Refusals of the layers are pages too, but not where programs ask.
async fn error_pages(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if ["/api", "/.well-known"].iter().any(|of_programs| path.starts_with(of_programs)) {
        return next.run(request).await;
    }
    sluice_dashboard::error_pages(request, next).await
}

/// Clients with OAuth built in ask here what is offered: nothing, quickly and as JSON.
fn not_offered() -> Router {
    Router::new().route("/.well-known/{*what}", any(not_found))
}

//! Which address serves which routes.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use metrics_exporter_prometheus::PrometheusHandle;
use sluice_api::ApiState;
use sluice_control::Control;
use sluice_dashboard::DashboardState;
use sluice_proxy::ProxyState;
use sluice_web::{WebSettings, WebState, not_found};

use crate::health::{self, Watched};
use crate::settings::{Places, ServeArgs};

/// The routes of each address.
pub(super) struct Apps {
    pub(super) main: Router,
    pub(super) proxy: Option<Router>,
    pub(super) metrics: Option<Router>,
}

pub(super) fn build(
    args: &ServeArgs,
    places: &Places,
    control: Control,
    proxy: &ProxyState,
    watched: &Watched,
    recorder: &PrometheusHandle,
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
    let scrape = |shared| health::metrics(recorder.clone(), watched.clone(), shared);
    let mut main = probes();
    if network.metrics_listen.is_none() {
        main = main.merge(scrape(true));
    }
    main = if role.serves_control() { main.merge(pages(&web)) } else { main.fallback(not_found) };
    main = sluice_web::wrap(main, &web);
    if role.serves_control() {
        main = main.layer(middleware::from_fn(error_pages));
    }
    if role.serves_proxy() && network.proxy_listen.is_none() {
        main = main.merge(sluice_web::wrap(data_path(proxy), &web));
    }
    let apart = || sluice_web::wrap(probes().merge(data_path(proxy)).fallback(not_found), &web);
    Apps {
        main,
        proxy: network.proxy_listen.map(|_| apart()),
        metrics: network.metrics_listen.map(|_| scrape(false)),
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

fn data_path(proxy: &ProxyState) -> Router {
    sluice_proxy::router(proxy.clone()).layer(middleware::from_fn(client_address))
}

/// The proxy knows the client's address by a type of its own.
async fn client_address(mut request: Request, next: Next) -> Response {
    if let Some(address) = request.extensions().get::<sluice_web::ClientAddress>().copied() {
        request.extensions_mut().insert(sluice_proxy::ClientAddress(address.0));
    }
    next.run(request).await
}

/// Clients with OAuth built in ask here what is offered: nothing, quickly and as JSON.
fn not_offered() -> Router {
    Router::new().route("/.well-known/{*what}", any(not_found))
}

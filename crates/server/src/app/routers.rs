//! Which address serves which routes.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use metrics_exporter_prometheus::PrometheusHandle;
use sluice_api::ApiState;
use sluice_control::Control;
use sluice_proxy::ProxyState;
use sluice_web::{WebSettings, WebState};

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
    let own_proxy = network.proxy_listen.is_some();
    let own_metrics = network.metrics_listen.is_some();
    let mut main = health::probes(watched.clone()).merge(not_offered());
    if network.role.serves_proxy() && !own_proxy {
        main = main.merge(data_path(proxy));
    }
    if !own_metrics {
        main = main.merge(health::metrics(recorder.clone(), watched.clone(), true));
    }
    main = if network.role.serves_control() {
        main.merge(sluice_api::router(ApiState { web: web.clone() }))
            .fallback(sluice_web::not_found)
    } else {
        main.fallback(sluice_web::not_found)
    };
    let apart = || {
        let routes = health::probes(watched.clone()).merge(not_offered()).merge(data_path(proxy));
        sluice_web::wrap(routes.fallback(sluice_web::not_found), &web)
    };
    Apps {
        main: sluice_web::wrap(main, &web),
        proxy: own_proxy.then(apart),
        metrics: own_metrics.then(|| health::metrics(recorder.clone(), watched.clone(), false)),
    }
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
    Router::new().route("/.well-known/{*what}", any(sluice_web::not_found))
}

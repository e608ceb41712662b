//! The first fork of every request: calls of agents go straight to the data path, everything else
//! through the routing tables and layers of pages and API. A call is what Sluice is measured by, and
//! a router with a handful of layers costs it as much as the decision.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderValue, header};
use hyper::body::Incoming;
use sluice_proxy::{ClientAddress, ProxyState, server_of, within_request};
use sluice_web::{Guard, Problem};
use tower::ServiceExt as _;
use tracing::error;

/// What one listen address serves. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Front(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    data_path: Option<(ProxyState, Guard)>,
    rest: Router,
}

impl Front {
    pub(crate) fn new(data_path: Option<(ProxyState, Guard)>, rest: Router) -> Self {
        Self(Arc::new(Parts { data_path, rest }))
    }

    /// The service of one connection.
    pub(crate) fn connected(&self, peer: SocketAddr) -> Connection {
        Connection { front: self.clone(), peer }
    }

    async fn rest(self, mut request: Request, peer: SocketAddr) -> Response {
        request.extensions_mut().insert(ConnectInfo(peer));
        let Ok(response) = self.0.rest.clone().oneshot(request).await;
        response
    }
}

impl Parts {
    /// The data path, if the request is for it.
    fn called(&self, request: &http::Request<Incoming>) -> Option<(&ProxyState, &Guard)> {
        let (proxy, guard) = self.data_path.as_ref()?;
        server_of(request.uri().path()).is_some().then_some((proxy, guard))
    }
}

async fn call(
    proxy: &ProxyState,
    guard: &Guard,
    mut request: Request,
    peer: SocketAddr,
) -> Response {
    let mut response = match guard.admit(&request, peer.ip()) {
        Err(problem) => problem.into_response(),
        Ok(address) => {
            request.extensions_mut().insert(ClientAddress(address.0));
            let uri = request.uri().clone();
            let server = server_of(uri.path()).unwrap_or_default();
            // Boxed before it is wrapped: each wrapping would copy the whole of it.
            let serving = Box::pin(proxy.serve(server, request));
            // A fault of ours must not take the connection's other requests with it.
            let answering = AssertUnwindSafe(within_request(serving)).catch_unwind();
            answering.await.unwrap_or_else(|_| {
                error!("The data path broke on a request");
                Problem::internal().into_response()
            })
        }
    };
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// See [`Front::connected`].
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    front: Front,
    peer: SocketAddr,
}

impl hyper::service::Service<http::Request<Incoming>> for Connection {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let (front, peer) = (self.front.clone(), self.peer);
        if front.0.called(&request).is_none() {
            return Box::pin(async move { Ok(front.rest(request.map(Body::new), peer).await) });
        }
        Box::pin(async move {
            let Some((proxy, guard)) = front.0.called(&request) else {
                return Ok(front.rest(request.map(Body::new), peer).await);
            };
            Ok(call(proxy, guard, request.map(Body::new), peer).await)
        })
    }
}

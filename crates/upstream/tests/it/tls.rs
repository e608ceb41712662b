//! Secure connections: only to certificates that stand for the host.

use std::sync::Arc;

use http_body_util::BodyExt;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use sluice_upstream::{SendError, Upstream, UpstreamOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fake::{post, target};

/// What answers in TLS for `name`, and its authority's certificate.
pub(crate) fn acceptor(name: &str) -> (TlsAcceptor, Vec<u8>) {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("signed");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &authority).expect("signed");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("fits");
    (TlsAcceptor::from(Arc::new(config)), authority.der().to_vec())
}

/// A TLS server for `name`, and its authority's certificate.
async fn server(name: &str) -> (u16, Vec<u8>) {
    let (acceptor, authority) = acceptor(name);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _some = stream.read(&mut [0; 4_096]).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                stream.write_all(answer).await.expect("written");
                let _end = stream.shutdown().await;
            });
        }
    });
    (port, authority)
}

fn trusting(roots: Vec<Vec<u8>>) -> Upstream {
    let resolve = Arc::new(|_: &str| Ok(vec!["127.0.0.1".parse().expect("an address")]));
    Upstream::new(UpstreamOptions {
        allow_private: true,
        extra_roots: roots,
        resolve: Some(resolve),
        ..UpstreamOptions::default()
    })
}

#[tokio::test]
async fn a_trusted_certificate_of_the_host_is_needed() {
    let (port, root) = server("mcp.test").await;
    let to = |host: &str| target(&format!("https://{host}:{port}/mcp"));
    let trusting_it = trusting(vec![root]);
    let response = trusting_it.send(&to("mcp.test"), post("{}")).await.expect("answers");
    let body = response.into_body().collect().await.expect("whole").to_bytes();
    assert_eq!(body, "{}");
    for (upstream, host) in [(&trusting_it, "other.test"), (&trusting(Vec::new()), "mcp.test")] {
        let failed = upstream.send(&to(host), post("{}")).await.expect_err("not trusted");
        assert!(
            matches!(&failed, SendError::Tls(why) if why.contains("certificate")),
            "{failed:?}"
        );
        assert!(!failed.may_have_run());
    }
}

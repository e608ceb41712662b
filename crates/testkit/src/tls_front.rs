//! Stands in TLS before a server that does not speak it, with a certificate for some names.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A running front; it ends when it is dropped.
#[derive(Debug)]
pub struct TlsFront {
    pub address: SocketAddr,
    /// The certificate (DER) of the authority that signed its own.
    pub authority: Vec<u8>,
    task: JoinHandle<()>,
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsFront {
    /// Passes what comes for these names on to `to`.
    pub async fn start(names: &[&str], to: SocketAddr) -> Self {
        let (acceptor, authority) = acceptor(names);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let Ok(mut inner) = TcpStream::connect(to).await else { return };
                    tokio::io::copy_bidirectional(&mut stream, &mut inner).await.ok();
                });
            }
        });
        Self { address, authority, task }
    }
}

fn acceptor(names: &[&str]) -> (TlsAcceptor, Vec<u8>) {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("signed");
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("names");
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

//! TLS to the server that was asked for.

use std::path::Path;
use std::pin::Pin;

use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_openssl::SslStream;
use url::Host;
use warren_model::Target;

/// Why TLS could not be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates to trust cannot be read, or TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Setup(#[from] ErrorStack),
    /// The server did not prove to be the one that was asked for.
    #[error("the certificate of `{server}` is not trusted: {reason}")]
    Certificate {
        /// What was asked for.
        server: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The two sides did not come to terms.
    #[error("`{server}` does not speak TLS as it should")]
    Protocol {
        /// What was asked for.
        server: String,
        /// What failed.
        source: openssl::ssl::Error,
    },
}

/// Client side of TLS 1.2 and later, with the system's certificates. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tls(SslConnector);

impl Tls {
    /// Trusts the system's certificates, and those of a PEM file beside them.
    ///
    /// # Errors
    /// [`TlsError::Setup`].
    pub fn new(ca_file: Option<&Path>) -> Result<Self, TlsError> {
        let mut builder = SslConnector::builder(SslMethod::tls_client())?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        if let Some(file) = ca_file {
            builder.set_ca_file(file)?;
        }
        Ok(Self(builder.build()))
    }

    /// Speaks TLS over a connection, and proves that the target is at its other end.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub async fn connect<S>(&self, target: &Target, stream: S) -> Result<SslStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match &target.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let ssl = self.0.configure()?.into_ssl(&name)?;
        let mut stream = SslStream::new(ssl, stream)?;
        let Err(source) = Pin::new(&mut stream).connect().await else {
            return Ok(stream);
        };
        let server = target.to_string();
        let verified = stream.ssl().verify_result();
        if verified != openssl::x509::X509VerifyResult::OK {
            let reason = verified.error_string();
            return Err(TlsError::Certificate { server, reason });
        }
        Err(TlsError::Protocol { server, source })
    }
}

//! `CONNECT`: bytes both ways.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use crate::proxy::meter::Metered;
use crate::proxy::report::{Exchange, Outcome};

/// A tunnel that was granted, and starts when the answer is out.
pub(crate) struct Tunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) server: Metered<TcpStream>,
    pub(crate) exchange: Exchange,
}

impl Tunnel {
    /// Until both ends have said all.
    pub(crate) async fn run(mut self) {
        let outcome = match self.client.await {
            Ok(upgraded) => {
                let mut client = TokioIo::new(upgraded);
                match copy_bidirectional(&mut client, &mut self.server).await {
                    Ok(_) => Outcome::Ended,
                    Err(error) => Outcome::Failed(error.kind().to_string()),
                }
            }
            Err(_) => Outcome::Failed("the child hung up".to_owned()),
        };
        self.exchange.end(outcome);
    }
}

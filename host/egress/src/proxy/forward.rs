//! One connection of the child: what it asks for, decided and done.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1 as client;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri, http::uri::PathAndQuery};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::Instant;
use warren_model::{Target, WebScheme};

use crate::ConnectError;
use crate::proxy::Shared;
use crate::proxy::meter::{Meter, Metered, Pulse, Watched};
use crate::proxy::report::{Exchange, Outcome, Report};
use crate::proxy::tunnel::Tunnel;

/// The body of an answer.
type Answer = BoxBody<Bytes, hyper::Error>;

/// The tunnel that a connection becomes.
type Slot = Arc<Mutex<Option<Tunnel>>>;

/// Headers that are about one connection and never passed on.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Serves a connection until it ends or nothing moves for too long.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let pulse = Pulse::new();
    let idle = shared.limits.idle_time;
    let stream = Watched {
        stream,
        pulse: Arc::clone(&pulse),
    };
    tokio::select! {
        () = talk(stream, shared) => {}
        () = pulse.stops(idle) => {}
    }
}

async fn talk(stream: Watched<TcpStream>, shared: Arc<Shared>) {
    let slot = Slot::default();
    let service = service_fn(|request| {
        let (shared, slot) = (Arc::clone(&shared), Arc::clone(&slot));
        async move { Ok::<_, Infallible>(answer(request, &shared, &slot).await) }
    });
    let limits = &shared.limits;
    let served = server::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.headers)
        .max_buf_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a child hung up on its proxy, or did not speak HTTP");
    }
    let tunnel = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel.run().await;
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared, slot: &Slot) -> Response<Answer> {
    if !shared.count_request() {
        return say(
            StatusCode::TOO_MANY_REQUESTS,
            "there were too many requests",
        );
    }
    let target = match target_of(&request) {
        Ok(target) => target,
        Err(why) => return denied(shared, why.clone(), why),
    };
    let shown = target.to_string();
    let Some(permit) = shared.endpoints.permit(&target) else {
        let why = format!("`{shown}` is not granted");
        return denied(shared, shown, why);
    };
    if shared.sink.opening(&target).is_err() {
        return say(
            StatusCode::SERVICE_UNAVAILABLE,
            "the use of the network cannot be noted",
        );
    }
    let meter = Meter::new(&shared.budget);
    let mut exchange = Exchange::new(&shared.sink, shown, Arc::clone(&meter));
    let deadline = Instant::now() + shared.limits.connect_time;
    let stream = match shared.connector.connect(&target, permit, deadline).await {
        Ok(stream) => stream,
        Err(error) => {
            let (status, said, outcome) = not_connected(&error);
            exchange.end(outcome);
            return say(status, said);
        }
    };
    let server = Metered { stream, meter };
    match *request.method() == Method::CONNECT {
        true => connect(request, server, exchange, slot),
        false => relay(request, &target, server, exchange, shared).await,
    }
}

/// For the child, which does not learn what is inside, and for the report.
fn not_connected(error: &ConnectError) -> (StatusCode, &'static str, Outcome) {
    let why = error.to_string();
    match error {
        ConnectError::Denied { .. } => (
            StatusCode::FORBIDDEN,
            "the address of the server is not granted",
            Outcome::Denied(why),
        ),
        ConnectError::Name { .. } => (
            StatusCode::BAD_GATEWAY,
            "the name of the server cannot be resolved",
            Outcome::Failed(why),
        ),
        ConnectError::Unreachable { .. } => (
            StatusCode::BAD_GATEWAY,
            "the server cannot be connected to",
            Outcome::Failed(why),
        ),
        ConnectError::Timeout { .. } => (
            StatusCode::GATEWAY_TIMEOUT,
            "the server did not answer in time",
            Outcome::Failed(why),
        ),
    }
}

/// The server that a request names. Only the request line counts; `Host` is made from it.
fn target_of(request: &Request<Incoming>) -> Result<Target, String> {
    let uri = request.uri();
    let authority = uri.authority().map(|authority| authority.as_str());
    let parse = |scheme, authority| {
        Target::from_authority(scheme, authority).map_err(|error| error.to_string())
    };
    match (request.method(), uri.scheme_str(), authority) {
        (&Method::CONNECT, None, Some(authority)) => parse(WebScheme::Https, authority),
        (&Method::CONNECT, ..) => Err("not a server to connect to".to_owned()),
        (_, Some("http"), Some(authority)) => parse(WebScheme::Http, authority),
        _ => Err("not a request for a proxy".to_owned()),
    }
}

fn connect(
    mut request: Request<Incoming>,
    server: Metered<TcpStream>,
    exchange: Exchange,
    slot: &Slot,
) -> Response<Answer> {
    let tunnel = Tunnel {
        client: hyper::upgrade::on(&mut request),
        server,
        exchange,
    };
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    Response::new(Empty::new().map_err(never).boxed())
}

/// Sends the request on, and the answer back as it comes.
async fn relay(
    request: Request<Incoming>,
    target: &Target,
    server: Metered<TcpStream>,
    mut exchange: Exchange,
    shared: &Shared,
) -> Response<Answer> {
    let failed = |exchange: &mut Exchange, why: &str| {
        exchange.end(Outcome::Failed(why.to_owned()));
        say(StatusCode::BAD_GATEWAY, why)
    };
    let Some(request) = rewrite(request, target) else {
        return failed(&mut exchange, "the request cannot be passed on");
    };
    let shaken = client::Builder::new()
        .max_headers(shared.limits.headers)
        .max_buf_size(shared.limits.head_bytes)
        .handshake(TokioIo::new(server))
        .await;
    let Ok((mut sender, connection)) = shaken else {
        return failed(&mut exchange, "it cannot be talked to");
    };
    let mut connection = Driven(Some(Box::pin(connection)));
    let sent = sender.send_request(request);
    tokio::pin!(sent);
    let answer = tokio::select! {
        biased;
        answer = &mut sent => answer,
        () = &mut connection => sent.await,
    };
    match answer {
        Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
            failed(&mut exchange, "it speaks another protocol")
        }
        Ok(mut answer) => {
            strip(answer.headers_mut());
            answer.map(|body| {
                let relayed = Relayed {
                    body,
                    connection,
                    exchange,
                };
                relayed.boxed()
            })
        }
        Err(error) if error.is_parse() => failed(&mut exchange, "its answer is not HTTP"),
        Err(_) => failed(&mut exchange, "it gives no answer"),
    }
}

/// What goes to the server: the path alone, the `Host` that was decided on, one request a
/// connection.
fn rewrite(request: Request<Incoming>, target: &Target) -> Option<Request<Incoming>> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.into_parts().path_and_query;
    head.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    head.version = hyper::Version::HTTP_11;
    strip(&mut head.headers);
    // The proxy reads the body anyhow, and has asked the child for it.
    head.headers.remove(header::EXPECT);
    let host = match target.port == target.scheme.default_port() {
        true => target.host.to_string(),
        false => target.authority(),
    };
    let host = HeaderValue::from_str(&host).ok()?;
    head.headers.insert(header::HOST, host);
    let close = HeaderValue::from_static("close");
    head.headers.insert(header::CONNECTION, close);
    Some(Request::from_parts(head, body))
}

/// Takes out what is about one connection, and what `Connection` says is.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Without it the body would be another one.
        .filter(|name| name != header::CONTENT_LENGTH && name != header::HOST)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// HTTP to a server.
type ToServer = client::Connection<TokioIo<Metered<TcpStream>>, Incoming>;

/// The connection to a server, which moves while its request or answer is waited for.
struct Driven(Option<Pin<Box<ToServer>>>);

impl Future for Driven {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(connection) = &mut self.0 {
            // Whoever waits for the answer gets the error.
            let _ = ready!(connection.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

/// An answer's body on its way.
struct Relayed {
    body: Incoming,
    connection: Driven,
    exchange: Exchange,
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // The body's sender wakes this task when the connection has moved.
        let _ = Pin::new(&mut self.connection).poll(cx);
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            None => self.exchange.end(Outcome::Ended),
            Some(Err(_)) => {
                let why = "its answer broke off".to_owned();
                self.exchange.end(Outcome::Failed(why));
            }
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.exchange.end(Outcome::Ended);
        }
    }
}

fn denied(shared: &Shared, target: String, why: String) -> Response<Answer> {
    let response = say(StatusCode::FORBIDDEN, &why);
    shared.sink.ended(&Report {
        target,
        outcome: Outcome::Denied(why),
        sent_bytes: 0,
        received_bytes: 0,
        duration: std::time::Duration::ZERO,
    });
    response
}

/// An answer of the proxy's own, after which it hangs up.
fn say(status: StatusCode, why: &str) -> Response<Answer> {
    let body = Full::new(Bytes::from(format!("warren: {why}\n")));
    let mut response = Response::new(body.map_err(never).boxed());
    *response.status_mut() = status;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

fn never(error: Infallible) -> hyper::Error {
    match error {}
}

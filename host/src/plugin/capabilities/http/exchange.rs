//! One request and its answer.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use tokio::time::{Instant, timeout_at};
use warren_model::{EndpointPermit, Target, WebScheme};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::running::Running;
use super::wire::{Stream, Wire};
use super::{Answered, Session, fault, judge};

/// Longest time to a connection, TLS included; a guest may ask for less.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// What hyper needs at least for the head of an answer.
const HEAD_BYTES_MIN: usize = 8192;

pub(super) async fn send(
    session: Arc<Session>,
    mut request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Answered, Error> {
    let (target, permit) = judge(&session, &request)?;
    prepare(&mut request, &target)?;
    let denials = Arc::clone(&session.denials);
    let running = Running::start(session, request.method(), &target).await;
    let running = running.inspect_err(|error| denials.report(&request, Some(&target), error))?;
    exchange(&running, request, &target, permit, options)
        .await
        .map_err(|error| running.failed(error))
}

/// Whether it may be sent; what may not is told to the operator.
fn judge(
    session: &Session,
    request: &Request<WasiBody>,
) -> Result<(Target, EndpointPermit), Error> {
    let refused = |target: Option<&Target>, error: Error| {
        session.denials.report(request, target, &error);
        error
    };
    let target = judge::target(request).map_err(|error| refused(None, error))?;
    if !session.take_request() {
        return Err(refused(Some(&target), Error::HttpRequestDenied));
    }
    match judge::permit(&session.grant, &target) {
        Ok(permit) => Ok((target, permit)),
        Err(error) => Err(refused(Some(&target), error)),
    }
}

/// Makes the request line and the headers those of the judged server.
fn prepare(request: &mut Request<WasiBody>, target: &Target) -> Result<(), Error> {
    let uri = Uri::builder()
        .path_and_query(judge::path(request))
        .build()
        .map_err(|_| Error::HttpRequestUriInvalid)?;
    *request.uri_mut() = uri;
    let host = HeaderValue::try_from(judge::host(target));
    let host = host.map_err(|_| Error::HttpRequestUriInvalid)?;
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(())
}

async fn exchange(
    running: &Arc<Running>,
    request: Request<WasiBody>,
    target: &Target,
    permit: EndpointPermit,
    options: RequestOptions,
) -> Result<Answered, Error> {
    let limits = &running.session.grant.limits;
    let stream = connect(&running.session, target, permit, options.connect_timeout).await?;
    let silence = options
        .between_bytes_timeout
        .map_or(limits.silence, |asked| asked.min(limits.silence));
    let wire = Wire::new(stream, Arc::clone(running), silence);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(limits.header_bytes.max(HEAD_BYTES_MIN))
        .handshake(TokioIo::new(wire))
        .await
        .map_err(|error| fault::of_hyper(&error))?;
    // Both hold the request's place until the answer is read or dropped.
    let mut connection = Box::pin(connection);
    let mut answer = pin!(sender.send_request(request));
    let until = deadline(&running.session, options.first_byte_timeout);
    let mut over = false;
    let answer = timeout_at(until, async {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            ended = &mut connection => { over = true; ended? }
        }
        answer.await
    })
    .await
    .map_err(|_| Error::HttpResponseTimeout)?
    .map_err(|error| fault::of_hyper(&error))?;
    running.answered(answer.status().as_u16());
    let answer = body(answer, running);
    let rest = async move {
        if over {
            return Ok(());
        }
        // What goes wrong from here on is told by the body.
        connection.await.map_err(|error| fault::of_hyper(&error))
    };
    Ok((answer, Box::new(rest)))
}

async fn connect(
    session: &Session,
    target: &Target,
    permit: EndpointPermit,
    asked: Option<Duration>,
) -> Result<Box<dyn Stream>, Error> {
    let asked = asked.map_or(CONNECT_MAX, |asked| asked.min(CONNECT_MAX));
    let until = deadline(session, Some(asked));
    let stream = session
        .connector
        .connect(target, permit, until)
        .await
        .map_err(|error| fault::of_connect(&error))?;
    if target.scheme == WebScheme::Http {
        return Ok(Box::new(stream));
    }
    let tls = session.client.tls().map_err(|error| {
        tracing::error!(%error, "no handler can send requests over TLS");
        fault::of_tls(&error)
    })?;
    let stream = timeout_at(until, tls.connect(target, stream))
        .await
        .map_err(|_| Error::ConnectionTimeout)?
        .map_err(|error| fault::of_tls(&error))?;
    Ok(Box::new(stream))
}

/// When something must have come about: in the time that was asked for, and in the call's.
fn deadline(session: &Session, asked: Option<Duration>) -> Instant {
    let asked = asked.and_then(|asked| Instant::now().checked_add(asked));
    asked.map_or(session.deadline, |asked| asked.min(session.deadline))
}

fn body(answer: Response<Incoming>, running: &Arc<Running>) -> Response<WasiBody> {
    answer.map(|incoming| {
        let running = Arc::clone(running);
        Answer { incoming, running }.boxed_unsync()
    })
}

/// The body of an answer, its errors in the words of `wasi:http`.
struct Answer {
    incoming: Incoming,
    running: Arc<Running>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(cx);
        frame.map_err(|error| self.running.failed(fault::of_hyper(&error)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

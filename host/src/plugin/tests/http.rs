//! Requests of a real component to real servers on loopback.

use std::io::Write;
use std::net::TcpListener;

use warren_audit::{AuditLog, Filter, Outcome, Settings, read};
use warren_egress::Connector;
use warren_model::Endpoints;
use warren_testkit::{Asked, Tls, WebServer};

use super::*;

fn web() -> (&'static str, &'static [u8]) {
    ("web", warren_testkit::web())
}

fn granted(hosts: &[&str], limits: HttpLimits) -> Grants {
    let hosts = hosts.iter().map(|text| text.parse().unwrap()).collect();
    Grants {
        http: Some(HttpGrant {
            hosts: Endpoints::new(hosts),
            limits,
        }),
        limits: Limits {
            memory_bytes: 32 << 20,
            wall: Duration::from_secs(30),
            ..Limits::default()
        },
        ..Grants::default()
    }
}

async fn world_of(services: Services, hosts: &[&str], limits: HttpLimits) -> World {
    let mut config = config(&[web()], granted(hosts, limits));
    config.services = services;
    World::of(config, "web").await
}

fn services() -> Services {
    trusting(None, Connector::system())
}

fn trusting(ca_file: Option<PathBuf>, connector: Connector) -> Services {
    Services {
        http: Some(HttpClient::new(ca_file)),
        connector,
        ..Services::default()
    }
}

async fn world(hosts: &[&str]) -> World {
    world_of(services(), hosts, HttpLimits::default()).await
}

/// A grant of one server on loopback.
fn only(server: &WebServer) -> String {
    format!("http://{}", server.authority())
}

/// Services for which all names have these addresses.
fn resolving(addresses: &[&str]) -> Services {
    let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let connector = Connector::with_lookup(Arc::new(move |_| Ok(addresses.clone())));
    trusting(None, connector)
}

fn get(server: &WebServer, path: &str) -> Value {
    json!({ "scheme": "http", "authority": server.authority(), "path": path })
}

/// The same request with more in it.
fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

async fn ask(world: &World, requests: &[Value]) -> Vec<Value> {
    let said = world
        .play_in(world.cx(), json!({ "requests": requests }))
        .await
        .unwrap();
    said["answers"].as_array().unwrap().clone()
}

async fn ask_one(world: &World, request: Value) -> Value {
    ask(world, &[request]).await.remove(0)
}

fn error(code: &str) -> Value {
    json!({ "error": code })
}

/// For codes that carry something.
fn is_error(said: &Value, code: &str) -> bool {
    let found = said["error"].as_str().or(said["body-error"].as_str());
    found.is_some_and(|found| found.starts_with(code))
}

fn ok(output: &mut dyn Write, body: &str) -> std::io::Result<()> {
    write!(
        output,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Own: yes\r\n\r\n{body}",
        body.len()
    )
}

fn hello() -> WebServer {
    WebServer::serve(|_, output| ok(output, "hello"))
}

fn header<'a>(seen: &'a Asked, name: &str) -> &'a str {
    seen.header(name).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_server_is_asked_and_its_answer_comes_back() {
    let server = hello();
    let world = world(&[&only(&server)]).await;
    let request = json!({
        "method": "POST", "scheme": "http", "authority": server.authority(), "path": "/a?b=c",
        "headers": [["x-key", "v"], ["authorization", "Bearer own"]], "send": 100_000,
    });
    let said = ask_one(&world, request).await;
    assert_eq!(said["status"], 200);
    assert_eq!(said["body"], "hello");
    assert_eq!(said["headers"]["x-own"], "yes");
    let seen = server.seen().remove(0);
    assert_eq!((&*seen.method, &*seen.target), ("POST", "/a?b=c"));
    assert_eq!(seen.body_bytes, 100_000);
    assert_eq!(header(&seen, "host"), server.authority());
    assert_eq!(header(&seen, "connection"), "close");
    // What the guest says, and nothing of the host's.
    let names: Vec<_> = seen.headers.iter().map(|(name, _)| &**name).collect();
    let mut names = names;
    names.sort_unstable();
    let expected = [
        "authorization",
        "connection",
        "host",
        "transfer-encoding",
        "x-key",
    ];
    assert_eq!(names, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_grant_it_does_not_load_and_without_a_service_it_is_denied() {
    let plain = config(&[web()], Grants::default());
    let (_, failures) = Runtime::start(plain).await.unwrap();
    let LoadError::UngrantedImport(imports) = &*failures[0].error else {
        panic!("{failures:?}");
    };
    assert_eq!(
        imports,
        &[
            "wasi:http/outgoing-handler@0.2.12",
            "wasi:http/types@0.2.12"
        ]
    );
    let server = hello();
    let allowed = only(&server);
    let config = config(&[web()], granted(&[&allowed], HttpLimits::default()));
    let world = World::of(config, "web").await;
    let said = ask_one(&world, get(&server, "/")).await;
    assert_eq!(said, error("HttpRequestDenied"));
    assert!(server.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_sends_nothing() {
    let server = hello();
    let world = world(&[&only(&server)]).await;
    let mut cx = world.cx();
    cx.mode = CallMode::DryRun;
    let said = world
        .play_in(cx, json!({ "requests": [get(&server, "/")] }))
        .await
        .unwrap();
    assert_eq!(said["answers"][0], error("HttpRequestDenied"));
    assert!(server.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_server_is_denied_however_it_is_written() {
    let (server, other) = (hello(), hello());
    let world = world(&[&only(&server), "https://granted.example"]).await;
    let port = server.port();
    let authority = |text: &str| {
        let text = text.replace("PORT", &port.to_string());
        json!({ "scheme": "http", "authority": text, "path": "/" })
    };
    let denied = [
        get(&other, "/"),
        with(get(&server, "/"), "scheme", json!("https")),
        with(get(&server, "/"), "scheme", Value::Null),
        authority("localhost:PORT"),
        authority("127.0.0.1"),
        authority("127.0.0.2:PORT"),
        authority("[::1]:PORT"),
        authority("granted.example"),
        authority("granted.example:443"),
        authority("granted.example.evil.example:PORT"),
    ];
    for said in ask(&world, &denied).await {
        assert_eq!(said, error("HttpRequestDenied"));
    }
    let malformed = [
        authority("granted.example@127.0.0.1:PORT"),
        authority("127.0.0.1:PORT@granted.example"),
        authority("user:secret@127.0.0.1:PORT"),
        authority("127.0.0.1:0"),
        authority("%31%32%37.0.0.1:PORT"),
    ];
    for said in ask(&world, &malformed).await {
        let uri =
            said == error("HttpRequestUriInvalid") || said == json!({ "unmade": "authority" });
        assert!(uri, "{said}");
    }
    let unmade = [
        authority("127.0.0.1:PORT\r\nHost: x"),
        authority("127.0.0.1:PORT/path"),
        authority("a b"),
        authority(&"a".repeat(600)),
    ];
    for said in ask(&world, &unmade).await {
        assert_eq!(said, json!({ "unmade": "authority" }));
    }
    assert!(server.seen().is_empty() && other.seen().is_empty());
    // The granted one, in other words.
    let same = [
        authority("2130706433:PORT"),
        authority("0x7f.1:PORT"),
        authority("127.0.0.1.:PORT"),
        authority("[::ffff:127.0.0.1]:PORT"),
    ];
    for said in ask(&world, &same).await {
        assert_eq!(said["status"], 200, "{said}");
    }
    let hosts: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| header(seen, "host").to_owned())
        .collect();
    assert_eq!(hosts, vec![server.authority(); 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_request_line_and_the_headers_cannot_be_broken_out_of() {
    let server = hello();
    let world = world(&[&only(&server)]).await;
    let line = [
        with(get(&server, "/"), "path", json!("http://evil.example/")),
        with(get(&server, "/"), "path", json!("//evil.example/")),
        with(get(&server, "/"), "path", json!("/a\r\nX-Evil: 1")),
        with(get(&server, "/"), "path", json!("*")),
        with(
            get(&server, "/"),
            "method",
            json!("GET /x HTTP/1.1\r\nX-Evil:"),
        ),
        with(get(&server, "/"), "method", json!("CONNECT")),
        with(get(&server, "/"), "method", json!("M".repeat(33))),
        with(get(&server, "/"), "scheme", json!("ftp")),
    ];
    let said = ask(&world, &line).await;
    assert_eq!(said[0], json!({ "unmade": "path" }));
    // Two slashes are a path, and nothing but a path.
    assert_eq!(said[1]["status"], 200);
    assert_eq!(said[2], json!({ "unmade": "path" }));
    assert_eq!(said[3], json!({ "unmade": "path" }));
    assert_eq!(said[4], json!({ "unmade": "method" }));
    assert_eq!(said[5], error("HttpRequestMethodInvalid"));
    assert_eq!(said[6], json!({ "unmade": "method" }));
    assert_eq!(said[7], error("HttpProtocolError"));
    assert_eq!(server.seen().len(), 1);
    assert_eq!(server.seen()[0].target, "//evil.example/");

    let headers: Vec<_> = [
        ("x-a", "v\r\nX-Evil: 1"),
        ("x-a\r\nX-Evil", "1"),
        ("x a", "1"),
        ("x-a", "v\0"),
        ("host", "evil.example"),
        ("Host", "evil.example"),
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("proxy-authorization", "x"),
        ("upgrade", "h2c"),
    ]
    .into_iter()
    .map(|(name, value)| with(get(&server, "/"), "headers", json!([[name, value]])))
    .collect();
    for said in ask(&world, &headers).await {
        let why = said["unmade"].as_str().unwrap_or_default();
        let refused = why.ends_with("InvalidSyntax") || why.ends_with("Forbidden");
        assert!(refused, "{said}");
    }
    let two = json!([["content-length", "1"], ["content-length", "2"]]);
    let said = ask_one(&world, with(get(&server, "/"), "headers", two)).await;
    assert!(said["unmade"].is_string(), "{said}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_redirect_is_followed_and_the_next_request_is_judged_again() {
    let other = hello();
    let location = format!("http://{}/secret", other.authority());
    let server = WebServer::serve(move |_, output| {
        write!(
            output,
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        )
    });
    let world = world(&[&only(&server)]).await;
    let token = json!([["authorization", "Bearer SECRET"]]);
    let said = ask(
        &world,
        &[
            with(get(&server, "/"), "headers", token.clone()),
            with(get(&other, "/secret"), "headers", token),
        ],
    )
    .await;
    assert_eq!(said[0]["status"], 302);
    let told = said[0]["headers"]["location"].as_str().unwrap();
    assert_eq!(told, format!("http://{}/secret", other.authority()));
    assert_eq!(said[1], error("HttpRequestDenied"));
    assert!(other.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_behind_a_name_is_judged() {
    let server = hello();
    let url = format!("http://name.example:{}", server.port());
    let ask_name = async |services: Services, granted: &str| {
        let world = world_of(services, &[granted], HttpLimits::default()).await;
        let authority = format!("name.example:{}", server.port());
        let request = json!({ "scheme": "http", "authority": authority, "path": "/" });
        ask_one(&world, request).await
    };
    let inside = ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254"];
    let wide = format!("http://*.example:{}", server.port());
    for address in inside {
        let said = ask_name(resolving(&[address]), &wide).await;
        assert_eq!(said, error("DestinationIpProhibited"), "{address}");
    }
    let said = ask_name(resolving(&["169.254.169.254"]), &url).await;
    assert_eq!(said, error("DestinationIpProhibited"));
    let said = ask_name(resolving(&[]), &url).await;
    assert!(is_error(&said, "DnsError"), "{said}");
    assert!(server.seen().is_empty());
    // Two answers: the one that no name stands for is passed over.
    let said = ask_name(resolving(&["169.254.169.254", "127.0.0.1"]), &url).await;
    assert_eq!(said["status"], 200, "{said}");
    let seen = server.seen().remove(0);
    assert_eq!(
        header(&seen, "host"),
        format!("name.example:{}", server.port())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_for_the_server_that_was_granted() {
    let server = hello();
    let dir = scratch();
    let tls = Tls::before(server.port(), dir.path());
    let origin = tls.url("").trim_end_matches('/').to_owned();
    let (_, authority) = origin.split_once("://").unwrap();
    let request = json!({ "scheme": "https", "authority": authority, "path": "/" });
    let ca = Some(tls.certificate().to_owned());
    let trusted = trusting(ca.clone(), Connector::system());
    let world = world_of(trusted, &[&origin], HttpLimits::default()).await;
    assert_eq!(ask_one(&world, request.clone()).await["status"], 200);
    let world = world_of(services(), &[&origin], HttpLimits::default()).await;
    let said = ask_one(&world, request.clone()).await;
    assert_eq!(said, error("TlsCertificateError"));
    let bad = trusting(Some(dir.path().join("missing")), Connector::system());
    let world = world_of(bad, &[&origin], HttpLimits::default()).await;
    assert_eq!(ask_one(&world, request).await, error("ConfigurationError"));
    // The certificate is for another name.
    let port = authority.rsplit(':').next().unwrap();
    let other = format!("https://other.example:{port}");
    let lookup = Connector::with_lookup(Arc::new(|_| Ok(vec!["127.0.0.1".parse().unwrap()])));
    let world = world_of(trusting(ca, lookup), &[&other], HttpLimits::default()).await;
    let request =
        json!({ "scheme": "https", "authority": format!("other.example:{port}"), "path": "/" });
    assert_eq!(ask_one(&world, request).await, error("TlsCertificateError"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_end_are_cut_at_the_limit() {
    let server = WebServer::serve(|asked, output| match asked.target.as_str() {
        "/endless" => {
            write!(
                output,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            )?;
            loop {
                write!(output, "10000\r\n{}\r\n", "x".repeat(0x10000))?;
            }
        }
        "/headers" => {
            write!(output, "HTTP/1.1 200 OK\r\n")?;
            loop {
                write!(output, "X-Header: {}\r\n", "x".repeat(100))?;
            }
        }
        "/long-header" => {
            write!(output, "HTTP/1.1 200 OK\r\nX-Long: ")?;
            loop {
                write!(output, "{}", "x".repeat(1000))?;
            }
        }
        "/informational" => loop {
            write!(output, "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n")?;
        },
        "/gzip" => {
            // Ten bytes that claim to be more: nothing here looks into them.
            write!(
                output,
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f0123456789"
            )
        }
        _ => ok(output, "hello"),
    });
    let limits = HttpLimits {
        received_bytes: 2 << 20,
        ..HttpLimits::default()
    };
    let granted = only(&server);
    let fresh = async || world_of(services(), &[&granted], limits.clone()).await;
    let world = fresh().await;
    let said = ask(&world, &[get(&server, "/endless"), get(&server, "/")]).await;
    assert_eq!(said[0]["status"], 200);
    assert!(is_error(&said[0], "HttpResponseBodySize"), "{said:?}");
    assert!(said[0]["bytes"].as_u64().unwrap() <= 2 << 20);
    // The limit is one for all requests of the call.
    assert!(is_error(&said[1], "HttpResponseBodySize"), "{said:?}");
    let said = ask(
        &world,
        &[
            get(&server, "/headers"),
            get(&server, "/long-header"),
            get(&server, "/gzip"),
            get(&server, "/"),
        ],
    )
    .await;
    for said in &said[..2] {
        assert!(is_error(said, "HttpResponseHeaderSectionSize"), "{said}");
    }
    assert_eq!(
        (&said[2]["bytes"], &said[2]["headers"]["content-encoding"]),
        (&json!(10), &json!("gzip"))
    );
    assert_eq!(said[3]["status"], 200);
    let said = ask_one(&world, get(&server, "/informational")).await;
    assert!(is_error(&said, "HttpResponseBodySize"), "{said}");
    server.wait_idle();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_limited_in_bytes_number_and_connections() {
    let server = WebServer::serve(|_, output| ok(output, &"x".repeat(100_000)));
    let limits = HttpLimits {
        requests: 5,
        connections: 2,
        sent_bytes: 50_000,
        ..HttpLimits::default()
    };
    let world = world_of(services(), &[&only(&server)], limits).await;
    let big = with(
        with(get(&server, "/"), "method", json!("POST")),
        "send",
        json!(100_000),
    );
    let said = ask_one(&world, big).await;
    assert!(is_error(&said, "HttpRequestBodySize"), "{said}");
    assert!(server.seen().is_empty());
    let said = ask(&world, &vec![get(&server, "/"); 6]).await;
    assert!(
        said[..5].iter().all(|said| said["status"] == 200),
        "{said:?}"
    );
    assert_eq!(said[5], error("HttpRequestDenied"));
    let spec = json!({ "at-once": true, "requests": vec![get(&server, "/"); 3] });
    let said = world.play_in(world.cx(), spec).await.unwrap();
    // All three start together: which one finds no place is open.
    let said = said["answers"].as_array().unwrap();
    let served = said.iter().filter(|said| said["bytes"] == 100_000).count();
    assert_eq!(served, 2, "{said:?}");
    assert!(said.contains(&error("ConnectionLimitReached")), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_is_given_up_in_the_time_asked_for() {
    let server = WebServer::serve(|asked, output| {
        if asked.target == "/stall-body" {
            write!(output, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf ")?;
        }
        Ok(())
    });
    let limits = HttpLimits {
        silence: Duration::from_millis(300),
        ..HttpLimits::default()
    };
    let world = world_of(services(), &[&only(&server)], limits).await;
    let said = ask(
        &world,
        &[
            with(get(&server, "/stall"), "first-byte-ms", json!(50)),
            get(&server, "/stall"),
            with(get(&server, "/stall-body"), "between-bytes-ms", json!(50)),
            // More than the grant gives.
            with(
                get(&server, "/stall-body"),
                "between-bytes-ms",
                json!(3_600_000),
            ),
        ],
    )
    .await;
    assert_eq!(said[0], error("HttpResponseTimeout"));
    assert_eq!(said[1], error("ConnectionReadTimeout"));
    for said in &said[2..] {
        assert_eq!(said["body"], "half ");
        assert_eq!(said["body-error"], "ConnectionReadTimeout", "{said}");
    }
    server.wait_idle();
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let world = world_of(
        services(),
        &[&format!("http://{gone}")],
        HttpLimits::default(),
    )
    .await;
    let request = json!({ "scheme": "http", "authority": gone.to_string(), "path": "/" });
    assert_eq!(ask_one(&world, request).await, error("ConnectionRefused"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_end_with_their_call() {
    let server = WebServer::serve(|_, _| Ok(()));
    let mut granted = granted(&[&only(&server)], HttpLimits::default());
    granted.limits.wall = Duration::from_millis(300);
    let mut config = config(&[web()], granted);
    config.services = services();
    let world = World::of(config, "web").await;
    let play = async |then: &str| {
        let requests = vec![get(&server, "/stall"); 3];
        let spec = json!({ "at-once": true, "requests": requests, "then": then });
        world.play_in(world.cx(), spec).await
    };
    let count = threads();
    for _ in 0..20 {
        assert_eq!(play("leave").await.unwrap(), json!({ "sent": 3 }));
        server.wait_idle();
        assert_eq!(play("panic").await.unwrap_err().code(), "HandlerTrapped");
        server.wait_idle();
    }
    // A stalled server is told to the handler before its own time is over.
    let said = play("").await.unwrap();
    assert_eq!(said["answers"][0], error("HttpResponseTimeout"));
    server.wait_idle();
    let cx = world.cx();
    let cancel = cx.cancel.clone();
    let spec = json!({ "requests": [get(&server, "/stall")] });
    let call = world.play_in(cx, spec);
    let (ended, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(ended.unwrap_err().code(), "HandlerCancelled");
    server.wait_idle();
    // Other tests run beside this one; a leak in each round would show.
    assert!(threads() < count + 60, "{count} -> {}", threads());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_and_never_sent_is_small() {
    let world = world(&["https://granted.example"]).await;
    let hoard = async |what: &str| {
        let spec = json!({ "then": what });
        world.play_in(world.cx(), spec).await.unwrap()
    };
    let texts = hoard("hoard-texts").await;
    for (text, taken) in [
        ("method", false),
        ("authority", false),
        ("path", false),
        ("short-method", true),
        ("short-authority", true),
    ] {
        assert_eq!(texts[text], taken, "{text}");
    }
    let bodies = hoard("hoard-bodies").await;
    for bytes in bodies["taken"].as_array().unwrap() {
        assert!(
            (1..=64 * 1024).contains(&bytes.as_u64().unwrap()),
            "{bytes}"
        );
    }
    // The crate ends the guest when its headers are too large together.
    let spec = json!({ "then": "hoard-fields" });
    let ended = world.play_in(world.cx(), spec).await.unwrap_err();
    assert!(
        matches!(&ended, PluginError::Trap { message, .. } if message.contains("total size")),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_and_every_refusal_is_in_the_audit_log() {
    let server = hello();
    let state = scratch();
    let open = || Dir::open_ambient_dir(state.path(), ambient_authority()).unwrap();
    let mut services = services();
    services.audit = Some(AuditLog::open(&open(), Settings::default()).unwrap());
    let world = world_of(services, &[&only(&server)], HttpLimits::default()).await;
    let mut secret = get(&server, "/path?token=s3cret");
    secret["headers"] = json!([["authorization", "Bearer s3cret"]]);
    let mut post = get(&server, "/");
    post["method"] = json!("POST");
    let denied = json!({ "scheme": "http", "authority": "other.example", "path": "/s3cret" });
    let user = json!({ "scheme": "http", "authority": "me:s3cret@other.example", "path": "/" });
    ask(&world, &[secret, post, denied, user]).await;
    let page = read(&open(), &Filter::default(), 0, 1000).unwrap();
    let said: Vec<_> = page
        .records
        .iter()
        .filter(|record| record.capability == "http")
        .map(|record| {
            let target = record.target.clone().unwrap();
            (record.outcome, record.code.clone(), target)
        })
        .collect();
    let granted = only(&server);
    let code = |text: &str| Some(text.to_owned());
    assert_eq!(
        said,
        [
            (Outcome::Started, None, granted.clone()),
            (Outcome::Ok, None, granted.clone()),
            (Outcome::Started, None, granted.clone()),
            (Outcome::Ok, None, granted),
            (
                Outcome::Denied,
                code("HttpRequestDenied"),
                "http://other.example".to_owned()
            ),
            (
                Outcome::Denied,
                code("HttpRequestUriInvalid"),
                "http://***@other.example".to_owned()
            ),
        ]
    );
    let ended = page
        .records
        .iter()
        .find(|record| (record.capability.as_str(), record.outcome) == ("http", Outcome::Ok));
    let counts = &ended.unwrap().counts;
    assert_eq!(counts["status"], 200);
    assert!(counts["sentBytes"] > 0 && counts["receivedBytes"] > 5);
    assert!(ended.unwrap().duration_us.is_some());
    let file = state.path().join("audit/audit-000001.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
}

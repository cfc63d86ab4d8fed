//! Each misbehaviour is a typed error of one call, and the next call works.

use std::sync::Mutex;

use tokio::time::Instant;

use super::*;

fn is_trap(error: &PluginError, words: &str) -> bool {
    matches!(error, PluginError::Trap { message, .. } if message == words)
}

fn is_limit(error: &PluginError, kind: LimitKind) -> bool {
    matches!(error, PluginError::LimitExceeded { limit, .. } if *limit == kind)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_gives_one_line_and_the_next_call_works() {
    let world = World::with(hostile(), grants()).await;
    let error = world.play("panic").await.unwrap_err();
    assert!(is_trap(&error, "disk layout\\nunsupported"), "{error:?}");
    assert_eq!(error.code(), "HandlerTrapped");
    assert_eq!(error.to_string().lines().count(), 1);
    world.still_works().await;
    let error = world.play("exit").await.unwrap_err();
    // WASI 0.2 passes on only whether an exit was a success.
    assert!(is_trap(&error, "it exited with code 1"), "{error:?}");
    let error = world.play("recurse").await.unwrap_err();
    assert!(is_limit(&error, LimitKind::Stack), "{error:?}");
    world.still_works().await;
}

#[tokio::test]
async fn an_endless_loop_ends_while_others_are_served() {
    // One thread for everything: the loop must yield, and the ticker must not need the executor.
    let mut limited = grants();
    limited.limits.cpu_epochs = 20;
    let world = World::with(hostile(), limited).await;
    let (spun, _) = tokio::join!(world.play("spin"), world.still_works());
    let error = spun.unwrap_err();
    assert!(is_limit(&error, LimitKind::Cpu), "{error:?}");

    let mut timed = grants();
    timed.limits.wall = Duration::from_millis(200);
    let world = World::with(hostile(), timed).await;
    let error = world.play("spin").await.unwrap_err();
    assert_eq!(error.code(), "HandlerTimeout");
    world.still_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_in_the_host_ends_at_the_deadline_and_on_cancel() {
    let mut timed = grants();
    timed.limits.wall = Duration::from_millis(100);
    let world = World::with(hostile(), timed).await;
    assert_eq!(
        world.play("sleep").await.unwrap_err().code(),
        "HandlerTimeout"
    );

    let world = World::with(hostile(), grants()).await;
    let mut cx = world.cx();
    cx.deadline = Some(Instant::now() + Duration::from_millis(100));
    let error = world
        .play_in(cx, json!({ "scenario": "sleep" }))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "HandlerTimeout");

    let cx = world.cx();
    let cancel = cx.cancel.clone();
    let call = world.play_in(cx, json!({ "scenario": "sleep" }));
    let (ended, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(ended.unwrap_err().code(), "HandlerCancelled");
    world.still_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_handles_end_at_their_limits() {
    let world = World::with(hostile(), grants()).await;
    let error = world.play("allocate").await.unwrap_err();
    assert!(is_limit(&error, LimitKind::Memory), "{error:?}");
    let error = world.play("handles").await.unwrap_err();
    assert!(is_limit(&error, LimitKind::Handles), "{error:?}");
    world.still_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_copied_out_of_the_guest_is_limited() {
    let mut roomy = grants();
    roomy.limits.memory_bytes = 128 << 20;
    let world = World::with(hostile(), roomy).await;
    for scenario in ["huge-log", "huge-url", "huge-result"] {
        let error = world.play(scenario).await.unwrap_err();
        assert!(
            is_limit(&error, LimitKind::HostCall),
            "{scenario}: {error:?}"
        );
    }
    let current = metadata(json!({ "scenario": "many-losses" }));
    let error = world
        .runtime
        .suspend(&world.plugin, world.cx(), &current)
        .await;
    assert!(is_limit(&error.unwrap_err(), LimitKind::HostCall));
    world.still_works().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_are_cut_and_the_last_words_are_kept() {
    let world = World::with(hostile(), grants()).await;
    let error = world.play("flood-stdio").await.unwrap_err();
    assert!(is_trap(&error, "the last words"), "{error:?}");
    world.play("flood-log").await.unwrap();

    let stages = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stages);
    let mut cx = world.cx();
    cx.progress = Arc::new(move |stage: &str, _, _| seen.lock().unwrap().push(stage.to_owned()));
    world
        .play_in(cx, json!({ "scenario": "flood-progress" }))
        .await
        .unwrap();
    let stages = stages.lock().unwrap();
    assert_eq!(stages.len(), 256);
    assert!(
        stages.iter().all(|stage| !stage.contains('\x1b')),
        "{:?}",
        stages[0]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_in_metadata_are_refused() {
    let world = World::with(hostile(), grants()).await;
    for scenario in ["lie", "bad-json"] {
        let error = world.play(scenario).await.unwrap_err();
        assert_eq!(error.code(), "HandlerBadMetadata", "{scenario}");
    }
    let error = world.play("typed").await.unwrap_err();
    assert_eq!(error.code(), "WorkspaceSuspendNotConfigured");
    assert!(!error.to_string().contains('\x1b'));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_survives_a_call_and_nothing_of_the_host_is_seen() {
    let world = World::with(hostile(), grants()).await;
    for _ in 0..3 {
        let kept = world.play("keep-handle").await.unwrap();
        assert_eq!(kept, json!({ "kept": false }));
    }
    let seen = world.play("surroundings").await.unwrap();
    assert_eq!(seen, json!({ "env": 0, "args": 0, "stdin": "" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_and_threads_do_not_pile_up() {
    let mut timed = grants();
    timed.limits.wall = Duration::from_millis(20);
    let world = World::with(hostile(), timed).await;
    let fds = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let round = async || {
        for scenario in ["sleep", "keep-handle", "panic"] {
            let _ = world.play(scenario).await;
        }
    };
    round().await;
    let (fds_before, threads_before) = (fds(), threads());
    for _ in 0..50 {
        round().await;
    }
    // Other tests run beside this one; 150 leaks would show.
    assert!(fds() < fds_before + 60, "{fds_before} -> {}", fds());
    assert!(
        threads() < threads_before + 60,
        "{threads_before} -> {}",
        threads()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_slots_wait_instead_of_failing() {
    let mut config = config(&[hostile()], grants());
    config.pool.calls = 2;
    let world = World::of(config, "hostile").await;
    let calls = (0..40).map(|_| world.still_works());
    futures_util::future::join_all(calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capability_without_its_service_says_denied() {
    let world = World::with(hostile(), grants()).await;
    assert_eq!(world.play("git").await.unwrap_err().code(), "GitDenied");
    let spec = json!({ "scenario": "process", "argv": ["echo", "x"] });
    let error = world.play_in(world.cx(), spec).await.unwrap_err();
    assert_eq!(error.code(), "ProcessDenied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_reaches_the_mirrors_and_their_errors_come_back_typed() {
    let state = scratch();
    let mut config = config(&[hostile()], grants());
    config.services.mirrors = Some(mirrors(state.path()));
    let world = World::of(config, "hostile").await;
    let error = world.play("git").await.unwrap_err();
    assert_eq!(error.code(), "GitNotARepository");
}

fn mirrors(state: &Path) -> warren_mirror::Mirrors {
    let spec = warren_mirror::MirrorsSpec {
        state: Dir::open_ambient_dir(state, ambient_authority()).unwrap(),
        state_path: state.to_owned(),
        policy: warren_mirror::UrlPolicy::new(&["https://**"]).unwrap(),
        credentials: warren_mirror::CredentialStore::default(),
        known_hosts: state.join("known_hosts"),
        ca_file: None,
        limits: warren_mirror::Limits::default(),
        repo_limits: warren_repo::Limits::default(),
        disk: None,
        exclude: warren_repo::Exclude::default(),
    };
    warren_mirror::Mirrors::open(spec).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unlisted_action_never_reaches_the_guest() {
    let world = World::with(hostile(), grants()).await;
    let none = Metadata::default();
    let act = async |action: &str| {
        let cx = world.cx();
        world
            .runtime
            .perform(&world.plugin, cx, action, &none, &none)
            .await
    };
    assert_eq!(act("act").await.unwrap().text("action"), Some("act"));
    assert_eq!(act("other").await.unwrap_err().code(), "UnsupportedAction");
}

//! Machines that give less: what is required is refused by name, the rest is told.

use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
use warren_process::{Confined, Confinement, Layer, Output, ProcessError, ProxyStart};

use crate::kit::{Place, launcher};

/// Runs a script on a machine where these system calls fail so, as an older or a locked one would.
fn without(
    calls: &[libc::c_long],
    errno: i32,
    confined: bool,
    proxy: bool,
) -> Result<Output, ProcessError> {
    let place = Place::new();
    let mut command = place.script("echo ran");
    if confined {
        command.confinement = place.confinement();
    }
    if let (Confinement::Confined(confined), true) = (&mut command.confinement, proxy) {
        confined.proxy = Some(ProxyStart::new(Ok));
    }
    // The filter stays with the thread and with the launcher that it starts.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let rules = calls.iter().map(|&call| (call, Vec::new())).collect();
            let action = SeccompAction::Errno(errno as u32);
            let arch = std::env::consts::ARCH.try_into().unwrap();
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
            let program: seccompiler::BpfProgram = filter.try_into().unwrap();
            apply_filter(&program).unwrap();
            runtime.block_on(launcher(true).run(command, None))
        });
        thread.join().unwrap()
    })
}

fn refused(result: Result<Output, ProcessError>) -> Layer {
    match result {
        Err(ProcessError::Confinement { layer, .. }) => layer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_layer_that_is_required_is_refused_by_name() {
    let root = rustix::process::geteuid().is_root();
    let (no_such_call, not_allowed) = (libc::ENOSYS, libc::EPERM);
    let mut wanted = vec![
        (
            libc::SYS_landlock_create_ruleset,
            no_such_call,
            Layer::Landlock,
        ),
        (
            libc::SYS_landlock_create_ruleset,
            libc::EOPNOTSUPP,
            Layer::Landlock,
        ),
        (
            libc::SYS_landlock_restrict_self,
            not_allowed,
            Layer::Landlock,
        ),
        (libc::SYS_capset, not_allowed, Layer::Capabilities),
    ];
    if root {
        // Asked for, and then half there: not a machine without it.
        wanted.extend([
            (libc::SYS_setresuid, not_allowed, Layer::ProjectUser),
            (libc::SYS_setgroups, not_allowed, Layer::ProjectUser),
            (libc::SYS_fsopen, not_allowed, Layer::PrivateRoot),
            (libc::SYS_mount_setattr, no_such_call, Layer::PrivateRoot),
            (libc::SYS_pivot_root, libc::EINVAL, Layer::PrivateRoot),
        ]);
    }
    for (call, errno, layer) in wanted {
        assert_eq!(refused(without(&[call], errno, true, false)), layer);
        if call != libc::SYS_mount_setattr {
            let output = without(&[call], errno, false, false).unwrap();
            assert_eq!(output.stdout.text(), "ran\n");
            assert!(
                !output.isolation.has(Layer::Landlock),
                "unconfined: {layer}"
            );
        }
    }
}

#[test]
fn without_namespaces_a_child_is_confined_all_the_same_but_has_no_network() {
    let calls = [libc::SYS_unshare];
    for errno in [libc::EPERM, libc::ENOSPC] {
        let output = without(&calls, errno, true, false).unwrap();
        for layer in [Layer::Landlock, Layer::Seccomp, Layer::NoNewPrivs] {
            assert!(output.isolation.has(layer), "{layer}");
        }
        for layer in [
            Layer::PidNamespace,
            Layer::PrivateRoot,
            Layer::NetworkNamespace,
        ] {
            assert!(!output.isolation.has(layer), "{layer}");
        }
        let layer = refused(without(&calls, errno, true, true));
        assert_eq!(layer, Layer::NetworkNamespace);
    }
}

/// What a child says of itself where only user namespaces are allowed.
const SCRIPT: &str =
    "id -u; cat /proc/self/uid_map; ls /proc | grep -c '^[0-9]'; ls /root /etc/shadow";

fn run_by(setpriv: &str, place: &Place, confinement: Confinement<'_>) -> Output {
    let bin = Place::new();
    let launcher = crate::kit::launcher_by(&bin, &format!("exec /usr/bin/setpriv {setpriv}"));
    let mut command = place.script(SCRIPT);
    command.confinement = confinement;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(launcher.run(command, None)).unwrap()
}

/// Whether this machine lets the test play somebody with fewer rights.
fn can_play() -> bool {
    let probe = warren_confine::probe();
    std::path::Path::new("/usr/bin/setpriv").exists()
        && [Layer::UserNamespace, Layer::ProjectUser]
            .iter()
            .all(|&layer| probe.missing(layer).is_none())
}

fn check(output: &Output, user: u32, mapped: usize) {
    let text = output.stdout.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], user.to_string(), "{text}{}", output.stderr.text());
    assert_eq!(
        lines.len(),
        2 + mapped,
        "a map of {mapped}, few processes, no files: {text}"
    );
    let processes: u32 = lines[1 + mapped].parse().unwrap();
    assert!(processes <= 5, "{text}");
    for layer in [
        Layer::UserNamespace,
        Layer::PidNamespace,
        Layer::PrivateRoot,
        Layer::NetworkNamespace,
        Layer::Landlock,
        Layer::Seccomp,
        Layer::Capabilities,
    ] {
        assert!(output.isolation.has(layer), "{layer}");
    }
}

#[test]
fn a_root_that_may_not_mount_confines_in_a_user_namespace() {
    if !can_play() {
        return;
    }
    let place = Place::new();
    let output = run_by("--bounding-set -sys_admin", &place, place.confinement());
    check(&output, place.identity().unwrap().uid, 2);
    assert!(output.isolation.has(Layer::ProjectUser));
}

#[test]
fn a_host_that_is_not_root_confines_in_a_user_namespace() {
    if !can_play() {
        return;
    }
    let place = Place::new();
    std::os::unix::fs::chown(place.path(), Some(65_534), Some(65_534)).unwrap();
    let nobody = "--reuid=65534 --regid=65534 --clear-groups";
    let confined = Confinement::Confined(Confined::default());
    let output = run_by(nobody, &place, confined);
    check(&output, 65_534, 1);
    assert!(!output.isolation.has(Layer::ProjectUser));
}

//! What a child starts with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use warren_process::{ChildLimits, Launcher, Layer, PATH, ProcessError, Programs};

use crate::kit::{BOTH, Place, launcher};

#[tokio::test]
async fn exit_codes_and_arguments_arrive() {
    let place = Place::new();
    for namespaces in BOTH {
        for code in [0, 1, 255] {
            let command = place.script(&format!("exit {code}"));
            let output = launcher(namespaces).run(command, None).await.unwrap();
            assert_eq!(output.exit_code, code);
        }
    }
    let odd = "a b;$(x)'\"\n*ü";
    let command = place.command(
        &place.shell,
        &["-c", "printf '%s' \"$1\"; pwd >&2", "sh", odd],
    );
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.stdout.text(), odd);
    assert_eq!(Path::new(output.stderr.text().trim_end()), place.path());
}

#[tokio::test]
async fn the_environment_is_exactly_the_set() {
    let place = Place::new();
    let output = place.run("exec /usr/bin/env").await.unwrap();
    let text = output.stdout.text();
    // The shell sets PWD itself.
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("PWD="))
        .collect();
    lines.sort_unstable();
    let path = place.path().display().to_string();
    let expected = [
        format!("HOME={path}"),
        "LANG=C.UTF-8".to_owned(),
        format!("PATH={PATH}"),
        format!("TMPDIR={path}"),
        format!("WARREN_TEST_MARK={}", place.mark),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn only_the_standard_streams_are_open() {
    let place = Place::new();
    // Not close-on-exec, so that a careless launcher would hand it on.
    let leak = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    for namespaces in BOTH {
        let command = place.script("read -r line; echo $?; exec ls -l /proc/self/fd");
        let output = launcher(namespaces).run(command, None).await.unwrap();
        let text = output.stdout.text();
        assert!(text.starts_with("1\n"), "input is at its end: {text}");
        // The folder that `ls` reads is its own.
        let links = text.lines().filter_map(|line| line.split_once(" -> "));
        let open: Vec<_> = links
            .filter(|(_, target)| !target.ends_with("/fd"))
            .collect();
        assert_eq!(open.len(), 3, "{text}");
        assert_eq!(open[0].1, "/dev/null");
        assert!(
            open[1].1.starts_with("pipe:") && open[2].1.starts_with("pipe:"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn limits_and_protections_hold() {
    let place = Place::new();
    let mut command = place.script(
        "ulimit -n; ulimit -c; umask; grep -E 'NoNewPrivs|SigIgn|SigBlk' /proc/self/status",
    );
    command.limits = ChildLimits {
        open_files: Some(77),
        ..ChildLimits::default()
    };
    let output = launcher(true).run(command, None).await.unwrap();
    let text = output.stdout.text();
    let lines: Vec<_> = text.split_whitespace().collect();
    assert_eq!(lines[..3], ["77", "0", "0022"]);
    assert!(text.contains("NoNewPrivs:\t1"), "{text}");
    for line in ["SigIgn:\t0000000000000000", "SigBlk:\t0000000000000000"] {
        assert!(text.contains(line), "{text}");
    }

    let mut command = place.script("exec head -c 100000 /dev/zero > file");
    command.limits.file_bytes = Some(1000);
    let error = launcher(true).run(command, None).await.unwrap_err();
    assert!(error.hint().unwrap().contains("size limit"), "{error}");
    assert_eq!(fs::metadata(place.path().join("file")).unwrap().len(), 1000);
}

#[tokio::test]
async fn a_namespace_shows_only_its_own_processes() {
    let place = Place::new();
    let output = place.run("ls /proc; kill -0 $PPID; echo $?").await.unwrap();
    if !output.isolation.has(Layer::PrivateProc) {
        // This kernel or container does not let us; the run itself worked.
        assert_eq!(output.exit_code, 0);
        return;
    }
    let text = output.stdout.text();
    let pids = text.lines().filter(|line| line.parse::<u32>().is_ok());
    // Its supervisor, the shell, `ls`, and the last line.
    assert!(pids.count() <= 4, "{text}");
    let command = place.script("exit 0");
    let output = launcher(false).run(command, None).await.unwrap();
    let layers: Vec<_> = output.isolation.iter().collect();
    assert_eq!(layers, [Layer::NoNewPrivs]);
}

#[tokio::test]
async fn what_can_not_start_is_told_apart() {
    let place = Place::new();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let mut programs = Programs::new(std::slice::from_ref(&bin), &[]).unwrap();
    for (name, start) in [("lost", "#!/no/such/interpreter\n"), ("text", "\u{1}")] {
        fs::write(bin.join(name), start).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        programs.alias(name, &[name]);
    }
    for namespaces in BOTH {
        for (name, code) in [("lost", "ProcessNotFound"), ("text", "ProcessFailed")] {
            let program = programs.resolve_alias(name).unwrap();
            let command = place.command(&program, &[]);
            let error = launcher(namespaces).run(command, None).await.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[tokio::test]
async fn requests_that_can_not_be_passed_on_are_refused() {
    let place = Place::new();
    let long = "x".repeat(129 * 1024);
    for argument in ["a\0b", &long] {
        let command = place.command(&place.shell, &[argument]);
        let error = launcher(true).run(command, None).await.unwrap_err();
        assert!(matches!(error, ProcessError::InvalidArgument(_)), "{error}");
    }
    let mut command = place.script("true");
    command.deadline = Duration::ZERO;
    let error = launcher(true).run(command, None).await.unwrap_err();
    assert!(matches!(error, ProcessError::InvalidArgument(_)), "{error}");
}

#[tokio::test]
async fn a_program_that_is_swapped_after_the_check_is_not_run() {
    let place = Place::new();
    let root = place.path();
    fs::create_dir_all(root.join(".venv/bin")).unwrap();
    let link = root.join(".venv/bin/python");
    symlink("/bin/sh", &link).unwrap();
    let mut programs = Programs::new(&[], &[]).unwrap();
    programs.alias("sh", &["/bin/sh"]);
    let program = programs
        .resolve_in_root(&place.directory, ".venv/bin/python", &[".venv/bin/python"])
        .unwrap();
    fs::remove_file(&link).unwrap();
    symlink("/bin/false", &link).unwrap();
    let command = place.command(&program, &["-c", "echo \"$0\""]);
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.stdout.text(), "./.venv/bin/python\n");
}

#[tokio::test]
async fn a_python_in_a_root_finds_its_environment() {
    let place = Place::new();
    let root = place.path();
    fs::create_dir_all(root.join(".venv/bin")).unwrap();
    fs::write(root.join(".venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    symlink("/usr/bin/python3", root.join(".venv/bin/python")).unwrap();
    let mut programs = Programs::new(&["/usr/bin".into()], &[]).unwrap();
    programs.alias("python", &["python3"]);
    let program = programs
        .resolve_in_root(&place.directory, ".venv/bin/python", &[".venv/bin/python"])
        .unwrap();
    let script = "import sys; print(sys.prefix); print(sys.executable)";
    let command = place.command(&program, &["-I", "-c", script]);
    let output = launcher(true).run(command, None).await.unwrap();
    let venv = root.join(".venv").display().to_string();
    let text = output.stdout.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], venv, "{}", output.stderr.text());
    assert!(lines[1].starts_with(root.to_str().unwrap()), "{text}");
}

#[test]
fn the_launcher_is_found_beside_the_program_and_is_not_for_people() {
    assert!(Launcher::locate(None).is_ok());
    let output = Command::new(env!("CARGO_BIN_EXE_warren-launch"))
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: warren-launch is started by warren"));
}

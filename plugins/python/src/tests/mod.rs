//! The handler against a Pod that exists in memory.

mod pod;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use warren_sdk::process::Program;
use warren_sdk::testing::{GitCall, Host};
use warren_sdk::{Loss, ProcessError};

use super::*;
use pod::{Pod, Trouble, metadata};

const REPO: &str = r#"{"repoUrl":"https://h/r"}"#;

#[test]
fn init_without_a_remote_makes_a_repository_rules_and_an_environment() {
    let pod = Pod::new();
    let made = pod.init(r#"{"x":1}"#).unwrap();
    assert_eq!(made.to_json().unwrap(), r#"{"x":1}"#);
    let init = GitCall::Init {
        branch: "main".into(),
        origin: None,
    };
    assert_eq!(pod.host.git_calls(), [init]);
    assert_eq!(pod.read(".gitignore"), ".venv\n__pycache__/\n*.pyc\n");
    assert!(pod.has(".venv/bin/python"));
    let lines = pod.lines();
    assert_eq!(lines[1], "python -I -m venv .venv");
    assert!(lines.iter().all(|line| line.contains(" -I ")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("install")));
}

#[test]
fn init_with_a_remote_clones_and_installs_the_requirements() {
    let pod = Pod::new();
    pod.repo.borrow_mut().files = vec![
        ("requirements.txt".into(), "six\n".into()),
        (".gitignore".into(), "build".into()),
    ];
    let made = pod.init(REPO).unwrap();
    assert_eq!(made.git.commit.as_deref(), Some("base"));
    assert_eq!(
        pod.read(".gitignore"),
        "build\n.venv\n__pycache__/\n*.pyc\n"
    );
    let install = pod.host.runs().pop().unwrap();
    assert_eq!(install.program, Program::InRoot(".venv/bin/python".into()));
    let line = install.arguments.join(" ");
    assert!(
        line.starts_with("-I -m pip --require-virtualenv --no-input"),
        "{line}"
    );
    assert!(line.ends_with("-r requirements.txt"), "{line}");
    let stages: Vec<_> = pod.host.progress().into_iter().map(|p| p.0).collect();
    assert_eq!(stages, ["venv", "install", "install"]);
}

#[test]
fn uv_makes_and_fills_the_environment_where_the_pod_has_it() {
    let pod = Pod::with_uv();
    // It does not need what the interpreter lacks.
    pod.trouble(Trouble::NoVenvModule);
    pod.write("requirements.txt", "six\n");
    pod.init("{}").unwrap();
    let lines = pod.lines();
    assert!(
        lines[1].starts_with("uv venv ") && lines[1].ends_with("--python /usr/bin/python3 .venv"),
        "{lines:?}"
    );
    let install = lines.last().unwrap();
    assert!(install.starts_with("uv pip install "), "{install}");
    for flag in [
        "--no-config",
        "--link-mode copy",
        "--python .venv/bin/python",
    ] {
        assert!(install.contains(flag), "{install}");
    }
    assert!(!lines.iter().any(|line| line.contains("-m venv")));
}

#[test]
fn a_planted_environment_goes_and_what_it_links_to_stays() {
    let pod = Pod::new();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let plant: [&dyn Fn(); 3] = [
        &|| symlink(outside.path(), pod.path(".venv")).unwrap(),
        &|| pod.write(".venv", "a file"),
        &|| {
            fs::create_dir(pod.path(".venv")).unwrap();
            symlink(&victim, pod.path(".venv/pyvenv.cfg")).unwrap();
            symlink(outside.path(), pod.path(".venv/lib")).unwrap();
        },
    ];
    for plant in plant {
        plant();
        pod.init("{}").unwrap();
        let venv = fs::symlink_metadata(pod.path(".venv")).unwrap();
        assert!(venv.is_dir());
        assert!(!pod.has(".venv/lib"));
        assert_eq!(pod.read(".venv/pyvenv.cfg"), "new");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        fs::remove_dir_all(pod.path(".venv")).unwrap();
    }
}

#[test]
fn without_an_interpreter_nothing_is_cloned() {
    let pod = Pod::new();
    let spec = r#"{"repoUrl":"https://h/r","pythonPath":"/opt/none"}"#;
    let error = pod.init(spec).unwrap_err();
    assert!(
        matches!(&error, Error::MissingProgram(text) if text.contains("/opt/none")),
        "{error:?}"
    );
    assert_eq!(pod.host.git_calls(), []);

    drop(pod);
    let host = Host::new();
    let error = Python::init(&host.root_named("py"), metadata("{}")).unwrap_err();
    assert!(matches!(error, Error::MissingProgram(text) if text.contains("`python`")));
}

#[test]
fn an_interpreter_that_may_not_run_says_so() {
    let pod = Pod::new();
    let denied = ProcessError::Denied("python".into());
    let answer = denied.clone();
    pod.host.on_run(move |_, _| Err(answer.clone()));
    assert_eq!(pod.init("{}").unwrap_err(), Error::Process(denied));
}

#[test]
fn an_interpreter_without_venv_names_the_package_and_leaves_nothing() {
    for trouble in [Trouble::NoVenvModule, Trouble::EnsurepipFails] {
        let pod = Pod::new();
        pod.trouble(trouble);
        let error = pod.init("{}").unwrap_err();
        assert!(
            matches!(&error, Error::MissingProgram(text) if text.contains("python3-venv")),
            "{error:?}"
        );
        assert!(!pod.has(".venv"));
        pod.trouble(Trouble::None);
        pod.init("{}").unwrap();
    }
}

#[test]
fn an_environment_that_does_not_answer_is_broken_and_removed() {
    for trouble in [Trouble::ForeignPrefix, Trouble::DeadPython] {
        let pod = Pod::new();
        pod.trouble(trouble);
        let error = pod.init("{}").unwrap_err();
        assert!(
            matches!(&error, Error::BrokenEnvironment(text) if text.contains(REBUILD)),
            "{error:?}"
        );
        assert!(!pod.has(".venv"));
    }
}

#[test]
fn keys_that_need_a_remote_are_refused_without_one() {
    for (spec, key) in [
        (r#"{"commitOnClose":true}"#, "commitOnClose"),
        (r#"{"commit":"c"}"#, "commit"),
        (r#"{"suspendBranch":"b"}"#, "suspendBranch"),
    ] {
        let pod = Pod::new();
        let error = pod.init(spec).unwrap_err();
        assert!(matches!(error, Error::InvalidMetadata(i) if i.key == key));
        assert_eq!(pod.host.git_calls(), []);
    }
}

#[test]
fn suspend_without_a_remote_says_how_to_get_one() {
    let pod = Pod::new();
    let error = Python::suspend(&pod.root, metadata("{}")).unwrap_err();
    assert!(
        matches!(&error, Error::SuspendNotConfigured(text)
            if text.contains("`py`") && text.contains("--repo")),
        "{error:?}"
    );
    assert_eq!(pod.host.git_calls(), []);
}

#[test]
fn suspend_says_that_the_environment_is_rebuilt() {
    let pod = Pod::new();
    let ignored = |path: &str| Loss {
        kind: LossKind::Ignored,
        path: path.to_owned(),
        bytes: 1,
    };
    let paths = [".venv", ".venv/lib", ".venvs", "__pycache__"];
    pod.repo.borrow_mut().snapshot.loss = paths.map(ignored).to_vec();
    let suspended = Python::suspend(&pod.root, metadata(REPO)).unwrap();
    let kinds: Vec<_> = suspended.loss.iter().map(|loss| loss.kind).collect();
    assert_eq!(
        kinds,
        [
            LossKind::Rebuilt,
            LossKind::Rebuilt,
            LossKind::Ignored,
            LossKind::Ignored
        ]
    );
    assert_eq!(
        suspended.metadata.git.suspend_branch.as_deref(),
        Some("vance/suspend/py")
    );
}

fn suspended(pod: &Pod) -> Metadata<Settings> {
    Python::suspend(&pod.root, metadata(REPO)).unwrap().metadata
}

#[test]
fn recover_restores_the_sources_as_they_were_and_installs() {
    let pod = Pod::new();
    let saved = suspended(&pod);
    pod.repo.borrow_mut().files = vec![
        (".gitignore".into(), "mine".into()),
        ("requirements.txt".into(), "six".into()),
        (".venv/pyvenv.cfg".into(), "saved by mistake".into()),
    ];
    let back = Python::recover(&pod.root, saved.clone()).unwrap();
    assert_eq!(back, saved);
    assert_eq!(pod.read(".gitignore"), "mine");
    assert_eq!(pod.read(".venv/pyvenv.cfg"), "new");
    assert!(pod.lines().last().unwrap().contains("install"));
    assert!(
        pod.host
            .git_calls()
            .iter()
            .any(|call| matches!(call, GitCall::Restore { .. }))
    );
}

#[test]
fn recover_whose_environment_fails_has_the_sources_and_pips_last_line() {
    for make in [Pod::new, Pod::with_uv] {
        let pod = make();
        let saved = suspended(&pod);
        pod.repo.borrow_mut().files = vec![("requirements.txt".into(), "x".into())];
        pod.trouble(Trouble::NoWheel);
        let error = Python::recover(&pod.root, saved).unwrap_err();
        assert!(
            matches!(&error, Error::ProgramFailed(text)
                if text.ends_with("ERROR: No matching distribution for x")),
            "{error:?}"
        );
        assert!(pod.has("requirements.txt"));
        assert!(!pod.has(".venv"));
    }
}

#[test]
fn rebuild_puts_a_new_environment_in_place_and_touches_no_source() {
    let pod = Pod::new();
    pod.write(".venv/pyvenv.cfg", "old");
    pod.write("main.py", "print()");
    symlink("/nonexistent", pod.path(".venv/python3")).unwrap();
    let after = pod.rebuild(json!({})).unwrap();
    assert_eq!(after.python_path.as_deref(), Some("/usr/bin/python3"));
    assert_eq!(pod.read(".venv/pyvenv.cfg"), "new");
    assert!(!pod.has(".venv/python3"));
    let mut names: Vec<_> = fs::read_dir(pod.host.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".venv", "main.py"]);
    assert_eq!(pod.host.git_calls(), []);
}

#[test]
fn a_rebuild_that_fails_brings_the_old_environment_back() {
    for trouble in [
        Trouble::EnsurepipFails,
        Trouble::DeadPython,
        Trouble::NoWheel,
    ] {
        let pod = Pod::new();
        pod.write("requirements.txt", "x");
        pod.write(".venv/pyvenv.cfg", "old");
        pod.trouble(trouble);
        pod.rebuild(json!({})).unwrap_err();
        assert_eq!(pod.read(".venv/pyvenv.cfg"), "old", "{trouble:?}");
        assert!(!pod.has(".venv.warren-old"));
    }
}

#[test]
fn a_rebuild_cut_short_is_taken_back_by_suspend_and_finished_after_its_commit() {
    let pod = Pod::new();
    pod.write(".venv.warren-old/pyvenv.cfg", "old");
    pod.write(".venv/half", "");
    suspended(&pod);
    assert_eq!(pod.read(".venv/pyvenv.cfg"), "old");
    assert!(!pod.has(".venv/half") && !pod.has(".venv.warren-old"));

    pod.write(".venv.warren-gone/pyvenv.cfg", "older");
    pod.rebuild(json!({})).unwrap();
    assert!(!pod.has(".venv.warren-gone"));
    assert_eq!(pod.read(".venv/pyvenv.cfg"), "new");
}

#[test]
fn rebuild_takes_another_interpreter_only_when_it_is_there() {
    let pod = Pod::new();
    pod.write(".venv/pyvenv.cfg", "old");
    let other = Program::Path("/opt/py".into());
    let error = pod.rebuild(json!({"pythonPath": "/opt/py"})).unwrap_err();
    assert!(matches!(error, Error::MissingProgram(_)));
    assert_eq!(pod.read(".venv/pyvenv.cfg"), "old");

    pod.host.add_program(other, "/opt/py");
    let after = pod.rebuild(json!({"pythonPath": "/opt/py"})).unwrap();
    assert_eq!(after.python_path.as_deref(), Some("/opt/py"));
    let after = pod.rebuild(json!({"pythonPath": null})).unwrap();
    assert_eq!(after.python_path, None);

    for (arguments, key) in [
        (json!({"pythonPath": 3}), "pythonPath"),
        (json!({"python": "x"}), "python"),
    ] {
        let error = pod.rebuild(arguments).unwrap_err();
        assert!(matches!(error, Error::InvalidMetadata(i) if i.key == key));
    }
    let error = Python::perform(&pod.root, "x", json!({}), metadata("{}")).unwrap_err();
    assert_eq!(error, Error::UnsupportedAction("x".into()));
}

#[test]
fn close_pushes_only_when_asked() {
    let pod = Pod::new();
    pod.repo.borrow_mut().status.modified = 1;
    pod.repo.borrow_mut().commit = Some("work".into());
    Python::close(&pod.root, metadata("{}")).unwrap();
    Python::close(&pod.root, metadata(REPO)).unwrap();
    assert_eq!(pod.host.git_calls(), []);
    let asked = r#"{"repoUrl":"https://h/r","commitOnClose":true}"#;
    pod.write(".venv.warren-old/pyvenv.cfg", "old");
    Python::close(&pod.root, metadata(asked)).unwrap();
    assert_eq!(pod.repo.borrow().refs["refs/heads/main"], "work");
    assert!(!pod.has(".venv.warren-old"));
}

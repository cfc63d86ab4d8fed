use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Config, ConfigError, Installer, Origin, Overrides, SecretSource, Surroundings};

struct Case {
    dir: tempfile::TempDir,
    env: Vec<(&'static str, PathBuf)>,
    overrides: Overrides,
}

impl Case {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("warren")).unwrap();
        std::fs::write(dir.path().join("warren/config.toml"), text).unwrap();
        Self {
            dir,
            env: Vec::new(),
            overrides: Overrides::default(),
        }
    }

    fn load(&self) -> Result<Config, ConfigError> {
        let env = |name: &str| -> Option<OsString> {
            let found = self.env.iter().find(|(key, _)| *key == name)?;
            Some(found.1.clone().into())
        };
        Config::load(
            &self.overrides,
            &Surroundings {
                env: &env,
                home: Some("/home/ada".into()),
                state_home: Some("/home/ada/.local/state".into()),
                config_home: Some(self.dir.path().into()),
            },
        )
    }
}

fn refused(text: &str) -> (&'static str, String, Option<String>) {
    let error = Case::new(text).load().unwrap_err();
    let shown = error.to_string();
    let at = shown
        .find("config.toml")
        .map_or(0, |at| at + "config.toml".len());
    let shown = shown[at..].trim_start_matches('`').to_owned();
    (error.code(), shown, error.hint())
}

#[test]
fn without_a_file_there_are_defaults() {
    let case = Case::new("");
    std::fs::remove_file(case.dir.path().join("warren/config.toml")).unwrap();
    let config = case.load().unwrap();
    assert_eq!(
        config.workspace_root.value,
        Path::new("/home/ada/.vancetope/workspaces")
    );
    assert_eq!(
        config.state_dir.value,
        Path::new("/home/ada/.local/state/warren")
    );
    assert_eq!(
        config.plugins_dir.value,
        Path::new("/home/ada/.local/state/warren/plugins")
    );
    assert_eq!(config.git_allow.value, ["https://**", "ssh://**"]);
    assert_eq!(
        (
            config.soft_limit_percent.value,
            config.hard_limit_percent.value
        ),
        (80, 95)
    );
    assert_eq!(config.plugins_shipped.value, ["temp", "git", "python"]);
    assert!(config.file.is_none());
    assert!(
        config
            .entries()
            .iter()
            .all(|entry| entry.origin == "default")
    );
}

#[test]
fn flag_beats_variable_beats_file() {
    let mut case = Case::new("[workspace]\nroot = \"/file\"\n[state]\ndir = '~/s'");
    let root = |case: &Case| {
        let root = case.load().unwrap().workspace_root;
        (root.value, root.origin.to_string())
    };
    let (path, origin) = root(&case);
    assert_eq!(path, Path::new("/file"));
    assert!(origin.ends_with("warren/config.toml:2"), "{origin}");
    assert_eq!(
        case.load().unwrap().state_dir.value,
        Path::new("/home/ada/s")
    );
    case.env = vec![
        ("WARREN_WORKSPACE_ROOT", "/env".into()),
        ("WARREN_STATE_DIR", "".into()),
    ];
    assert_eq!(
        root(&case),
        ("/env".into(), "env WARREN_WORKSPACE_ROOT".into())
    );
    assert_eq!(
        case.load().unwrap().state_dir.value,
        Path::new("/home/ada/s")
    );
    case.overrides.workspace_root = Some("/flag".into());
    assert_eq!(
        root(&case),
        ("/flag".into(), "flag --workspace-root".into())
    );
}

#[test]
fn a_file_that_was_named_must_exist() {
    let mut case = Case::new("");
    case.env = vec![("WARREN_CONFIG", case.dir.path().join("none.toml"))];
    assert_eq!(case.load().unwrap_err().code(), "ConfigUnreadable");
    let other = case.dir.path().join("other.toml");
    std::fs::write(&other, "[workspace]\nroot = 'here'\n").unwrap();
    case.overrides.config = Some(other);
    let config = case.load().unwrap();
    assert_eq!(config.workspace_root.value, case.dir.path().join("here"));
}

#[test]
fn every_section_is_read() {
    let config = Case::new(
        r#"
        [workspace]
        root = "/w"
        layout = "tenant"
        soft-limit-percent = 70
        hard-limit-percent = 70
        [state]
        dir = "/s"
        [store]
        url = "embedded:"
        [exec]
        base-dir = "/e"
        [git]
        allow = ["http://127.0.0.1:*/**"]
        exclude = ["*.pem"]
        known-hosts = "/k"
        ca-file = "/c"
        timeout-seconds = 4
        [credentials.acme]
        username = "x-access-token"
        password = { env = "ACME_TOKEN" }
        remotes = ["https://git.acme.example/**"]
        [credentials.deploy]
        ssh-key = { file = "${HOME}/.ssh/id" }
        passphrase = { command = ["pass", "deploy"] }
        [python]
        interpreter = "/usr/bin/python3"
        installer = "pip"
        index = "https://index.example/simple"
        [plugins]
        shipped = ["temp"]
        dir = "/p"
        policy = "/policy.toml"
        [launcher]
        path = "/l"
        "#,
    )
    .load()
    .unwrap();
    assert_eq!(config.python_installer.value, Installer::Pip);
    let acme = &config.credentials["acme"];
    assert_eq!(
        acme.password.as_ref().unwrap().value,
        SecretSource::Env("ACME_TOKEN".into())
    );
    let deploy = &config.credentials["deploy"];
    assert_eq!(
        deploy.ssh_key.as_ref().unwrap().value,
        Path::new("/home/ada/.ssh/id")
    );
    let policy = config.policy_file.value.as_deref();
    assert_eq!(policy, Some(Path::new("/policy.toml")));
    let entries = config.entries();
    assert_eq!(entries.len(), 24);
    assert!(
        entries
            .iter()
            .all(|entry| entry.origin.contains("config.toml:"))
    );
    let shown = |key: &str| entries.iter().find(|e| e.key == key).unwrap().value.clone();
    assert_eq!(
        shown("credentials.acme.password"),
        json!({ "env": "ACME_TOKEN" })
    );
    assert_eq!(shown("exec.base-dir"), json!("/e"));
    assert_eq!(shown("launcher.path"), json!("/l"));
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest() {
    assert_eq!(
        refused("[workspace]\n\nrooot = '/x'"),
        (
            "ConfigUnknownKey",
            " line 3: unknown key `workspace.rooot`".into(),
            Some("did you mean `workspace.root`?".into())
        )
    );
    let hint = |text| refused(text).2.unwrap();
    assert_eq!(
        hint("[worksapce]\nroot = '/x'"),
        "did you mean `workspace`?"
    );
    assert_eq!(
        hint("[credentials.a]\npasword.env = 'X'"),
        "did you mean `credentials.a.password`?"
    );
    assert_eq!(
        hint("[plugins]\npolcy = 'x'"),
        "did you mean `plugins.policy`?"
    );
    assert!(hint("[plugins.grants.x]\ngit = true").contains("policy.toml"));
}

#[test]
fn a_wrong_type_names_what_is_right() {
    for (text, expected) in [
        (
            "[workspace]\nroot = 7",
            " line 2: `workspace.root` takes a text, not a whole number",
        ),
        (
            "[workspace]\nsoft-limit-percent = '80'",
            " line 2: `workspace.soft-limit-percent` takes a whole number, not a text",
        ),
        (
            "workspace = 1",
            " line 1: `workspace` takes a table, not a whole number",
        ),
        (
            "[git]\nallow = 'https://**'",
            " line 2: `git.allow` takes a list of texts, not a text",
        ),
    ] {
        let (code, shown, _) = refused(text);
        assert_eq!((code, shown.as_str()), ("ConfigWrongType", expected));
    }
}

#[test]
fn a_secret_in_the_file_is_refused_and_not_shown() {
    for text in [
        "[credentials.a]\nusername = 'u'\npassword = 'hunter2'",
        "[credentials.a]\npassword = 'hunter2",
        "[store]\nurl = 'mongodb://u:hunter2@h/db'",
    ] {
        let error = Case::new(text).load().unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!error.hint().unwrap_or_default().contains("hunter2"));
    }
    let (code, _, hint) = refused("[credentials.a]\nusername = 'u'\npassword = 'hunter2'");
    assert_eq!(code, "ConfigWrongType");
    assert!(hint.unwrap().contains("env ="));
}

#[test]
fn values_out_of_range_are_refused() {
    for text in [
        "[workspace]\nsoft-limit-percent = 0",
        "[workspace]\nhard-limit-percent = 101",
        "[workspace]\nhard-limit-percent = 99999999999999999999999999999999999999",
        "[workspace]\nsoft-limit-percent = 96",
        "[workspace]\nroot = ''",
        "[python]\ninstaller = 'conda'",
        "[python]\ninterpreter = 'bin/python'",
        "[python]\ninterpreter = ''",
        "[plugins]\nshipped = ['node']",
        "[store]\nurl = 'embedded:/x'",
        "[credentials.a]\nusername = 'u'",
        "[credentials.a]\npassword = { env = 'X' }",
        "[credentials.a]\nusername = 'u'\npassword = { env = 'X', file = 'y' }",
        "[credentials.a]\nusername = 'u'\npassword = { env = '' }",
        "[credentials.a]\nssh-key = { env = 'X' }",
    ] {
        let error = Case::new(text).load().unwrap_err();
        assert!(
            matches!(error.code(), "ConfigInvalid" | "ConfigWrongType"),
            "{text}: {error}"
        );
    }
    let (code, shown, _) = refused("[store]\nurl = 'mongodb://h/db'");
    assert_eq!(code, "StoreUnsupported");
    assert!(shown.contains("`mongodb:`"), "{shown}");
    assert_eq!(refused("[workspace\n").0, "ConfigSyntax");
}

#[test]
fn without_a_home_the_default_is_an_error() {
    let around = Surroundings {
        env: &|_| None,
        home: None,
        state_home: None,
        config_home: None,
    };
    let mut overrides = Overrides::default();
    assert_eq!(
        Config::load(&overrides, &around).unwrap_err().code(),
        "HomeUnknown"
    );
    overrides.workspace_root = Some("/w".into());
    overrides.state_dir = Some("/s".into());
    let config = Config::load(&overrides, &around).unwrap();
    assert_eq!(config.state_dir.origin, Origin::Flag("--state-dir"));
}

//! The known key that a wrong one was meant to be.

/// Every key that does not depend on a name of the operator's choice.
const KEYS: [&str; 19] = [
    "workspace.root",
    "workspace.layout",
    "workspace.soft-limit-percent",
    "workspace.hard-limit-percent",
    "state.dir",
    "store.url",
    "exec.base-dir",
    "git.allow",
    "git.exclude",
    "git.known-hosts",
    "git.ca-file",
    "git.timeout-seconds",
    "python.interpreter",
    "python.installer",
    "python.index",
    "plugins.shipped",
    "plugins.dir",
    "plugins.policy",
    "launcher.path",
];

/// The nearest of `keys` in the same section, else a key of that name in another one.
pub(super) fn nearest(section: &str, wrong: &str, keys: &[&str]) -> Option<String> {
    match warren_policy::nearest(wrong, keys) {
        Some(key) if section.is_empty() => Some(key.to_owned()),
        Some(key) => Some(format!("{section}.{key}")),
        None => warren_policy::nearest(wrong, &KEYS).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_key() {
        let keys = ["root", "soft-limit-percent", "hard-limit-percent"];
        let found = |wrong| nearest("workspace", wrong, &keys);
        assert_eq!(found("rooot").as_deref(), Some("workspace.root"));
        assert_eq!(
            found("soft_limit_percent").as_deref(),
            Some("workspace.soft-limit-percent")
        );
        assert_eq!(found("interpreter").as_deref(), Some("python.interpreter"));
        assert_eq!(found("colour"), None);
        assert_eq!(
            nearest("", "worksapce", &["workspace"]).as_deref(),
            Some("workspace")
        );
        assert_eq!(
            nearest("", "soft-limit-percent", &["git"]).as_deref(),
            Some("workspace.soft-limit-percent")
        );
    }
}

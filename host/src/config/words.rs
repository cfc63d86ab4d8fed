//! What the policy's own words stand for on this Pod.

use std::collections::BTreeMap;

use super::Config;

impl Config {
    /// `@allow`, `@all`, `@python`, `@uv` and `@index`, as a reviewer may read them. No secret is in
    /// it.
    pub fn words(&self) -> BTreeMap<String, Vec<String>> {
        let index = self.python_index.value.as_deref();
        [
            ("@allow", self.git_allow.value.clone()),
            ("@all", self.credentials.keys().cloned().collect()),
            (
                "@python",
                vec![
                    self.python_interpreter.value.clone(),
                    "interpreters on the `PATH`".to_owned(),
                ],
            ),
            ("@uv", vec!["uv on the `PATH`".to_owned()]),
            (
                "@index",
                index
                    .map(|url| warren_audit::redact(url).into_owned())
                    .into_iter()
                    .collect(),
            ),
        ]
        .map(|(word, meaning)| (word.to_owned(), meaning))
        .into()
    }
}

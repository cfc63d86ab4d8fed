//! The known key that a wrong one was meant to be.

use strsim::normalized_damerau_levenshtein;

/// How alike two names must be, from 0 to 1.
const ALIKE_MIN: f64 = 0.6;

/// The one of `keys` that is most like `wrong`, when one is like it at all. Of a key with dots, the
/// last part counts too.
pub fn nearest<'k>(wrong: &str, keys: &[&'k str]) -> Option<&'k str> {
    let wrong = wrong.replace('_', "-").to_lowercase();
    let alike = |key: &str| normalized_damerau_levenshtein(&wrong, key);
    keys.iter()
        .map(|key| {
            let last = key.rsplit('.').next().unwrap_or(key);
            (alike(key).max(alike(last)), *key)
        })
        .filter(|(score, _)| *score >= ALIKE_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_key() {
        let keys = ["remotes", "received-bytes", "python.interpreter"];
        assert_eq!(nearest("remote", &keys), Some("remotes"));
        assert_eq!(nearest("received_bytes", &keys), Some("received-bytes"));
        assert_eq!(nearest("interpretr", &keys), Some("python.interpreter"));
        assert_eq!(nearest("colour", &keys), None);
    }
}

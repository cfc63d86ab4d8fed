//! A known_hosts file lets in the key that stands in it, and no other.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use warren_mirror::fuzzing;

/// A key as it goes over the wire.
static KEY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let kind = "ssh-ed25519";
    let length = u32::try_from(kind.len())
        .expect("it is short")
        .to_be_bytes();
    [&length[..], kind.as_bytes(), &[7; 36]].concat()
});

/// A host, a newline, and the file; `KEY` stands for the key of the server.
pub fn known_hosts(data: &[u8]) {
    let Some((host, file)) = super::split(data) else {
        return;
    };
    let encoded = STANDARD.encode(&*KEY);
    let file = file.replace("KEY", &encoded);
    let known = |file: &str, port| fuzzing::is_known_host(file, host, port, &KEY);
    for port in [22, 2222] {
        if known(&file, port) {
            let line = |line: &str| {
                let line = line.trim();
                line.contains(&encoded) && !line.starts_with(['@', '#'])
            };
            assert!(file.lines().any(line), "{host:?} is known by {file:?}");
            // Whatever stands in the file, a revoked key is not let in.
            for text in [
                format!("{file}\n@revoked * ssh-ed25519 {encoded}\n"),
                format!("@revoked * ssh-ed25519 {encoded}\n{file}"),
            ] {
                assert!(!known(&text, port), "{host:?}: {text:?}");
            }
            // Another server's key is not.
            let mut other = KEY.clone();
            *other.last_mut().expect("it is not empty") ^= 1;
            let others = fuzzing::is_known_host(&file, host, port, &other);
            assert!(!others || file.contains(&STANDARD.encode(&other)));
        }
        assert!(!known(&file.replace(&encoded, "AAAA"), port));
    }
}

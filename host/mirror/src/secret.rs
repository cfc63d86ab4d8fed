//! Secrets: where they come from, and how they are kept out of every text.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use base64::Engine;

use crate::MirrorError;

/// Most bytes of a secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// Longest time a command may take to print one.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A secret that shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// Reads the file of a private key.
    pub(crate) fn read_key(path: &Path) -> Result<Self, MirrorError> {
        read_text(open(path)?).map(Self)
    }

    /// The secret itself, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Where a secret is read from, each time it is used.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file; a line break at its end does not count.
    File(PathBuf),
    /// A program and its arguments, run without a shell; what it prints, a line break at its end
    /// does not count. It is killed after 30 s.
    Command(Vec<String>),
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => f.debug_tuple("Env").field(name).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // The arguments may be as secret as what it prints.
            Self::Command(words) => f.debug_tuple("Command").field(&words.first()).finish(),
        }
    }
}

impl SecretSource {
    /// Reads the secret. Errors name the source and never hold what it gave.
    pub(crate) fn read(&self) -> Result<Secret, MirrorError> {
        let text = match self {
            Self::Env(name) => std::env::var(name)
                .map_err(|_| unusable(format!("environment variable `{name}` is not set")))?,
            Self::File(path) => read_text(open(path)?)?,
            Self::Command(words) => run(words)?,
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() || text.contains(['\n', '\0']) {
            return Err(unusable("the secret is empty or has more than one line"));
        }
        Ok(Secret::new(text.to_owned()))
    }
}

fn unusable(why: impl Into<String>) -> MirrorError {
    MirrorError::AuthenticationFailed(format!("the credential cannot be used: {}", why.into()))
}

fn open(path: &Path) -> Result<File, MirrorError> {
    File::open(path).map_err(|error| {
        unusable(format!(
            "cannot read `{}`: {}",
            path.display(),
            error.kind()
        ))
    })
}

fn read_text(from: impl Read) -> Result<String, MirrorError> {
    let mut bytes = Vec::new();
    from.take(SECRET_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unusable(format!("it cannot be read: {}", error.kind())))?;
    if bytes.len() as u64 > SECRET_BYTES_MAX {
        return Err(unusable("the secret is longer than 64 KiB"));
    }
    String::from_utf8(bytes).map_err(|_| unusable("the secret is not UTF-8"))
}

fn run(words: &[String]) -> Result<String, MirrorError> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| unusable("its command is empty"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| unusable(format!("cannot run `{program}`: {}", error.kind())))?;
    let (send, receive) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // The receiver may have given up; then nobody wants the text.
        std::thread::spawn(move || drop(send.send(read_text(stdout))));
    }
    let until = Instant::now() + COMMAND_TIMEOUT;
    let text = receive.recv_timeout(COMMAND_TIMEOUT);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if text.is_ok() && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            // A child that cannot be waited for or killed has no secret for us either.
            _ => {
                drop(child.kill());
                drop(child.wait());
                break None;
            }
        }
    };
    match (text, status) {
        (Ok(text), Some(status)) if status.success() => text,
        (_, Some(status)) => Err(unusable(format!("`{program}` ended with {status}"))),
        (_, None) => Err(unusable(format!("`{program}` did not end in time"))),
    }
}

/// Takes known secrets out of texts, in the forms in which a server or library may repeat them.
#[derive(Clone, Default)]
pub(crate) struct Scrubber(Vec<String>);

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrubber")
    }
}

impl Scrubber {
    /// Knows a secret from now on, also encoded as basic authentication of `user`.
    pub(crate) fn learn(&mut self, user: &str, secret: &Secret) {
        let text = secret.expose();
        let engine = base64::engine::general_purpose::STANDARD;
        let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        self.0.push(text.to_owned());
        self.0.push(engine.encode(text));
        self.0.push(engine.encode(format!("{user}:{text}")));
        self.0.push(encoded);
        // The longest first, so that no part of a longer one is left.
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.0.dedup();
    }

    /// One clean line of at most `bytes_max` bytes without a known secret.
    pub(crate) fn excerpt(&self, bytes: &[u8], bytes_max: usize) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        self.mask(&mut text);
        // Taking terminal sequences out may join the parts of a secret.
        let mut text = warren_disk::text::excerpt(text.as_bytes(), text.len());
        self.mask(&mut text);
        warren_disk::text::excerpt(text.as_bytes(), bytes_max)
    }

    fn mask(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), "***");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("hunter2".into());
        assert_eq!(format!("{secret:?}"), "Secret");
        let source = SecretSource::Command(vec!["echo".into(), "hunter2".into()]);
        assert_eq!(format!("{source:?}"), r#"Command(Some("echo"))"#);
    }

    #[test]
    fn secrets_come_from_files_and_commands() {
        let work = warren_testkit::Work::new();
        let file = work.join("token");
        std::fs::write(&file, "abc\n").unwrap();
        let read = |source: SecretSource| source.read().map(|secret| secret.expose().to_owned());
        assert_eq!(read(SecretSource::File(file.clone())).unwrap(), "abc");
        let command =
            |words: &[&str]| SecretSource::Command(words.iter().map(ToString::to_string).collect());
        assert_eq!(read(command(&["echo", "a b"])).unwrap(), "a b");
        assert!(read(command(&["false"])).is_err());
        assert!(read(command(&["echo"])).is_err());
        assert!(read(command(&[])).is_err());
        std::fs::write(&file, "a\nb").unwrap();
        let error = read(SecretSource::File(file)).unwrap_err();
        assert_eq!(error.code(), "GitAuthenticationFailed");
        assert!(read(SecretSource::Env("WARREN_NO_SUCH_VARIABLE".into())).is_err());
    }

    #[test]
    fn known_secrets_are_masked_in_every_form() {
        let mut scrubber = Scrubber::default();
        scrubber.learn("ada", &Secret::new("p/w&1234".into()));
        let basic = base64::engine::general_purpose::STANDARD.encode("ada:p/w&1234");
        let text = format!("a p/w&1234 b p%2Fw%261234 c {basic} d \u{1b}[2Jp/w\u{1b}[0m&1234");
        assert_eq!(
            scrubber.excerpt(text.as_bytes(), 200),
            "a *** b *** c *** d ***"
        );
    }
}

//! Records of the audit log: what is written is read back, in a chain that holds, without a login.

use std::cell::RefCell;
use std::path::Path;

use warren_audit::{AuditLog, Entry, Filter, Outcome, Settings, last, redact, verify};
use warren_disk::{Dir, open_root};

/// Two texts of a record: what was used, and what is said about it.
pub fn audit(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (target, detail) = text.split_once('\n').unwrap_or((&text, ""));
    let shown = redact(target);
    assert_eq!(redact(&shown), shown, "{target:?}");
    if let Some(password) = password(target) {
        assert!(!shown.contains(password), "{target:?}: {shown}");
    }
    thread_local! {
        static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
    }
    LOG.with_borrow_mut(|log| log.get_or_insert_with(Log::new).append(target, detail));
}

/// The password of a lone URL with a plain login, when it cannot be elsewhere in it by chance.
fn password(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let (login, place) = rest.split_once('@')?;
    let (user, password) = login.split_once(':')?;
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    let lone = [scheme, user, place]
        .iter()
        .all(|other| !other.contains(password));
    (plain(scheme) && plain(user) && plain(password) && password.len() > 7 && lone)
        .then_some(password)
}

struct Log {
    log: AuditLog,
    state: Dir,
    appended: u64,
    _temp: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        let place = Some("/dev/shm").filter(|place| Path::new(place).is_dir());
        let temp = place
            .map_or_else(tempfile::tempdir, tempfile::tempdir_in)
            .expect("a directory");
        let state = open_root(temp.path()).expect("a directory");
        let settings = Settings {
            file_bytes_max: 64 * 1024,
            files_max: 3,
            reserve_bytes: 64 * 1024,
            ..Settings::default()
        };
        Self {
            log: AuditLog::open(&state, settings).expect("a log"),
            state,
            appended: 0,
            _temp: temp,
        }
    }

    fn append(&mut self, target: &str, detail: &str) {
        let entry = Entry {
            target: Some(target),
            detail: Some(detail),
            code: Some(detail),
            counts: &[("bytes", u64::MAX)],
            ..Entry::new("git", "push", Outcome::Denied)
        };
        let seq = self.log.append(&entry).expect("there is room");
        self.appended += 1;
        let page = last(&self.state, &Filter::default(), 1).expect("it can be read");
        let [record] = &page.records[..] else {
            panic!("one record, not {}", page.records.len());
        };
        assert_eq!(record.seq, seq);
        assert_eq!(
            (record.capability.as_str(), record.outcome),
            ("git", Outcome::Denied)
        );
        let written = record.target.as_deref().expect("it was given");
        assert!(written.len() <= 1024 + 16, "{} bytes", written.len());
        let whole = redact(target);
        if whole.len() <= 256 {
            assert_eq!(written, whole);
        }
        // The whole chain costs more: now and then.
        if self.appended.is_power_of_two() || self.appended.is_multiple_of(512) {
            let verified = verify(&self.state, None).expect("it can be read");
            assert!(verified.broken.is_none(), "{verified:?}");
        }
    }
}

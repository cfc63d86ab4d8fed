//! A `.git/config` read by ourselves, before libgit2 does and follows what it says.

use crate::RepoError;

/// One setting: section and key in lower case, subsection and value as they stand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) section: String,
    pub(crate) subsection: Option<Vec<u8>>,
    pub(crate) key: String,
    pub(crate) value: Option<Vec<u8>>,
}

/// Refuses a config that makes libgit2 leave the RootDir or that it cannot honour. Hooks, filters,
/// fsmonitor, ssh commands and credential helpers are fine: libgit2 runs none of them.
pub(crate) fn check(name: &str, bytes: &[u8]) -> Result<(), RepoError> {
    for setting in parse(name, bytes)? {
        check_setting(name, &setting)?;
    }
    // What the parser takes for the inside of a quoted value, libgit2 might not: judge every line
    // also as a statement of its own.
    for line in bytes.split(|&b| b == b'\n') {
        check_line(name, line)?;
    }
    Ok(())
}

fn check_setting(name: &str, setting: &Setting) -> Result<(), RepoError> {
    let refuse = |what: &str| Err(RepoError::Unsafe(format!("`{name}` sets `{what}`")));
    let unsupported = |what: &str| Err(RepoError::UnsupportedFormat(what.to_owned()));
    let value = setting.value.as_deref().unwrap_or(b"true");
    let value = String::from_utf8_lossy(value).to_ascii_lowercase();
    match (setting.section.as_str(), setting.key.as_str()) {
        ("include" | "includeif", _) => refuse("include"),
        ("core", "worktree") => refuse("core.worktree"),
        // libgit2 opens it by path, wherever it is.
        ("core", "attributesfile") => refuse("core.attributesFile"),
        ("url", _) => refuse("url.*.insteadOf"),
        ("core", "bare") if value != "false" => unsupported("bare"),
        ("core", "repositoryformatversion") if !matches!(value.as_str(), "0" | "1") => {
            unsupported("repositoryformatversion")
        }
        ("remote", "promisor") if value != "false" => unsupported("partialclone"),
        ("remote", "partialclonefilter") => unsupported("partialclone"),
        ("extensions", "noop" | "preciousobjects" | "worktreeconfig") => Ok(()),
        ("extensions", "objectformat") if value == "sha1" => Ok(()),
        ("extensions", "objectformat") => unsupported(&escape(&value)),
        ("extensions", "refstorage") if value == "files" => Ok(()),
        ("extensions", "refstorage") => unsupported(&escape(&value)),
        ("extensions", key) => unsupported(&escape(key)),
        _ => Ok(()),
    }
}

fn check_line(name: &str, line: &[u8]) -> Result<(), RepoError> {
    let line: String = String::from_utf8_lossy(line)
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_lowercase();
    let refuse = |what: &str| Err(RepoError::Unsafe(format!("`{name}` sets `{what}`")));
    if line.starts_with("[include") && line.contains(']') {
        return refuse("include");
    }
    for (key, what) in [
        ("worktree=", "core.worktree"),
        ("attributesfile=", "core.attributesFile"),
        ("insteadof=", "url.*.insteadOf"),
        ("pushinsteadof=", "url.*.pushInsteadOf"),
    ] {
        if line.starts_with(key) {
            return refuse(what);
        }
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

/// Parses git's config syntax; anything out of it is an error.
pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Setting>, RepoError> {
    let mut parser = Parser {
        bytes: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        at: 0,
    };
    parser
        .settings()
        .ok_or_else(|| RepoError::Unsafe(format!("`{name}` is not a git config")))
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn settings(&mut self) -> Option<Vec<Setting>> {
        let mut settings = Vec::new();
        let mut section: Option<(String, Option<Vec<u8>>)> = None;
        while let Some(byte) = self.next() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'#' | b';' => self.skip_line(),
                b'[' => section = Some(self.header()?),
                byte if byte.is_ascii_alphabetic() => {
                    let (name, subsection) = section.clone()?;
                    let key = self.key(byte);
                    let value = self.value()?;
                    settings.push(Setting {
                        section: name,
                        subsection,
                        key,
                        value,
                    });
                }
                _ => return None,
            }
        }
        Some(settings)
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        while self
            .peek()
            .is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r'))
        {
            self.at += 1;
        }
    }

    /// `[name]`, `[name "sub"]` or the old `[name.sub]`, behind its `[`.
    fn header(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => break,
                b' ' | b'\t' => {
                    let subsection = self.subsection()?;
                    return Some((name, Some(subsection)));
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
        Some(match name.split_once('.') {
            Some((section, sub)) => (section.to_owned(), Some(sub.as_bytes().to_vec())),
            None => (name, None),
        })
    }

    fn subsection(&mut self) -> Option<Vec<u8>> {
        self.skip_blanks();
        if self.next()? != b'"' {
            return None;
        }
        let mut text = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => text.push(self.next()?),
                b'\n' | 0 => return None,
                byte => text.push(byte),
            }
        }
        self.skip_blanks();
        (self.next()? == b']').then_some(text)
    }

    fn key(&mut self, first: u8) -> String {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        while let Some(byte) = self
            .peek()
            .filter(|b| b.is_ascii_alphanumeric() || *b == b'-')
        {
            key.push(char::from(byte.to_ascii_lowercase()));
            self.at += 1;
        }
        key
    }

    /// What follows a key; none: a key alone, which means true.
    #[expect(clippy::option_option, reason = "outer: syntax error; inner: no value")]
    fn value(&mut self) -> Option<Option<Vec<u8>>> {
        self.skip_blanks();
        match self.peek() {
            None | Some(b'\n') => return Some(None),
            Some(b'#' | b';') => {
                self.skip_line();
                return Some(None);
            }
            Some(b'=') => self.at += 1,
            Some(_) => return None,
        }
        self.skip_blanks();
        let mut value = Vec::new();
        let mut kept = 0;
        let mut quoted = false;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' if quoted => return None,
                b'\n' => break,
                0 => return None,
                b'"' => {
                    quoted = !quoted;
                    kept = value.len();
                }
                b'#' | b';' if !quoted => self.skip_line(),
                b'\\' => {
                    if self.peek() == Some(b'\r') && self.bytes.get(self.at + 1) == Some(&b'\n') {
                        self.at += 1;
                    }
                    match self.next()? {
                        b'\n' => {}
                        b'n' => value.push(b'\n'),
                        b't' => value.push(b'\t'),
                        b'b' => value.push(8),
                        byte @ (b'\\' | b'"') => value.push(byte),
                        _ => return None,
                    }
                    kept = value.len();
                }
                b' ' | b'\t' | b'\r' if !quoted => value.push(byte),
                byte => {
                    value.push(byte);
                    kept = value.len();
                }
            }
        }
        if quoted {
            return None;
        }
        value.truncate(kept);
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<&'static str> {
        check("config", text.as_bytes()).err().map(|e| e.code())
    }

    #[test]
    fn what_leaves_the_root_is_refused() {
        for text in [
            "[core]\n\tworktree = /victim\n",
            "[core]worktree=/victim",
            "[CORE]\r\n  WorkTree=\"/victim\"\r\n",
            "[core]\nx = \"\\\n[core] worktree=/v\\\n\"\n worktree = /v",
            "[include]\npath = /etc/passwd",
            "[includeIf \"gitdir:/x\"]\n\tpath=a",
            "[includeif.x]\npath=a",
            "[url \"http://evil/\"]\n insteadOf = https://good/",
            "[core]\n attributesFile = /dev/zero",
            "\u{feff}[core]\nworktree=x",
            "nonsense",
            "[core",
            "[core]\nx = \"open\n",
            "[core]\nx = \\q\n",
        ] {
            assert_eq!(code(text), Some("UnsafeRepository"), "{text:?}");
        }
    }

    #[test]
    fn formats_that_libgit2_cannot_do_are_named() {
        for (text, named) in [
            ("[extensions]\nobjectFormat = sha256", "sha256"),
            ("[extensions]\nrefStorage = reftable", "reftable"),
            ("[extensions]\npartialClone = origin", "partialclone"),
            (
                "[extensions]\nrelativeWorktrees = true",
                "relativeworktrees",
            ),
            ("[extensions]\ncompatObjectFormat", "compatobjectformat"),
            ("[remote \"o\"]\npromisor = true", "partialclone"),
            ("[core]\nbare = true", "bare"),
            ("[core]\nbare", "bare"),
            (
                "[core]\nrepositoryformatversion = 2",
                "repositoryformatversion",
            ),
        ] {
            match check("config", text.as_bytes()) {
                Err(RepoError::UnsupportedFormat(name)) => assert_eq!(name, named),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_runs_programs_is_no_concern_of_libgit2() {
        let text = "# a comment\n[core]\n\trepositoryformatversion = 1\n\tbare = false ; no\n\
            \tfsmonitor = touch /tmp/PWN\n\thooksPath = /x\n\tsshCommand = \"sh -c 'x' #\"\n\
            [filter \"x\"]\n\tclean = rm -rf \\\n\t  /\n[credential]\n\thelper = !x\n\
            [extensions]\n\tworktreeConfig = true\n\tobjectformat = sha1\n\
            [branch \"include]\"]\n\tremote = origin\n";
        assert_eq!(code(text), None);
        let settings = parse("config", text.as_bytes()).unwrap();
        let ssh = settings.iter().find(|s| s.key == "sshcommand").unwrap();
        assert_eq!(ssh.value.as_deref(), Some(&b"sh -c 'x' #"[..]));
        let branch = settings.iter().find(|s| s.section == "branch").unwrap();
        assert_eq!(branch.subsection.as_deref(), Some(&b"include]"[..]));
    }
}

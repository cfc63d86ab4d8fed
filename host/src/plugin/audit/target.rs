//! What a capability was used on, as one text that can be read back.

use std::borrow::Cow;
use std::fmt;

use warren_disk::text::escape;

/// What a capability was used on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// A remote, maybe one ref of it, maybe with a credential: `URL ref=… credential=…`.
    Remote {
        /// Its URL; what may be secret is taken out when it is written.
        url: Cow<'a, str>,
        /// The ref, if it is about one.
        ref_name: Option<Cow<'a, str>>,
        /// Alias of the credential that is used.
        credential: Option<Cow<'a, str>>,
    },
    /// A program.
    Program(Program<'a>),
    /// A server: `scheme://host:port`.
    Server(Cow<'a, str>),
    /// A path in the RootDir.
    Path(Cow<'a, str>),
}

/// A program as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program<'a> {
    /// By an alias: `python`.
    Alias(Cow<'a, str>),
    /// By its path: `/usr/bin/python3`.
    Path(Cow<'a, str>),
    /// By its path in the RootDir: `./.venv/bin/python`.
    InRoot(Cow<'a, str>),
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote {
                url,
                ref_name,
                credential,
            } => {
                f.write_str(&address(url))?;
                if let Some(name) = ref_name {
                    write!(f, " ref={}", word(name))?;
                }
                if let Some(alias) = credential {
                    write!(f, " credential={}", word(alias))?;
                }
                Ok(())
            }
            Self::Program(Program::Alias(name)) => f.write_str(&word(name)),
            Self::Program(Program::Path(path)) => f.write_str(&word(path)),
            Self::Program(Program::InRoot(path)) => write!(f, "./{}", word(path)),
            Self::Server(server) => f.write_str(&address(server)),
            Self::Path(path) => f.write_str(&word(path)),
        }
    }
}

impl<'a> Target<'a> {
    /// Reads a remote back; values are as they were written.
    pub fn remote(text: &'a str) -> Self {
        let mut words = text.split(' ');
        let url = words.next().unwrap_or_default().into();
        let (mut ref_name, mut credential) = (None, None);
        for word in words {
            if let Some(name) = word.strip_prefix("ref=") {
                ref_name = Some(name.into());
            } else if let Some(alias) = word.strip_prefix("credential=") {
                credential = Some(alias.into());
            }
        }
        Self::Remote {
            url,
            ref_name,
            credential,
        }
    }
}

impl<'a> Program<'a> {
    /// Reads a program back.
    pub fn parse(text: &'a str) -> Self {
        if let Some(path) = text.strip_prefix("./") {
            Self::InRoot(path.into())
        } else if text.starts_with('/') {
            Self::Path(text.into())
        } else {
            Self::Alias(text.into())
        }
    }
}

/// An address as one word, without what may be secret.
fn address(url: &str) -> String {
    // What is escaped in it already stays as it is.
    word(&warren_audit::redact_url(url)).replace("%25", "%")
}

/// One word, whatever a guest has put into it.
fn word(text: &str) -> String {
    escape(text.as_bytes()).replace(' ', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_read_back_and_holds_no_secret() {
        let written = Target::Remote {
            url: "https://me:s3cret@git.example/a b.git?t=s3cret".into(),
            ref_name: Some("refs/heads/a ref=b".into()),
            credential: Some("acme".into()),
        }
        .to_string();
        assert!(!written.contains("s3cret"), "{written}");
        let Target::Remote {
            url,
            ref_name,
            credential,
        } = Target::remote(&written)
        else {
            panic!("no remote");
        };
        assert_eq!(url, "https://***@git.example/a%20b.git?***");
        let escaped = Target::Server("https://git.example/a%20b.git".into());
        assert_eq!(escaped.to_string(), "https://git.example/a%20b.git");
        assert_eq!(ref_name.as_deref(), Some("refs/heads/a%20ref=b"));
        assert_eq!(credential.as_deref(), Some("acme"));
    }

    #[test]
    fn an_address_that_is_no_url_keeps_no_user() {
        let url = "me:s3cret@git.example:a.git".into();
        let written = Target::Server(url).to_string();
        assert_eq!(written, "***@git.example:a.git");
    }

    #[test]
    fn programs_are_told_apart() {
        for program in [
            Program::Alias("python".into()),
            Program::Path("/bin/sh".into()),
            Program::InRoot(".venv/bin/python".into()),
        ] {
            let text = Target::Program(program.clone()).to_string();
            assert_eq!(Program::parse(&text), program);
        }
    }
}

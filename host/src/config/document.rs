//! A TOML document, read key by key: every wrong key or type is named with its line.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::nearest::nearest;
use super::{Origin, Setting};

/// Most bytes of a configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The text of one file and where it lies.
pub(super) struct Document {
    path: Arc<Path>,
    text: String,
}

/// One table of a document.
#[derive(Clone)]
pub(super) struct Section<'d> {
    document: &'d Document,
    /// Keys that lead here with dots between; empty at the top.
    name: String,
    span: Range<usize>,
    table: &'d DeTable<'d>,
}

impl Document {
    /// Reads a file; none: there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let read = || {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(path)?;
            file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > FILE_BYTES_MAX {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            String::from_utf8(bytes)
                .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        };
        match read() {
            Ok(text) => Ok(Some(Self::new(path, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }

    pub(super) fn new(path: &Path, text: String) -> Self {
        Self {
            path: path.into(),
            text,
        }
    }

    pub(super) fn parse(&self) -> Result<DeTable<'_>, ConfigError> {
        match DeTable::parse(&self.text) {
            Ok(table) => Ok(table.into_inner()),
            // Not the error's own text: it shows the line, and that may hold a secret.
            Err(error) => Err(ConfigError::Syntax {
                path: self.path.to_path_buf(),
                line: self.line(&error.span().unwrap_or_default()),
                message: error.message().to_owned(),
            }),
        }
    }

    pub(super) fn top<'d>(&'d self, table: &'d DeTable<'d>) -> Section<'d> {
        Section {
            document: self,
            name: String::new(),
            span: 0..0,
            table,
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(span.start);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }

    fn origin(&self, span: &Range<usize>) -> Origin {
        Origin::File {
            path: self.path.clone(),
            line: self.line(span),
        }
    }
}

impl<'d> Section<'d> {
    /// Refuses every key that is not among `keys`.
    pub(super) fn only(self, keys: &[&str]) -> Result<Self, ConfigError> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                return Err(ConfigError::UnknownKey {
                    path: self.document.path.to_path_buf(),
                    line: self.document.line(&key.span()),
                    key: self.key(name),
                    nearest: nearest(&self.name, name, keys),
                });
            }
        }
        Ok(self)
    }

    /// A table in this one.
    pub(super) fn section(&self, key: &str) -> Result<Option<Self>, ConfigError> {
        self.get(key)
            .map(|value| self.table_of(key, value))
            .transpose()
    }

    /// Every entry as a table, each with the name that the operator chose.
    pub(super) fn sections(&self) -> Result<Vec<(String, Self)>, ConfigError> {
        self.table
            .iter()
            .map(|(key, value)| {
                let name = key.get_ref().as_ref();
                Ok((name.to_owned(), self.table_of(name, value)?))
            })
            .collect()
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<Setting<String>>, ConfigError> {
        self.read(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Setting<Vec<String>>>, ConfigError> {
        self.read(key, "a list of texts", |value| {
            let items = value.as_array()?.iter();
            items
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect()
        })
    }

    /// A whole number from 1 to `max`.
    pub(super) fn number<T>(&self, key: &str, max: T) -> Result<Option<Setting<T>>, ConfigError>
    where
        T: TryFrom<i128> + Into<i128> + Copy,
    {
        let number = self.read(key, "a whole number", |value| {
            let number = value.as_integer()?;
            i128::from_str_radix(number.as_str(), number.radix()).ok()
        })?;
        let Some(Setting { value, origin }) = number else {
            return Ok(None);
        };
        let max: i128 = max.into();
        match T::try_from(value) {
            Ok(number) if (1..=max).contains(&value) => Ok(Some(Setting {
                value: number,
                origin,
            })),
            _ => Err(ConfigError::Invalid {
                key: self.key(key),
                origin,
                reason: format!("{value} is not from 1 to {max}"),
            }),
        }
    }

    /// A path; a relative one counts from the file's directory, `~/` and `${HOME}/` from `home`.
    pub(super) fn path(
        &self,
        key: &str,
        home: Option<&Path>,
    ) -> Result<Option<Setting<PathBuf>>, ConfigError> {
        let Some(Setting { value, origin }) = self.text(key)? else {
            return Ok(None);
        };
        let invalid = |reason: &str| ConfigError::Invalid {
            key: self.key(key),
            origin: origin.clone(),
            reason: reason.to_owned(),
        };
        if value.is_empty() || value.contains('\0') {
            return Err(invalid("this is no path"));
        }
        let below_home = ["~/", "${HOME}/"]
            .iter()
            .find_map(|start| value.strip_prefix(start));
        let path = match (below_home, home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return Err(invalid("no home directory is known")),
            (None, _) => self.directory().join(&value),
        };
        Ok(Some(Setting {
            value: path,
            origin,
        }))
    }

    /// Keys that lead here with dots between.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the section starts.
    pub(super) fn start(&self) -> Origin {
        self.document.origin(&self.span)
    }

    /// A key of this section with the section's name before it.
    pub(super) fn key(&self, key: &str) -> String {
        if self.name.is_empty() {
            return key.to_owned();
        }
        format!("{}.{key}", self.name)
    }

    /// Where a key of this section stands.
    pub(super) fn origin(&self, key: &str) -> Option<Origin> {
        self.get(key)
            .map(|value| self.document.origin(&value.span()))
    }

    /// The error for a value of another type.
    pub(super) fn wrong_type(&self, key: &str, expected: &'static str) -> ConfigError {
        let (span, found) = match self.get(key) {
            Some(value) => (value.span(), name_of(value.get_ref())),
            None => (Range::default(), "nothing"),
        };
        ConfigError::WrongType {
            path: self.document.path.to_path_buf(),
            line: self.document.line(&span),
            key: self.key(key),
            expected,
            found,
        }
    }

    fn directory(&self) -> &Path {
        self.document.path.parent().unwrap_or(Path::new(""))
    }

    fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.get(key)
    }

    fn table_of(&self, key: &str, value: &'d Spanned<DeValue<'d>>) -> Result<Self, ConfigError> {
        let table = value.get_ref().as_table();
        Ok(Self {
            document: self.document,
            name: self.key(key),
            span: value.span(),
            table: table.ok_or_else(|| self.wrong_type(key, "a table"))?,
        })
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        take: impl FnOnce(&DeValue<'d>) -> Option<T>,
    ) -> Result<Option<Setting<T>>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match take(value.get_ref()) {
            Some(taken) => Ok(Some(Setting {
                value: taken,
                origin: self.document.origin(&value.span()),
            })),
            None => Err(self.wrong_type(key, expected)),
        }
    }
}

fn name_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list that does not fit",
        DeValue::Table(_) => "a table",
    }
}

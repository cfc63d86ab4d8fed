//! The entries of lists: what may stand in one, its one form, and when one covers another.

use warren_model::Endpoint;

use crate::document::DocumentError;

/// What a list lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Patterns of git remotes.
    Remotes,
    /// Patterns of refs.
    Refs,
    /// Credential aliases.
    Credentials,
    /// Programs by alias or path.
    Programs,
    /// Programs in the RootDir.
    InRoot,
    /// Endpoints of children.
    Network(By),
    /// Environment variables.
    Environment,
    /// Endpoints of http.
    Hosts(By),
}

/// Who wrote a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The author of a plugin: the list only narrows what is granted.
    Plugin,
    /// The operator: an entry that names a host gives it wherever it is.
    Operator,
}

/// Every remote that `[git] allow` lists: the bound of all.
pub(crate) const ALLOW: &str = "@allow";
/// Every alias of the configuration.
pub(crate) const ALL: &str = "@all";
/// The configured interpreter and those on the `PATH`.
pub(crate) const PYTHON: &str = "@python";
/// `uv`, unless the configuration says pip.
pub(crate) const UV: &str = "@uv";
/// The configured package index.
pub(crate) const INDEX: &str = "@index";

const ITEMS_MAX: usize = 256;
const ITEM_BYTES_MAX: usize = 1024;

impl Kind {
    fn tokens(self) -> &'static [&'static str] {
        match self {
            Self::Remotes => &[ALLOW],
            Self::Credentials => &[ALL],
            Self::Programs => &[PYTHON, UV],
            Self::Network(_) => &[INDEX],
            Self::Refs | Self::InRoot | Self::Environment | Self::Hosts(_) => &[],
        }
    }

    /// Checks a list; `at` names it.
    pub(crate) fn check(self, at: &str, items: &[String]) -> Result<(), DocumentError> {
        if items.len() > ITEMS_MAX {
            let reason = format!("it has more than {ITEMS_MAX} entries");
            return Err(DocumentError::invalid(at, reason));
        }
        items.iter().try_for_each(|item| {
            self.check_item(item).map_err(|reason| {
                let shown: String = item
                    .chars()
                    .take(100)
                    .flat_map(char::escape_debug)
                    .collect();
                DocumentError::invalid(at, format!("`{shown}` {reason}"))
            })
        })
    }

    fn check_item(self, item: &str) -> Result<(), String> {
        if item.is_empty() || item.len() > ITEM_BYTES_MAX {
            return Err(format!("has no length from 1 to {ITEM_BYTES_MAX}"));
        }
        if item.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("holds white space or control characters".to_owned());
        }
        if item.starts_with('@') {
            return match self.tokens() {
                tokens if tokens.contains(&item) => Ok(()),
                [] => Err("is no entry of this list".to_owned()),
                tokens => Err(format!("is not known; there is `{}`", tokens.join("`, `"))),
            };
        }
        match self {
            Self::Remotes if item == "**" || item.contains("://") => Ok(()),
            Self::Remotes => Err("is no pattern like `https://git.example/**`".to_owned()),
            Self::Refs if !item.starts_with("refs/") => {
                Err("does not start with `refs/`".to_owned())
            }
            Self::Refs if item.contains(['?', '[', ']', '{', '}']) => {
                Err("holds a special character other than `*`".to_owned())
            }
            Self::Refs => Ok(()),
            Self::Credentials if item == "*" || !item.contains(['*', '/']) => Ok(()),
            Self::Credentials => Err("is no alias".to_owned()),
            Self::Programs => program(item),
            Self::InRoot => in_root(item),
            Self::Environment => variable(item),
            Self::Network(_) | Self::Hosts(_) => match item.parse::<Endpoint>() {
                Ok(_) => Ok(()),
                Err(_) => Err("is no server like `https://host:443`".to_owned()),
            },
        }
    }

    /// The list sorted, each entry in its one form.
    pub(crate) fn canonical(self, items: &[String]) -> Vec<String> {
        let form = |item: &String| match self {
            Self::Remotes if item == "**" => ALLOW.to_owned(),
            Self::Credentials if item == "*" => ALL.to_owned(),
            Self::Network(_) | Self::Hosts(_) => match item.parse::<Endpoint>() {
                Ok(endpoint) => endpoint.to_string(),
                Err(_) => item.clone(),
            },
            _ => item.clone(),
        };
        let mut list: Vec<String> = items.iter().map(form).collect();
        list.sort();
        list.dedup();
        list
    }

    /// Whether `wide` surely allows all that `narrow` does; both in their one form.
    pub(crate) fn covers(self, wide: &str, narrow: &str) -> bool {
        if wide == narrow {
            return true;
        }
        match self {
            Self::Remotes => wide == ALLOW || below(wide, narrow) && names_host(wide),
            Self::Refs => below(wide, narrow),
            Self::Credentials => wide == ALL,
            Self::Programs => match wide {
                PYTHON => narrow == "python",
                UV => narrow == "uv",
                folder => {
                    folder.starts_with('/')
                        && narrow
                            .strip_prefix(folder)
                            .is_some_and(|rest| rest.starts_with('/') || folder.ends_with('/'))
                }
            },
            Self::Environment => wide
                .strip_suffix('*')
                .is_some_and(|start| narrow.starts_with(start)),
            Self::Network(By::Plugin) | Self::Hosts(By::Plugin) => wide == "*",
            // A host that is named may be inside, which `*` never is.
            Self::Network(By::Operator) | Self::Hosts(By::Operator) => {
                wide == "*" && narrow.contains("://*.")
            }
            Self::InRoot => false,
        }
    }

    /// Whether one of `wide` covers `narrow`.
    pub(crate) fn any_covers(self, wide: &[String], narrow: &str) -> bool {
        wide.iter().any(|wide| self.covers(wide, narrow))
    }

    /// What both lists surely allow.
    pub(crate) fn meet(self, ours: &[String], theirs: &[String]) -> Vec<String> {
        let (ours, theirs) = (self.canonical(ours), self.canonical(theirs));
        let both = |list: &[String], other: &[String]| -> Vec<String> {
            list.iter()
                .filter(|item| self.any_covers(other, item))
                .cloned()
                .collect()
        };
        self.canonical(&[both(&ours, &theirs), both(&theirs, &ours)].concat())
    }
}

/// Whether `wide` is `<prefix>/**` and `narrow` lies below that prefix.
fn below(wide: &str, narrow: &str) -> bool {
    wide.strip_suffix("/**").is_some_and(|prefix| {
        narrow
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('/'))
    })
}

/// Whether the pattern has a host of its own. `https://**` has none, and reaches the public internet
/// only: it does not cover a pattern that names a host, which may be inside.
fn names_host(pattern: &str) -> bool {
    pattern
        .split_once("://")
        .is_some_and(|(_, rest)| rest != "**" && rest.contains('/'))
}

fn program(item: &str) -> Result<(), String> {
    if let Some(path) = item.strip_prefix('/') {
        return plain_path(path.strip_suffix('/').unwrap_or(path));
    }
    if item.contains('/') || matches!(item, "." | "..") {
        return Err("is neither an alias nor an absolute path".to_owned());
    }
    Ok(())
}

fn in_root(item: &str) -> Result<(), String> {
    if item.starts_with('/') {
        return Err("is not relative to the RootDir".to_owned());
    }
    plain_path(item)
}

fn plain_path(path: &str) -> Result<(), String> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("has an empty part, `.` or `..` in it".to_owned());
    }
    Ok(())
}

fn variable(item: &str) -> Result<(), String> {
    let name = item.strip_suffix('*').unwrap_or(item);
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain {
        Ok(())
    } else {
        Err("is neither a name like `PIP_PROXY` nor the start of some like `PIP_*`".to_owned())
    }
}

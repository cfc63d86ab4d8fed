use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that keeps a child apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// No program that it executes gives it more rights.
    NoNewPrivs,
    /// Files and TCP ports by rule; no signals and no abstract sockets to the outside.
    Landlock,
    /// System calls that no build needs fail.
    Seccomp,
    /// A user of the project's own.
    ProjectUser,
    /// No capability, and no way to get one.
    Capabilities,
    /// The namespaces are those of a user namespace.
    UserNamespace,
    /// Only its own processes exist for it.
    PidNamespace,
    /// A root of its own, in which nothing else of the machine has a path.
    PrivateRoot,
    /// A `/proc` of its own.
    PrivateProc,
    /// A network of its own, in which there is nothing but what the host put there.
    NetworkNamespace,
    /// System V objects, message queues and the host name of its own.
    IpcNamespace,
    /// Memory and processes are counted for the whole tree.
    Cgroup,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::NoNewPrivs,
        Self::Landlock,
        Self::Seccomp,
        Self::ProjectUser,
        Self::Capabilities,
        Self::UserNamespace,
        Self::PidNamespace,
        Self::PrivateRoot,
        Self::PrivateProc,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::Cgroup,
    ];

    /// Its name, for people and machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoNewPrivs => "no-new-privs",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::ProjectUser => "project-user",
            Self::Capabilities => "capabilities",
            Self::UserNamespace => "user-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::PrivateRoot => "private-root",
            Self::PrivateProc => "private-proc",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::Cgroup => "cgroup",
        }
    }

    /// Whether a confined child never starts without it.
    pub fn is_required(self) -> bool {
        matches!(self, Self::NoNewPrivs | Self::Landlock | Self::Seccomp)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which layers are in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Layer>", into = "Vec<Layer>")]
pub struct LayerSet(u16);

impl LayerSet {
    /// Adds a layer.
    pub fn insert(&mut self, layer: Layer) {
        self.0 |= 1 << layer as u16;
    }

    /// Whether a layer is in force.
    pub fn has(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u16) != 0
    }

    /// The layers in force.
    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL.into_iter().filter(move |&layer| self.has(layer))
    }
}

impl FromIterator<Layer> for LayerSet {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Self {
        let mut set = Self::default();
        layers.into_iter().for_each(|layer| set.insert(layer));
        set
    }
}

impl From<Vec<Layer>> for LayerSet {
    fn from(layers: Vec<Layer>) -> Self {
        layers.into_iter().collect()
    }
}

impl From<LayerSet> for Vec<Layer> {
    fn from(set: LayerSet) -> Self {
        set.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: LayerSet = [Layer::Cgroup, Layer::NoNewPrivs].into_iter().collect();
        assert_eq!(
            Vec::from(set),
            [Layer::NoNewPrivs, Layer::Cgroup],
            "in order, nothing else"
        );
        let all: LayerSet = Layer::ALL.into_iter().collect();
        assert_eq!(Vec::from(all), Layer::ALL);
    }
}

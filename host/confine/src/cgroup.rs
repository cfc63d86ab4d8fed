//! Control groups: memory and processes of a whole tree, counted together.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// In front of the names of our groups; the number of the process that made it follows.
const PREFIX: &str = "warren-";
/// How often a group that still ends its last process is tried to be removed.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Limits of a whole tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// Which limits a tree reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsHit {
    /// A process was killed because the tree had no memory left.
    pub memory: bool,
    /// A process could not be started.
    pub processes: bool,
}

/// A group of our own in each hierarchy that counts something.
#[derive(Debug)]
pub struct Cgroup {
    memory: Option<Group>,
    /// With one hierarchy for all it is the same group.
    processes: Option<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    path: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Cgroup {
    /// Makes a group below that of the calling process, with these limits; none where there is no
    /// hierarchy that counts both memory and processes and lets us.
    ///
    /// # Errors
    /// When a limit can not be set in a group that was made.
    pub fn new(limits: CgroupLimits) -> io::Result<Option<Self>> {
        let Some((memory, processes)) = parents() else {
            return Ok(None);
        };
        let name = format!("{PREFIX}{}", std::process::id());
        let Some(memory) = Group::make(&memory, &name) else {
            return Ok(None);
        };
        // Dropped on the way out, so that nothing stays behind.
        let mut made = Self {
            memory: Some(memory),
            processes: None,
        };
        let Some(processes) = Group::make(&processes, &name) else {
            return Ok(None);
        };
        made.processes = Some(processes);
        made.limit(limits)?;
        Ok(Some(made))
    }

    fn limit(&self, limits: CgroupLimits) -> io::Result<()> {
        if let (Some(group), Some(bytes)) = (&self.memory, limits.memory_bytes) {
            group.limit_memory(bytes)?;
        }
        if let (Some(group), Some(count)) = (&self.processes, limits.processes) {
            group.write("pids.max", count)?;
        }
        Ok(())
    }

    /// Files to which a process writes `0` to join.
    ///
    /// # Errors
    /// When one can not be opened.
    pub fn entrances(&self) -> io::Result<Vec<fs::File>> {
        let open = |group: &Group| {
            let path = group.path.join("cgroup.procs");
            fs::OpenOptions::new().write(true).open(path)
        };
        let groups = [self.memory.as_ref(), self.processes.as_ref()];
        groups.into_iter().flatten().map(open).collect()
    }

    /// The limits that were reached so far.
    pub fn limits_hit(&self) -> LimitsHit {
        let kills = |group: &Group| {
            let file = match group.version {
                Version::V1 => "memory.oom_control",
                Version::V2 => "memory.events",
            };
            group.count(file, "oom_kill")
        };
        let refusals = |group: &Group| group.count("pids.events", "max");
        LimitsHit {
            memory: self.memory.as_ref().is_some_and(|group| kills(group) > 0),
            processes: self
                .processes
                .as_ref()
                .is_some_and(|group| refusals(group) > 0),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for group in [self.memory.take(), self.processes.take()] {
            group.iter().for_each(Group::remove);
        }
    }
}

impl Group {
    /// None when it can not be made, as for somebody who may not.
    fn make(parent: &Self, name: &str) -> Option<Self> {
        let made = Self {
            path: parent.path.join(name),
            version: parent.version,
        };
        match fs::create_dir(&made.path) {
            Ok(()) => Some(made),
            // Of an earlier process with our number, or the same hierarchy for both.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(made),
            Err(_) => None,
        }
    }

    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        match self.version {
            Version::V2 => {
                self.write("memory.max", bytes)?;
                self.write_if_there("memory.swap.max", 0)?;
                // All of the tree or nothing: half a build is of no use.
                self.write_if_there("memory.oom.group", 1)
            }
            Version::V1 => {
                self.write("memory.limit_in_bytes", bytes)?;
                // Not there without accounting of swap.
                self.write_if_there("memory.memsw.limit_in_bytes", bytes)
            }
        }
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        let path = self.path.join(file);
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        file.write_all(value.to_string().as_bytes())
    }

    fn write_if_there(&self, file: &str, value: u64) -> io::Result<()> {
        match self.write(file, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The number behind a word in a file of counters.
    fn count(&self, file: &str, word: &str) -> u64 {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        counter(&text, word)
    }

    fn remove(&self) {
        for _ in 0..REMOVE_TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(REMOVE_PAUSE);
                }
                // Gone, or not ours to remove; a later process sweeps.
                _ => return,
            }
        }
    }
}

fn counter(text: &str, word: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|&(name, _)| name == word);
    found.and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

/// The groups below which ours go: for memory, and for processes.
fn parents() -> Option<(Group, Group)> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let found = [Some("memory"), Some("pids")].map(|controller| {
        let path = place(&own, &mounts, controller)?;
        writable(&path).then_some(Group {
            path,
            version: Version::V1,
        })
    });
    if let [Some(memory), Some(processes)] = found {
        sweep(&memory.path);
        sweep(&processes.path);
        return Some((memory, processes));
    }
    let own = place(&own, &mounts, None)?;
    // A group with processes can not hand its controllers on, so the host may sit in one of its own
    // below the one that was delegated to it.
    let candidates = [Some(own.as_path()), own.parent()];
    let delegated = candidates
        .into_iter()
        .flatten()
        .find(|path| delegates(path));
    let group = Group {
        path: delegated?.to_owned(),
        version: Version::V2,
    };
    sweep(&group.path);
    Some((group.clone(), group))
}

/// Whether groups below get both controllers.
fn delegates(path: &Path) -> bool {
    let handed_on = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |controller| {
        handed_on
            .split_whitespace()
            .any(|found| found == controller)
    };
    has("memory") && has("pids") && writable(path)
}

fn writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The folder of a process's group: in the hierarchy of a controller, or in the common one.
fn place(own: &str, mounts: &str, controller: Option<&str>) -> Option<PathBuf> {
    let lists = |list: &str| match controller {
        Some(controller) => list.split(',').any(|found| found == controller),
        None => list.is_empty(),
    };
    let group = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        lists(controllers).then_some(group)
    })?;
    let (root, mounted) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, mounted) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let found = match controller {
            Some(_) => kind == "cgroup" && lists(options),
            None => kind == "cgroup2",
        };
        found.then_some((root, mounted))
    })?;
    // In a container the mount shows only a part of the hierarchy.
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Path::new(mounted).join(below))
}

/// Takes away the groups of processes that died without doing so. One in use can not be removed.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(number) = number.filter(|number| number.parse::<u32>().is_ok()) else {
            continue;
        };
        if !Path::new("/proc").join(number).exists() {
            // Another one may have been faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
34 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 /kube/pod7 /sys/fs/cgroup/memory rw shared:4 - cgroup cgroup rw,memory
35 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn the_own_group_is_found_in_both_kinds_of_hierarchy() {
        let own = "5:cpu,cpuacct:/x\n4:memory:/kube/pod7/host\n0::/a/b\n";
        let at = |controller| place(own, MOUNTS, controller);
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(at(Some("memory")), path("/sys/fs/cgroup/memory/host"));
        assert_eq!(at(Some("cpu")), path("/sys/fs/cgroup/cpu,cpuacct/x"));
        assert_eq!(at(Some("pids")), None);
        assert_eq!(at(None), path("/sys/fs/cgroup/unified/a/b"));
        assert_eq!(place("4:memory:/other", MOUNTS, Some("memory")), None);
    }

    #[test]
    fn counters_are_whole_words() {
        let text = "oom_kill_disable 7\nunder_oom 1\noom_kill 3\n";
        assert_eq!(counter(text, "oom_kill"), 3);
        assert_eq!(counter(text, "oom"), 0);
    }
}

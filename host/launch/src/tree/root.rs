//! A root of its own for a child: a small file system in memory in which the places that it may use
//! have the paths that they have for the host, and nothing else has one.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};
use warren_launch::Identity;

use crate::places::{self, Identified, Place, Places, Use};
use crate::target::last_errno;

const PROC: &str = "/proc";
pub(super) const TEMPORARY: &str = "/tmp";
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Folders and files that only make up the root.
const ROOT_BYTES: u64 = 1024 * 1024;
const ROOT_INODES: u64 = 4096;
/// Most files in `/tmp`.
const TEMPORARY_INODES: u64 = 65_536;

/// What a new root is made from.
pub(super) struct NewRoot<'a> {
    pub(super) places: &'a Places,
    pub(super) identity: Option<Identity>,
    pub(super) temporary_bytes: u64,
}

impl NewRoot<'_> {
    /// Makes it and moves the calling process there, into the working directory. The process has a
    /// mount namespace of its own. Says whether there is a `/proc`.
    pub(super) fn enter(&self) -> Result<bool, Errno> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private)?;
        // Everything is taken while the old root is still there, and by what it is, not by its path.
        let working = open(CWD, Path::new("."))?;
        let mut taken = Vec::new();
        for (path, place) in &self.places.places {
            match place {
                Place::Host { usage, .. } if *path == self.places.root => {
                    self.places.root_file.check(&working)?;
                    taken.push((path, Taken::Tree(take(&working, *usage)?)));
                }
                Place::Host { file, usage } => match find(path, *file) {
                    Ok(file) => taken.push((path, Taken::Tree(take(&file, *usage)?))),
                    // Not every system has everything.
                    Err(Errno::NOENT | Errno::NOTDIR) if file.is_none() => {}
                    Err(error) => return Err(error),
                },
                Place::Link(target) => taken.push((path, Taken::Link(target))),
            }
        }
        let root = memory(ROOT_BYTES, ROOT_INODES, "755")?;
        // It needs some place to be before it becomes the root.
        attach(&root, &working)?;
        let has_proc = self.fill(&root, taken)?;
        protect(&root, MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        fchdir(&root)?;
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir(&self.places.root)?;
        self.places.root_file.check(&open(CWD, Path::new("."))?)?;
        Ok(has_proc)
    }

    fn fill(&self, root: &OwnedFd, taken: Vec<(&PathBuf, Taken<'_>)>) -> Result<bool, Errno> {
        // Before what may lie below them.
        self.own_memory(root, TEMPORARY)?;
        self.own_memory(root, SHARED_MEMORY)?;
        for (path, taken) in taken {
            match taken {
                Taken::Tree(tree) => put(root, path, &tree)?,
                Taken::Link(target) => link(root, path, target)?,
            }
        }
        for (name, target) in [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ] {
            link(root, Path::new(name), Path::new(target))?;
        }
        self.people(root)?;
        own_proc(root)
    }

    /// A file system in memory that is the child's own.
    fn own_memory(&self, root: &OwnedFd, path: &str) -> Result<(), Errno> {
        let made = memory(self.temporary_bytes, TEMPORARY_INODES, "700")?;
        if let Some(Identity { uid, gid }) = self.identity {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            chownat(&made, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
        }
        put(root, Path::new(path), &made)
    }

    /// Names for the child's user and for root, and for this machine.
    fn people(&self, root: &OwnedFd) -> Result<(), Errno> {
        let (uid, gid) = match self.identity {
            Some(Identity { uid, gid }) => (uid, gid),
            None => (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        };
        let mut users = String::from("root:x:0:0::/:/usr/sbin/nologin\n");
        let mut groups = String::from("root:x:0:\n");
        if uid != 0 {
            users += &format!("warren:x:{uid}:{gid}::/tmp:/usr/sbin/nologin\n");
        }
        if gid != 0 {
            groups += &format!("warren:x:{gid}:\n");
        }
        write(root, "/etc/passwd", &users)?;
        write(root, "/etc/group", &groups)?;
        write(root, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    }
}

/// What is put into the new root.
enum Taken<'a> {
    Tree(OwnedFd),
    Link(&'a Path),
}

fn find(path: &Path, file: Option<Identified>) -> Result<OwnedFd, Errno> {
    match file {
        Some(file) => file.open(path),
        None => places::open(path),
    }
}

/// Another mount of what is open, with what may be done there.
fn take(file: &OwnedFd, usage: Use) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    // What the operator has mounted in a place to write is not the child's.
    let all = usage != Use::Write;
    let flags = if all {
        flags | OpenTreeFlags::AT_RECURSIVE
    } else {
        flags
    };
    let tree = open_tree(file, "", flags)?;
    let attributes = match usage {
        Use::Read | Use::ReadExecute => {
            MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NODEV
        }
        Use::Write => MountAttrFlags::MOUNT_ATTR_NODEV,
        Use::Device => MountAttrFlags::MOUNT_ATTR_NOEXEC,
    };
    protect(&tree, attributes | MountAttrFlags::MOUNT_ATTR_NOSUID, all)?;
    Ok(tree)
}

/// A file system in memory, not mounted anywhere yet.
fn memory(bytes: u64, inodes: u64, mode: &str) -> Result<OwnedFd, Errno> {
    let made = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&made, "size", bytes.to_string())?;
    fsconfig_set_string(&made, "nr_inodes", inodes.to_string())?;
    fsconfig_set_string(&made, "mode", mode)?;
    fsconfig_create(&made)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Processes of this namespace only. Where `/proc` is partly covered, as in many containers, a user
/// namespace may not have one.
fn own_proc(root: &OwnedFd) -> Result<bool, Errno> {
    let made = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&made)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    match fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, attributes) {
        Ok(tree) => put(root, Path::new(PROC), &tree).map(|()| true),
        Err(Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Mounts a tree at a path below the root: on a folder or a file, whichever it is.
fn put(root: &OwnedFd, path: &Path, tree: &OwnedFd) -> Result<(), Errno> {
    let (folder, name) = parent(root, path)?;
    let is_folder = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir();
    let made = if is_folder {
        mkdirat(&folder, name, MODE)
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&folder, name, flags, Mode::RUSR).map(drop)
    };
    match made {
        Ok(()) | Err(Errno::EXIST) => attach(tree, &open(folder.as_fd(), name)?),
        Err(error) => Err(error),
    }
}

fn link(root: &OwnedFd, path: &Path, target: &Path) -> Result<(), Errno> {
    let (folder, name) = parent(root, path)?;
    symlinkat(target, &folder, name)
}

fn write(root: &OwnedFd, path: &str, text: &str) -> Result<(), Errno> {
    let (folder, name) = parent(root, Path::new(path))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::RGRP | Mode::ROTH;
    let file = openat(&folder, name, flags, mode)?;
    let written = rustix::io::write(&file, text.as_bytes())?;
    if written == text.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}

/// Of the folders around places. Everybody may pass, whatever those of the host allow.
const MODE: Mode = Mode::from_raw_mode(0o755);

/// Makes the folders around a path; gives the last of them, and the name in it.
fn parent<'p>(root: &OwnedFd, path: &'p Path) -> Result<(OwnedFd, &'p Path), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let mut folder = open(root.as_fd(), Path::new("."))?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else {
            continue;
        };
        let part = Path::new(part);
        match mkdirat(&folder, part, MODE) {
            Ok(()) | Err(Errno::EXIST) => folder = open(folder.as_fd(), part)?,
            Err(error) => return Err(error),
        }
    }
    Ok((folder, Path::new(name)))
}

fn open(at: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(at, path, flags, Mode::empty())
}

fn attach(tree: &OwnedFd, at: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", at, "", flags)
}

/// Adds restrictions to a mount.
fn protect(tree: &OwnedFd, attributes: MountAttrFlags, all: bool) -> Result<(), Errno> {
    /// As the kernel has it.
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let wanted = MountAttr {
        set: u64::from(attributes.bits()),
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if all {
        flags |= libc::AT_RECURSIVE;
    }
    #[expect(unsafe_code, reason = "a system call that nobody wraps")]
    // SAFETY: the path is a C string, the structure is as long as said, and the kernel only reads.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

//! The list.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{SeccompCmpOp, SeccompRule};

use super::{Built, Sockets, condition, when};

/// Calls that are answered as if the kernel did not know them: their arguments lie in memory, where a
/// filter can not look, and callers go back to the older ones.
pub(super) const MISSING: [c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// Never, whatever the arguments.
const ALWAYS: &[c_long] = &[
    // The tree of mounts, and other roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes' insides.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Code and watchers in the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys, which all processes of a user share.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Files by number, past every path rule.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

/// Calls that set a mode, and which argument it is.
const MODES: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that may make a file: which argument has the flags; the mode is the next one.
const OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Of Linux 6.6.
const FCHMODAT2: c_long = 452;

/// Of Linux 6.15; the C library does not know it yet.
const OPEN_TREE_ATTR: c_long = 467;

/// What only this architecture has.
#[cfg(target_arch = "x86_64")]
const OF_ARCHITECTURE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_ARCHITECTURE: &[c_long] = &[];

/// Flags of `clone` for new namespaces.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Asks `personality` for the present one.
const PERSONALITY_QUERY: u64 = 0xffff_ffff;

/// The old name of raw sockets of the link layer.
const SOCK_PACKET: libc::c_int = 10;

/// The kind of a socket without its flags.
const SOCKET_KIND: u64 = 0xf;

pub(super) fn rules(sockets: Sockets) -> Built<BTreeMap<i64, Vec<SeccompRule>>> {
    let always = ALWAYS.iter().chain(OF_ARCHITECTURE);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.map(|&call| (call, Vec::new())).collect();
    let flagged = |flag: libc::c_int| when(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64);
    let namespaces: Built<Vec<_>> = NEW_NAMESPACES.map(flagged).into_iter().collect();
    rules.insert(libc::SYS_clone, namespaces?);
    let other = when(0, SeccompCmpOp::Ne, PERSONALITY_QUERY)?;
    rules.insert(libc::SYS_personality, vec![other]);
    // Putting characters into a terminal's input.
    let terminal = [libc::TIOCSTI, libc::TIOCLINUX].map(|call| when(1, SeccompCmpOp::Eq, call));
    let terminal: Built<Vec<_>> = terminal.into_iter().collect();
    rules.insert(libc::SYS_ioctl, terminal?);
    rules.insert(libc::SYS_socket, socket(sockets)?);
    // A file that makes whoever runs it the Project's user.
    let setuid = SeccompCmpOp::MaskedEq(libc::S_ISUID.into());
    for &(call, mode) in MODES {
        rules.insert(
            call,
            vec![when(mode, setuid.clone(), libc::S_ISUID.into())?],
        );
    }
    for &(call, flags) in OPENS {
        let creates = SeccompCmpOp::MaskedEq(libc::O_CREAT as u64);
        rules.insert(
            call,
            vec![SeccompRule::new(vec![
                condition(flags, creates, libc::O_CREAT as u64)?,
                condition(flags + 1, setuid.clone(), libc::S_ISUID.into())?,
            ])?],
        );
    }
    Ok(rules)
}

/// Sockets of other families than those allowed, and raw ones.
fn socket(sockets: Sockets) -> Built<Vec<SeccompRule>> {
    let mut families = Vec::new();
    if sockets.unix {
        families.push(libc::AF_UNIX);
    }
    if sockets.inet {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let none_of_them: Built<Vec<_>> = families
        .into_iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, family as u64))
        .collect();
    let kind = |kind: libc::c_int| when(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind as u64);
    Ok(vec![
        SeccompRule::new(none_of_them?)?,
        kind(libc::SOCK_RAW)?,
        kind(SOCK_PACKET)?,
    ])
}

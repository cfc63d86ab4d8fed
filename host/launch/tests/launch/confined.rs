//! What a confined child can not do, each with the proof that an unconfined one can.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command as StdCommand, Stdio};

use warren_process::{Confinement, Layer, ProcessError, Programs};

use crate::kit::{BOTH, Place, launcher};

/// Each ends with 0 if it gets through. What it finds in `o` is outside of the child's root.
const ATTEMPTS: &[(&str, &str)] = &[
    (
        "read a file of the host's root",
        "open('/etc/shadow').read()",
    ),
    ("read in another root", "open(o.dir + '/secret').read()"),
    ("list another root", "os.listdir(o.dir)"),
    ("write in another root", "open(o.dir + '/secret', 'a')"),
    ("make a file in another root", "open(o.dir + '/new', 'w')"),
    (
        "change the mode outside",
        "os.chmod(o.dir + '/secret', 0o600)",
    ),
    (
        "change the owner outside",
        "os.chown(o.dir + '/secret', 0, 0)",
    ),
    ("change times outside", "os.utime(o.dir + '/secret')"),
    (
        "set an attribute outside",
        "os.setxattr(o.dir + '/secret', 'user.a', b'b')",
    ),
    ("rename out", "open('f', 'w'); os.rename('f', o.dir + '/f')"),
    (
        "rename in",
        "os.rename(o.dir + '/movable', 'g'); os.rename('g', o.dir + '/movable')",
    ),
    ("link in", "os.link(o.dir + '/secret', 'h'); os.unlink('h')"),
    (
        "through a link",
        "os.symlink(o.dir, 'l'); r = open('l/secret').read()",
    ),
    (
        "read a process's variables",
        "open(f'/proc/{o.pid}/environ').read()",
    ),
    (
        "read a process's memory map",
        "open(f'/proc/{o.pid}/maps').read()",
    ),
    ("signal a process", "os.kill(o.pid, 0)"),
    (
        "through a process's root",
        "os.listdir(f'/proc/{o.pid}/root/etc')",
    ),
    (
        "connect to a Unix socket",
        "connect(socket.AF_UNIX, o.dir + '/socket')",
    ),
    (
        "connect to an abstract socket",
        "connect(socket.AF_UNIX, '\\0' + o.name)",
    ),
    (
        "connect to a TCP port",
        "connect(socket.AF_INET, ('127.0.0.1', o.port))",
    ),
    (
        "make a raw socket",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    ),
    (
        "make a packet socket",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    ),
    (
        "make a netlink socket",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    ),
    ("make a crypto socket", "reach(41, 38, 5, 0)"),
    (
        "make a device",
        "os.mknod('dev', 0o20600, os.makedev(1, 3))",
    ),
    (
        "leave a setuid file",
        "open('s', 'w'); os.chmod('s', 0o4755)",
    ),
    (
        "make a setuid file",
        "os.close(os.open('t', os.O_CREAT | os.O_WRONLY, 0o4755))",
    ),
    ("become root", "os.setuid(0)"),
    ("change the root", "os.chroot('.')"),
    ("mount", "os.mkdir('m'); call(165, 't', 'm', 'tmpfs', 0, 0)"),
    ("mount anew", "call(430, 'tmpfs', 0)"),
    ("get a user namespace", "call(272, 0x10000000)"),
    ("get a mount namespace", "call(272, 0x20000)"),
    (
        "fork into a user namespace",
        "call(56, 0x10000011, 0, 0, 0, 0) or os._exit(0)",
    ),
    ("trace", "call(101, 0, 0, 0, 0)"),
    ("use keys", "call(250, 0, -3 % 2**64, 1)"),
    ("use bpf", "reach(321, 0, 0, 0)"),
    (
        "watch the processor",
        "reach(298, 0, 0, -1 % 2**64, -1 % 2**64, 0)",
    ),
    ("use io_uring", "reach(425, 0, 0)"),
    ("handle page faults", "reach(323, 0)"),
    ("open by handle", "reach(304, -1 % 2**64, 0, 0)"),
    ("change the personality", "call(135, 0x40000)"),
    ("read another's memory", "reach(310, 1, 0, 0, 0, 0, 0)"),
    ("load a module", "reach(313, -1 % 2**64, 0, 0)"),
    ("account", "reach(163, o.dir + '/none')"),
];

/// Landlock knows no rule for these. Without a root of its own, only the permissions of the files,
/// which the test opens up, keep a child away.
const BY_ROOT_OR_PERMISSIONS: [&str; 2] = ["change times outside", "set an attribute outside"];

/// Before each: what it may use. `call` must succeed; `reach` must get to the kernel.
const PREFACE: &str = r"
import ctypes, errno, os, socket, sys
class o: dir, pid, name, port = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)
def raw(*a):
    a = [x.encode() if isinstance(x, str) else ctypes.c_long(x if x < 2**63 else x - 2**64) for x in a]
    return libc.syscall(*a), ctypes.get_errno()
def call(*a):
    r, e = raw(*a)
    if r < 0: raise OSError(e, os.strerror(e))
    return r
def reach(*a):
    r, e = raw(*a)
    if r < 0 and e == errno.EPERM: raise OSError(e, os.strerror(e))
def connect(family, address):
    s = socket.socket(family); s.settimeout(5); s.connect(address)
";

/// Something of the host's to get at.
struct Outside {
    place: Place,
    process: Child,
    name: String,
    tcp: TcpListener,
    _sockets: [UnixListener; 2],
}

impl Outside {
    fn new() -> Self {
        let place = Place::new();
        // Nobody is kept out by permissions alone.
        for name in ["secret", "movable"] {
            fs::write(place.path().join(name), "s").unwrap();
            open_up(&place.path().join(name), 0o666);
        }
        open_up(&place.path(), 0o777);
        let name = format!("warren-test-{}", place.mark);
        let path = UnixListener::bind(place.path().join("socket")).unwrap();
        open_up(&place.path().join("socket"), 0o777);
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let mut process = StdCommand::new("/bin/sleep");
        process.arg("3600").env_clear().stdin(Stdio::null());
        let process = process.spawn().unwrap();
        Self {
            place,
            process,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            _sockets: [path, UnixListener::bind_addr(&address).unwrap()],
            name,
        }
    }

    fn arguments(&self) -> [String; 4] {
        [
            self.place.path().to_str().unwrap().to_owned(),
            self.process.id().to_string(),
            self.name.clone(),
            self.tcp.local_addr().unwrap().port().to_string(),
        ]
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn open_up(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn every_way_out_is_closed_and_open_without_confinement() {
    if !rustix::process::geteuid().is_root() {
        // Without confinement much of this is for root only.
        return;
    }
    let mut wrong = Vec::new();
    for (what, attempt) in ATTEMPTS {
        // The twin, then with every layer, then without namespaces.
        for (confined, namespaces) in [(false, false), (true, true), (true, false)] {
            if confined && !namespaces && BY_ROOT_OR_PERMISSIONS.contains(what) {
                continue;
            }
            let (inside, outside) = (Place::new(), Outside::new());
            let python = inside.python("/usr/bin/python3");
            let script = format!("{PREFACE}\n{attempt}\n");
            let mut command = inside.command(&python, &["-I", "-c", &script]);
            command.arguments.extend(outside.arguments());
            if confined {
                command.confinement = inside.confinement();
            }
            let output = launcher(namespaces).run(command, None).await.unwrap();
            if confined != (output.exit_code != 0) {
                let error = output.stderr.text();
                wrong.push(format!("{what}, {confined} {namespaces}: {error}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn inside_its_root_everything_works() {
    let place = Place::new();
    let script = "set -e; mkdir a b .git .git/hooks; echo 1 > a/f; mv a/f b/g; ln b/g a/hard;
        ln -s b/g soft; mkfifo p; truncate -s 1T sparse; chmod 700 b; touch -d @0 b/g;
        echo evil > t; mv t .git/hooks/post-checkout; rm -r a;
        echo x > /tmp/y; mv /tmp/y z; echo x > /dev/shm/y; id -un; cat soft;
        read -r line < /dev/zero & echo > /dev/null; head -c 3 /dev/urandom | wc -c; ls /usr/bin/env";
    for namespaces in BOTH {
        let script = match namespaces {
            true => script.to_owned(),
            // Then there is no `/tmp`, no name for the user, and no `/dev/shm`.
            false => script.replace(
                "echo x > /tmp/y; mv /tmp/y z; echo x > /dev/shm/y; id -un",
                "echo warren",
            ),
        };
        let command = place.confined(&script);
        let output = launcher(namespaces).run(command, None).await.unwrap();
        let text = output.stdout.text();
        assert_eq!(output.exit_code, 0, "{text}{}", output.stderr.text());
        assert!(text.ends_with("\n1\n3\n/usr/bin/env\n"), "{text}");
        for entry in fs::read_dir(place.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn nothing_else_of_the_machine_has_a_path() {
    let place = Place::new();
    let script = "for f in /etc/shadow /etc/passwd- /root /home /var /run /sys /srv /boot \
        /etc/ssh /etc/machine-id /dev/kmsg /dev/mem /dev/tty; do [ -e $f ] && echo $f; done; \
        touch /usr/x /etc/x /x 2>/dev/null && echo written; hostname; cat /etc/hosts; exit 0";
    let output = launcher(true)
        .run(place.confined(script), None)
        .await
        .unwrap();
    if !output.isolation.has(Layer::PrivateRoot) {
        return;
    }
    let expected = "warren\n127.0.0.1 localhost\n::1 localhost\n";
    assert_eq!(output.stdout.text(), expected, "{}", output.stderr.text());
}

#[tokio::test]
async fn layers_are_reported_and_the_child_has_no_rights() {
    let place = Place::new();
    let script = "grep -E '^(Cap|NoNew|Seccomp:|Uid|Groups)' /proc/self/status; ls /proc";
    let output = launcher(true)
        .run(place.confined(script), None)
        .await
        .unwrap();
    let text = output.stdout.text();
    for layer in [
        Layer::NoNewPrivs,
        Layer::Landlock,
        Layer::Seccomp,
        Layer::Capabilities,
    ] {
        assert!(output.isolation.has(layer), "{layer}");
    }
    for line in [
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        assert!(text.contains(line), "{text}");
    }
    if let Some(identity) = place.identity() {
        let uid = identity.uid;
        assert!(
            text.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}")),
            "{text}"
        );
        assert!(text.contains("CapBnd:\t0000000000000000"), "{text}");
        assert!(text.contains("Groups:\t \n"), "{text}");
    }
}

#[tokio::test]
async fn only_the_standard_streams_are_open_and_nothing_is_left_running() {
    let place = Place::new();
    let leak = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    for namespaces in BOTH {
        let script = "setsid sleep 3600 & (setsid sh -c 'trap \"\" TERM; sleep 3600 & wait' &)
            for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do (: <&$n) 2>/dev/null && echo $n; done;
            head -c 1048576 /dev/zero >&2; exit 3";
        let output = launcher(namespaces)
            .run(place.confined(script), None)
            .await
            .unwrap();
        assert_eq!(output.exit_code, 3);
        assert_eq!(output.stdout.text(), "0\n1\n2\n");
        assert_eq!(output.stderr.total_bytes, 1_048_576);
        assert_eq!(place.alive(), [0; 0]);
    }
}

#[tokio::test]
async fn root_is_not_an_identity_and_a_root_must_have_one() {
    let place = Place::new();
    let given = place.confinement();
    let Confinement::Confined(mut confined) = given else {
        panic!("{given:?}");
    };
    confined.identity = match confined.identity {
        Some(_) => None,
        None => Some(warren_process::Identity { uid: 7, gid: 7 }),
    };
    let mut command = place.script("echo ran");
    command.confinement = Confinement::Confined(confined);
    let error = launcher(true).run(command, None).await.unwrap_err();
    let expected = Layer::ProjectUser;
    assert!(
        matches!(error, ProcessError::Confinement { layer, .. } if layer == expected),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("warren doctor"));
}

#[tokio::test]
async fn a_program_elsewhere_is_readable_and_what_lies_beside_it_is_not() {
    let place = Place::new();
    let home = Place::new();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy("/bin/cat", bin.join("tool")).unwrap();
    let mut secret = fs::File::create(home.path().join("token")).unwrap();
    secret.write_all(b"t").unwrap();
    // As a home folder is.
    open_up(&home.path(), 0o700);
    let mut programs = Programs::new(&[], &[]).unwrap();
    let tool = bin.join("tool");
    programs.alias("tool", &[tool.to_str().unwrap()]);
    let program = programs.resolve_alias("tool").unwrap();
    for (file, code) in [("/etc/hosts", 0), ("token", 1)] {
        let file = home.path().join(file);
        let mut command = place.command(&program, &[file.to_str().unwrap()]);
        command.confinement = place.confinement();
        let output = launcher(true).run(command, None).await.unwrap();
        if output.isolation.has(Layer::PrivateRoot) {
            assert_eq!(output.exit_code, code, "{}", output.stderr.text());
        }
    }
}

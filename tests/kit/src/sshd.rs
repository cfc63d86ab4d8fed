//! Git over ssh: an OpenSSH server on a loopback port, run as the current user.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::repo::clean;

/// Why there is no ssh server.
#[derive(Debug, thiserror::Error)]
pub enum SshdError {
    /// A program is not installed.
    #[error("`{program}` is missing; install the package `{package}`")]
    Missing {
        /// Its path or name.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// It did not start; holds what it said.
    #[error("the ssh server did not start: {0}")]
    Failed(String),
    /// Its files could not be written, or it could not be run.
    #[error("cannot set up the ssh server")]
    Io(#[from] std::io::Error),
}

/// An ssh server that lets one key in. Killed when dropped.
#[derive(Debug)]
pub struct Sshd {
    dir: PathBuf,
    port: u16,
    child: Child,
}

impl Sshd {
    /// Starts a server whose keys and config are in `dir`, which must be readable by nobody else.
    ///
    /// # Errors
    /// When a program is missing or the server does not start.
    pub fn start(dir: impl Into<PathBuf>) -> Result<Self, SshdError> {
        let dir = dir.into();
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).is_file())
            .ok_or(SshdError::Missing {
                program: "sshd",
                package: "openssh-server",
            })?;
        fs::create_dir_all(&dir)?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        for name in ["host_key", "other_host_key", "user_key"] {
            keygen(&dir.join(name))?;
        }
        fs::copy(dir.join("user_key.pub"), dir.join("authorized_keys"))?;
        // Asked for under the user's id, sshd without privilege separation needs this to exist.
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd")?;
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        fs::write(dir.join("config"), config(&dir, port))?;
        let log = fs::File::create(dir.join("log"))?;
        let mut command = Command::new(program);
        let child = clean(&mut command)
            .arg("-f")
            .arg(dir.join("config"))
            .args(["-D", "-e"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut server = Self { dir, port, child };
        server.wait_until_up()?;
        Ok(server)
    }

    fn wait_until_up(&mut self) -> Result<(), SshdError> {
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                let log = fs::read_to_string(self.dir.join("log"))?;
                return Err(SshdError::Failed(log));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of a repository by its absolute path, for the user that runs the server.
    pub fn url(&self, repo: &Path) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", user(), self.port, repo.display())
    }

    /// File with the private key that is let in.
    pub fn user_key(&self) -> PathBuf {
        self.dir.join("user_key")
    }

    /// A line of `known_hosts` with the server's key.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn known_hosts(&self) -> Result<String, SshdError> {
        self.line("host_key.pub")
    }

    /// A line of `known_hosts` for this server with another key of the same kind.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn changed_known_hosts(&self) -> Result<String, SshdError> {
        self.line("other_host_key.pub")
    }

    fn line(&self, key: &str) -> Result<String, SshdError> {
        let key = fs::read_to_string(self.dir.join(key))?;
        Ok(format!("[127.0.0.1]:{} {key}", self.port))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn keygen(path: &Path) -> Result<(), SshdError> {
    if path.exists() {
        return Ok(());
    }
    let mut command = Command::new("ssh-keygen");
    let output = clean(&mut command)
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => SshdError::Missing {
                program: "ssh-keygen",
                package: "openssh-client",
            },
            _ => SshdError::Io(error),
        })?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(SshdError::Failed(said))
    }
}

fn config(dir: &Path, port: u16) -> String {
    let dir = dir.display();
    // git must be found by the shell of a login, whose PATH is sshd's own.
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {dir}/host_key\nPidFile none\n\
         AuthorizedKeysFile {dir}/authorized_keys\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
         PubkeyAuthentication yes\nSetEnv PATH={path}\nLogLevel VERBOSE\n"
    )
}

fn user() -> String {
    let mut command = Command::new("id");
    let output = clean(&mut command).arg("-un").output();
    output.map_or_else(
        |_| "root".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

//! Servers that others wrote, as peers: unpacked, started on loopback as an unprivileged user, and
//! stopped.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// Time for a server to be reachable, in steps of a refused connection.
const STEPS: u32 = 1_200;

/// The folder of this file, below that of the workspace.
const PEERS: &str = "net/tests/peers";

/// A user and group who are on every Debian; INN asks for them by name.
pub(crate) const NEWS: &str = "news";

/// A server that is unpacked, with the folder that it may write to.
pub(crate) struct Peer {
    folder: TempDir,
    /// The user under whom it runs, if this one is root: most servers refuse that.
    user: Option<(u32, u32)>,
}

impl Peer {
    /// Unpacks a package of Debian to `unpacked` in a new folder.
    pub(crate) fn unpack(package: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = folder.path().join("unpacked");
        prepare(&[package, unpacked.to_str().unwrap()]);
        let user = is_root().then(|| ids(NEWS));
        let peer = Self { folder, user };
        peer.give(peer.folder.path());
        peer
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the name of the user under whom the server runs.
    pub(crate) fn user_name(&self) -> String {
        match self.user {
            Some(_) => NEWS.to_owned(),
            None => printed("id", "-un"),
        }
    }

    /// Makes a folder that the server may write to.
    pub(crate) fn make_folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        self.give(&path);
        path
    }

    /// Writes a file of the server.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        self.give(&path);
        path
    }

    /// Gives a file or folder to the user under whom the server runs.
    pub(crate) fn give(&self, path: &Path) {
        if let Some((user, group)) = self.user {
            chown(path, Some(user), Some(group)).unwrap();
        }
        if path.is_file() {
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
    }

    /// Returns a command that runs an unpacked program.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.prepared(Command::new(self.unpacked(program)))
    }

    /// Returns a command that runs an unpacked program as [`NEWS`], even if this is another user.
    pub(crate) fn command_as_news(&self, program: &str) -> Command {
        if self.user.is_some() {
            return self.command(program);
        }
        let (user, group) = ids(NEWS);
        let mut command = Command::new("unshare");
        command.args(["--user", &format!("--map-user={user}"), &format!("--map-group={group}")]);
        command.arg(self.unpacked(program));
        self.prepared(command)
    }

    fn unpacked(&self, program: &str) -> PathBuf {
        self.path("unpacked").join(program)
    }

    fn prepared(&self, mut command: Command) -> Command {
        let libraries =
            ["usr/lib/news", "usr/lib/trafficserver", "usr/lib/*-linux-gnu", "lib/*-linux-gnu"];
        let libraries: Vec<String> =
            libraries.iter().flat_map(|it| glob(&self.path("unpacked"), it)).collect();
        command.env("LD_LIBRARY_PATH", libraries.join(":")).current_dir(self.folder.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

/// A running server; it is stopped when this is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Running {
    /// Starts a server that listens at `port` of 127.0.0.1, and waits until it does.
    pub(crate) fn start(mut command: Command, port: u16) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut running = Self { child: command.spawn().unwrap(), address };
        let step = Duration::from_millis(100);
        for _ in 0..STEPS {
            if TcpStream::connect_timeout(&address, step).is_ok() {
                return running;
            }
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            #[expect(clippy::disallowed_methods, reason = "nothing tells that a server listens")]
            std::thread::sleep(step);
        }
        panic!("{command:?} does not listen at {address}");
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the folder of this file, for the tests of any crate and of the workspace.
pub(crate) fn peers() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|it| it.join(PEERS)).find(|it| it.is_dir()).unwrap()
}

/// Makes a folder that servers may read under any user.
pub(crate) fn public_folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap()
}

/// Runs the script that downloads and unpacks servers.
pub(crate) fn prepare(arguments: &[&str]) {
    let script = peers().join("prepare");
    let prepared = Command::new(script).args(arguments).status().unwrap();
    assert!(prepared.success(), "{} is missing; see above", arguments[0]);
}

/// Returns a port of 127.0.0.1 that nobody listens at.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Returns a certificate in PEM as DER.
pub(crate) fn der(pem: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("certificate.pem");
    fs::write(&path, pem).unwrap();
    net::tls::certificates(&path).unwrap().remove(0)
}

/// Returns what a successful command printed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}: {stderr}");
    String::from_utf8_lossy(&stdout).into_owned()
}

fn printed(program: &str, argument: &str) -> String {
    succeed(Command::new(program).arg(argument)).trim().to_owned()
}

pub(crate) fn is_root() -> bool {
    printed("id", "-u") == "0"
}

fn ids(name: &str) -> (u32, u32) {
    let of = |option| succeed(Command::new("id").arg(option).arg(name)).trim().parse().unwrap();
    (of("-u"), of("-g"))
}

/// Returns the folders that match a pattern with one `*` at the beginning of a name.
fn glob(root: &Path, pattern: &str) -> Vec<String> {
    let Some((parent, end)) = pattern.split_once('*') else {
        return vec![root.join(pattern).display().to_string()];
    };
    let entries: io::Result<Vec<_>> =
        fs::read_dir(root.join(parent)).and_then(|entries| entries.collect());
    let paths = entries.unwrap_or_default().into_iter().map(|it| it.path().display().to_string());
    paths.filter(|it| it.ends_with(end)).collect()
}

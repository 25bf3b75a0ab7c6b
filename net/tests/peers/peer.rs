//! Servers that others wrote, as peers: unpacked, started on loopback as an unprivileged user, and
//! stopped.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

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
        let prepare = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/prepare");
        let unpacked = folder.path().join("unpacked");
        let prepared = Command::new(prepare).arg(package).arg(&unpacked).status().unwrap();
        assert!(prepared.success(), "{package} is missing; see above");
        // A user who is on every Debian; the news server asks for it by name.
        let user = is_root().then(|| ids("news"));
        let peer = Self { folder, user };
        peer.give(peer.folder.path());
        peer
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
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
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    /// Returns a command that runs an unpacked program.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path("unpacked").join(program));
        let libraries = ["usr/lib/news", "usr/lib/*-linux-gnu", "lib/*-linux-gnu"];
        let libraries: Vec<String> =
            libraries.iter().flat_map(|it| glob(&self.path("unpacked"), it)).collect();
        command.env("LD_LIBRARY_PATH", libraries.join(":")).current_dir(self.folder.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
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

fn is_root() -> bool {
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

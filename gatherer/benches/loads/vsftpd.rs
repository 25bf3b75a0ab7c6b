//! vsftpd, in its two ways of separating its sessions.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::peer::{Peer, Running, free_port, public_folder};

/// A user of every Debian whose home is there: sessions begin in it.
const USER: &str = "daemon";

/// A running vsftpd.
pub(crate) struct Vsftpd {
    /// Its program and its settings.
    _folders: (Peer, TempDir),
    pub(crate) running: Running,
}

impl Vsftpd {
    /// Serves the files below `root` to everybody. `is_separated`: with its defaults, for which it has to be started
    /// by root: a session has two processes, one of them with few rights, in namespaces of its own. Otherwise
    /// each session is one process of the user who starts it.
    pub(crate) fn start(root: &Path, is_separated: bool) -> Self {
        let (peer, folder) = (Peer::unpack("vsftpd"), public_folder());
        let port = free_port();
        let empty = folder.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let user = if is_separated { USER.to_owned() } else { peer.user_name() };
        let mut text = format!(
            "listen=YES\nbackground=NO\nlisten_address=127.0.0.1\nlisten_port={port}\n\
             anonymous_enable=YES\nlocal_enable=NO\nanon_root={}\nsecure_chroot_dir={}\n\
             ftp_username={user}\nnopriv_user={user}\n",
            root.display(),
            empty.display()
        );
        let mut command = peer.command("usr/sbin/vsftpd");
        let file = if is_separated {
            // The same command, by root.
            let own = command;
            command = Command::new(own.get_program());
            command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let file = folder.path().join("vsftpd.conf");
            fs::write(&file, text).unwrap();
            file
        } else {
            text.push_str("run_as_launching_user=YES\nseccomp_sandbox=NO\n");
            peer.write("vsftpd.conf", text)
        };
        command.arg(file);
        let running = Running::start(command, port);
        Self { _folders: (peer, folder), running }
    }
}

//! Servers of FTP and Gopher that others wrote, started for a folder, and a proxy of HTTP.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use net::client::Proxy;
use net::fetch::Login;
use tempfile::TempDir;
use tokio::net::TcpListener;
use url::Url;

use crate::certificates::Authority;
use crate::peer::{Peer, Running, free_port, peers, prepare};

/// vsftpd, which lists whole trees and knows no facts.
pub(crate) struct Vsftpd {
    peer: Peer,
    pub(crate) running: Running,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
}

impl Vsftpd {
    /// Starts vsftpd; `secure`: with TLS alone, and with data connections that take up the TLS of
    /// their control connection.
    pub(crate) fn start(secure: bool, files: &[(&str, Vec<u8>)]) -> Self {
        Self::start_with(secure, "", files)
    }

    /// Starts it with TLS from the first byte of each connection on, as `ftps://` has it.
    pub(crate) fn start_implicit(files: &[(&str, Vec<u8>)]) -> Self {
        Self::start_with(true, "implicit_ssl=YES\n", files)
    }

    fn start_with(secure: bool, more: &str, files: &[(&str, Vec<u8>)]) -> Self {
        let peer = Peer::unpack("vsftpd");
        peer.make_folder("root");
        peer.make_folder("empty");
        for (name, content) in files {
            write(&peer, name, content);
        }
        let authority = Authority::new("files");
        let (certificate, key) =
            authority.write(&peer.path("empty"), "server", &["localhost", "127.0.0.1"]);
        peer.give(&certificate);
        peer.give(&key);
        let port = free_port();
        let user = peer.user_name();
        let yes = if secure { "YES" } else { "NO" };
        let mut text = format!(
            "listen=YES\nbackground=NO\nlisten_address=127.0.0.1\nlisten_port={port}\n\
             run_as_launching_user=YES\nanonymous_enable=YES\nanon_world_readable_only=NO\nlocal_enable=NO\n\
             ftp_username={user}\nnopriv_user={user}\nls_recurse_enable=YES\n\
             seccomp_sandbox=NO\nxferlog_enable=NO\nhide_ids=YES\nssl_enable={yes}\n\
             allow_anon_ssl=YES\nforce_anon_logins_ssl={yes}\nforce_anon_data_ssl={yes}\n\
             require_ssl_reuse=YES\nssl_ciphers=HIGH\n{more}"
        );
        for (name, path) in [
            ("anon_root", peer.path("root")),
            ("secure_chroot_dir", peer.path("empty")),
            ("rsa_cert_file", certificate),
            ("rsa_private_key_file", key),
        ] {
            text.push_str(&format!("{name}={}\n", path.display()));
        }
        let file = peer.write("vsftpd.conf", text);
        let mut command = peer.command("usr/sbin/vsftpd");
        command.arg(file);
        let running = Running::start(command, port);
        Self { peer, running, authority: authority.pem }
    }

    /// Writes a file that it serves.
    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        write(&self.peer, name, content);
    }

    /// Returns the path of a file that it serves.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.peer.path("root").join(name)
    }
}

/// pyftpdlib, which knows facts and lists no trees.
pub(crate) struct Pyftpdlib {
    folder: TempDir,
    pub(crate) running: Running,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
}

impl Pyftpdlib {
    /// Starts pyftpdlib for these files.
    pub(crate) fn start(secure: bool, files: &[(&str, Vec<u8>)]) -> Self {
        prepare(&["venv"]);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let authority = Authority::new("files");
        let certificate = authority.write(folder.path(), "server", &["localhost", "127.0.0.1"]);
        let peers = peers();
        let port = free_port();
        let mut command = Command::new(peers.join("../../../target/peers/venv/bin/python"));
        command.arg(peers.join("ftp_server.py")).arg(port.to_string()).arg(&root);
        if secure {
            command.args::<[PathBuf; 2], _>(certificate.into());
        }
        let running = Running::start(command, port);
        Self { folder, running, authority: authority.pem }
    }

    /// Returns the path of a file that it serves.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }
}

/// tinyproxy, a proxy of HTTP for who knows [`Tinyproxy::LOGIN`].
pub(crate) struct Tinyproxy {
    peer: Peer,
    running: Running,
}

impl Tinyproxy {
    /// The name and password that it wants.
    pub(crate) const LOGIN: [&str; 2] = ["harvest", "secret"];

    /// Starts tinyproxy; `port`: the only one to which it opens tunnels.
    pub(crate) fn start(port: u16) -> Self {
        let peer = Peer::unpack("tinyproxy-bin");
        let own = free_port();
        let [name, password] = Self::LOGIN;
        let text = format!(
            "Port {own}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogFile \"{}\"\n\
             LogLevel Connect\nBasicAuth {name} {password}\nConnectPort {port}\n",
            peer.path("log").display()
        );
        let file = peer.write("tinyproxy.conf", text);
        let mut command = peer.command("usr/bin/tinyproxy");
        command.arg("-d").arg("-c").arg(file);
        let running = Running::start(command, own);
        Self { peer, running }
    }

    /// Returns it as the client is told, with a name and password or none.
    pub(crate) fn proxy(&self, login: Option<[&str; 2]>) -> Proxy {
        let login = login.map(|it| it.map(str::to_owned));
        let login = login.map(|[name, password]| Login { name, password });
        let url = Url::parse(&format!("http://{}", self.running.address)).unwrap();
        Proxy::new(url, login.as_ref()).unwrap()
    }

    /// Returns the requests that it has got, each as method and target.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.peer.path("log")).unwrap();
        let lines = log.lines().filter_map(|it| it.split_once("Request (file descriptor "));
        let asked = lines.filter_map(|(_, it)| Some(it.split_once("): ")?.1.rsplit_once(' ')?.0));
        asked.map(str::to_owned).collect()
    }
}

/// Writes a file below `root`, and its folders.
fn write(peer: &Peer, name: &str, content: &[u8]) {
    let path = format!("root/{name}");
    for (end, _) in path.match_indices('/') {
        peer.make_folder(path.get(..end).unwrap());
    }
    peer.write(&path, content);
}

/// Starts gophernicus for the folder `root`: a listener gives each connection to a new process, as
/// inetd does.
pub(crate) async fn gophernicus(peer: Arc<Peer>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            let input = OwnedFd::from(stream);
            let output = input.try_clone().unwrap();
            let mut command = peer.command("usr/sbin/gophernicus");
            let port = address.port().to_string();
            // Hits of earlier tests, which it remembers for half an hour, do not count.
            command
                .args(["-h", "127.0.0.1", "-p", &port, "-nr", "-nm", "-r"])
                .arg(peer.path("root"));
            command.stdin(Stdio::from(input)).stdout(Stdio::from(output));
            let served = tokio::task::spawn_blocking(move || command.status());
            assert!(served.await.unwrap().is_ok());
        }
    });
    address
}

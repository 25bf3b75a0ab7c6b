//! INN as a peer: its settings, articles and accounts.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::certificates::Authority;
use crate::peer::{NEWS, Peer, Running, free_port, succeed};

/// The account; the hash is that of the password `secret`.
pub(crate) const NAME: &str = "reader";
const HASH: &str = "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.";

/// The parts of INN that the settings name: setting, and folder below the peer's.
const PATHS: &[(&str, &str)] = &[
    ("pathnews", "unpacked/usr/lib/news"),
    ("pathbin", "unpacked/usr/lib/news/bin"),
    ("pathcontrol", "unpacked/usr/lib/news/bin/control"),
    ("pathspool", "spool"),
    ("patharchive", "spool/archive"),
    ("patharticles", "spool/articles"),
    ("pathincoming", "spool/incoming"),
    ("pathoutgoing", "spool/outgoing"),
    ("pathoverview", "spool/overview"),
    ("pathdb", "db"),
    ("pathetc", "etc"),
    ("pathfilter", "etc"),
    ("pathhttp", "log"),
    ("pathlog", "log"),
    ("pathrun", "run"),
    ("pathtmp", "tmp"),
];

/// A news server with the group `test.a`, whose first number is 11, and `test.closed` for the
/// account alone.
pub(crate) struct Inn {
    peer: Peer,
    running: Running,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
}

impl Inn {
    pub(crate) fn start() -> Self {
        let peer = Peer::unpack("inn2");
        for (_, folder) in PATHS.iter().filter(|(_, it)| !it.starts_with("unpacked")) {
            peer.make_folder(folder);
        }
        let port = free_port();
        let authority = Authority::new("news");
        let at = |name: &str| peer.path(name).display().to_string();
        let names = ["localhost", "127.0.0.1"];
        let (certificate, key) = authority.write(&peer.path("etc"), "server", &names);
        peer.give(&certificate);
        peer.give(&key);
        let mut settings = format!(
            "runasuser: {NEWS}\nrunasgroup: {NEWS}\nmta: \"/bin/true\"\ndomain: news.invalid\n\
             organization: test\npathhost: news.invalid\nhismethod: hisv6\n\
             enableoverview: true\novmethod: tradindexed\nbindaddress: 127.0.0.1\n\
             bindaddress6: \"::1\"\nport: {port}\nartcutoff: 0\ngroupbaseexpiry: true\n\
             tlscertfile: {}\ntlskeyfile: {}\n",
            certificate.display(),
            key.display(),
        );
        for (name, folder) in PATHS {
            settings.push_str(&format!("{name}: {}\n", at(folder)));
        }
        peer.write("etc/inn.conf", settings);
        peer.write("etc/storage.conf", "method tradspool {\n newsgroups: *\n class: 0\n}\n");
        peer.write("etc/incoming.conf", "peer local {\n hostname: \"127.0.0.1\"\n}\n");
        peer.write("etc/newsfeeds", "ME:*::\n");
        // What expires, does so at once.
        peer.write("etc/expire.ctl", "/remember/:0\n*:A:0:0:0\n");
        peer.write("etc/passwd", format!("{NAME}:{HASH}\n"));
        let readers = format!(
            "auth all {{ hosts: \"*\" default: \"anybody\" }}\n\
             auth login {{ hosts: \"*\" auth: \"ckpasswd -f {}\" }}\n\
             access all {{ users: \"anybody\" newsgroups: \"test.a\" access: R }}\n\
             access login {{ users: \"{NAME}\" newsgroups: \"*\" access: R }}\n",
            at("etc/passwd"),
        );
        peer.write("etc/readers.conf", readers);
        let groups = ["control 0 1 n", "control.cancel 0 1 n", "junk 0 1 n"];
        let own = ["test.a 0000000010 0000000011 y", "test.closed 0000000000 0000000001 y"];
        peer.write(
            "db/active",
            groups.iter().chain(&own).map(|it| format!("{it}\n")).collect::<String>(),
        );
        for name in ["db/history", "db/active.times", "db/newsgroups"] {
            peer.write(name, "");
        }
        succeed(program(&peer, "makedbz").args(["-i", "-o", "-s", "1000"]));
        let mut command = program(&peer, "innd");
        command.args(["-f", "-P", &port.to_string()]);
        let running = Running::start(command, port);
        Self { peer, running, authority: authority.pem }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Gives the server an article, as another server would.
    pub(crate) async fn give(&self, id: &str, group: &str, subject: &str, body: &str) {
        let stream = TcpStream::connect(self.address()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let article = format!(
            "Path: other.invalid!not-for-mail\r\nFrom: A <a@x.invalid>\r\nSubject: {subject}\r\n\
             Date: Thu, 01 Jan 2026 00:00:00 +0000\r\nNewsgroups: {group}\r\nMessage-ID: {id}\r\n\
             \r\n{body}.\r\n"
        );
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        for (sent, expected) in [(format!("IHAVE {id}\r\n"), "335"), (article, "235")] {
            stream.get_mut().write_all(sent.as_bytes()).await.unwrap();
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            assert!(line.starts_with(expected), "{line}");
        }
    }

    pub(crate) fn cancel(&self, id: &str) {
        succeed(program(&self.peer, "ctlinnd").args(["cancel", id]));
    }

    /// Lets all articles that are there expire.
    pub(crate) async fn expire(&self) {
        // It counts in seconds, and keeps what has come within this one.
        let second = || UNIX_EPOCH.elapsed().unwrap().as_secs();
        let now = second();
        while second() == now {
            sleep(Duration::from_millis(20)).await;
        }
        succeed(&mut program(&self.peer, "expireover"));
    }

    /// Starts its part for readers once more, with TLS from the first byte of each connection on,
    /// as `snews://` has it.
    pub(crate) fn start_implicit(&self) -> Running {
        let port = free_port();
        let mut command = program(&self.peer, "nnrpd");
        command.args(["-D", "-f", "-S", "-b", "127.0.0.1", "-p", &port.to_string()]);
        Running::start(command, port)
    }
}

fn program(peer: &Peer, name: &str) -> Command {
    let mut command =
        peer.command_as_news(&Path::new("usr/lib/news/bin").join(name).display().to_string());
    command.env("INNCONF", peer.path("etc/inn.conf"));
    command
}

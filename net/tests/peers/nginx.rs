//! nginx as a peer: it serves a folder.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::Path;

use crate::peer::{Peer, Running, free_port};

/// The name of the log of its answers.
const LOG: &str = "answers.log";

/// nginx, in one process.
pub(crate) struct Nginx {
    peer: Peer,
    pub(crate) running: Running,
}

/// An answer as nginx logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) status: u16,
    /// Bytes of its body.
    pub(crate) bytes: u64,
}

impl Nginx {
    /// Serves the files below `root`, which everybody may read, and keeps connections. It logs its answers if `is_logged`.
    pub(crate) fn start(root: &Path, is_logged: bool) -> Self {
        let peer = Peer::unpack("nginx");
        let folder = peer.make_folder("nginx");
        let port = free_port();
        let log = if is_logged { format!("{LOG} short") } else { "off".to_owned() };
        let text = format!(
            "daemon off; master_process off; pid pid; error_log error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{ log_format short '$status $body_bytes_sent'; access_log {log};\n\
             sendfile on; tcp_nopush on; keepalive_requests 1000000; default_type text/plain;\n\
             types {{ text/html html; }}\n\
             client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;\n\
             scgi_temp_path t5;\n\
             server {{ listen 127.0.0.1:{port}; root {}; }} }}\n",
            root.display()
        );
        let file = peer.write("nginx/nginx.conf", text);
        let mut command = peer.command("usr/sbin/nginx");
        command.arg("-e").arg("error.log").arg("-p").arg(folder).arg("-c").arg(file);
        let running = Running::start(command, port);
        Self { peer, running }
    }

    /// Returns its answers so far.
    pub(crate) fn answers(&self) -> Vec<Logged> {
        let log = fs::read_to_string(self.peer.path("nginx").join(LOG)).unwrap();
        let answer = |line: &str| {
            let (status, bytes) = line.split_once(' ').unwrap();
            Logged { status: status.parse().unwrap(), bytes: bytes.parse().unwrap() }
        };
        log.lines().map(answer).collect()
    }
}

//! nginx as a peer: it serves a folder.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::Path;

use crate::peer::{Peer, Running, free_port};

/// The names of the logs of its answers, and of the requests.
const LOG: &str = "answers.log";
const REQUESTS: &str = "requests.log";

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

/// A request as nginx logs it, with what its answer says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) status: u16,
    /// Time of the answer, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// `Content-Encoding` of the answer.
    pub(crate) coding: String,
    /// `If-None-Match` and `If-Modified-Since` of the request.
    pub(crate) conditions: [String; 2],
}

impl Nginx {
    /// Serves the files below `root`, which everybody may read, and keeps connections. It logs its answers if `is_logged`.
    pub(crate) fn start(root: &Path, is_logged: bool) -> Self {
        let log = if is_logged { format!("{LOG} short") } else { "off".to_owned() };
        Self::start_with(root, &log, |_| String::new())
    }

    /// Serves them by further settings, which `lines` writes, and logs the requests.
    pub(crate) fn start_by(root: &Path, lines: impl Fn(&Peer) -> String) -> Self {
        Self::start_with(root, &format!("{REQUESTS} long"), lines)
    }

    fn start_with(root: &Path, log: &str, lines: impl Fn(&Peer) -> String) -> Self {
        let peer = Peer::unpack("nginx");
        let folder = peer.make_folder("nginx");
        let port = free_port();
        let lines = lines(&peer);
        let text = format!(
            "daemon off; master_process off; pid pid; error_log error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{ log_format short '$status $body_bytes_sent';\n\
             log_format long '$request_uri|$status|$msec|$sent_http_content_encoding|$http_if_none_match|$http_if_modified_since';\n\
             access_log {log};\n\
             sendfile on; tcp_nopush on; keepalive_requests 1000000; default_type text/plain;\n\
             types {{ text/html html; }}\n\
             client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;\n\
             scgi_temp_path t5;\n\
             server {{ listen 127.0.0.1:{port}; root {}; {lines} }} }}\n",
            root.display()
        );
        let file = peer.write("nginx/nginx.conf", text);
        let mut command = peer.command("usr/sbin/nginx");
        command.arg("-e").arg("error.log").arg("-p").arg(folder).arg("-c").arg(file);
        let running = Running::start(command, port);
        Self { peer, running }
    }

    /// Returns the requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let log = fs::read_to_string(self.peer.path("nginx").join(REQUESTS)).unwrap();
        let asked = |line: &str| {
            let [path, status, seconds, coding, none_match, since] =
                line.split('|').collect::<Vec<_>>().try_into().unwrap();
            Asked {
                path: path.to_owned(),
                status: status.parse().unwrap(),
                at_ms: seconds.replace('.', "").parse().unwrap(),
                coding: coding.to_owned(),
                conditions: [none_match, since].map(str::to_owned),
            }
        };
        log.lines().map(asked).collect()
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

//! Settings of the HTTP client, and the time-outs of requests.
//!
//! Sans-I/O.

use std::time::Duration;

/// Time limits of each stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time for resolving and connecting, TLS included; before that, as long for a free connection.
    /// Default 10 s.
    pub connect: Duration,
    /// Time from the request to the answer's head. Default 30 s.
    pub header: Duration,
    /// Longest total time of waiting for each 16 KiB of the body, however many pieces these come
    /// in. Default 60 s.
    pub idle: Duration,
    /// Time for the whole exchange, redirects included, until the body's last byte; no limit by
    /// default.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            total: None,
        }
    }
}

/// Settings of a [`Client`](super::Client); a request can replace some of them for itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Contact for questions about our requests: a URL or mail address, named in `User-Agent`.
    pub contact: Option<String>,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Whether requests may go to private networks and this machine. Default `false`.
    pub allow_private: bool,
    /// Maximum number of redirects of one request. Default 5.
    pub redirects_max: u32,
    /// Largest body of an answer, in bytes. Default 64 MiB.
    pub response_bytes_max: u64,
    /// Maximum number of requests in progress at once. Default 1,024.
    pub connections_max: usize,
    /// Maximum number of unused connections kept for one host. Default 4.
    pub idle_per_host_max: usize,
    /// Certificates (DER) of authorities to trust in addition to the system's.
    pub extra_roots: Vec<Vec<u8>>,
    /// The only certificate (DER) that is trusted, whatever name it has: that of a daemon whose
    /// data folder this process can read.
    pub pinned: Option<Vec<u8>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            contact: None,
            timeouts: Timeouts::default(),
            allow_private: false,
            redirects_max: 5,
            response_bytes_max: 64 * 1024 * 1024,
            connections_max: 1_024,
            idle_per_host_max: 4,
            extra_roots: Vec::new(),
            pinned: None,
        }
    }
}

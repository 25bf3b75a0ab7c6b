//! Rows of the table: a way to get objects, and what it costs their server.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;

use flate2::bufread::MultiGzDecoder;
use net::client::{self, Request};
use net::fetch::Bounds;
use net::{clock, ftp};
use url::Url;

use crate::cpu::tree_secs;
use crate::site::Site;

/// Number of files from one object to the next; a prime, so that all have their turn.
const STRIDE: usize = 1_009;

/// A way to get objects.
pub(crate) enum Task {
    /// Each file of the small site over a control connection of its own.
    FtpNew(SocketAddr),
    /// All over one.
    FtpKept(ftp::Client, SocketAddr),
    /// Files of the large site.
    Http(client::Client, SocketAddr),
    /// Files of the small site, read by this process.
    Local,
    Stream(client::Client, Url),
}

fn ftp_client() -> ftp::Client {
    let bounds = Bounds { allow_private: true, ..Bounds::default() };
    ftp::Client::new(ftp::Settings { bounds, ..ftp::Settings::default() })
}

fn http_client() -> client::Client {
    client::Client::new(client::Settings {
        allow_private: true,
        response_bytes_max: u64::MAX,
        ..client::Settings::default()
    })
}

impl Task {
    pub(crate) fn ftp_kept(address: SocketAddr) -> Self {
        Self::FtpKept(ftp_client(), address)
    }

    pub(crate) fn http(address: SocketAddr) -> Self {
        Self::Http(http_client(), address)
    }

    pub(crate) fn stream(url: Url) -> Self {
        Self::Stream(http_client(), url)
    }

    /// Gets the object with this number; returns the number of its bytes.
    async fn get(&self, number: usize, small: &Site, large: &Site) -> u64 {
        // Not in their order, so that few objects are a mixture, too.
        let path = |site: &Site| site.paths[number * STRIDE % site.paths.len()].clone();
        match self {
            Self::FtpNew(address) => ftp_bytes(&ftp_client(), *address, &path(small)).await,
            Self::FtpKept(client, address) => ftp_bytes(client, *address, &path(small)).await,
            Self::Local => fs::read(small.folder().join(path(small))).unwrap().len() as u64,
            Self::Http(client, address) => {
                let url = Url::parse(&format!("http://{address}/{}", path(large))).unwrap();
                http(client, &url, None).await
            }
            Self::Stream(client, url) => http(client, url, None).await,
        }
    }
}

async fn ftp_bytes(client: &ftp::Client, address: SocketAddr, path: &str) -> u64 {
    let url = Url::parse(&format!("ftp://{address}/{path}")).unwrap();
    client.fetch(&url).await.unwrap().bytes.len() as u64
}

/// Fetches a body and returns its size; `kept` gets its bytes.
async fn http(client: &client::Client, url: &Url, mut kept: Option<&mut Vec<u8>>) -> u64 {
    let mut response = client.send(Request::get(url.clone())).await.unwrap();
    assert_eq!(response.status.as_u16(), 200, "{url}");
    while let Some(piece) = response.chunk().await.unwrap() {
        if let Some(kept) = &mut kept {
            kept.extend_from_slice(&piece);
        }
    }
    response.received()
}

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: String,
    /// Number of objects, or of streams, of a turn.
    count: usize,
    /// Process of the server.
    server: u32,
    task: Task,
    /// CPU time of one, in microseconds, turn by turn.
    micros: Vec<f64>,
    /// What one has.
    content: String,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, count: usize, server: u32, task: Task) -> Self {
        let scale = std::env::var("HARVEST_LOADS_SCALE").ok().and_then(|it| it.parse().ok());
        let count = count / scale.unwrap_or(1);
        let (micros, content) = (Vec::new(), String::new());
        Self { name: name.into(), count, server, task, micros, content }
    }

    /// Gets objects before the first turn, and says what one has.
    pub(crate) async fn warm(&mut self, small: &Site, large: &Site) {
        let mut bytes = 0;
        for number in 0..self.count {
            bytes += self.task.get(number, small, large).await;
        }
        self.content = format!("{:.1} KB", bytes as f64 / self.count as f64 / 1e3);
        if let Task::Stream(client, url) = &self.task {
            let mut stream = Vec::new();
            http(client, url, Some(&mut stream)).await;
            let lines = BufReader::new(MultiGzDecoder::new(stream.as_slice())).split(b'\n');
            let records = lines.filter(|it| it.as_ref().unwrap().starts_with(b"@FILE {")).count();
            self.content.push_str(&format!(", {records} records"));
        }
    }

    /// Gets objects for a turn.
    pub(crate) async fn turn(&mut self, small: &Site, large: &Site) {
        let before = self.spent();
        for number in 0..self.count {
            self.task.get(number, small, large).await;
        }
        self.micros.push((self.spent() - before) * 1e6 / self.count as f64);
    }

    /// Returns the CPU seconds of the server so far.
    fn spent(&self) -> f64 {
        match self.task {
            // The task has no pauses in which it could go to another thread.
            Task::Local => clock::thread_cpu().as_secs_f64(),
            _ => tree_secs(self.server),
        }
    }

    pub(crate) fn median(&self) -> f64 {
        self.sorted()[self.micros.len() / 2]
    }

    fn sorted(&self) -> Vec<f64> {
        let mut micros = self.micros.clone();
        micros.sort_by(f64::total_cmp);
        micros
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sorted, name) = (self.sorted(), &self.name);
        let (least, median, most) = (sorted[0], self.median(), sorted[sorted.len() - 1]);
        let (count, content) = (self.count, &self.content);
        write!(
            f,
            "{name:<62} {count:>6} times {median:>8.1} µs ({least:.1} to {most:.1}), {content}"
        )
    }
}

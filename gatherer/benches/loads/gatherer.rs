//! A gatherer in a process of its own, which serves the records of a site.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use essence::config::EssenceConfig;
use formats::Detail;
use gatherer::config::Watch;
use gatherer::{Config, Phase, Server};
use net::shutdown::Shutdown;
use tempfile::TempDir;
use url::Url;

/// First argument of the other process.
pub(crate) const ROLE: &str = "gather";

/// The other process; it is killed when this is dropped.
pub(crate) struct Gatherer {
    child: Child,
    _data: TempDir,
    address: SocketAddr,
    epoch: String,
    serial: u64,
    pub(crate) objects: u64,
}

impl Gatherer {
    /// Gathers the files below `root` and serves their records.
    pub(crate) fn start(root: &Path, detail: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([ROLE, detail])
            .args([root, data.path()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, epoch, serial, objects] = words[..] else { panic!("it says {line:?}") };
        Self {
            child,
            _data: data,
            address: address.parse().unwrap(),
            epoch: epoch.to_owned(),
            serial: serial.parse().unwrap(),
            objects: objects.parse().unwrap(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the URL of the stream of all records for who has none: it leads to a snapshot.
    pub(crate) fn all(&self) -> Url {
        self.feed("since=0")
    }

    /// Returns the URL of the stream of the newest `count` changes.
    pub(crate) fn newest(&self, count: u64) -> Url {
        self.feed(&format!("since={}&epoch={}", self.serial - count, self.epoch))
    }

    fn feed(&self, query: &str) -> Url {
        Url::parse(&format!("http://{}/feed?{query}", self.address)).unwrap()
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Runs as the other process: gathers, says where the records are and how many, and serves them until it is killed.
pub(crate) async fn serve(detail: &str, root: &Path, data: &Path) {
    let (_, detail) = Detail::NAMED.into_iter().find(|it| it.0 == detail).unwrap();
    let config = Config {
        watch: Watch::Off,
        essence: EssenceConfig { detail, ..EssenceConfig::default() },
        ..Config::for_paths(&[root.to_owned()], data)
    };
    let server = Server::bind(config).await.unwrap();
    let (handle, address) = (server.handle(), server.local_addr());
    let running = tokio::spawn(server.run(Shutdown::new()));
    let mut progress = handle.progress();
    progress.wait_for(|it| it.phase == Phase::Idle && 0 < it.passes_done).await.unwrap();
    let version = handle.version();
    println!("{address} {} {} {}", version.epoch, version.serial, handle.status().objects);
    running.await.unwrap().unwrap();
}

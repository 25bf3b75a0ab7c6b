//! The servers: our cache in a process of its own, and the others, each on one core.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use cache::{Config, Server};
use net::shutdown::Shutdown;
use tempfile::TempDir;

use crate::nginx::Nginx;
use crate::others::{Squid, TrafficServer};
use crate::peer::{free_port, public_folder};

/// First argument of the process of our cache.
pub(crate) const ROLE: &str = "serve";
/// The core of the servers that are measured, and that of the loader.
pub(crate) const SERVER_CORE: u32 = 1;
pub(crate) const LOADER_CORE: u32 = 0;
/// Age of the files of a site: so caches may guess how long they are good.
const AGE: Duration = Duration::from_secs(100 * 86_400);

/// A server that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) address: SocketAddr,
}

impl From<&Squid> for Process {
    fn from(squid: &Squid) -> Self {
        Self { id: squid.id(), address: squid.address() }
    }
}

impl From<&TrafficServer> for Process {
    fn from(server: &TrafficServer) -> Self {
        Self { id: server.id(), address: server.address() }
    }
}

impl Process {
    /// Returns the CPU seconds that it has used.
    pub(crate) fn cpu_secs(self) -> f64 {
        crate::cpu::tree_secs(self.id)
    }

    /// Returns its resident memory, in bytes.
    pub(crate) fn resident(self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.id)).unwrap();
        let line = text.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }
}

/// Keeps a process on a core, if there are several.
pub(crate) fn pin(id: u32, core: u32) {
    let id = id.to_string();
    let command = ["-a", "-c", "-p", &core.to_string(), &id].map(str::to_owned);
    // One core is no core to choose.
    let _ = Command::new("taskset").args(command).stdout(Stdio::null()).status();
}

/// Our cache.
pub(crate) struct Ours {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) icp_port: u16,
    data: Option<TempDir>,
}

impl Ours {
    /// Starts it with these settings, at a free port of 127.0.0.1.
    pub(crate) fn start(settings: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut started = Self::start_in(data.path(), "127.0.0.1", settings);
        started.data = Some(data);
        started
    }

    /// Starts it in a data folder, at a free port of an address.
    pub(crate) fn start_in(data: &Path, host: &str, settings: &str) -> Self {
        let file = data.join("cache.toml");
        // What is to be for the file as a whole comes before its tables.
        let text = format!(
            "listen = \"{host}:0\"\nadmin_listen = \"127.0.0.1:0\"\nname = \"at-{host}\"\n{settings}\n\
             [access]\nallow_private = true\nports = [\"1-65535\"]\n"
        );
        fs::write(&file, text).unwrap();
        let mut child = Command::new("taskset")
            .args(["-c", &SERVER_CORE.to_string()])
            .arg(std::env::current_exe().unwrap())
            .arg(ROLE)
            .args([&file, data])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, icp_port) = line.trim().split_once(' ').unwrap();
        let (address, icp_port) = (address.parse().unwrap(), icp_port.parse().unwrap());
        Self { child, address, icp_port, data: None }
    }

    pub(crate) fn process(&self) -> Process {
        Process { id: self.child.id(), address: self.address }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success() && self.child.wait().unwrap().success());
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs as the process of our cache, until it is asked to stop.
pub(crate) fn serve(file: &str, data: &str) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().unwrap().block_on(async {
        let text = fs::read_to_string(file).unwrap();
        let config = Config::parse(&text, Path::new(data)).unwrap();
        let server = Server::bind(config).await.unwrap();
        println!("{} {}", server.local_addr(), server.icp_addr().map_or(0, |it| it.port()));
        let stop = Shutdown::new();
        let running = tokio::spawn(server.run(stop.clone()));
        let asked = tokio::signal::unix::SignalKind::terminate();
        tokio::signal::unix::signal(asked).unwrap().recv().await;
        stop.start();
        running.await.unwrap().unwrap();
    });
}

/// A site that nginx serves: `/1k` and `/64k`, which all may keep for a day by their age.
pub(crate) struct Site {
    pub(crate) nginx: Nginx,
    _folder: TempDir,
}

impl Site {
    pub(crate) fn start() -> Self {
        let folder = public_folder();
        for (name, bytes) in [("1k", 1 << 10), ("64k", 64 << 10)] {
            let path = folder.path().join(name);
            fs::write(&path, vec![b'x'; bytes]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            #[expect(clippy::disallowed_methods, reason = "files have times")]
            file.set_modified(SystemTime::now() - AGE).unwrap();
        }
        let nginx = Nginx::start(folder.path(), false);
        pin(nginx.running.id(), SERVER_CORE);
        Self { nginx, _folder: folder }
    }

    pub(crate) fn process(&self) -> Process {
        Process { id: self.nginx.running.id(), address: self.nginx.running.address }
    }
}

/// Starts Squid with so much memory, and a disk or none, on the core of the servers.
pub(crate) fn squid(memory: &str, has_disk: bool) -> Squid {
    let squid = Squid::quiet(memory, has_disk);
    pin(squid.id(), SERVER_CORE);
    squid
}

/// Starts Traffic Server on the core of the servers.
pub(crate) fn traffic_server() -> TrafficServer {
    let server = TrafficServer::start(free_port());
    pin(server.id(), SERVER_CORE);
    server
}

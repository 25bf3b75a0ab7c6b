//! Caches that others wrote, unpacked and started on loopback.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use url::Url;

use crate::peer::{Peer, Running, free_port};

/// Squid at 127.0.0.1, which ignores ICP from its own address: its neighbors have others.
pub(crate) struct Squid {
    peer: Peer,
    pub(crate) proxy: Url,
    running: Running,
}

impl Squid {
    /// Starts Squid at these ports, with more lines of settings.
    pub(crate) fn start(ports: (u16, u16), lines: &str) -> Self {
        let peer = Peer::unpack("squid");
        let log = peer.path("access.log").display().to_string();
        Self::begin(peer, ports, &format!("cache_mem 16 MB\naccess_log {log}\n{lines}"), false)
    }

    /// Starts Squid without a log, with so much memory; `has_disk` says whether it stores on disk, too.
    pub(crate) fn quiet(memory: &str, has_disk: bool) -> Self {
        let peer = Peer::unpack("squid");
        let disk = peer.make_folder("disk").display().to_string();
        let disk =
            if has_disk { format!("cache_dir aufs {disk} 10000 16 256\n") } else { String::new() };
        let lines = format!("access_log none\ncache_store_log none\ncache_mem {memory}\n{disk}");
        Self::begin(peer, (free_port(), 0), &lines, has_disk)
    }

    fn begin(peer: Peer, (port, icp_port): (u16, u16), lines: &str, has_disk: bool) -> Self {
        let at = |name: &str| peer.path(name).display().to_string();
        let text = format!(
            "http_port 127.0.0.1:{port}\nicp_port {icp_port}\nudp_incoming_address 127.0.0.1\n\
             udp_outgoing_address 127.0.0.1\nacl near src 127.0.0.0/8\nhttp_access allow near\n\
             icp_access allow near\nnonhierarchical_direct off\nminimum_direct_rtt 0\n\
             minimum_direct_hops 0\nicp_query_timeout 5000\nquery_icmp off\npinger_enable off\n\
             visible_hostname squid\nshutdown_lifetime 1 seconds\ncache_effective_user {}\n\
             pid_filename {}\ncache_log {}\nmime_table {}\nerror_directory {}\n\
             icon_directory {}\nunlinkd_program {}\n{lines}\n",
            peer.user_name(),
            at("squid.pid"),
            at("cache.log"),
            at("unpacked/usr/share/squid/mime.conf"),
            // Its pages for errors are in a package of translations.
            peer.make_folder("errors").display(),
            at("unpacked/usr/share/squid/icons"),
            at("unpacked/usr/lib/squid/unlinkd"),
        );
        let file = peer.write("squid.conf", text);
        let squid = || {
            let mut command = peer.command("usr/sbin/squid");
            // What it shares has names, which are those of the service.
            command.arg("-N").arg("-n").arg(format!("squid{port}")).arg("-f").arg(&file);
            command
        };
        if has_disk {
            assert!(squid().arg("-z").status().unwrap().success(), "no folders for Squid");
        }
        let running = Running::start(squid(), port);
        let proxy = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        Self { peer, proxy, running }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Waits until a line of its access log has all these words.
    pub(crate) async fn logs(&self, words: &[&str]) {
        logged(&self.peer.path("access.log"), words).await;
    }
}

/// Waits until a line of an access log has all these words.
pub(crate) async fn logged(log: &Path, words: &[&str]) {
    let has = || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().any(|line| words.iter().all(|it| line.contains(it)))
    };
    let waited = timeout(Duration::from_secs(30), async {
        while !has() {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{words:?}: {:?}", std::fs::read_to_string(log));
}

impl Drop for Squid {
    fn drop(&mut self) {
        // It is killed, and leaves what it shares.
        let name = format!("squid{}-", self.proxy.port().unwrap());
        for it in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if it.file_name().to_string_lossy().starts_with(&name) {
                let _ = std::fs::remove_file(it.path());
            }
        }
    }
}

/// Apache Traffic Server, as a proxy for all.
pub(crate) struct TrafficServer {
    peer: Peer,
    running: Running,
}

impl TrafficServer {
    pub(crate) fn start(port: u16) -> Self {
        Self::start_below(port, None)
    }

    /// Starts it as the child of a proxy, if there is one.
    pub(crate) fn start_below(port: u16, parent: Option<SocketAddr>) -> Self {
        let peer = Peer::unpack("trafficserver");
        let at = |name: &str| peer.path(name).display().to_string();
        for name in ["etc", "store", "run", "log", "var"] {
            peer.make_folder(name);
        }
        let modules = at("unpacked/usr/lib/trafficserver/modules");
        let folders = [
            ("prefix", at("")),
            ("bindir", at("unpacked/usr/bin")),
            ("sbindir", at("unpacked/usr/bin")),
            ("sysconfdir", at("etc")),
            ("cachedir", at("store")),
            ("datadir", at("store")),
            ("libexecdir", modules.clone()),
            ("localstatedir", at("var")),
            ("runtimedir", at("run")),
            ("logdir", at("log")),
        ];
        let folders = folders.map(|(name, folder)| format!("{name}: {folder}\n")).concat();
        let root = peer.write("runroot.yaml", folders);
        let lines = [
            format!("http.server_ports STRING {port}"),
            "url_remap.remap_required INT 0".to_owned(),
            // Without it nothing is stored that gives no lifetime.
            "http.cache.required_headers INT 0".to_owned(),
            format!("admin.user_id STRING {}", peer.user_name()),
            "crash_log_helper STRING NULL".to_owned(),
            "exec_thread.autoconfig INT 0".to_owned(),
            "exec_thread.limit INT 1".to_owned(),
            format!(
                "body_factory.template_sets_dir STRING {}",
                at("unpacked/etc/trafficserver/body_factory")
            ),
            format!("plugin.plugin_dir STRING {modules}"),
            // Its own address is that of its parents, too.
            "http.parent_proxy.self_detect INT 0".to_owned(),
        ];
        let lines = lines.map(|it| format!("CONFIG proxy.config.{it}\n")).concat();
        peer.write("etc/records.config", lines);
        peer.write("etc/storage.config", format!("{} 32M\n", at("store")));
        for name in ["remap.config", "plugin.config", "cache.config"] {
            peer.write(&format!("etc/{name}"), "");
        }
        let parent = parent.map(|it| format!("dest_domain=. parent=\"{it}\" go_direct=false\n"));
        peer.write("etc/parent.config", parent.unwrap_or_default());
        let near =
            "ip_allow:\n- apply: in\n  ip_addrs: 127.0.0.0/8\n  action: allow\n  methods: ALL\n";
        peer.write("etc/ip_allow.yaml", near);
        let mut command = peer.command("usr/bin/traffic_server");
        command.arg(format!("--run-root={}", root.display()));
        let log = std::fs::File::create(peer.path("log/output")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let running = Running::start(command, port);
        Self { peer, running }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Returns its proxy.
    pub(crate) fn proxy(&self) -> Url {
        Url::parse(&format!("http://{}/", self.address())).unwrap()
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }
}

//! TR Figure 9: how long clients wait for objects of far hosts through a cache.
//!
//! 1,000 objects in random order, first by one client, for whom all are misses, then by ten, for whom 1,000 others are:
//! 10,000 references.
//!
//! # Differences from the paper
//!
//! * The hosts are one origin on this machine that answers late, by a distribution that is the same for all caches: a
//!   median of 10 ms, a mean of 20 ms. The paper's times are some 25 times as long, and so are its limits: its 1 s and
//!   4 s are 40 and 160 ms here.
//! * It was compared with the CERN cache, which nobody has any more; here it is with Squid, and with Apache's
//!   `mod_cache`, which is of CERN's kind: files on disk, and each client fetches for itself.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use tokio::task::LocalSet;

use crate::hits::median;
use crate::load::{Connection, now, proxy_form};
use crate::origin::{self, unit};
use crate::peer::{Peer, Running, free_port};
use crate::servers::{Ours, SERVER_CORE, pin, squid};

const OBJECTS: usize = 1_000;
const CLIENTS: usize = 10;
const RUNS: usize = 5;
/// The paper's limits, in milliseconds here.
const LIMITS_MS: [f64; 2] = [40.0, 160.0];
/// What may be waited for longer than at a peer, at each decile: a share, and milliseconds.
const ALLOWED: (f64, f64) = (1.05, 5.0);

struct Origin(Child);

impl Origin {
    fn start() -> (Self, SocketAddr) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg(origin::ROLE).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line.trim().parse().unwrap())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Apache as a forward proxy that caches what comes from an origin, on disk.
fn apache(origin: SocketAddr) -> (Peer, Running) {
    let (peer, port) = (Peer::unpack("apache2-bin"), free_port());
    let at = |name: &str| peer.path(name).display().to_string();
    let modules = ["mpm_event", "authz_core", "proxy", "proxy_http", "cache", "cache_disk"];
    let folder = at("unpacked/usr/lib/apache2/modules");
    let modules = modules.map(|it| format!("LoadModule {it}_module {folder}/mod_{it}.so\n"));
    let text = format!(
        "{}ServerName apache\nListen 127.0.0.1:{port}\nPidFile {}\nErrorLog {}\nDefaultRuntimeDir {}\n\
         ProxyRequests On\nMaxKeepAliveRequests 0\nCacheEnable disk \"http://{origin}/\"\nCacheRoot {}\n\
         CacheDirLevels 2\nCacheDirLength 1\nStartServers 2\nThreadsPerChild 25\n",
        modules.concat(),
        at("apache.pid"),
        at("error.log"),
        peer.make_folder("run").display(),
        peer.make_folder("cache").display(),
    );
    let file = peer.write("apache.conf", text);
    let mut command = peer.command("usr/sbin/apache2");
    // In one process, so that nothing is left when it is killed.
    command.arg("-X").arg("-f").arg(file);
    let running = Running::start(command, port);
    pin(running.id(), SERVER_CORE);
    (peer, running)
}

/// Has clients ask a cache for all objects of a set, each in an order of its own. Returns how long each answer
/// took, in milliseconds, sorted.
async fn waits(cache: SocketAddr, origin: SocketAddr, set: &str, clients: usize) -> Vec<f64> {
    let (local, all) = (LocalSet::new(), Rc::new(RefCell::new(Vec::new())));
    for client in 0..clients {
        let (set, all) = (set.to_owned(), Rc::clone(&all));
        local.spawn_local(async move {
            let mut order: Vec<usize> = (0..OBJECTS).collect();
            order.sort_by_key(|it| unit(&format!("{set} {client} {it}")).to_bits());
            let mut connection = Connection::open(cache, client).await;
            for n in order {
                let began = now();
                connection.ask(&proxy_form(origin, &format!("/{set}/{n}"))).await;
                all.borrow_mut().push(now().duration_since(began).as_secs_f64() * 1e3);
            }
        });
    }
    local.await;
    let mut all = all.take();
    assert_eq!(all.len(), clients * OBJECTS, "a client has failed");
    all.sort_by(f64::total_cmp);
    all
}

pub(crate) async fn measure() {
    let (_origin, at) = Origin::start();
    let (ours, squid, (_peer, apache)) = (Ours::start(""), squid("256 MB", false), apache(at));
    let caches = [
        ("ours", ours.address),
        ("Squid", squid.address()),
        ("Apache's mod_cache", apache.address),
    ];
    println!("TR Figure 9: milliseconds for an object at each decile, medians of {RUNS} runs");
    for clients in [1, CLIENTS] {
        let mut runs: [Vec<Vec<f64>>; 3] = Default::default();
        for run in 0..RUNS {
            let set = format!("{clients}-{run}");
            let [ours, squid, apache] = caches.map(|(_, it)| waits(it, at, &set, clients));
            // One client waits, and nearly nothing else happens: so all caches have one at once.
            let waited = if clients == 1 {
                <[_; 3]>::from(tokio::join!(ours, squid, apache))
            } else {
                [ours.await, squid.await, apache.await]
            };
            runs.iter_mut().zip(waited).for_each(|(all, it)| all.push(it));
        }
        println!("{clients} clients, {} references:", clients * OBJECTS);
        let names = caches.map(|it| it.0);
        report(names, &runs);
        plot(names, &runs, clients);
    }
}

/// Prints deciles, what is beyond the limits, and what is asked for.
fn report(names: [&str; 3], runs: &[Vec<Vec<f64>>; 3]) {
    let decile = |run: &Vec<f64>, n: usize| run[(run.len() * n / 10).min(run.len() - 1)];
    let of = |waited: &[Vec<f64>], n| {
        median(&waited.iter().map(|run| decile(run, n)).collect::<Vec<_>>())
    };
    for (name, waited) in names.iter().zip(runs) {
        let deciles: Vec<String> = (1..10).map(|n| format!("{:6.1}", of(waited, n))).collect();
        let beyond = LIMITS_MS.map(|limit| {
            let count = |run: &Vec<f64>| run.iter().filter(|it| limit < **it).count() as f64;
            median(&waited.iter().map(count).collect::<Vec<_>>())
        });
        let [first, second] = beyond;
        println!("  {name:20} {}   over 40 ms {first}, over 160 ms {second}", deciles.join(" "));
    }
    let [ours, peers @ ..] = runs;
    let is_allowed = |n| peers.iter().all(|it| of(ours, n) <= of(it, n) * ALLOWED.0 + ALLOWED.1);
    println!("  at no decile over 1.05 of a peer's + 5 ms: {}", (1..10).all(is_allowed));
}

/// Draws how many of all references are answered within a time, of the run with the median mean, as
/// `target/tr_figure9_CLIENTS.svg`; times are logarithmic.
fn plot(names: [&str; 3], runs: &[Vec<Vec<f64>>; 3], clients: usize) {
    const COLORS: [&str; 3] = ["#0b6e4f", "#b5532a", "#4059ad"];
    // From 0.1 to 1,000 ms, 150 units a decade.
    let across = |ms: f64| 60.0 + (ms.clamp(0.1, 1_000.0).log10() + 1.0) * 150.0;
    let down = |share: f64| 280.0 - share * 260.0;
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 320\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"720\" height=\"320\" fill=\"white\"/>\n",
    );
    for (ms, text) in
        [(0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100"), (1_000.0, "1,000 ms")]
    {
        let x = across(ms);
        svg += &format!(
            "<path d=\"M{x} 20V280\" stroke=\"#ddd\"/><text x=\"{x}\" y=\"300\" text-anchor=\"middle\">{text}</text>\n"
        );
    }
    for tenths in [0, 5, 10] {
        let y = down(f64::from(tenths) / 10.0);
        svg += &format!(
            "<path d=\"M60 {y}H660\" stroke=\"#ddd\"/><text x=\"52\" y=\"{y}\" text-anchor=\"end\">{} %</text>\n",
            tenths * 10
        );
    }
    for (index, (name, waited)) in names.iter().zip(runs).enumerate() {
        let mean = |run: &Vec<f64>| run.iter().sum::<f64>() / run.len() as f64;
        let mut runs: Vec<&Vec<f64>> = waited.iter().collect();
        runs.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        let run = runs[runs.len() / 2];
        let points = (0..=200).map(|it| {
            let at = (run.len() - 1) * it / 200;
            format!("{:.1},{:.1}", across(run[at]), down(at as f64 / (run.len() - 1) as f64))
        });
        let (color, y) = (COLORS[index], 210 + 18 * index);
        let points: Vec<String> = points.collect();
        svg += &format!(
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" points=\"{}\"/>\
             <text x=\"420\" y=\"{y}\" fill=\"{color}\">{name}, {clients} at once</text>\n",
            points.join(" ")
        );
    }
    svg += "</svg>\n";
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::write(folder.join(format!("tr_figure9_{clients}.svg")), svg).unwrap();
}

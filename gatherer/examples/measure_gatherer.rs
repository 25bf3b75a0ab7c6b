//! A measurement of the gatherer alone, without broker and index. `benches/gatherer` runs it.
//!
//! * `measure gather ROOT DATA [EXCLUDE…]`: a whole pass over ROOT in a new process, then a second
//!   one in the same process. Prints files, bytes, seconds by the clock and CPU-seconds of each
//!   pass (user and system, all threads and workers), and the peak resident memory of the process
//!   and of one worker.
//! * `measure types ROOT`: types, unnests and summarizes every file of ROOT on one thread: files,
//!   bytes and CPU-seconds of each type.
//! * `measure walk ROOT`: reads the metadata of everything below ROOT on one thread.
//! * `measure files DIRECTORY COUNT`: makes COUNT small files to gather.
//! * `measure records ROOT FILE`: writes the records of every file of ROOT to FILE, in the order of
//!   their paths, to compare them with those of another version.

#![allow(clippy::print_stdout, reason = "it is there to print")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]

#[path = "../tests/hostile/peak.rs"]
mod peak;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use essence::extract::{EssenceSettings, extract};
use essence::worker::{Program, serve};
use formats::object::Object;
use gatherer::config::Watch as Watching;
use gatherer::spec::Root;
use gatherer::{Config, Handle, Phase, Server};
use net::clock;
use net::shutdown::Shutdown;
use peak::{Watch, workers};

/// The allocator of `harvest`, since it determines time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;

/// Time between two checks of the workers; long, as checks take time too.
const LOOK: Duration = Duration::from_millis(20);

const FILES_IN_DIRECTORY: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["gather", root, data, exclude @ ..] => gather(root, data, exclude),
        ["worker"] => serve::serve(clock::monotonic).unwrap(),
        ["types", root] => types(Path::new(root)),
        ["walk", root] => walk(Path::new(root)),
        ["files", directory, count] => files(Path::new(directory), count.parse().unwrap()),
        ["records", root, file] => records(Path::new(root), Path::new(file)),
        _ => panic!("see the head of gatherer/examples/measure_gatherer.rs"),
    }
}

fn gather(root: &str, data: &str, exclude: &[&str]) {
    let worker = Program {
        path: fs::read_link("/proc/self/exe").unwrap(),
        arguments: vec!["worker".to_owned()],
    };
    let mut config = Config {
        watch: Watching::Off,
        worker: Some(worker),
        ..Config::for_paths(&[root.into()], data.as_ref())
    };
    let watch = Watch::start(LOOK);
    for root in &mut config.roots {
        if let Root::Tree(tree) = root {
            tree.exclude = exclude.iter().map(ToString::to_string).collect();
            // Files that `.gitignore` files name are measured, too.
            tree.gitignore = false;
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (began, start) = (clock::monotonic(), cpu_s());
        let server = Server::bind(config).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let task = tokio::spawn(server.run(shutdown.clone()));
        let first = pass(&handle, 1).await;
        let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - start);
        let seen = first.files_seen;
        println!("pass files {seen} bytes {} wall {wall:.3} cpu {cpu:.2}", first.bytes);
        let (began, start) = (clock::monotonic(), cpu_s());
        handle.gather();
        let second = pass(&handle, 2).await;
        let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - start);
        println!(
            "again files {} unchanged {} wall {wall:.3} cpu {cpu:.2}",
            second.files_seen, second.unchanged
        );
        shutdown.start();
        task.await.unwrap().unwrap();
        println!("problems {}", second.problems);
    });
    let peak = watch.stop();
    println!("resident {}", peak.own >> 10);
    println!("worker {}", peak.workers >> 10);
}

/// Waits until this number of passes are finished.
async fn pass(handle: &Handle, count: u64) -> gatherer::Progress {
    let mut progress = handle.progress();
    let done = |it: &gatherer::Progress| it.phase == Phase::Idle && count <= it.passes_done;
    progress.wait_for(done).await.unwrap().clone()
}

fn types(root: &Path) {
    let settings = EssenceSettings::default();
    let mut sums: BTreeMap<String, (u64, u64, f64)> = BTreeMap::new();
    for path in tree(root) {
        let bytes = fs::read(&path).unwrap();
        let size = bytes.len() as u64;
        let object = object(&path, bytes);
        let start = thread_s();
        let found = extract(object, &settings, &|| false);
        let took = thread_s() - start;
        let record = &found.first().unwrap().record;
        let mut name = record.text("Type").unwrap().into_owned();
        if path.extension().is_some_and(|it| it == "gz") {
            name.push_str(".gz");
        }
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + size, sum.2 + took);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.2.total_cmp(&a.1.2));
    for (name, (files, bytes, cpu)) in sums {
        println!("type {name} files {files} bytes {bytes} cpu {cpu:.3}");
    }
}

fn walk(root: &Path) {
    let (start, mut count, mut bytes) = (cpu_s(), 0_u64, 0_u64);
    let began = clock::monotonic();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                directories.push(entry.path());
            } else {
                (count, bytes) = (count + 1, bytes + metadata.len());
            }
        }
    }
    let wall = began.elapsed().as_secs_f64();
    println!("walk files {count} bytes {bytes} wall {wall:.3} cpu {:.2}", cpu_s() - start);
}

fn files(directory: &Path, count: usize) {
    for number in 0..count {
        let folder = directory.join(format!("{:04}", number / FILES_IN_DIRECTORY));
        if number % FILES_IN_DIRECTORY == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        let path = folder.join(format!("note-{number}.txt"));
        let mut file = fs::File::create(path).unwrap();
        writeln!(file, "Note {number}\n\nOf harvest {number} there is little to say.").unwrap();
        // A file that was written just now is read again by the next pass.
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
}

fn records(root: &Path, file: &Path) {
    let settings = EssenceSettings::default();
    let mut out = std::io::BufWriter::new(fs::File::create(file).unwrap());
    for path in tree(root) {
        for summary in extract(object(&path, fs::read(&path).unwrap()), &settings, &|| false) {
            writeln!(out, "=== {}", summary.record.url).unwrap();
            for attribute in summary.record.attributes() {
                let value = String::from_utf8_lossy(&attribute.value).replace('\n', "\n\t");
                writeln!(out, "{}:\t{value}", attribute.name).unwrap();
            }
            for problem in summary.problems {
                writeln!(out, "! {}: {problem}", problem.kind).unwrap();
            }
        }
    }
}

fn object(path: &Path, bytes: Vec<u8>) -> Object {
    Object::whole(format!("file://{}", path.display()), bytes)
}

/// Returns every file below `root`, in order.
fn tree(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Returns the CPU seconds so far of this process, its workers, and those that have ended.
fn cpu_s() -> f64 {
    let ticks = |process: &str| -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let after = stat.rsplit(')').next()?;
        Some(after.split_whitespace().skip(11).take(4).map(|it| it.parse::<f64>().unwrap()).sum())
    };
    let own = ticks("self").unwrap();
    (own + workers().iter().filter_map(|it| ticks(it)).sum::<f64>()) / TICKS
}

/// Returns the CPU seconds of this thread so far.
fn thread_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

//! Tests of a full disk: the gatherer reports it, and goes on when there is space again. A run that
//! does not wait for space ends with an error.

#![allow(clippy::print_stdout, reason = "it says what it did")]

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Bench, Tree};
use gatherer::{Config, Server};
use net::shutdown::Shutdown;

/// Variable with the folder for the test binary that is started again with little space.
const VICTIM: &str = "HARVEST_TEST_VICTIM";

/// Maximum size of a file, in the shell's blocks of 512 or 1,024 bytes: less than the collection
/// needs.
const BLOCKS: usize = 2_048;

/// Is the child process, which gathers until there is no space. Does nothing without the variable.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(folder) = std::env::var(VICTIM) else { return };
    let folder = PathBuf::from(folder);
    let config = Config::for_paths(&[folder.join("root")], &folder.join("data"));
    let server = Server::bind(Config { wait_for_space: false, ..config }).await.unwrap();
    let handle = server.handle();
    let error = server.run(Shutdown::new()).await.unwrap_err();
    println!("passes {}; stopped: {error}", handle.progress().borrow().passes_done);
}

/// Returns words that cannot be compressed much.
fn noise(word: &mut u64) -> String {
    let next = |_| {
        *word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:013x} ", *word >> 12)
    };
    (0..120).map(next).collect()
}

#[test]
fn without_space_the_run_ends_with_one_message() {
    let tree = Tree::new();
    let mut word = 1;
    for n in 0..1_200 {
        tree.write(&format!("{n}.txt"), &noise(&mut word));
    }
    let limited = format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "full_disk::victim", "--nocapture"]).env(VICTIM, tree.folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("passes 0; stopped: ") && text.contains("no space left"), "{text}");
}

/// Variable with the path of the small disk for the child process.
const DISK: &str = "HARVEST_SMALL_DISK";

/// Fills all free space with the file at `path`.
fn fill(path: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 16, 1 << 12] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

/// Waits until the gatherer accepts changes or, unless `accepting`, refuses them; returns the
/// reason.
async fn until_accepting(bench: &Bench, accepting: bool) -> Option<String> {
    let status = bench.status(|it| it.collection_problem.is_none() == accepting).await;
    let (_, text) = bench.get_admin("metrics").await;
    let line = format!("harvest_ready_check{{check=\"takes-changes\"}} {}\n", u8::from(accepting));
    assert!(text.contains(&line), "{text}");
    let (code, text) = bench.get("readyz").await;
    assert_eq!(code, if accepting { 200 } else { 503 }, "{text}");
    assert_eq!(text.contains("free some space"), !accepting, "{text}");
    assert_eq!(bench.get("healthz").await.0, 200);
    status.collection_problem
}

/// Is the child process on a small disk.
#[tokio::test(flavor = "multi_thread")]
async fn small_disk() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else { return };
    let tree = Tree { folder: tempfile::tempdir_in(&disk).unwrap() };
    std::fs::create_dir(tree.root()).unwrap();
    let mut word = 1;
    for n in 0..300 {
        tree.write(&format!("{n}.txt"), &noise(&mut word));
    }
    let (other, aside) = (disk.join("other"), disk.join("aside"));
    let bench = Bench::start(tree).await;
    bench.passes(1).await;
    // A new file is written after another process has filled the disk.
    std::fs::write(&aside, noise(&mut word)).unwrap();
    fill(&other);
    std::fs::rename(&aside, bench.tree.path("new.txt")).unwrap();
    let text = until_accepting(&bench, false).await.unwrap();
    assert!(text.starts_with("not accepting changes: free "), "{text}");
    assert_eq!(bench.handle.status().objects, 300);
    std::fs::remove_file(&other).unwrap();
    bench.handle.gather();
    until_accepting(&bench, true).await;
    assert!(bench.file("new.txt").await.text("File-Size").is_some());
    let (tree, _) = bench.stop().await;
    // A run with `wait_for_space` off does not wait.
    let server = Server::bind(Config { wait_for_space: false, ..tree.config() }).await.unwrap();
    std::fs::write(&aside, noise(&mut word)).unwrap();
    fill(&other);
    std::fs::rename(&aside, tree.path("newer.txt")).unwrap();
    let text = server.run(Shutdown::new()).await.unwrap_err().to_string();
    assert!(text.contains("not accepting changes: free "), "{text}");
    println!("stopped: {text}");
}

#[test]
fn on_a_full_disk_changes_wait_for_space() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24m none \"${DISK}\" && exec \"$0\" full_disk::small_disk --exact --nocapture"
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    let output = command.env(DISK, folder.path()).output();
    let output = output.expect("it needs unshare: apt-get install util-linux");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("stopped: "),
        "{text}\n(it needs a kernel that lets users mount: sysctl user.max_user_namespaces, and \
         kernel.apparmor_restrict_unprivileged_userns=0)"
    );
}

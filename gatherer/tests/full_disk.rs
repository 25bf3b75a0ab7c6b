//! A run that is to end by itself ends when there is no space left, and says so.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::process::Command;

use gatherer::{Config, Server};
use net::shutdown::Shutdown;
use support::Tree;

/// Says to the test binary, started again with little space, which folder to use.
const VICTIM: &str = "HARVEST_TEST_VICTIM";

/// How large a file may become, in the shell's blocks of 512 or 1,024 bytes: smaller than the
/// collection of the tree.
const BLOCKS: usize = 2_048;

/// The child process: gathers until there is no space. Without the variable there is nothing to gather.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(folder) = std::env::var(VICTIM) else { return };
    let folder = std::path::PathBuf::from(folder);
    let config = Config::for_paths(&[folder.join("root")], &folder.join("data"));
    let server = Server::bind(Config { wait_for_space: false, ..config }).await.unwrap();
    let handle = server.handle();
    let error = server.run(Shutdown::new()).await.unwrap_err();
    println!("passes {}; stopped: {error}", handle.progress().borrow().passes_done);
}

#[test]
fn without_space_the_run_ends_with_one_message() {
    let tree = Tree::new();
    // Words that no compression makes much smaller.
    let mut word = 1_u64;
    for n in 0..1_200 {
        let mut text = String::new();
        for _ in 0..120 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(&format!("{:013x} ", word >> 12));
        }
        tree.write(&format!("{n}.txt"), &text);
    }
    let limited = format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(VICTIM, tree.folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("passes 0; stopped: ") && said.contains("no space left"), "{said}");
}

//! Tests of the fences: each runs in a process of its own, since fences cannot be removed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic and print")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use essence::worker::fence::{self, ProgramFence};

/// Variable with the folder that a child process may use.
const FOLDER: &str = "HARVEST_TEST_FOLDER";

/// Runs one of the tests below in a process of its own, and returns its output.
fn output_of(child: &str, folder: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args([child, "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[test]
fn a_worker_can_compute_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), "x").unwrap();
    let output = output_of("behind_the_worker_s_fences", folder.path());
    for line in ["read refused", "write refused", "listen refused", "start refused", "computed"] {
        assert!(output.lines().any(|it| it == line), "{line} is missing in {output}");
    }
}

#[test]
fn behind_the_worker_s_fences() {
    let Some(folder) = folder() else { return };
    let missing = fence::enclose(64 << 20);
    assert!(missing.iter().all(|it| it.contains("landlock")), "{missing:?}");
    let outcome = |name: &str, failed: bool| {
        println!("{name} {}", if failed { "refused" } else { "ALLOWED" });
    };
    outcome("read", fs::read(folder.join("secret")).is_err());
    outcome("write", fs::write(folder.join("new"), "x").is_err());
    outcome("listen", TcpListener::bind("127.0.0.1:0").is_err());
    outcome("start", Command::new("/bin/true").spawn().is_err());
    let mut much: Vec<u8> = Vec::new();
    assert!(much.try_reserve_exact(256 << 20).is_err(), "memory is bounded");
    let sum: u64 = (0..1_000_000_u64).collect::<Vec<_>>().iter().sum();
    assert_eq!(sum, 499_999_500_000);
    println!("computed");
}

#[test]
fn a_program_of_the_site_has_its_folders_and_no_network() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["in", "scratch", "secret"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), name).unwrap();
    }
    let output = output_of("behind_a_program_s_fences", folder.path());
    for line in ["input in", "wrote", "listen refused", "shell ran"] {
        assert!(output.lines().any(|it| it == line), "{line} is missing in {output}");
    }
    let has_landlock = !output.contains("landlock");
    assert_eq!(output.contains("secret refused"), has_landlock, "{output}");
}

#[test]
fn behind_a_program_s_fences() {
    let Some(folder) = folder() else { return };
    let system = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc"];
    let read = system.iter().map(PathBuf::from).chain([folder.join("in")]).collect();
    let missing = fence::enclose_program(&ProgramFence {
        read,
        write: vec![folder.join("scratch"), "/dev/null".into()],
        memory_bytes_max: 1 << 30,
        cpu_secs_max: 5,
        file_bytes_max: 1 << 20,
    });
    for it in missing {
        println!("missing: {it}");
    }
    println!("input {}", fs::read_to_string(folder.join("in/file")).unwrap());
    fs::write(folder.join("scratch/new"), "x").unwrap();
    println!("wrote");
    if fs::read(folder.join("secret/file")).is_err() {
        println!("secret refused");
    }
    if TcpListener::bind("127.0.0.1:0").is_err() {
        println!("listen refused");
    }
    let shell = Command::new("/bin/sh").args(["-c", "true | cat && echo shell ran"]).output();
    print!("{}", String::from_utf8_lossy(&shell.unwrap().stdout));
    println!();
}

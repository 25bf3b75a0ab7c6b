//! docs/tutorial.md, command by command: files are written, commands run, and output compared.
//!
//! The folder `/srv/orchard` and the ports become ones that are free here. Output is compared with
//! the `text` block behind the commands, in which `…` stands for any text. While it differs, the
//! last command runs again, since a reader would look again as well.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use net::clock;

use crate::harness::PATIENCE;

const TUTORIAL: &str = include_str!("../../docs/tutorial.md");

/// Folder of the reader. On drop it stops the daemons whose process ids the commands wrote down.
struct Reader {
    dir: tempfile::TempDir,
    replaced: Vec<(String, String)>,
}

impl Reader {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut replaced =
            vec![("/srv/orchard".to_owned(), dir.path().to_str().unwrap().to_owned())];
        // All listeners stay open until each has its port, so that no two get the same.
        let free: Vec<_> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for (port, listener) in [8500, 8501, 9500, 9501].iter().zip(&free) {
            let port_here = listener.local_addr().unwrap().port();
            replaced.push((format!("127.0.0.1:{port}"), format!("127.0.0.1:{port_here}")));
        }
        Self { dir, replaced }
    }

    fn here(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn write_settings(&self, block: &str) {
        let name = block.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap();
        let (name, added) =
            name.strip_suffix(", added at its end").map_or((name, false), |name| (name, true));
        let path = self.dir.path().join(name);
        let before = if added { fs::read_to_string(&path).unwrap() } else { String::new() };
        fs::write(path, before + block).unwrap();
    }

    /// Runs one line of the page in its folder; returns what it wrote to standard output.
    fn run(&self, line: &str) -> String {
        let (out, err) = (self.dir.path().join("stdout"), self.dir.path().join("stderr"));
        let binary_dir = Path::new(env!("CARGO_BIN_EXE_harvest")).parent().unwrap();
        let path = format!("{}:{}", binary_dir.display(), std::env::var("PATH").unwrap());
        // Files, not pipes: a daemon in the background would keep a pipe open.
        let status = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.dir.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .status()
            .unwrap();
        if !status.success() {
            return format!("{status}: {line}\n{}", fs::read_to_string(err).unwrap());
        }
        fs::read_to_string(out).unwrap()
    }

    /// Runs the commands of one block, the last one until the output is as `wanted`.
    fn follow(&self, commands: &str, wanted: &str) {
        let lines: Vec<&str> = commands.lines().collect();
        let (last, first) = lines.split_last().unwrap();
        let before: String = first.iter().map(|line| self.run(line)).collect();
        let start = clock::monotonic();
        loop {
            let printed = before.clone() + &self.run(last);
            if matches(&printed, wanted) {
                return;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "after\n{commands}\nexpected:\n{wanted}\nprinted:\n{printed}"
            );
        }
    }

    fn process_ids(&self) -> impl Iterator<Item = String> {
        let files = ["gatherer.pid", "broker.pid"].map(|name| self.dir.path().join(name));
        files.into_iter().filter_map(|path: PathBuf| fs::read_to_string(path).ok())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        for id in self.process_ids() {
            // It may have ended already.
            let _ = Command::new("kill").arg(id.trim()).stderr(Stdio::null()).status();
        }
    }
}

/// Returns whether `printed` is `wanted`: `…` is any text, and spaces at line ends are ignored.
fn matches(printed: &str, wanted: &str) -> bool {
    let trimmed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let printed = trimmed.join("\n");
    let mut rest = printed.trim_end();
    let mut pieces = wanted.trim_end().split('…');
    let Some(after) = pieces.next().and_then(|first| rest.strip_prefix(first)) else {
        return false;
    };
    rest = after;
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let piece = piece.trim_end_matches('\n');
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.trim_end())
}

/// Returns the fenced blocks of the page: language and content.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut blocks = Vec::new();
    let mut parts = TUTORIAL.split("```");
    parts.next();
    while let Some(block) = parts.next() {
        blocks.push(block.split_once('\n').unwrap());
        parts.next();
    }
    blocks
}

#[test]
fn every_command_of_the_tutorial_does_what_it_says() {
    let reader = Reader::new();
    let blocks = blocks();
    assert!(blocks.len() > 20, "{blocks:?}");
    for (at, (language, block)) in blocks.iter().enumerate() {
        let block = reader.here(block);
        match *language {
            "toml" => reader.write_settings(&block),
            "sh" => {
                let wanted = match blocks.get(at + 1) {
                    Some(("text", wanted)) => reader.here(wanted),
                    _ => "…".to_owned(),
                };
                reader.follow(&block, &wanted);
            }
            // Output of the commands before the block, or a file for another place.
            "text" | "ini" => {}
            other => panic!("a block of {other:?}: say here what to do with it"),
        }
    }
}

#[test]
fn printed_text_is_compared_to_its_end() {
    assert!(matches("a 1 b\n", "a … b"));
    assert!(matches("a\nx\ny\nb  \n", "a\n…\nb"));
    assert!(matches("a\nb\n", "a\n…"));
    assert!(!matches("a\nb\n", "a"));
    assert!(!matches("a 1 c", "a … b"));
    assert!(!matches("x a", "a…"));
}

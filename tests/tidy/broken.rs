//! Tests of the rules: a small workspace breaks each rule, and the rule must report that.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::house::{House, Tables};
use crate::{circles, shape, walls, words};

type Rule = fn(&House) -> Vec<String>;

const TABLES: Tables = Tables {
    may_depend_on: &[("low", &[]), ("high", &["low"])],
    common: &["bytes"],
    kept_to: &[("hyper", &["high"])],
    named_only_in: &[("hyper::", &["high/src/server"])],
    unnamed: &[("high", "libc", "only for its features")],
    pure_crates: &["low"],
};

const RULES: [Rule; 17] = [
    walls::downwards,
    walls::all_crates,
    walls::at_home,
    walls::all_named,
    walls::in_their_place,
    walls::sans_io,
    circles::large,
    shape::product_files,
    shape::other_files,
    shape::folders,
    shape::undone,
    shape::seeds,
    shape::links,
    words::names,
    words::shared_names,
    words::first_lines,
    words::named_files,
];

/// The files of a workspace without a problem.
const SOUND: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nmembers = [\"low\", \"high\"]\n[workspace.dependencies]\nlow = { path = \"low\" }\n\
         bytes = \"1\"\nhyper = \"1\"\nlibc = \"0\"\n[dependencies]\nbytes.workspace = true\n",
    ),
    ("Cargo.lock", "name = \"zlib-rs\"\n"),
    ("README.md", "[notes](low/src/lib.rs#top)\n"),
    ("src/main.rs", "//! The program.\nuse bytes::Bytes;\n"),
    ("low/Cargo.toml", "[dependencies]\nbytes.workspace = true\n"),
    ("low/src/lib.rs", "//! Low.\nmod a;\nmod b;\npub fn low(it: &bytes::Bytes) {}\n"),
    (
        "low/src/a.rs",
        "//! A.\nuse crate::{b, low};\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nfn f() {}\n",
    ),
    (
        "low/src/b.rs",
        "//! B: no `tokio` but in words.\nconst WORD: &str = \"std::fs\";\nuse super::a::x;\n",
    ),
    (
        "high/Cargo.toml",
        "[dependencies]\nlow.workspace = true\nhyper.workspace = true\nlibc.workspace = true\n\
         [dev-dependencies]\nlow.workspace = true\n",
    ),
    (
        "high/src/lib.rs",
        "//! High.\nuse low::low;\n#[cfg(test)]\nmod faulty;\nmod pure;\nmod server;\n",
    ),
    ("high/src/server.rs", "//! Serves.\nuse hyper::Request;\n"),
    ("high/src/faulty.rs", "no module comment: these are tests"),
    ("high/src/pure.rs", "//! Sans-I/O.\n"),
    ("fuzz/fuzz_targets/reader.rs", "//! Reads.\n"),
    ("fuzz/seeds/reader/one", "1"),
];

/// A workspace in a temporary folder, which is removed on drop.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("tidy-{}-{number}", std::process::id()));
        let copy = Self(root);
        for (path, text) in SOUND {
            copy.write(path, text);
        }
        copy
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the problems that a rule reports.
    fn problems(&self, rule: Rule) -> Vec<String> {
        for arguments in [&["init", "--quiet"][..], &["add", "--all"]] {
            let status = Command::new("git").args(arguments).current_dir(&self.0).status().unwrap();
            assert!(status.success());
        }
        rule(&House::new(self.0.clone(), TABLES))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replaces files, and checks that the rule then reports problems which all contain `expected`.
#[track_caller]
fn check(rule: Rule, files: &[(&str, &str)], expected: &str) {
    let copy = Copy::new();
    for (path, text) in files {
        copy.write(path, text);
    }
    let problems = copy.problems(rule);
    assert!(!problems.is_empty(), "{files:?} is let be");
    assert!(problems.iter().all(|it| it.contains(expected)), "{problems:?} for {expected}");
}

/// Returns a manifest with these dependencies, and these for tests.
fn manifest(names: &[&str], tests: &[&str]) -> String {
    let lines = |names: &[&str]| {
        names.iter().map(|it| format!("{it}.workspace = true\n")).collect::<String>()
    };
    format!("[dependencies]\n{}[dev-dependencies]\n{}", lines(names), lines(tests))
}

#[test]
fn a_sound_workspace_is_let_be() {
    let copy = Copy::new();
    for rule in RULES.into_iter().chain([shape::deflate as Rule]) {
        assert_eq!(copy.problems(rule), [""; 0]);
    }
}

#[test]
fn broken_walls_are_seen() {
    let up = manifest(&["bytes", "high"], &[]);
    check(walls::downwards, &[("low/Cargo.toml", &up)], "low must not depend on high");
    let root = "[workspace]\nmembers = [\"low\", \"high\", \"other\"]\n";
    check(walls::all_crates, &[("Cargo.toml", root)], "other");
    let two = manifest(&["bytes", "hyper"], &[]);
    check(walls::at_home, &[("low/Cargo.toml", &two)], "hyper belongs to");
    let new = manifest(&["bytes", "libc"], &[]);
    check(walls::at_home, &[("low/Cargo.toml", &new)], "libc is at home in one");
    let nobody = manifest(&["low", "libc"], &[]);
    check(walls::at_home, &[("high/Cargo.toml", &nobody)], "nobody needs hyper");
    let env = "//! A.\nuse hyper::{self};\n";
    check(walls::in_their_place, &[("low/src/a.rs", env)], "low/src/a.rs:2: hyper::");
}

#[test]
fn dependencies_that_nobody_names_are_seen() {
    let more = manifest(&["bytes", "libc"], &[]);
    check(walls::all_named, &[("low/Cargo.toml", &more)], "low never names libc");
    let only_words = "//! Low: bytes::Bytes.\nfn f() { a::bytes::b(\"bytes::c\") } // bytes::d\n";
    check(walls::all_named, &[("low/src/lib.rs", only_words)], "low never names bytes");
    let only_tests = "//! Low.\n#[cfg(test)]\nmod tests {\n    use bytes::Bytes;\n}\n";
    check(walls::all_named, &[("low/src/lib.rs", only_tests)], "low never names bytes");
    let tests = manifest(&["bytes"], &["proptest"]);
    check(walls::all_named, &[("low/Cargo.toml", &tests)], "the tests of low never name proptest");
    let root = "[workspace.dependencies]\nserde = \"1\"\n[dependencies]\nbytes.workspace = true\n";
    check(walls::all_named, &[("Cargo.toml", root)], "no crate of ours needs serde");
}

#[test]
fn io_is_seen_behind_tests_too() {
    let text = "//! Sans-I/O.\n#[cfg(test)]\nmod tests;\n\nuse std::fs;\n";
    check(walls::sans_io, &[("high/src/pure.rs", text)], "high/src/pure.rs:5: std::fs");
    let text = "//! A.\n#[cfg(test)]\nmod tests {}\nasync fn f() {}\n";
    check(walls::sans_io, &[("low/src/a.rs", text)], "low/src/a.rs:4: async fn");
}

#[test]
fn large_circles_are_seen() {
    let files: Vec<(String, String)> = (0..4)
        .map(|at| {
            let next = (at + 1) % 4;
            let text = match at {
                0 => format!("//! C.\nuse crate::{{c{next}::{{self, X}}, low}};\n"),
                1 => format!("//! C.\nfn f() {{ super::c{next}::g() }}\n"),
                _ => format!("//! C.\nuse super::c{next};\n"),
            };
            (format!("low/src/c{at}.rs"), text)
        })
        .collect();
    let mut files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    check(circles::large, &files, "low: 4 files in a circle");
    // Three files may form a circle; tests do not count.
    files[3].1 = "//! C.\n#[cfg(test)]\nmod tests {\n    use crate::c0;\n}\n";
    let copy = Copy::new();
    files.iter().for_each(|(path, text)| copy.write(path, text));
    assert_eq!(copy.problems(circles::large), [""; 0]);
}

#[test]
fn files_and_folders_out_of_shape_are_seen() {
    check(
        shape::product_files,
        &[("low/src/a.rs", "fn f() {}\n")],
        "low/src/a.rs: no module comment",
    );
    let long = format!("//! A.\n#[cfg(test)]\nmod tests;\n{}", "fn f() {}\n".repeat(500));
    check(shape::product_files, &[("low/src/a.rs", &long)], "low/src/a.rs: 501 lines");
    let path = "low/tests/long.rs";
    check(shape::other_files, &[(path, &"\n".repeat(501))], "low/tests/long.rs: 501 lines");
    let many: Vec<String> = (0..23).map(|at| format!("low/src/m{at}.rs")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|it| (it.as_str(), "//! M.\n")).collect();
    check(shape::folders, &many, "low/src: 26 files in a folder");
    let word = ["// TO", "DO: later\n"].concat();
    check(shape::undone, &[("low/tests/a.rs", &word)], "low/tests/a.rs:1");
    check(shape::seeds, &[("fuzz/seeds/reader/one", "")], "fuzz/seeds/reader");
    check(shape::links, &[("README.md", "[gone](gone.md)\n")], "README.md: gone.md");
    let lock = "name = \"zlib-rs\"\nname = \"openssl-sys\"\n";
    check(shape::deflate, &[("Cargo.lock", lock)], "openssl-sys");
}

#[test]
fn private_words_are_seen() {
    let text = "//! A.\n/// fn said() in words.\nfn said() {}\n";
    check(words::names, &[("low/src/a.rs", text)], "low/src/a.rs:3: said");
    let text = "//! A.\npub(crate) struct Vigil<'a>(&'a str);\n";
    check(words::names, &[("low/tests/a.rs", text)], "low/tests/a.rs:2: Vigil");
    let many: Vec<String> = (0..4).map(|at| format!("low/src/m{at}.rs")).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|it| (it.as_str(), "//! M.\nenum Place {}\n")).collect();
    check(words::shared_names, &many, "low: Place in");
    let copy = Copy::new();
    many[1..].iter().for_each(|(path, text)| copy.write(path, text));
    assert_eq!(copy.problems(words::shared_names), [""; 0]);
    let asks = "//! What is remembered.\n";
    check(words::first_lines, &[("low/tests/a.rs", asks)], "low/tests/a.rs: \"What is");
    let names = "`low/src/gone.rs`, `src/a.rs`\n";
    check(words::named_files, &[("README.md", names)], "README.md: no file is low/src/gone.rs");
}

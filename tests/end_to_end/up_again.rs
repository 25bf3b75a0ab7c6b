//! Tests of what is known of each `harvest up`: the running one is found, listed, opened again;
//! stopped ones are listed and removed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use net::clock;
use tempfile::TempDir;

use crate::harness::{PATIENCE, Running, harvest, texts, wait_for_total, write};

/// A user with a data directory and some folders.
struct User(TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self, name: &str, text: &str) -> PathBuf {
        write(self.0.path(), &format!("{name}/a.txt"), text);
        fs::canonicalize(self.0.path().join(name)).unwrap()
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S], here: &Path) -> std::process::Command {
        let mut command = harvest(args);
        command.env("XDG_DATA_HOME", self.0.path().join("share")).current_dir(here);
        command
    }

    fn run<S: AsRef<OsStr>>(&self, args: &[S], here: &Path) -> (Output, String, String) {
        let output = self.command(args, here).output().unwrap();
        let (out, err) = texts(&output);
        (output, out, err)
    }

    /// Starts `up` for the folder `here`; returns the search page, too.
    fn up(&self, here: &Path, word: &str) -> (Running, String) {
        let mut running = Running::start(self.command(&["up", "--no-open"], here));
        let page = running.search_url();
        wait_for_total(&page, word, 1);
        (running, page)
    }
}

#[test]
fn search_asks_the_one_that_runs_here() {
    let user = User::new();
    let (a, b) = (user.folder("a", "aubergine\n"), user.folder("b", "broccoli\n"));
    let below = a.join("deep");
    fs::create_dir(&below).unwrap();
    let elsewhere = user.0.path();
    let (mut one, one_page) = user.up(&a, "aubergine");
    let (two, two_page) = user.up(&b, "broccoli");
    let found = |word: &str, here: &Path| {
        let (output, out, err) = user.run(&["search", word], here);
        assert!(output.status.success(), "{err}");
        // Piped, there are no colors and links.
        assert!(!out.contains('\u{1b}'), "{out:?}");
        out
    };
    for here in [&a, &below] {
        let out = found("aubergine", here);
        let path = a.join("a.txt").display().to_string();
        assert!(out.contains(&format!("\n     {path}\n")), "{out}");
    }
    assert!(found("broccoli", &b).starts_with("1 object"));
    assert!(found("broccoli", &a).starts_with("0 objects"));
    let (output, _, err) = user.run(&["search", "broccoli"], elsewhere);
    assert_eq!(output.status.code(), Some(1));
    assert!([&one_page, &two_page].iter().all(|it| err.contains(*it)), "{err}");
    assert!(err.contains(&*a.to_string_lossy()), "{err}");
    assert!(one.stop("INT").success());
    assert!(found("broccoli", elsewhere).starts_with("1 object"), "the only one");
    assert!(found("broccoli", &a).starts_with("1 object"), "the only one");
    // A record of a process that was killed is no longer that of a running one.
    two.signal("KILL");
    drop(two);
    let (output, out, err) = user.run(&["up", "--list"], elsewhere);
    assert!(output.status.success() && !out.contains("http://"), "{out}{err}");
}

#[test]
fn a_second_up_shows_the_first() {
    let user = User::new();
    let a = user.folder("a", "aubergine\n");
    let (mut running, page) = user.up(&a, "aubergine");
    let (output, out, err) = user.run(&["up", "--no-open"], &a);
    assert!(output.status.success(), "{err}");
    assert_eq!(out, format!("search at {page}\n"));
    assert!(err.contains("runs already"), "{err}");
    assert!(!err.contains("--listen"), "{err}");
    let (output, out, err) = user.run(&["up", "--no-open", "--listen", "127.0.0.1:0"], &a);
    assert!(output.status.success(), "{err}");
    assert_eq!(out, format!("search at {page}\n"));
    assert!(err.contains("--listen has no effect"), "{err}");
    let (output, _, err) = user.run(&["up", "--once"], &a);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains(&page) && err.contains("stop that one"), "{err}");
    assert!(running.stop("INT").success());
    let (mut again, _) = user.up(&a, "aubergine");
    assert!(again.stop("INT").success());
}

#[test]
fn all_are_listed_and_stopped_ones_removed() {
    let user = User::new();
    let (a, b) = (user.folder("a", "aubergine\n"), user.folder("b", "broccoli\n"));
    let (elsewhere, named) = (user.0.path(), user.0.path().join("named"));
    let (output, out, err) = user.run(&["up", "--list"], elsewhere);
    assert!(output.status.success() && out.is_empty() && err.contains("nothing"), "{out}{err}");
    let once =
        ["up".as_ref(), "--once".as_ref(), "--data".as_ref(), named.as_os_str(), b.as_os_str()];
    let (output, _, err) = user.run(&once, elsewhere);
    assert!(output.status.success(), "{err}");
    let (mut running, page) = user.up(&a, "aubergine");
    let list = || {
        let (output, out, err) = user.run(&["up", "--list"], elsewhere);
        assert!(output.status.success(), "{err}");
        out
    };
    let line = |root: &Path| {
        let root = root.display().to_string();
        let is_of = |it: &&str| it.split_whitespace().next() == Some(root.as_str());
        list().lines().find(is_of).map(str::to_owned)
    };
    let of_a = line(&a).unwrap();
    assert!(of_a.contains(&page) && of_a.contains("now") && of_a.contains("iB"), "{of_a}");
    let data: PathBuf = of_a.split_whitespace().last().unwrap().into();
    assert!(data.join("gatherer").is_dir(), "{of_a}");
    let of_b = line(&b).unwrap();
    assert!(of_b.contains("stopped") && of_b.contains(named.to_str().unwrap()), "{of_b}");

    let remove =
        |what: &Path| user.run(&["up".as_ref(), "--remove".as_ref(), what.as_os_str()], elsewhere);
    let (output, _, err) = remove(&a);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains(&page) && err.contains("stop it first"), "{err}");
    assert!(running.stop("INT").success());
    assert!(line(&a).unwrap().contains("stopped"));
    // What was gathered may be gone.
    fs::remove_dir_all(&a).unwrap();
    let (output, out, err) = remove(&a);
    assert!(output.status.success() && out.starts_with("removed "), "{out}{err}");
    assert!(!data.exists() && line(&a).is_none());

    // In a folder of the user's own, only what `up` made is removed.
    let own = write(&named, "broker/settings", "mine");
    let id = named.join("gatherer/id");
    let before = fs::read_to_string(&id).unwrap();
    fs::write(&id, "0123456789abcdef\n").unwrap();
    let (output, _, err) = remove(&b);
    assert!(!output.status.success() && err.contains("by hand"), "{err}");
    assert!(named.join("index").exists(), "another gatherer's data are left whole");
    fs::write(&id, before).unwrap();
    let (output, _, err) = remove(&b);
    assert!(output.status.success(), "{err}");
    assert!(own.exists() && !named.join("gatherer").exists() && !named.join("index").exists());
    assert!(line(&b).is_none());
    let (output, _, err) = remove(&b);
    assert!(!output.status.success() && err.contains("--list"), "{err}");
}

#[test]
fn what_was_gathered_together_is_removed_together() {
    let user = User::new();
    let (a, b) = (user.folder("a", "aubergine\n"), user.folder("b", "broccoli\n"));
    let elsewhere = user.0.path();
    let run = |args: &[&OsStr]| user.run(args, elsewhere);
    let (output, _, err) = run(&["up".as_ref(), "--once".as_ref(), a.as_ref(), b.as_ref()]);
    assert!(output.status.success(), "{err}");
    let (output, _, err) = run(&["up".as_ref(), "--remove".as_ref(), a.as_ref()]);
    assert!(!output.status.success() && err.contains(b.to_str().unwrap()), "{err}");
    let (output, out, err) = run(&["up".as_ref(), "--remove".as_ref(), b.as_ref(), a.as_ref()]);
    assert!(output.status.success() && out.lines().count() == 1, "{out}{err}");
}

#[test]
fn held_deletions_are_confirmed_while_it_runs() {
    let user = User::new();
    let a = user.folder("a", "aubergine\n");
    for n in 0..150 {
        fs::write(a.join(format!("{n}.txt")), format!("courgette {n}\n")).unwrap();
    }
    let (mut running, page) = user.up(&a, "aubergine");
    wait_for_total(&page, "courgette", 150);
    let confirm = || user.run(&["up".as_ref(), "--confirm".as_ref(), a.as_os_str()], user.0.path());
    let (output, _, err) = confirm();
    assert!(!output.status.success() && err.contains("No root is held"), "{err}");
    for n in 0..150 {
        fs::remove_file(a.join(format!("{n}.txt"))).unwrap();
    }
    let start = clock::monotonic();
    loop {
        let (output, out, _) = confirm();
        if output.status.success() {
            assert!(out.contains("deletions are made"), "{out}");
            break;
        }
        assert!(start.elapsed() < PATIENCE, "nothing is held");
    }
    wait_for_total(&page, "courgette", 0);
    let (output, out, err) = user.run(&["search", "ripe", "aubergine"], &a);
    assert!(output.status.success() && out.contains("1 object"), "several words: {out}{err}");
    assert!(running.stop("INT").success());
}

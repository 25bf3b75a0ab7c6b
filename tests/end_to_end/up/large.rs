//! Tests of large trees that are made for it: all of them is found, in bounded memory, and what is stored is
//! in proportion.
//!
//! `HARVEST_BOOKS` and `HARVEST_ENTRIES` are the numbers of books and of bibliographic entries.

#![allow(clippy::print_stdout, reason = "it says its figures")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::harness::{Running, harvest, search, total, write};

/// Number of different words.
const WORDS: usize = 60_000;

/// Number of words of a book: 660 KB.
const BOOK_WORDS: usize = 95_000;

/// Number of entries in a file.
const FILE_ENTRIES: usize = 5_000;

/// Number of objects that are looked for one by one.
const SAMPLES: usize = 25;

/// Memory that `up` and its helpers may take, without what they read of files: asked for are 512 MB.
const OWN_BYTES_MAX: u64 = 512_000_000;

/// Time from one look at the memory to the next.
const SAMPLED_EVERY: Duration = Duration::from_millis(100);

/// Time in which the largest trees are gathered and indexed.
const PATIENCE: Duration = Duration::from_hours(1);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |it| it.parse().unwrap())
}

/// Returns all words, the most frequent first.
fn vocabulary(random: &mut Rng) -> Vec<String> {
    let syllable = |random: &mut Rng| {
        let [first, second] = ["bcdfghjklmnpqrstvwxz", "aeiou"].map(str::as_bytes);
        [first, second].map(|it| char::from(it[random.usize(..it.len())]))
    };
    let word = |_| (0..random.usize(2..5)).flat_map(|_| syllable(random)).collect();
    (0..WORDS).map(word).collect()
}

/// Adds words, frequent ones more often (Zipf).
fn add_words(text: &mut String, words: &[String], count: usize, random: &mut Rng) {
    for _ in 0..count {
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "60,000")]
        #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
        let at = (random.f64() * (words.len() as f64).ln()).exp() as usize;
        *text += &words[at.min(words.len()) - 1];
        text.push(' ');
    }
}

/// The phrase of a book, which stands nowhere else.
fn phrase(book: usize) -> String {
    format!("orchard {book} stands beside quince {}", book * 7 + 1)
}

/// Writes books, each with its phrase at 85 % of its text. Returns their bytes.
fn write_books(folder: &Path, count: usize) -> u64 {
    let mut random = Rng::with_seed(6);
    let words = vocabulary(&mut random);
    let (mut bytes, mut text) = (0, String::new());
    for book in 0..count {
        text.clear();
        add_words(&mut text, &words, BOOK_WORDS * 85 / 100, &mut random);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}.", phrase(book));
        add_words(&mut text, &words, BOOK_WORDS * 15 / 100, &mut random);
        write(folder, &format!("{}/book{book}.txt", book / 500), &text);
        bytes += text.len() as u64;
    }
    bytes
}

/// Writes bibliographies in BibTeX. Returns their bytes.
fn write_entries(folder: &Path, count: usize) -> u64 {
    let mut random = Rng::with_seed(7);
    let words = vocabulary(&mut random);
    let mut bytes = 0;
    for first in (0..count).step_by(FILE_ENTRIES) {
        let mut text = String::new();
        for entry in first..count.min(first + FILE_ENTRIES) {
            let _ = write!(text, "@article{{key{entry},\n  title = {{");
            add_words(&mut text, &words, 9, &mut random);
            text += "},\n  author = {";
            add_words(&mut text, &words, 2, &mut random);
            text += "and ";
            add_words(&mut text, &words, 2, &mut random);
            text += "},\n  journal = {";
            add_words(&mut text, &words, 3, &mut random);
            let (year, volume) = (1970 + entry % 55, entry % 90);
            let _ = write!(text, "}},\n  year = {{{year}}},\n  volume = {{{volume}}},\n");
            let _ = write!(text, "  doi = {{10.1234/apple.{entry}}},\n  abstract = {{");
            add_words(&mut text, &words, 60, &mut random);
            text += "}\n}\n\n";
        }
        write(folder, &format!("{first}.bib"), &text);
        bytes += text.len() as u64;
    }
    bytes
}

/// A tree that `harvest up` has gathered and indexed.
struct Gathered {
    running: Running,
    url: String,
    /// The most memory of its own and of its helpers, without pages of files, in bytes.
    own_bytes: u64,
    stored_bytes: u64,
}

impl Gathered {
    fn start(tree: &Path, data: &Path) -> Self {
        let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(data).arg(tree);
        let mut running = Running::start(command);
        let (id, (done, ended)) = (running.id(), mpsc::channel::<()>());
        let watching = thread::spawn(move || {
            let mut peak = 0;
            while ended.recv_timeout(SAMPLED_EVERY) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(own_bytes(id));
            }
            peak
        });
        let url = running.search_url();
        running.line_within(PATIENCE, "indexed ");
        drop(done);
        let own_bytes = watching.join().unwrap();
        Self { running, url, own_bytes, stored_bytes: bytes_in(data) }
    }

    /// Prints the figures of a tree with so many bytes of text, and checks the memory.
    fn check(&self, what: &str, text_bytes: u64) {
        let Self { own_bytes, stored_bytes, .. } = self;
        #[expect(clippy::cast_precision_loss, reason = "a figure")]
        let ratio = *stored_bytes as f64 / text_bytes as f64;
        println!(
            "{what}: {text_bytes} bytes of text, {stored_bytes} stored ({ratio:.2} x), {own_bytes} of memory"
        );
        assert!(*own_bytes <= OWN_BYTES_MAX, "{own_bytes}");
    }
}

/// Returns the memory of a process and its children that is not of files, in bytes.
fn own_bytes(id: u32) -> u64 {
    // Threads and children come and go.
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let own = status.lines().find_map(|it| it.strip_prefix("RssAnon:"));
    let own = own.map_or(0, |it| it.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024);
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let ids: Vec<u32> = children
        .flat_map(|it| it.split(' ').map_while(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    own + ids.into_iter().map(own_bytes).sum::<u64>()
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |it: fs::DirEntry| match it.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&it.path()),
        Ok(metadata) => metadata.len(),
        // A file of the index was merged into another one meanwhile.
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Returns some numbers below `count`, spread over all.
fn samples(count: usize) -> impl Iterator<Item = usize> {
    (0..SAMPLES.min(count)).map(move |it| it * count / SAMPLES.min(count))
}

#[test]
fn books_are_found_by_what_stands_near_their_end() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let count = number("HARVEST_BOOKS", 12);
    let bytes = write_books(tree.path(), count);
    let mut up = Gathered::start(tree.path(), data.path());
    assert_eq!(total(&up.url, "orchard quince"), count as u64);
    for book in samples(count) {
        let answer = search(&up.url, &format!("\"{}\"", phrase(book)));
        assert_eq!(answer["total"], 1, "{answer:#}");
        let url = answer["hits"][0]["url"].as_str().unwrap();
        assert!(url.ends_with(&format!("/book{book}.txt")), "{url}");
        let snippet = answer["hits"][0]["snippet"].as_str().unwrap();
        assert!(snippet.contains(&phrase(book)), "{snippet}");
    }
    up.check("books", bytes);
    assert!(up.running.stop("INT").success());
}

#[test]
fn entries_of_bibliographies_are_found_each() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let count = number("HARVEST_ENTRIES", 1_500);
    let bytes = write_entries(tree.path(), count);
    let mut up = Gathered::start(tree.path(), data.path());
    let files = count.div_ceil(FILE_ENTRIES);
    assert_eq!(total(&up.url, "type:BibTeX"), (count + files) as u64);
    for entry in samples(count) {
        let answer = search(&up.url, &format!("\"10.1234/apple.{entry}\""));
        let urls: Vec<&str> = answer["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["url"].as_str().unwrap())
            .collect();
        assert!(urls.iter().any(|it| it.ends_with(&format!("#key{entry}"))), "{urls:?}");
    }
    up.check("entries", bytes);
    assert!(up.running.stop("INT").success());
}

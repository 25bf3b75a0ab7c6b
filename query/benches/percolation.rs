//! Time and memory of percolation: 10,000 queries, 1,000 changed records of 2 KB. Time of costly queries for large ones.
//!
//! `cargo bench -p query --bench percolation`. Its numbers are in docs/measurements.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock and what the process takes")]

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use query::percolator::Percolator;
use query::{LEAVES_MAX, Matcher, PATTERNS_MAX, Query, parse};
use soif::Record;

const QUERIES: usize = 10_000;
const RECORDS: usize = 1_000;
const RECORD_BYTES: usize = 2_000;
/// Number of words of the language that records are written in.
const WORDS: usize = 30_000;

/// Returns made words, the frequent ones first and short.
fn vocabulary(random: &mut fastrand::Rng) -> Vec<String> {
    let syllables = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "du", "fi", "go", "ha"];
    let word = |number: usize, random: &mut fastrand::Rng| {
        let count = 1 + (number + 2).ilog2() / 4 + random.u32(0..2);
        (0..count).map(|_| syllables[random.usize(0..syllables.len())]).collect::<String>()
    };
    (0..WORDS)
        .map(|number| word(number, random) + ["", "s", "ing", "er"][random.usize(0..4)])
        .collect()
}

/// Returns a word as texts have them: the n-th in one of n places (Zipf).
fn common<'a>(words: &'a [String], random: &mut fastrand::Rng) -> &'a str {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place")]
    let at = (WORDS as f64).powf(random.f64()) as usize;
    &words[at.min(WORDS - 1)]
}

fn query(number: usize, words: &[String], random: &mut fastrand::Rng) -> String {
    // People ask for what is not everywhere.
    let mut word = || words[random.usize(200..WORDS)].as_str();
    match number % 100 {
        // One in a hundred has no word that a record needs.
        0 => match number / 100 % 3 {
            0 => format!("/{}.*/", word()),
            1 => format!("size:>{}", number * 1_000),
            _ => format!("NOT {}", word()),
        },
        1..=50 => format!("{} {}", word(), word()),
        51..=70 => format!("\"{} {}\"", word(), word()),
        71..=85 => format!("type:PDF AND {}", word()),
        86..=95 => format!("{} AND NOT {}", word(), word()),
        _ => format!("({} OR {}) AND title:{}", word(), word(), word()),
    }
}

fn record((number, bytes): (usize, usize), words: &[String], random: &mut fastrand::Rng) -> Record {
    let mut record = Record::new("FILE", format!("http://h.example/papers/{number}.pdf"));
    let mut text = String::new();
    while text.len() < bytes {
        let _ = write!(text, "{} ", common(words, random));
    }
    record.push("Gatherer-Id", "0123456789abcdef");
    record.push("Title", format!("{} {}", common(words, random), common(words, random)));
    record.push("Type", ["PDF", "HTML", "Text"][number % 3]);
    record.push("File-Size", (number * 10_000).to_string());
    record.push("Full-Text", text);
    record
}

/// Returns the memory of the process, in bytes.
fn own_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1024
}

fn main() {
    let mut random = fastrand::Rng::with_seed(7);
    let words = vocabulary(&mut random);
    let texts: Vec<String> = (0..QUERIES).map(|it| query(it, &words, &mut random)).collect();
    let queries: Vec<Query> = texts.iter().map(|it| parse(it).unwrap()).collect();
    let records: Vec<Record> =
        (0..RECORDS).map(|it| record((it, RECORD_BYTES), &words, &mut random)).collect();
    let (before, start) = (own_bytes(), Instant::now());
    let percolator = Percolator::new(&queries);
    let (made, bytes) = (start.elapsed(), own_bytes() - before);
    let start = Instant::now();
    let found: usize = records.iter().map(|it| percolator.matching(it).len()).sum();
    let took = start.elapsed();
    let against_all = percolator.held_against_all().len();
    println!(
        "{QUERIES} queries ({against_all} held against all records) made in {made:.2?}, {:.0} MB; \
         {RECORDS} records of {RECORD_BYTES} bytes in {took:.2?}: {found} matches",
        bytes as f64 / 1e6
    );
    // A part of them by each query itself.
    let start = Instant::now();
    let by_each: usize = records[..10]
        .iter()
        .map(|record| queries.iter().filter(|it| it.matches(record).is_some()).count())
        .sum();
    let each = start.elapsed() * u32::try_from(RECORDS / 10).unwrap();
    let again: usize = records[..10].iter().map(|it| percolator.matching(it).len()).sum();
    assert_eq!(by_each, again);
    println!("each query by itself would take {each:.0?}");
    costly(&words, &mut random);
}

/// Prints what queries take that have as much as a query can have, of what no record has.
fn costly(words: &[String], random: &mut fastrand::Rng) {
    let many = |one: &dyn Fn(usize) -> String, count: usize| {
        (0..count).map(one).collect::<Vec<_>>().join(" OR ")
    };
    let queries = [
        ("a word", "zzz".to_owned()),
        ("128 words", many(&|it| format!("zz{it}"), LEAVES_MAX)),
        ("128 words of one letter", many(&|it| format!("{}zz{it}", &words[0][..1]), LEAVES_MAX)),
        ("128 phrases", many(&|it| format!("\"{} {} zzz\"", words[it], words[it + 1]), LEAVES_MAX)),
        ("patterns", many(&|it| format!("/(.*{it}){{2}}zz/"), 2)),
        ("prefixes", many(&|it| format!("zz{it}*"), PATTERNS_MAX)),
        ("fuzzy words", many(&|it| format!("zzzzzz{it}~1"), PATTERNS_MAX)),
    ];
    for bytes in [2_000, 660_000, 16_000_000] {
        let record = record((0, bytes), words, random);
        for (what, text) in &queries {
            let matcher = Matcher::new(&parse(text).unwrap());
            let rounds = u32::try_from(16_000_000 / bytes).unwrap();
            let start = Instant::now();
            let matched = (0..rounds).filter(|_| matcher.matches(&record).is_some()).count();
            println!("{bytes} bytes, {what}: {:.2?}", start.elapsed() / rounds);
            assert_eq!(matched, 0, "{text}");
        }
    }
}

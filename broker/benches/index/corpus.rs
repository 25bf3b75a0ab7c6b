//! The corpus of the benchmarks: a gathered collection, or generated records.

use std::env;
use std::path::{Path, PathBuf};

use collection::{Batch, Change, Collection, Options, Stamp};
use soif::Record;
use soif::digest::Md5;

use crate::number;

/// Number of generated records, unless a collection is named.
const RECORDS: u64 = 30_000;
/// Usual length of a generated text, unless told, in bytes.
const TEXT_BYTES: u64 = 1_500;
/// Number of records in one commit.
const BATCH: u64 = 1_000;
/// Number of words of the generated language.
const WORDS: usize = 100_000;
/// Gatherer id of generated records.
pub(crate) const GATHERER: &str = "0123456789abcdef";

pub(crate) struct Corpus {
    pub(crate) collection: Collection,
    pub(crate) description: String,
}

impl Corpus {
    /// Opens the collection that `HARVEST_BENCH_COLLECTION` names, or generates one below `dir`.
    pub(crate) fn open(dir: &Path) -> Self {
        let named = env::var_os("HARVEST_BENCH_COLLECTION").map(PathBuf::from);
        let path = named.clone().unwrap_or_else(|| dir.join("collection"));
        let (collection, _) = Collection::open(&path, Options::default(), Stamp(1)).unwrap();
        if named.is_none() {
            fill(&collection, number("HARVEST_BENCH_RECORDS", RECORDS));
        }
        let from =
            named.map_or_else(|| "generated".to_owned(), |it| format!("of {}", it.display()));
        let description = format!("corpus: {} objects, {from}", collection.len());
        Self { collection, description }
    }
}

pub(crate) fn fill(collection: &Collection, records: u64) {
    let mut language = Language::new();
    for start in (0..records).step_by(usize::try_from(BATCH).unwrap()) {
        let range = start..(start + BATCH).min(records);
        let changes = range.map(|n| Change::Update(language.record(n))).collect();
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(n_ms(start))).unwrap();
    }
}

fn n_ms(n: u64) -> u64 {
    1_700_000_000_000 + n
}

/// Generator of texts with the word frequencies of natural language: the n-th most frequent of
/// [`WORDS`] words has a frequency proportional to 1/n.
struct Language {
    words: Vec<String>,
    /// Cumulative frequencies, up to 1.
    cumulated: Vec<f64>,
    state: u64,
    /// Usual length of a record's text, in bytes.
    text_bytes: u64,
    /// The language that the records name.
    named: String,
}

impl Language {
    fn new() -> Self {
        const SYLLABLES: [&str; 32] = [
            "ka", "ter", "in", "mo", "re", "sol", "an", "de", "pri", "tu", "ver", "lo", "ma",
            "con", "ni", "ex", "ra", "sti", "bel", "gon", "ple", "shi", "dor", "fa", "qua", "ly",
            "ne", "ic", "us", "tra", "om", "wel",
        ];
        let words: Vec<String> = (0..WORDS)
            .map(|n| {
                let mut left = n + 5;
                let mut word = String::new();
                while left != 0 {
                    word.push_str(SYLLABLES[left % 32]);
                    left /= 32;
                }
                word
            })
            .collect();
        let mut sum = 0.0;
        let cumulated: Vec<f64> = (1..=WORDS)
            .map(|n| {
                sum += 1.0 / n as f64;
                sum
            })
            .collect();
        let text_bytes = number("HARVEST_BENCH_TEXT", TEXT_BYTES);
        let cumulated = cumulated.into_iter().map(|it| it / sum).collect();
        let named = env::var("HARVEST_BENCH_LANGUAGE").unwrap_or_else(|_| "en".to_owned());
        Self { words, cumulated, state: 0x9e37_79b9_7f4a_7c15, text_bytes, named }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            let at = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
            let word = self.cumulated.partition_point(|it| *it < at).min(WORDS - 1);
            text.push_str(&self.words[word]);
            text.push(if self.random().is_multiple_of(12) { '\n' } else { ' ' });
        }
        text
    }

    /// Returns a record with the attributes that a gatherer adds.
    fn record(&mut self, n: u64) -> Record {
        let host = n % 97;
        let url = format!("http://www{host}.example.org/{:03}/page-{n}.html", n / 97 % 997);
        let mut record = Record::new("FILE", url);
        let kind = ["HTML", "HTML", "HTML", "PDF", "Text", "ManPage", "Markdown"];
        record.push("Type", kind[usize::try_from(n % 7).unwrap()]);
        let title = self.text(40);
        record.push("Title", title.trim());
        // Essence names the language of nearly every text; without it, it is guessed.
        record.push("Language", &*self.named);
        let keywords = self.text(60);
        record.push("Keywords", keywords.trim());
        let bytes = self.text_bytes * 2 / 3 + self.random() % (self.text_bytes * 2 / 3);
        let text = self.text(usize::try_from(bytes).unwrap());
        record.push("MD5", Md5::of(text.as_bytes()).to_string());
        record.push("File-Size", (text.len() * 3).to_string());
        record.push("Full-Text", text);
        record.push("Last-Modification-Time", (n_ms(n * 1_000) / 1_000 - 40_000_000).to_string());
        record.push("Update-Time", "1700000000");
        record.push("Time-to-Live", "2592000");
        record.push("Gatherer-Id", GATHERER);
        record.push("Gatherer-Name", "Bench");
        record
    }
}

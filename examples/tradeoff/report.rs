//! The report: all points as tables.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::PathBuf;

use collection::{Change, Collection};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use soif::write_record;

use crate::measure::Scores;

/// Maximum number of bytes of records that are packed together, as in a collection.
const MEMBER_BYTES_MAX: usize = 64 << 10;
/// Compression level of commits.
const LEVEL: u32 = 1;
/// Types with less than a thousandth of all bytes are reported together.
const SMALL: u64 = 1_000;
/// Targets: a reduction, and the share of full text's recall; without a share, the best recall at
/// that reduction is shown.
const TARGETS: [(f64, Option<f64>); 2] = [(50.0, Some(0.85)), (70.0, None)];

/// Sizes of one type of files.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sizes {
    files: u64,
    /// Bytes of the files.
    objects: u64,
    /// Bytes of their records.
    records: u64,
    /// The same, packed.
    packed: u64,
}

/// The results of one point.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) records: u64,
    /// CPU-seconds.
    pub(crate) gathering: f64,
    /// CPU-seconds.
    pub(crate) indexing: f64,
    pub(crate) index_bytes: u64,
    /// Bytes that the feed serves after the first pass.
    pub(crate) wire: u64,
    /// The same after a compaction.
    pub(crate) compacted: u64,
    pub(crate) scores: Scores,
    pub(crate) types: BTreeMap<String, Sizes>,
}

/// The results of all points.
pub(crate) struct Report {
    files: usize,
    bytes: u64,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(files: &[(PathBuf, u64)]) -> Self {
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        Self { files: files.len(), bytes, rows: Vec::new() }
    }

    /// Adds a point, and prints its recall and reduction at once.
    pub(crate) fn add(&mut self, row: Row) {
        let reduction = ratio(self.bytes, row.wire);
        eprintln!("          recall {:.3}, reduction {reduction:.1}", row.scores.any.recall);
        self.rows.push(row);
    }

    /// Prints the curve, the targets and the types. The first point is the reference.
    pub(crate) fn print(&mut self, questions: usize) {
        println!("{} files, {:.1} MB; {questions} questions", self.files, self.bytes as f64 / 1e6);
        let Some(full) = self.rows.first() else { return };
        let (any, either) = (full.scores.any.recall, full.scores.either.recall);
        let (index, cpu) = (full.index_bytes, full.gathering + full.indexing);
        let types: Vec<usize> = self.rows.iter().map(|it| it.types.len()).collect();
        assert!(types.iter().all(|it| *it == types[0]), "the same files have other types");
        self.rows.sort_by_key(|row| std::cmp::Reverse(row.wire));
        println!(
            "\n{:24} {:>7} {:>6} {:>6} {:>6}   {:>6} {:>6}   {:>9} {:>7}   {:>6} {:>6} {:>6}   {:>9} {:>6}   {:>9} {:>6}",
            "",
            "any of:",
            "share",
            "prec.",
            "MRR",
            "all:",
            "prec.",
            "index MB",
            "share",
            "gather",
            "index",
            "share",
            "wire MB",
            "red.",
            "compacted",
            "red.",
        );
        for row in &self.rows {
            let spent = row.gathering + row.indexing;
            println!(
                "{:24} {:7.3} {:5.1}% {:6.3} {:6.3}   {:6.3} {:6.3}   {:7.3} {:5.1}% {:6.3}   {:9.1} {:6.1}%   {:6.1} {:6.1} {:5.1}%   {:9.2} {:6.1}   {:9.2} {:6.1}",
                row.name,
                row.scores.any.recall,
                100.0 * row.scores.any.recall / any,
                row.scores.any.precision,
                row.scores.any.mrr,
                row.scores.all.recall,
                row.scores.all.precision,
                row.scores.either.recall,
                100.0 * row.scores.either.recall / either,
                row.scores.either.precision,
                row.index_bytes as f64 / 1e6,
                100.0 * ratio(row.index_bytes, index),
                row.gathering,
                row.indexing,
                100.0 * spent / cpu,
                row.wire as f64 / 1e6,
                ratio(self.bytes, row.wire),
                row.compacted as f64 / 1e6,
                ratio(self.bytes, row.compacted),
            );
        }
        println!();
        for (reduction, share) in TARGETS {
            self.print_target(reduction, share, (any, either));
        }
        for row in &self.rows {
            self.print_types(row);
        }
    }

    /// Prints the best point at a reduction.
    fn print_target(&self, reduction: f64, share: Option<f64>, (any, either): (f64, f64)) {
        let far_enough = self.rows.iter().filter(|it| reduction <= ratio(self.bytes, it.wire));
        let best = far_enough.max_by(|a, b| a.scores.any.recall.total_cmp(&b.scores.any.recall));
        let Some(best) = best else { return println!("{reduction} × and more: not reached") };
        let reached = best.scores.any.recall / any;
        let verdict = match share {
            Some(share) if reached < share => format!(" (target: {:.0} %): missed", 100.0 * share),
            Some(share) => format!(" (target: {:.0} %)", 100.0 * share),
            None => String::new(),
        };
        println!(
            "{reduction} × and more: {:?}, {:.1} × with {:.1} % of the recall of full text{verdict}, {:.1} % by either",
            best.name,
            ratio(self.bytes, best.wire),
            100.0 * reached,
            100.0 * best.scores.either.recall / either
        );
    }

    fn print_types(&self, row: &Row) {
        println!(
            "\n{} ({} records): of each type, bytes of files over bytes of records, of these over packed ones, and the product",
            row.name, row.records
        );
        let mut rest = Sizes::default();
        let mut types: Vec<(&str, Sizes)> = Vec::new();
        for (name, sizes) in &row.types {
            if sizes.objects < self.bytes / SMALL {
                rest.files += sizes.files;
                rest.objects += sizes.objects;
                rest.records += sizes.records;
                rest.packed += sizes.packed;
            } else {
                types.push((name, *sizes));
            }
        }
        types.sort_by_key(|(_, sizes)| std::cmp::Reverse(sizes.objects));
        types.push(("all others", rest));
        for (name, it) in types {
            println!(
                "  {name:20} {:7} files {:9.2} MB {:8.1} × {:5.1} = {:8.1}",
                it.files,
                it.objects as f64 / 1e6,
                ratio(it.objects, it.records),
                ratio(it.records, it.packed),
                ratio(it.objects, it.packed),
            );
        }
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// Returns the sizes of each type of files, packed as in commits. Records of members and entries
/// follow the record of their file, and count with it.
pub(crate) fn types(collection: &Collection, files: &[(PathBuf, u64)]) -> BTreeMap<String, Sizes> {
    let address = |path: &PathBuf| url::Url::from_file_path(path).unwrap().to_string();
    let bytes_of: HashMap<String, u64> = files.iter().map(|it| (address(&it.0), it.1)).collect();
    let mut sizes: BTreeMap<String, Sizes> = BTreeMap::new();
    let mut members: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut name = String::new();
    for scanned in collection.scan(0).unwrap() {
        let Change::Update(record) = scanned.unwrap().change else { continue };
        let bytes = bytes_of.get(&record.url);
        if bytes.is_some() {
            name = record.text("Type").unwrap_or_default().into_owned();
        }
        let mut plain = Vec::new();
        write_record(&mut plain, &record);
        let sum = sizes.entry(name.clone()).or_default();
        sum.files += u64::from(bytes.is_some());
        sum.objects += bytes.copied().unwrap_or_default();
        sum.records += plain.len() as u64;
        let member = members.entry(name.clone()).or_default();
        if MEMBER_BYTES_MAX < member.len() + plain.len() {
            sum.packed += packed(member);
            member.clear();
        }
        member.extend(plain);
    }
    for (name, member) in members {
        sizes.entry(name).or_default().packed += packed(&member);
    }
    sizes
}

fn packed(plain: &[u8]) -> u64 {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    packer.write_all(plain).unwrap();
    packer.finish().unwrap().len() as u64
}

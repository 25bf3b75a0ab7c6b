//! A measurement of what is read of papers in PDF, against truths from other sources.
//!
//! * `papers titles SITE-LIBRARY`: title and first author of the vignettes in the packages that
//!   `packages.txt` names, unpacked so that `SITE-LIBRARY/PKG/doc` has the PDF beside its source.
//!   Prints the share of titles that are exactly right and that are right after normalization
//!   (letters and digits only, lower case, without accents; with or without the subtitle and the
//!   version), the share of first authors after normalization, and for comparison the shares of the embedded title alone. Prints these for two
//!   halves, split by a hash of the package's name: the rules were made on `tuned`, `held out` was
//!   not looked at. `-v` also prints the errors in `tuned`.
//! * `papers latex ROOT`: the same for all LaTeX documentation below `ROOT` that has its source (`.tex` or
//!   `.ltx`, perhaps gzipped) beside it, as TeX Live's packages have; the halves are split by a hash of the
//!   LaTeX package.
//! * `papers classes ROOT…`: `Document-Class` of the documents that `labels.txt` names, as a table
//!   of label by answer. Documents are searched under each ROOT (Debian packages unpacked).

#![allow(clippy::print_stdout, reason = "it is there to print")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]
#![allow(clippy::indexing_slicing, reason = "a measurement that fails may panic")]

mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use essence::extract::{EssenceSettings, extract};
use formats::object::Object;
use hayro_syntax::Pdf;
use soif::Record;

/// The allocator of `harvest`, since it determines the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PACKAGES: &str = include_str!("packages.txt");
const LABELS: &str = include_str!("labels.txt");
const SOURCES: [&str; 7] = ["Rnw", "Snw", "Rtex", "ltx", "stex", "tex", "Rmd"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["titles", library] => titles(&vignettes(Path::new(library)), false),
        ["titles", "-v", library] => titles(&vignettes(Path::new(library)), true),
        ["latex", root] => titles(&documentation(Path::new(root)), false),
        ["latex", "-v", root] => titles(&documentation(Path::new(root)), true),
        ["classes", roots @ ..] => classes(roots),
        _ => panic!("see the head of essence/examples/papers/main.rs"),
    }
}

#[derive(Default)]
struct Sum {
    documents: u32,
    titles: u32,
    exact: u32,
    normalized: u32,
    embedded_exact: u32,
    embedded: u32,
    authors: u32,
    first: u32,
}

/// A document with its source, and the package that decides to which half it belongs.
struct Pair {
    package: String,
    pdf: PathBuf,
    source: PathBuf,
}

/// Returns the vignettes of the packages in `packages.txt`.
fn vignettes(library: &Path) -> Vec<Pair> {
    let packages = PACKAGES.lines().filter(|it| !it.starts_with('#'));
    let of = |package: &str| {
        let found = pairs(&library.join(package).join("doc"), &SOURCES);
        let package = package.to_owned();
        found.into_iter().map(move |(pdf, source)| Pair { package: package.clone(), pdf, source })
    };
    packages.flat_map(of).collect()
}

/// Returns the documents below a folder that have their LaTeX source beside them. The package is the second
/// folder below `texlive-doc`: `texlive-doc/latex/PACKAGE/…`.
fn documentation(root: &Path) -> Vec<Pair> {
    let mut found = Vec::new();
    for (pdf, source) in pairs(root, &["ltx", "tex", "ltx.gz", "tex.gz"]) {
        let mut names = pdf.iter().map(|it| it.to_string_lossy());
        names.find(|it| it == "texlive-doc");
        let package = names.nth(1).unwrap_or_default().into_owned();
        if truth(&source) != truth::Truth::default() {
            found.push(Pair { package, pdf, source });
        }
    }
    let inside = fs::read_dir(root).into_iter().flatten().map(|it| it.unwrap());
    let folders = inside.filter(|it| it.file_type().unwrap().is_dir()).map(|it| it.path());
    let folders: BTreeSet<PathBuf> = folders.collect();
    found.extend(folders.iter().flat_map(|it| documentation(it)));
    found
}

/// Returns a source's truth.
fn truth(source: &Path) -> truth::Truth {
    let mut bytes = fs::read(source).unwrap();
    let mut extension = source.extension().unwrap().to_string_lossy();
    if extension == "gz" {
        let packed = std::mem::take(&mut bytes);
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        extension = "tex".into();
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|it| {
        // What is not UTF-8 is Latin-1 mostly.
        it.into_bytes().into_iter().map(char::from).collect()
    });
    truth::read(&text, &extension)
}

fn titles(pairs: &[Pair], verbose: bool) {
    let mut sums = [Sum::default(), Sum::default()];
    for Pair { package, pdf, source } in pairs {
        let truth = truth(source);
        let held_out = hash(package) % 2 == 1;
        let sum = &mut sums[usize::from(held_out)];
        let bytes = fs::read(pdf).unwrap();
        let record = record(pdf, bytes.clone());
        let value = |name: &str| record.text(name).unwrap_or_default().into_owned();
        let author = value("Author").lines().next().unwrap_or_default().to_owned();
        sum.documents += 1;
        if let Some(wanted) = &truth.title {
            let (title, embedded) = (value("Title"), embedded_title(bytes));
            sum.titles += 1;
            sum.exact += u32::from(&title == wanted);
            sum.embedded_exact += u32::from(&embedded == wanted);
            sum.embedded += u32::from(truth.has_title(&embedded));
            sum.normalized += u32::from(truth.has_title(&title));
            if verbose && !held_out && !truth.has_title(&title) {
                println!("{}\n  title {title}\n  truth {wanted}", pdf.display());
            }
        }
        if let Some(wanted) = truth.author {
            sum.authors += 1;
            sum.first += u32::from(same(&author, &wanted));
            if verbose && !held_out && !same(&author, &wanted) {
                println!("{}\n  author {author}\n  truth  {wanted}", pdf.display());
            }
        }
    }
    for (name, sum) in ["tuned", "held out"].iter().zip(&sums) {
        let share = |count: u32, all: u32| 100.0 * f64::from(count) / f64::from(all.max(1));
        println!(
            "{name}: {} documents, {} titles: exact {:.1} %, normalized {:.1} %; embedded alone \
             exact {:.1} %, normalized {:.1} %; {} first authors: {:.1} %",
            sum.documents,
            sum.titles,
            share(sum.exact, sum.titles),
            share(sum.normalized, sum.titles),
            share(sum.embedded_exact, sum.titles),
            share(sum.embedded, sum.titles),
            sum.authors,
            share(sum.first, sum.authors),
        );
    }
}

fn same(one: &str, other: &str) -> bool {
    truth::normalized(one) == truth::normalized(other)
}

/// Returns the PDFs of a folder with the source beside each, in one of these formats.
fn pairs(folder: &Path, sources: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|it| it.unwrap().path());
    let files: BTreeSet<PathBuf> = files.collect();
    let lower = |path: &Path| path.to_string_lossy().to_lowercase();
    let pdfs = files.iter().filter(|it| lower(it).ends_with(".pdf"));
    let pair = |pdf: &PathBuf| {
        let source = sources.iter().find_map(|extension| {
            let wanted = lower(&pdf.with_extension(extension));
            files.iter().find(|it| lower(it) == wanted)
        });
        Some((pdf.clone(), source?.clone()))
    };
    pdfs.filter_map(pair).collect()
}

fn record(path: &Path, bytes: Vec<u8>) -> Record {
    let object = Object::whole(format!("file://{}", path.display()), bytes);
    extract(object, &EssenceSettings::default(), &|| false).remove(0).record
}

/// Returns the title in the document information unchanged, for comparison.
fn embedded_title(bytes: Vec<u8>) -> String {
    let Ok(pdf) = Pdf::new(bytes) else { return String::new() };
    let title = pdf.metadata().title.clone().unwrap_or_default();
    match title.strip_prefix(&[0xfe, 0xff]) {
        Some(wide) => {
            let units = wide.chunks(2).map(|it| u16::from_be_bytes([it[0], *it.last().unwrap()]));
            char::decode_utf16(units).map(|it| it.unwrap_or('\u{fffd}')).collect()
        }
        None => title.iter().map(|it| char::from(*it)).collect(),
    }
}

/// Returns the FNV-1a hash.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn classes(roots: &[&str]) {
    let mut table: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let (mut all, mut right) = (0_u32, 0_u32);
    for line in LABELS.lines().filter(|it| !it.starts_with('#')) {
        let [_, path, label, _] = *line.split('\t').collect::<Vec<_>>() else { panic!("{line}") };
        let found = roots.iter().map(|root| Path::new(root).join(path)).find(|it| it.exists());
        let Some(found) = found else {
            println!("missing {path}");
            continue;
        };
        let answer = record(&found, fs::read(&found).unwrap());
        let answer = answer.text("Document-Class").unwrap_or_default().into_owned();
        all += 1;
        right += u32::from(answer == label);
        *table.entry((label, answer)).or_default() += 1;
    }
    for ((label, answer), count) in table {
        println!("label {label} answer {answer} documents {count}");
    }
    println!("{right} of {all} right: {:.1} %", 100.0 * f64::from(right) / f64::from(all.max(1)));
}

//! Cost of `Language` and `Text-Print`: summarizes the files below a folder with and without them, in one thread.
//!
//! `cargo run --release -p essence --example attributes -- /usr/share/doc`
//!
//! The text of each file is taken for plain text, which is the cheapest type: on all others the share is less.

#![allow(clippy::unwrap_used, reason = "a measurement may panic")]
#![allow(clippy::print_stdout, reason = "it is there to print")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::{Duration, Instant};

use essence::summarize::{Settings, summarize};
use formats::object::Object;
use formats::text::{is_text, similarity};
use formats::{Detail, Type};

/// Maximum number of files.
const FILES_MAX: usize = 3_000;
/// Number of rounds, of which the best counts.
const ROUNDS: usize = 5;

fn main() {
    let mut objects = Vec::new();
    let mut folders: Vec<_> = std::env::args_os().skip(1).map(std::path::PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && objects.len() < FILES_MAX {
                let bytes = std::fs::read(entry.path()).unwrap();
                if is_text(bytes.get(..4_096).unwrap_or(&bytes)) {
                    objects
                        .push(Object::whole(format!("file://{}", entry.path().display()), bytes));
                }
            }
        }
    }
    let bytes: usize = objects.iter().map(|it| it.bytes.len()).sum();
    println!("{} files, {:.1} MB", objects.len(), bytes as f64 / 1e6);
    for (name, language, text_print) in [
        ("neither", false, false),
        ("language", true, false),
        ("print", false, true),
        ("both", true, true),
    ] {
        let detail = Detail { language, text_print, ..Detail::RICH };
        let formats = formats::Settings { detail, ..formats::Settings::default() };
        let settings = Settings { formats, ..Settings::default() };
        let mut best = Duration::MAX;
        let mut prints = Vec::new();
        let mut languages = std::collections::BTreeMap::<String, usize>::new();
        for _ in 0..ROUNDS {
            (prints, languages) = Default::default();
            let began = Instant::now();
            for object in &objects {
                let record = summarize(object, Type::Text, &settings, &|| false).record;
                let text = |name| record.text(name).map(std::borrow::Cow::into_owned);
                prints.extend(text("Text-Print"));
                *languages.entry(text("Language").unwrap_or_default()).or_default() += 1;
            }
            best = best.min(began.elapsed());
        }
        let secs = best.as_secs_f64();
        let (files, megabytes) = (objects.len() as f64 / secs, bytes as f64 / 1e6 / secs);
        let alike = prints.windows(2).filter_map(|it| similarity(it.first()?, it.last()?));
        let alike = alike.filter(|it| 0.8 <= *it).count();
        println!(
            "{name}: {files:.0} files/s, {megabytes:.0} MB/s; {alike} of {} like their neighbor; {languages:?}",
            prints.len()
        );
    }
}

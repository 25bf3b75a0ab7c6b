//! TR §6, Nebula: "for a database of 20,000 bibliographic citations, the index adds about 9% overhead. A query on this
//! database with two attribute expressions and one Boolean operator is resolved in less than 100 milliseconds on a Sparc
//! IPC."
//!
//! `HARVEST_CITATIONS` is their number: 2,000 unless it says more, as in `./test long`.
//!
//! # Differences from the paper
//!
//! * Nebula's index is of attributes alone. Ours has the positions of all words, what is shown of a hit, facets, and the
//!   words of addresses; and one copy of a value is not kept for several objects. So its overhead is printed, not held
//!   against 9 %.
//! * Our time is that of the engine, as the search API tells it (`took_us`); the least of several.

use std::fs;
use std::path::Path;
use std::time::Duration;

use broker::source::Source;
use soif::Record;

use crate::brokers::{Broker, Origin};
use crate::prose::Prose;

const CITATIONS: usize = 2_000;
/// What the paper's query takes at most, on a machine of its time.
const PAPER: Duration = Duration::from_millis(100);

fn citations(count: usize) -> Vec<Record> {
    let prose = Prose::new();
    let citation = |n: usize| {
        let mut random = fastrand::Rng::with_seed(n as u64);
        let mut record = Record::new("FILE", format!("http://bib.example/refs.bib#key{n}"));
        record.push("Gatherer-Id", "00000000000000a1");
        record.push("Type", "BibTeX");
        record.push("Author", prose.say(&mut random, 2));
        record.push("Title", prose.say(&mut random, 8));
        record.push("Journal", prose.say(&mut random, 3));
        record.push("Year", (1970 + n % 25).to_string());
        record.push("Abstract", prose.say(&mut random, 60));
        record.push("Update-Time", (1_700_000_000 + n).to_string());
        record.push("Time-to-Live", "315360000");
        record
    };
    (0..count).map(citation).collect()
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap());
    let bytes = |it: fs::DirEntry| match it.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&it.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_attribute_expressions_and_an_operator_are_quick() {
    let count = std::env::var("HARVEST_CITATIONS").map_or(CITATIONS, |it| it.parse().unwrap());
    let records = citations(count);
    let text: usize =
        records.iter().flat_map(|it| it.attributes().iter().map(|it| it.value.len())).sum();
    let wanted = &records[count / 2];
    let word = |name: &str| wanted.text(name).unwrap().split(' ').next().unwrap().to_owned();
    let asked = format!("author:{} AND title:{}", word("Author"), word("Title"));
    let (url, origin) = (wanted.url.clone(), Origin::start(records).await);
    let folder = tempfile::tempdir().unwrap();
    let source = Source::gatherer("citations", origin.url.clone());
    let broker = Broker::start(folder.path(), vec![source]).await;
    broker.has(count as u64).await;
    let mut least = Duration::MAX;
    let mut hits = 0;
    for _ in 0..9 {
        let answer = broker.search(&asked).await;
        let urls = answer["hits"].as_array().unwrap().iter().map(|it| it["url"].as_str().unwrap());
        assert!(urls.collect::<Vec<_>>().contains(&url.as_str()), "{asked}: {answer}");
        least = least.min(Duration::from_micros(answer["took_us"].as_u64().unwrap()));
        hits = answer["total"].as_u64().unwrap();
    }
    let index = bytes_in(&folder.path().join("index"));
    println!(
        "{count} citations of {text} bytes: {asked} has {hits} hits in {least:.2?} (TR: 100 ms); the index has {index} \
         bytes, {:.0} % of them (TR: 9 %)",
        index as f64 / text as f64 * 100.0
    );
    assert!(least <= PAPER, "{least:?}");
}

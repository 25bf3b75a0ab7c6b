//! Benchmark of one page in oai_dc: reading, conversion to SOIF, writing; beside tokenizing alone.
//!
//! `cargo bench -p oai`; `HARVEST_OAI=FILE` reads that ListRecords response, not a generated one.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]

#[path = "../../benches/support/timing.rs"]
mod timing;

use oai::crosswalk::{Dissemination, SourceIdentity, to_soif};
use oai::response::write::Writer;
use oai::response::{Body, Header, Record, read};
use oai::{Datestamp, Granularity, Listed, Verb};
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use timing::{Subject, least, print_rates};

/// Number of records of the generated page.
const RECORDS: u32 = 200;
const ROUNDS: u32 = 300;

fn main() {
    let page = match std::env::var_os("HARVEST_OAI") {
        Some(file) => std::fs::read(file).unwrap(),
        None => generated_page(),
    };
    let records = records(&page);
    let summaries = summaries(&records);
    println!(
        "{:.1} MB, {} records of {} bytes on average",
        page.len() as f64 / 1e6,
        records.len(),
        page.len() / records.len().max(1),
    );
    // One broken record makes the reader take the slow way for the whole page.
    let mut broken = page.clone();
    let at = memchr::memmem::find(&broken, b"<dc:title>").unwrap() + 12;
    broken[at] = 1;
    let mut subjects = [
        Subject::new("yardstick: every event of quick-xml", || events(&page)),
        Subject::new("checked to be UTF-8", || std::str::from_utf8(&page).unwrap().len() as u64),
        Subject::new("read", || self::records(&page).len() as u64),
        Subject::new("read, one record broken", || self::records(&broken).len() as u64),
        Subject::new("read, converted to SOIF and written", || {
            let mut out = Vec::new();
            for record in self::summaries(&self::records(&page)) {
                soif::write_record(&mut out, &record);
            }
            out.len() as u64
        }),
        Subject::new("written", || write(&records)),
        Subject::new("converted from SOIF and written", || {
            let made = summaries.iter().zip(&records).map(|(summary, record)| Record {
                header: record.header.clone(),
                metadata: Some(Dissemination::OaiDc.write(summary, "http://h/oai")),
                about: Vec::new(),
            });
            write(&made.collect::<Vec<_>>())
        }),
    ];
    let times = least(&mut subjects, ROUNDS);
    print_rates(&subjects, &times, page.len());
    println!();
    for (subject, time) in subjects.iter().zip(&times) {
        let rate = records.len() as f64 / time.as_secs_f64();
        println!("{:<44} {rate:>9.0} records/s", subject.name);
    }
}

fn events(page: &[u8]) -> u64 {
    let mut reader = Reader::from_str(std::str::from_utf8(page).unwrap());
    let mut count = 0;
    while !matches!(reader.read_event().unwrap(), Event::Eof) {
        count += 1;
    }
    count
}

fn records(page: &[u8]) -> Vec<Record> {
    match read(page, Verb::ListRecords).unwrap().response.body {
        Body::Records(list) => list.items,
        other => panic!("{other:?}"),
    }
}

fn summaries(records: &[Record]) -> Vec<soif::Record> {
    let source = SourceIdentity::new("http://a.example/oai");
    records.iter().map(|it| to_soif(it, "oai_dc", &source, false).0).collect()
}

fn write(records: &[Record]) -> u64 {
    let date = Datestamp::at(0, Granularity::Second);
    let mut list = Writer::new(date, "http://a.example/oai", None).list(Listed::Records);
    records.iter().for_each(|it| list.push(it));
    list.finish(None).len() as u64
}

/// Returns a page of generated articles.
fn generated_page() -> Vec<u8> {
    let words = "the late frost of the orchard and its yield under R&D measured in <i>vitro</i> é ";
    let article = |n: u32| {
        let mut record = soif::Record::new("FILE", format!("http://journal.example/articles/{n}"));
        record.push("Title", format!("{words}{n}"));
        record.push("Author", format!("Author, A{n}\nWriter, B{n}"));
        record.push("Abstract", words.repeat(8));
        record.push("Keywords", "harvest\norchard\nyield\nfrost\nsoil");
        record.push("Type", "Article");
        record.push("Last-Modification-Time", (1_700_000_000 + n).to_string());
        let header = Header {
            identifier: format!("oai:journal.example:{n}"),
            datestamp: Some(Datestamp::at(1_700_000_000 + i64::from(n), Granularity::Second)),
            sets: vec!["type:Article".to_owned()],
            deleted: false,
        };
        let metadata = Some(Dissemination::OaiDc.write(&record, "http://h/oai"));
        Record { header, metadata, about: Vec::new() }
    };
    let date = Datestamp::at(0, Granularity::Second);
    let mut list = Writer::new(date, "http://a.example/oai", None).list(Listed::Records);
    (0..RECORDS).for_each(|n| list.push(&article(n)));
    list.finish(None).into_bytes()
}

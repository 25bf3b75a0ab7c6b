//! Benchmark of reading and writing typical summaries, compared with scanning and copying memory.
//!
//! `cargo bench -p soif`; `HARVEST_SOIF=FILE` reads that stream instead of a generated one.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]

#[path = "../../benches/support/timing.rs"]
mod timing;

use soif::{Event, Limits, Mode, Reader, Record, Section};
use timing::{Subject, least, print_rates};

/// Size of the generated stream, in bytes: more than the caches hold.
const STREAM_BYTES: usize = 256 << 20;
const ROUNDS: u32 = 9;
/// Size of a piece from a socket or a decompressor, in bytes.
const PIECE_BYTES: usize = 64 << 10;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

fn main() {
    let stream = match std::env::var_os("HARVEST_SOIF") {
        Some(file) => std::fs::read(file).unwrap(),
        None => generate(),
    };
    let records = soif::parse(&stream).unwrap();
    println!(
        "{:.0} MB, {} records of {} bytes on average, {:.1} attributes each",
        stream.len() as f64 / 1e6,
        records.len(),
        stream.len() / records.len().max(1),
        records.iter().map(|it| it.attributes().len()).sum::<usize>() as f64 / records.len() as f64
    );
    reading(&stream);
    writing(&records, stream.len());
}

fn reading(stream: &[u8]) {
    println!("\nreading, against a scan for line feeds");
    let mut subjects = [
        Subject::new("yardstick: memchr for every line feed", || {
            memchr::memchr_iter(b'\n', stream).count() as u64
        }),
        Subject::new("every event, zero-copy", || over(stream, |_| 0)),
        Subject::new("every name and value looked at, zero-copy", || {
            over(stream, |event| match event {
                Event::Record(record) => {
                    record.attributes().map(|(name, value)| name.len() + value.len()).sum()
                }
                Event::Open(_) | Event::Close(_) => 0,
            })
        }),
        Subject::new("fed in pieces of 64 KiB", || fed(stream)),
        Subject::new("records that own their bytes", || soif::parse(stream).unwrap().len() as u64),
    ];
    let times = least(&mut subjects, ROUNDS);
    print_rates(&subjects, &times, stream.len());
}

fn writing(records: &[Record], bytes: usize) {
    println!("\nwriting, against copying as many bytes");
    let source = vec![b'x'; bytes];
    let (mut copied, mut written) = (Vec::with_capacity(bytes), Vec::with_capacity(bytes));
    let mut subjects = [
        Subject::new("yardstick: memory copied", || {
            copied.clear();
            for piece in source.chunks(PIECE_BYTES) {
                copied.extend_from_slice(piece);
            }
            copied.len() as u64
        }),
        Subject::new("records written", || {
            written.clear();
            for record in records {
                soif::write_record(&mut written, record);
            }
            written.len() as u64
        }),
    ];
    let times = least(&mut subjects, ROUNDS);
    print_rates(&subjects, &times, bytes);
}

fn over(stream: &[u8], look: impl Fn(&Event<'_>) -> usize) -> u64 {
    let mut sum = 0;
    Reader::over(stream, Mode::Strict, Limits::default(), |event| sum += 1 + look(&event)).unwrap();
    sum as u64
}

fn fed(stream: &[u8]) -> u64 {
    let mut reader = Reader::new(Mode::Strict, Limits::default());
    let mut count = 0;
    for piece in stream.chunks(PIECE_BYTES) {
        reader.feed(piece);
        while reader.next_event().unwrap().is_some() {
            count += 1;
        }
    }
    reader.finish().unwrap();
    count
}

/// Returns summaries with the attributes of TR Figure 3 and texts of 0 to 4 KB, about 3 KB each.
fn generate() -> Vec<u8> {
    let mut out = Vec::with_capacity(STREAM_BYTES + (64 << 10));
    soif::open_section(&mut out, Section::Update);
    let mut seed = 1_u64;
    let mut below = move |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % most
    };
    let mut n = 0_usize;
    while out.len() < STREAM_BYTES {
        n += 1;
        let mut text = |bytes: usize| {
            let mut text = String::new();
            while text.len() < bytes {
                let letters = 2 + below(9);
                text.extend((0..letters).map(|_| char::from(LETTERS[below(26)])));
                text.push(if below(12) == 0 { '\n' } else { ' ' });
            }
            text
        };
        let (title, description, keywords) = (text(40), text(160), text(300));
        let body = text(n * 7 % 4000);
        let url = format!("http://www.example.org/documents/{}/{n}.html", n % 97);
        let mut record = Record::new("FILE", url);
        for (name, value) in [
            ("Time-to-Live", "2419200"),
            ("Last-Modification-Time", "1754000000"),
            ("Update-Time", "1764000000"),
            ("Refresh-Rate", "604800"),
            ("Gatherer-Name", "Documents of the example institution"),
            ("Gatherer-Host", "gatherer.example.org"),
            ("Gatherer-Version", "0.1.0"),
            ("Gatherer-Id", "0123456789abcdef"),
            ("Type", "HTML"),
            ("File-Size", "12345"),
            ("MD5", "0123456789abcdef0123456789abcdef"),
            ("Title", title.as_str()),
            ("Description", description.as_str()),
            ("Keywords", keywords.as_str()),
            ("Partial-Text", body.as_str()),
        ] {
            record.push(name, value);
        }
        soif::write_record(&mut out, &record);
    }
    soif::close_section(&mut out);
    out
}

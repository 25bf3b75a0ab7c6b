//! Fuzzing of the SOIF reader: any bytes, in pieces and whole, give the same events and problems,
//! within the limits. Strictly read records survive writing, as SOIF and as JSON, and reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use soif::json::{from_json, to_json};
use soif::{Event, Limits, Mode, ParseError, Reader, Record, parse, write_record};

const LIMITS: Limits = Limits {
    name_bytes_max: 32,
    url_bytes_max: 64,
    value_bytes_max: 4096,
    attributes_max: 16,
    record_bytes_max: 8192,
};

fn drain(reader: &mut Reader, seen: &mut Vec<String>) -> Result<(), ParseError> {
    while let Some(event) = reader.next_event()? {
        seen.push(match event {
            Event::Record(record) => {
                assert!(record.source().len() <= LIMITS.record_bytes_max);
                assert!(record.attributes().count() <= LIMITS.attributes_max);
                for (name, value) in record.attributes() {
                    assert!(name.len() <= LIMITS.name_bytes_max);
                    assert!(value.len() <= LIMITS.value_bytes_max);
                }
                format!("{:?}", record.to_record())
            }
            other => format!("{other:?}"),
        });
    }
    Ok(())
}

fn read(mode: Mode, stream: &[u8], piece: usize) -> (Vec<String>, Vec<ParseError>) {
    let mut reader = Reader::new(mode, LIMITS);
    let mut seen = Vec::new();
    let mut run = || {
        for bytes in stream.chunks(piece) {
            reader.feed(bytes);
            drain(&mut reader, &mut seen)?;
        }
        reader.finish()?;
        drain(&mut reader, &mut seen)
    };
    let error = run().err();
    let mut problems = reader.problems();
    problems.extend(error);
    (seen, problems)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, stream) = input;
    for mode in [Mode::Strict, Mode::Lenient] {
        let whole = read(mode, stream, stream.len().max(1));
        let pieces = read(mode, stream, usize::from(piece).max(1));
        assert_eq!(whole, pieces);
    }
    if let Ok(records) = parse(stream) {
        let mut written = Vec::new();
        records.iter().for_each(|it: &Record| write_record(&mut written, it));
        assert_eq!(parse(&written).as_ref(), Ok(&records));
        for record in &records {
            let text = to_json(record).to_string();
            let value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(from_json(&value).as_ref(), Ok(record));
        }
    }
});

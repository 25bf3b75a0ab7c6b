//! Fuzzing of crosswalks: any text as metadata in every format gives a record, which is read back
//! unchanged from SOIF.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oai::crosswalk::{SourceIdentity, to_soif};
use oai::response::{Header, Record, Xml};

const PREFIXES: [&str; 9] =
    ["oai_dc", "oai_qdc", "marc21", "mods", "oai_datacite", "mets", "rfc1807", "soif", "other"];

fuzz_target!(|input: (u8, &str, &str)| {
    let (prefix, identifier, metadata) = input;
    let prefix = PREFIXES[usize::from(prefix) % PREFIXES.len()];
    let source = SourceIdentity::new("http://a.example/oai");
    let header = Header { identifier: identifier.to_owned(), ..Header::default() };
    let metadata = Some(Xml(metadata.to_owned()));
    let record = Record { header, metadata, about: Vec::new() };
    for keep_original in [false, true] {
        let (made, _problems) = to_soif(&record, prefix, &source, keep_original);
        let mut written = Vec::new();
        soif::write_record(&mut written, &made);
        assert_eq!(soif::parse(&written).as_deref(), Ok(&[made][..]));
    }
});

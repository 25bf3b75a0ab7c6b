//! Fuzzing of other foreign or stored data: any bytes as checkpoints of a harvest, descriptions,
//! identifiers and dates. There is no panic, and parsed values are written and read back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oai::Datestamp;
use oai::harvest::{Checkpoint, retry_after_secs};
use oai::identifier::Identifier;
use oai::repository::oap::Totals;
use oai::repository::set::SetSpec;
use oai::response::Xml;
use oai::syndication::Syndication;

fuzz_target!(|bytes: &[u8]| {
    if let Some(checkpoint) = Checkpoint::from_bytes(bytes) {
        assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Some(checkpoint));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let xml = Xml(text.to_owned());
    if let Some(schedule) = Syndication::read(&xml) {
        assert_eq!(Syndication::read(&schedule.to_xml()), Some(schedule));
    }
    if let Some(totals) = Totals::read(&xml) {
        assert_eq!(Totals::read(&totals.to_xml()), Some(totals));
    }
    if let Some(set) = SetSpec::read(text) {
        assert_eq!(SetSpec::read(&set.to_string()), Some(set));
    }
    if let Some(stamp) = Datestamp::lenient(text) {
        assert_eq!(Datestamp::parse(&stamp.to_string()), Some(stamp));
    }
    let _ = Identifier::read(text);
    let _ = retry_after_secs(text, None, 0);
});

//! Where a record of ours was harvested itself, if it was.
//!
//! Source: the OAI implementation guidelines on provenance: a repository of what others have says of each
//! record which repository has it, and under which name.

use collection::{GATHERER_ID, GATHERER_ROOT, Stamp};
use oai::crosswalk::{METADATA_NAMESPACE, SourceIdentity};
use oai::repository::description::Origin;
use oai::response::Xml;
use oai::{Datestamp, Granularity};
use soif::Record;

use super::answer::datestamp;

/// What to say about a record; `None` of one that was not harvested, or that is as its origin has it.
pub(super) fn of(record: &Record, stamp: Stamp) -> Option<Xml> {
    let namespace = record.text(METADATA_NAMESPACE)?;
    let base_url = record.text(GATHERER_ROOT)?;
    let gatherer = record.text(GATHERER_ID)?;
    if gatherer.trim() != SourceIdentity::new(base_url.trim()).gatherer_id {
        return None;
    }
    let secs = i64::try_from(record.number("Update-Time")?).ok()?;
    let origin = Origin {
        base_url: base_url.trim().to_owned(),
        identifier: record.url.clone(),
        datestamp: Datestamp::at(secs, Granularity::Second).to_string(),
        namespace: namespace.trim().to_owned(),
        harvested: datestamp(stamp).to_string(),
        // It has been through a crosswalk.
        altered: true,
    };
    Some(origin.written())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harvested() -> Record {
        let source = SourceIdentity::new("http://b.example/oai");
        let mut record = Record::new("FILE", "oai:b.example:1");
        record.push("Update-Time", "1769860800");
        record.push(METADATA_NAMESPACE, "http://www.openarchives.org/OAI/2.0/oai_dc/");
        record.push(GATHERER_ID, source.gatherer_id);
        record.push(GATHERER_ROOT, source.base_url);
        record
    }

    #[test]
    fn a_harvested_record_says_where_it_is_from() {
        // date -u -d 2026-01-31T12:00:00Z +%s
        let found = of(&harvested(), Stamp(1_769_860_801_999)).unwrap();
        for part in [
            "<originDescription harvestDate=\"2026-01-31T12:00:01Z\" altered=\"true\">",
            "<baseURL>http://b.example/oai</baseURL><identifier>oai:b.example:1</identifier>\
             <datestamp>2026-01-31T12:00:00Z</datestamp><metadataNamespace>\
             http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>",
        ] {
            assert!(found.0.contains(part), "{part} is not in {found:?}");
        }
    }

    #[test]
    fn what_was_gathered_says_nothing() {
        for name in [METADATA_NAMESPACE, GATHERER_ROOT, GATHERER_ID, "Update-Time"] {
            let mut record = harvested();
            record.remove(name);
            assert_eq!(of(&record, Stamp(0)), None, "{name}");
        }
        let mut record = harvested();
        record.set(GATHERER_ID, "0123456789abcdef");
        assert_eq!(of(&record, Stamp(0)), None);
    }
}

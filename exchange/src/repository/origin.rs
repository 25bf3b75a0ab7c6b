//! Provenance: the repository from which a record was harvested.
//!
//! Source: the OAI implementation guidelines on provenance: a repository that serves records of
//! other repositories names the original repository and identifier of each.

use collection::{GATHERER_ID, GATHERER_ROOT, Stamp};
use oai::crosswalk::{METADATA_NAMESPACE, SourceIdentity};
use oai::repository::description::Origin;
use oai::response::Xml;
use oai::{Datestamp, Granularity};
use soif::Record;

use super::answer::datestamp;

/// Returns the provenance of a record; `None` if it was not harvested, or if it is served exactly
/// as its origin made it.
pub(super) fn provenance(record: &Record, stamp: Stamp) -> Option<Xml> {
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
        // The crosswalk has changed the metadata.
        altered: true,
    };
    Some(origin.to_xml())
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
    fn a_harvested_record_has_its_provenance() {
        // date -u -d 2026-01-31T12:00:00Z +%s
        let found = provenance(&harvested(), Stamp(1_769_860_801_999)).unwrap();
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
    fn a_gathered_record_has_none() {
        for name in [METADATA_NAMESPACE, GATHERER_ROOT, GATHERER_ID, "Update-Time"] {
            let mut record = harvested();
            record.remove(name);
            assert_eq!(provenance(&record, Stamp(0)), None, "{name}");
        }
        let mut record = harvested();
        record.set(GATHERER_ID, "0123456789abcdef");
        assert_eq!(provenance(&record, Stamp(0)), None);
    }
}

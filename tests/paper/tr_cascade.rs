//! TR §10, Table 1, the NIDR brokers: one for software and one for documents, and a third that takes what it has from
//! the first two, "with no additional network or remote server load".
//!
//! Two gatherers here have 4,600 objects together, as the brokers of the paper have; a tenth of each is about the
//! topic.
//!
//! # Differences from the paper
//!
//! The topic of its brokers is the choice of what they gather. Here the third selects what is about it by a query.

use broker::source::{Kind, Part, Source};
use soif::Record;

use crate::brokers::{Broker, Origin};

const OBJECTS: usize = 2_300;
/// One of so many objects is about the topic.
const EACH: usize = 10;

fn records(gatherer: &str, kind: &str) -> Vec<Record> {
    let record = |n: usize| {
        let mut record = Record::new("FILE", format!("http://{gatherer}.example/{n}"));
        let topic =
            if n.is_multiple_of(EACH) { "resource discovery and retrieval" } else { "compilers" };
        record.push("Gatherer-Id", gatherer);
        record.push("Type", kind);
        record.push("Title", format!("{kind} number {n}"));
        record.push("Description", format!("About {topic}, part {n} of a series"));
        record.push("Update-Time", (1_700_000_000 + n).to_string());
        record.push("Time-to-Live", "315360000");
        record
    };
    (0..OBJECTS).map(record).collect()
}

fn of(broker: &Broker, name: &str) -> Source {
    let query = query::parse("\"resource discovery\" AND retrieval").unwrap();
    let part = Some(Part::Query(query));
    Source { kind: Kind::Broker, part, ..Source::gatherer(name, broker.url.clone()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_broker_costs_the_gatherers_nothing() {
    let software = Origin::start(records("00000000000000a1", "Software")).await;
    let documents = Origin::start(records("00000000000000a2", "Document")).await;
    let folder = tempfile::tempdir().unwrap();
    let source = |origin: &Origin| Source::gatherer("gatherer", origin.url.clone());
    let one = Broker::start(&folder.path().join("sw"), vec![source(&software)]).await;
    let two = Broker::start(&folder.path().join("doc"), vec![source(&documents)]).await;
    one.has(OBJECTS as u64).await;
    two.has(OBJECTS as u64).await;
    let before = [software.load(), documents.load()];
    let all = vec![of(&one, "software"), of(&two, "documents")];
    let nidr = Broker::start(&folder.path().join("nidr"), all).await;
    nidr.has((2 * OBJECTS / EACH) as u64).await;
    assert_eq!([software.load(), documents.load()], before);
    let status = nidr.handle.status().await;
    let bytes: u64 = status.sources.iter().map(|it| it.last_pull.as_ref().unwrap().bytes).sum();
    println!(
        "{} objects of {}: the gatherers sent {} and {} bytes once, and nothing for the third broker; \
         its last pulls took {bytes} bytes of the first two",
        status.objects,
        2 * OBJECTS,
        before[0].1,
        before[1].1
    );
}

//! Tests of windows, parts, sets, deletions, formats, and the numbers of Adly's paper.

use std::io::Read as _;

use axum::body::Body;
use axum::http::Request;
use collection::{Author, Batch, Stamp, Subject};
use exchange::repository::Settings;
use net::clock;
use net::identity::Identity;
use oai::repository::oap::{Attributes, Totals};
use oai::response::Xml;

use crate::schemas;
use crate::support::*;

const DC: &str = "metadataPrefix=oai_dc";

#[tokio::test]
async fn a_window_has_the_changes_within_it() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, vec![text(1), text(2)]);
    commit(&collection, 1, vec![text(3)]);
    commit(&collection, 5, vec![text(2), text(4)]);
    commit(&collection, 86_400, vec![text(5)]);
    let running = Running::start(dir.path(), collection, settings(100)).await;
    for (window, expected) in [
        ("", &["1", "3", "2", "4", "5"][..]),
        ("&from=2026-01-31T12:00:00Z", &["1", "3", "2", "4", "5"]),
        ("&from=2026-01-31T12:00:01Z", &["3", "2", "4", "5"]),
        ("&from=2026-01-31T12:00:02Z", &["2", "4", "5"]),
        ("&until=2026-01-31T12:00:00Z", &["1"]),
        ("&until=2026-01-31T12:00:04Z", &["1", "3"]),
        ("&from=2026-01-31T12:00:05Z&until=2026-01-31T12:00:05Z", &["2", "4"]),
        ("&from=2026-01-31&until=2026-01-31", &["1", "3", "2", "4"]),
        ("&from=2026-02-01", &["5"]),
        ("&from=1000-01-01&until=9999-12-31", &["1", "3", "2", "4", "5"]),
    ] {
        let arguments = format!("{DC}{window}");
        assert_eq!(running.items("ListRecords", &arguments).await, expected, "{window}");
        let headers = running.read("ListIdentifiers", &arguments).await;
        let counted = headers[0].header("harvest-complete-list-size");
        assert_eq!(counted, expected.len().to_string(), "{window}");
    }
    let identify = running.ask("verb=Identify").await;
    assert_eq!(identify.one("earliestDatestamp"), "2026-01-31T12:00:00Z");
    let last = running.ask(&format!("verb=GetRecord&{DC}&identifier={OURS}5")).await;
    assert_eq!(last.one("datestamp"), "2026-02-01T12:00:00Z");
    assert_eq!(last.all("setSpec"), ["gatherer:0123456789abcdef", "type:Text"]);
    running.stop().await;
}

#[tokio::test]
async fn a_long_list_has_parts_and_a_short_one_no_token() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..7).map(text).collect());
    let running = Running::start(dir.path(), collection, settings(3)).await;
    let parts = running.read("ListRecords", DC).await;
    let tokens: Vec<&str> = parts.iter().map(|it| it.attributes("resumptionToken")).collect();
    let size = |cursor: u64| format!(" completeListSize=\"7\" cursor=\"{cursor}\"");
    assert_eq!(tokens, [size(0), size(3), size(6)]);
    assert_eq!(parts[2].one("resumptionToken"), "");
    assert_eq!(parts[1].items(), ["3", "4", "5"]);
    for (until, list) in [("2999-01-01", 3), ("2026-01-31", 3)] {
        let parts = running.read("ListIdentifiers", &format!("{DC}&until={until}")).await;
        assert_eq!(parts.len(), list);
    }
    // Exactly one part: no token is needed.
    commit(&running.collection, 1, (3..7).map(|n| delete(G, &format!("http://h/{n}"))).collect());
    let until = "until=2026-01-31";
    let three = running.read("ListRecords", &format!("{DC}&{until}")).await;
    assert_eq!((three.len(), three[0].items()), (1, vec!["0".into(), "1".into(), "2".into()]));
    assert!(!three[0].text.contains("resumptionToken"));
    running.stop().await;
}

#[tokio::test]
async fn deletions_are_listed_in_all_sets() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, vec![text(1), text(2), text(3), update("g2", "http://h/1", "PDF")]);
    commit(&collection, 1, vec![delete(G, "http://h/1"), delete(G, "http://h/2")]);
    commit(&collection, 2, vec![text(2), delete(G, "http://h/9")]);
    let identity = Identity::of(&[1; 32]).unwrap();
    let author = Author { id: G.to_owned(), identity };
    let subject = Subject::parse("http://h/3").unwrap();
    collection.suppress(&author, subject, "asked for", Stamp(NOON + 3_007)).unwrap();
    let running = Running::start(dir.path(), collection, settings(2)).await;
    let all = ["oai:library.example:g2/http://h/1", "-1", "2", "-9", "-3"];
    assert_eq!(running.items("ListRecords", DC).await, all);
    assert_eq!(running.items("ListIdentifiers", DC).await, all);
    let in_set = |set: &'static str| {
        let running = &running;
        async move { running.items("ListRecords", &format!("{DC}&set={set}")).await }
    };
    assert_eq!(in_set("type:PDF").await, [all[0], "-1", "-9", "-3"]);
    assert_eq!(in_set("type:Text").await, ["-1", "2", "-9", "-3"]);
    assert_eq!(in_set("type").await, all);
    assert_eq!(in_set("gatherer").await, all);
    assert_eq!(in_set("gatherer:g2").await, [all[0]]);
    assert_eq!(in_set("gatherer:0123456789abcdef").await, all[1..]);

    let gone = running.ask(&format!("verb=GetRecord&{DC}&identifier={OURS}3")).await;
    assert_eq!(gone.items(), ["-3"]);
    assert!(!gone.text.contains("asked for") && !gone.text.contains("<metadata>"));
    let formats = running.ask(&format!("verb=ListMetadataFormats&identifier={OURS}1")).await;
    assert_eq!(formats.all("metadataPrefix"), ["oai_dc", "soif"]);
    let identify = running.ask("verb=Identify").await;
    assert_eq!(identify.one("deletedRecord"), "transient");
    assert_eq!(identify.one("totalElements"), "2");
    assert_eq!(identify.one("completeListSize"), "5");
    running.stop().await;
}

#[tokio::test]
async fn sets_are_by_gatherer_and_type() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, vec![text(1), update("g 2", "http://h/2", "C++"), text(3)]);
    commit(&collection, 1, vec![update(G, "http://h/3", "PDF")]);
    let running = Running::start(dir.path(), collection, settings(100)).await;
    let sets = running.ask("verb=ListSets").await;
    let specs = sets.all("setSpec");
    let expected = [
        "gatherer",
        "gatherer:0123456789abcdef",
        "gatherer:g~202",
        "type",
        "type:C~2B~2B",
        "type:PDF",
        "type:Text",
    ];
    assert_eq!(specs, expected);
    assert_eq!(sets.all("setName")[4], "Of type C++");
    assert!(!sets.text.contains("resumptionToken"));
    for spec in specs {
        let found = running.items("ListIdentifiers", &format!("{DC}&set={spec}")).await;
        let expected = match spec {
            "gatherer" | "type" => 3,
            "gatherer:0123456789abcdef" => 2,
            _ => 1,
        };
        assert_eq!(found.len(), expected, "{spec}");
    }
    // Later records are in the sets at once.
    commit(&running.collection, 2, vec![update("g3", "http://h/4", "PDF")]);
    assert_eq!(running.items("ListRecords", &format!("{DC}&set=type:PDF")).await.len(), 2);
    assert_eq!(running.items("ListRecords", &format!("{DC}&set=gatherer:g3")).await.len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn both_formats_carry_any_record() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    let mut record = soif::Record::new("FILE", "http://h/a?b=c&d=%20<\"'\u{e9}");
    record.push("Gatherer-Id", G);
    record.push("Title", "a\u{0}b\u{1}\u{fffe} ]]> & <\r\n\t>");
    record.push("Author", vec![0xff, 0xfe, b'x']);
    record.push("Type", "]]>\u{2}");
    commit(&collection, 0, vec![collection::Change::Update(record)]);
    let running = Running::start(dir.path(), collection, settings(100)).await;
    let formats = running.ask("verb=ListMetadataFormats").await;
    for prefix in formats.all("metadataPrefix") {
        let list = running.ask(&format!("verb=ListRecords&metadataPrefix={prefix}")).await;
        let identifier = list.one("identifier").to_owned();
        assert_eq!(identifier, format!("{OURS}a?b=c%26d=%2520%3C%22%27%C3%A9"));
        let encoded: String = url::form_urlencoded::byte_serialize(identifier.as_bytes()).collect();
        let get = format!("verb=GetRecord&metadataPrefix={prefix}&identifier={encoded}");
        assert_eq!(running.ask(&get).await.one("metadata"), list.one("metadata"));
    }
    running.ask("verb=ListSets").await;
    running.stop().await;
}

#[tokio::test]
async fn the_papers_attributes_are_sent_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..3).map(text).collect());
    commit(&collection, 1, vec![delete(G, "http://h/0")]);
    let running = Running::start(dir.path(), collection, settings(2)).await;
    let asking = |query: &str| {
        let request = Request::get(format!("/oai?{query}")).header("harvest-oap-attributes", "1");
        request.body(Body::empty()).unwrap()
    };
    let query = format!("verb=ListRecords&{DC}");
    let plain = running.ask(&query).await;
    assert_eq!(plain.attributes("resumptionToken"), " completeListSize=\"3\" cursor=\"0\"");
    let numbers =
        [plain.header("harvest-complete-list-size"), plain.header("harvest-total-elements")];
    assert_eq!(numbers, ["3", "2"]);
    let found = running.send(asking(&query)).await;
    let paper = " completeListSize=\"3\" cursor=\"0\" totalElements=\"2\"";
    assert_eq!(found.attributes("resumptionToken"), paper);
    let short = running.send(asking(&format!("{query}&from=2026-01-31T12:00:01Z"))).await;
    assert_eq!(short.attributes("resumptionToken"), paper.replace('3', "1"));
    assert_eq!(short.one("resumptionToken"), "");
    for (choice, asked) in [(Attributes::Off, false), (Attributes::Always, true)] {
        let changed = Settings { oap_attributes: choice, ..settings(2) };
        running.repository.set(
            changed,
            exchange::repository::Daemon {
                id: G.to_owned(),
                ..exchange::repository::Daemon::default()
            },
        );
        let found = running.send(asking(&query)).await;
        assert_eq!(found.text.contains("totalElements"), asked, "{choice:?}");
        // The schema does not allow the attribute.
        assert_eq!(schemas::validate(found.text.as_bytes()).is_err(), asked);
    }
    let identify = running.ask("verb=Identify").await;
    let descriptions = identify.all("description");
    let totals = descriptions.iter().find_map(|it| Totals::read(&Xml((*it).to_owned())));
    assert_eq!(totals, Some(Totals { elements: 2, list: Some(3) }));
    running.stop().await;
}

#[tokio::test]
async fn a_changed_list_names_no_other_size_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..7).map(text).collect());
    let running = Running::start(dir.path(), collection, settings(3)).await;
    let first = running.ask(&format!("verb=ListRecords&{DC}")).await;
    // The record moves to the end.
    commit(&running.collection, 1, vec![text(0)]);
    let mut part = first;
    for expected in [" completeListSize=\"7\" cursor=\"3\"", " cursor=\"6\""] {
        let token = part.one("resumptionToken").to_owned();
        part = running.ask(&format!("verb=ListRecords&resumptionToken={token}")).await;
        assert_eq!(part.attributes("resumptionToken"), expected);
    }
    assert_eq!(part.items(), ["6", "0"]);
    running.stop().await;
}

#[tokio::test]
async fn a_response_is_not_older_than_its_record() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start(dir.path(), open(dir.path()), settings(3)).await;
    let batch = Batch { changes: vec![text(0)], notes: Vec::new() };
    running.collection.commit(batch, Stamp(clock::now_ms() + 5_000)).unwrap();
    let found = running.ask(&format!("verb=GetRecord&{DC}&identifier={OURS}0")).await;
    assert!(found.one("datestamp") <= found.one("responseDate"), "{found:?}");
    running.stop().await;
}

#[tokio::test]
async fn our_own_schemas_are_at_their_announced_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let daily = oai::syndication::Syndication {
        period: Some("daily".to_owned()),
        ..oai::syndication::Syndication::default()
    };
    let settings = Settings { syndication: Some(daily), ..settings(2) };
    let running = Running::start(dir.path(), open(dir.path()), settings).await;
    let identify = running.ask("verb=Identify").await.text;
    for (file, namespace) in [
        ("totals.xsd", oai::repository::oap::NAMESPACE),
        ("syndication.xsd", oai::syndication::NAMESPACE),
    ] {
        let location = format!("\"{namespace} https://library.example/oai/schemas/{file}\"");
        assert!(identify.contains(&location), "{location}\n{identify}");
        let request = Request::get(format!("/oai/schemas/{file}")).body(Body::empty()).unwrap();
        let found = running.send(request).await;
        assert!(found.text.contains(&format!("targetNamespace=\"{namespace}\"")), "{found:?}");
    }
    commit(&running.collection, 0, vec![text(1)]);
    let location = "https://library.example/oai/schemas/soif.xsd";
    let formats = running.ask("verb=ListMetadataFormats").await.text;
    assert!(formats.contains(&format!("<schema>{location}</schema>")), "{formats}");
    let record = format!("verb=GetRecord&identifier={OURS}1&metadataPrefix=soif");
    let record = running.ask(&record).await.text;
    let found = format!("xsi:schemaLocation=\"https://harvest.example/soif/1.0/ {location}\"");
    assert!(record.contains(&found), "{record}");
    running.stop().await;
}

#[tokio::test]
async fn a_long_list_is_compressed_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..50).map(text).collect());
    let running = Running::start(dir.path(), collection, settings(100)).await;
    let uri = format!("/oai?verb=ListRecords&{DC}");
    let request = Request::get(&uri).header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let routes = running.repository.routes();
    let response = tower::ServiceExt::oneshot(routes, request).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    schemas::assert_valid(text.as_bytes());
    assert_eq!(text.matches("<record>").count(), 50);
    assert!(bytes.len() * 4 < text.len());
    running.stop().await;
}

#[tokio::test]
async fn harvested_records_have_their_provenance() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    let source = oai::crosswalk::SourceIdentity::new("http://b.example/oai");
    let header = oai::response::Header {
        identifier: "oai:b.example:1".to_owned(),
        datestamp: oai::Datestamp::parse("2025-12-31"),
        ..Default::default()
    };
    let metadata = "<dc xmlns=\"http://www.openarchives.org/OAI/2.0/oai_dc/\"><title \
                    xmlns=\"http://purl.org/dc/elements/1.1/\">T</title></dc>";
    let metadata = Some(Xml(metadata.to_owned()));
    let harvested = oai::response::Record { header, metadata, about: Vec::new() };
    let (record, problems) = oai::crosswalk::to_soif(&harvested, "oai_dc", &source, false);
    assert_eq!(problems, []);
    commit(&collection, 0, vec![collection::Change::Update(record), text(1)]);
    let running = Running::start(dir.path(), collection, settings(100)).await;
    let list = running.ask(&format!("verb=ListRecords&{DC}")).await;
    let about = list.one("about");
    let origin = "<baseURL>http://b.example/oai</baseURL><identifier>oai:b.example:1</identifier>\
                  <datestamp>2025-12-31T00:00:00Z</datestamp><metadataNamespace>\
                  http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>";
    assert!(about.contains(origin), "{about}");
    running.stop().await;
}

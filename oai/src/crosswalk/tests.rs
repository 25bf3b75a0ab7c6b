//! Tests of the crosswalks on whole records: one record of each format, and round trips.

mod formats;

use proptest::prelude::*;
use soif::Record;

use super::*;
use crate::datestamp::{Datestamp, Granularity};

const BASE_URL: &str = "http://Archive.example.org/oai";

fn source() -> SourceIdentity {
    SourceIdentity {
        attributes: vec![("Time-to-Live".to_owned(), "2419200".to_owned())],
        ..SourceIdentity::new(BASE_URL)
    }
}

fn harvested(metadata: &str) -> response::Record {
    let header = Header {
        identifier: "oai:archive.example.org:1".to_owned(),
        datestamp: Some(Datestamp::at(793_962_520, Granularity::Second)),
        sets: vec!["cs".to_owned(), "cs:ir".to_owned()],
        deleted: false,
    };
    response::Record { header, metadata: Some(Xml(metadata.to_owned())), about: Vec::new() }
}

/// Attributes that every record has from its header and its source.
const PROVENANCE: [&str; 8] = [
    "MD5",
    "Metadata-Namespace",
    "Set-Spec",
    "Last-Modification-Time",
    "Update-Time",
    "Time-to-Live",
    "Gatherer-Id",
    "Gatherer-Root",
];

/// Renders the attributes from the metadata, one in each line, then the problems.
fn rendered(metadata: &str, prefix: &str) -> String {
    let (record, problems) = to_soif(&harvested(metadata), prefix, &source(), false);
    let own = record.attributes().iter().filter(|it| !PROVENANCE.contains(&it.name.as_str()));
    let mut lines: Vec<String> = own
        .map(|it| {
            format!("{}: {}", it.name, String::from_utf8_lossy(&it.value).replace('\n', " | "))
        })
        .collect();
    lines.extend(problems.iter().map(|it| format!("! {}: {it}", it.kind.name())));
    lines.join("\n")
}

#[track_caller]
fn check(prefix: &str, metadata: &str, expected: &str) {
    assert_eq!(rendered(metadata, prefix), expected);
}

#[test]
fn a_source_is_identified_by_its_address() {
    let source = SourceIdentity::new(BASE_URL);
    assert_eq!(source.host, "archive.example.org");
    // printf 'oai http://Archive.example.org/oai' | md5sum
    assert_eq!(source.gatherer_id, "8467de3050a1950b");
    assert_eq!(SourceIdentity::new("no url").host, "repository.invalid");
}

#[test]
fn every_record_names_its_source() {
    let metadata = "<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'/>";
    let (record, problems) = to_soif(&harvested(metadata), "oai_dc", &source(), true);
    assert_eq!(problems, []);
    assert_eq!(
        (record.template.as_str(), record.url.as_str()),
        ("FILE", "oai:archive.example.org:1")
    );
    let found: Vec<(&str, String)> = record
        .attributes()
        .iter()
        .map(|it| (it.name.as_str(), String::from_utf8_lossy(&it.value).into_owned()))
        .collect();
    let expected = [
        ("MD5", Md5::of(metadata.as_bytes()).to_string()),
        ("Set-Spec", "cs\ncs:ir".to_owned()),
        ("Last-Modification-Time", "793962520".to_owned()),
        ("Update-Time", "793962520".to_owned()),
        ("Time-to-Live", "2419200".to_owned()),
        ("Gatherer-Id", source().gatherer_id),
        ("Gatherer-Root", BASE_URL.to_owned()),
        ("Metadata-Namespace", "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned()),
        ("Original-Metadata", metadata.to_owned()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_object_is_named_by_its_identifier() {
    let name = |identifier: &str, prefix: &str| {
        let header = Header { identifier: identifier.to_owned(), ..Header::default() };
        object_name(&header, prefix, &source())
            .map(|it| (it.gatherer_id == source().gatherer_id, it.url))
    };
    let own = |url: &str| Some((true, url.to_owned()));
    assert_eq!(name(" oai:a.org:x/1 ", "oai_dc"), own("oai:a.org:x/1"));
    assert_eq!(name("https://a.org/1", "oai_dc"), own("https://a.org/1"));
    assert_eq!(name("10.5072/a b", "oai_dc"), own("oai:archive.example.org:10.5072/a%20b"));
    assert_eq!(name("", "oai_dc"), None);
    assert_eq!(name(&"x".repeat(IDENTIFIER_BYTES_MAX + 1), "oai_dc"), None);
    // A SOIF record of a Harvest repository belongs to the origin; the same record in Dublin Core
    // belongs to the repository.
    let ours = "oai:harvest.example.org:00000000000000aa/http://a.org/x";
    assert_eq!(name(ours, "soif"), Some((false, "http://a.org/x".to_owned())));
    assert_eq!(name(ours, "oai_dc"), own(ours));
}

#[test]
fn a_deleted_record_has_only_its_name() {
    let mut record = harvested("");
    (record.header.deleted, record.metadata) = (true, None);
    let (record, problems) = to_soif(&record, "oai_dc", &source(), true);
    let mut expected = Record::new("FILE", "oai:archive.example.org:1");
    expected.push("Gatherer-Id", source().gatherer_id);
    assert_eq!((record, problems), (expected, vec![]));
}

#[test]
fn a_record_without_a_name_or_without_metadata_is_a_problem() {
    let mut record = harvested("<dc xmlns='http://purl.org/dc/terms/'><title>T</title></dc>");
    record.header.identifier.clear();
    let (made, problems) = to_soif(&record, "oai_dc", &source(), false);
    assert_eq!((made.url.as_str(), problems[0].kind), (soif::NO_URL, ProblemKind::Nameless));
    record = harvested("");
    record.metadata = None;
    let (made, problems) = to_soif(&record, "oai_dc", &source(), false);
    assert_eq!(
        (made.url.as_str(), problems[0].kind),
        (record.header.identifier.as_str(), ProblemKind::Broken)
    );
}

#[test]
fn oai_dc() {
    check(
        "oai_dc",
        r#"<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
          <dc:title>The Harvest Information Discovery and Access System</dc:title>
          <dc:title>Harvest &amp; friends</dc:title>
          <dc:creator>Bowman, C. Mic</dc:creator><dc:creator>Danzig, Peter B.</dc:creator>
          <dc:subject>information discovery</dc:subject><dc:subject>caching</dc:subject>
          <dc:description>It is efficient.
             It scales.</dc:description>
          <dc:publisher>Elsevier</dc:publisher><dc:contributor>Schwartz, M. F.</dc:contributor>
          <dc:date>2010-05-04T10:00:00Z</dc:date><dc:date>December 1995</dc:date>
          <dc:type>info:eu-repo/semantics/article</dc:type><dc:type>Text</dc:type>
          <dc:format>application/pdf</dc:format>
          <dc:identifier>doi:10.5072/0169</dc:identifier>
          <dc:identifier>https://archive.example.org/1</dc:identifier>
          <dc:source>Computer Networks 28</dc:source><dc:language>en</dc:language>
          <dc:relation>oai:archive.example.org:2</dc:relation>
          <dc:coverage>Boulder</dc:coverage><dc:rights>Open access</dc:rights>
        </oai_dc:dc>"#,
        "Title: The Harvest Information Discovery and Access System\n\
         Alternative-Title: Harvest & friends\n\
         Author: Bowman, C. Mic | Danzig, Peter B.\n\
         Contributor: Schwartz, M. F.\n\
         Description: It is efficient. It scales.\n\
         Type: article\n\
         Date: 2010-05-04T10:00:00Z | 1995-12\n\
         Original-Date: 2010-05-04T10:00:00Z | December 1995\n\
         Year: 1995\n\
         Language: eng\n\
         Original-Language: en\n\
         Publisher: Elsevier\n\
         Format: application/pdf\n\
         Identifier: doi:10.5072/0169 | https://archive.example.org/1\n\
         Landing-Page: https://archive.example.org/1\n\
         Source: Computer Networks 28\n\
         Related: oai:archive.example.org:2\n\
         Coverage: Boulder\n\
         Rights: Open access\n\
         Keywords: information discovery | caching\n\
         Resource-Type: info:eu-repo/semantics/article | Text",
    );
}

#[test]
fn dublin_core_with_wrong_namespaces_is_read() {
    let expected = "Title: T\nAuthor: A";
    // The container's namespace on the elements, none at all, and another container.
    check(
        "oai_dc",
        "<dc xmlns='http://www.openarchives.org/OAI/2.0/oai_dc/'><title>T</title><creator>A</creator></dc>",
        expected,
    );
    check("oai_dc", "<dc><title>T</title><creator>A</creator></dc>", expected);
    check(
        "x",
        "<r xmlns='u' xmlns:d='http://purl.org/dc/elements/1.1/'><d:title>T</d:title><d:creator>A</d:creator></r>",
        expected,
    );
}

#[test]
fn an_unknown_format_is_read_by_element_names() {
    check(
        "ddi",
        "<codeBook xmlns='ddi:codebook:2_5'><stdyDscr><title>Study</title><AuthEnty>Ann</AuthEnty>\
         <gathererId>x</gathererId><access href='u'>https://a.org/f</access></stdyDscr></codeBook>",
        "Title: Study\n\
         Landing-Page: https://a.org/f\n\
         Auth-Enty: Ann\n\
         Metadata-Gatherer-Id: x\n\
         Access: https://a.org/f\n\
         URL-References: https://a.org/f\n\
         Partial-Text: Study Ann x https://a.org/f\n\
         ! unknown-format: its format \"ddi\" is not known: it was taken by the names of its elements",
    );
}

#[test]
fn cut_metadata_are_read_up_to_the_cut() {
    check(
        "oai_dc",
        "<dc xmlns='http://purl.org/dc/elements/1.1/'><title>T</title><creator>A</crea",
        "Title: T\n\
         Author: A\n\
         ! broken: its metadata are not well-formed: syntax error: tag not closed: `>` not found before end of input",
    );
}

/// Returns an object, and its record with the identifier that a Harvest repository gives it.
fn ours() -> (Record, response::Record) {
    let mut record = Record::new("FILE", "http://a.org/x");
    record.push("Title", "T");
    record.push("Gatherer-Id", "00000000000000aa");
    record.push("Origin-Version", "0000000000000001/7");
    let mut sent = harvested(&Dissemination::Soif.write(&record, "http://h/oai").0);
    sent.header.identifier = "oai:h.example.org:00000000000000aa/http://a.org/x".to_owned();
    (record, sent)
}

#[test]
fn soif_of_a_harvest_repository_keeps_the_name_of_its_origin() {
    let (record, sent) = ours();
    assert_eq!(to_soif(&sent, "soif", &source(), true), (record, vec![]));
    let deleted = Header { deleted: true, ..sent.header };
    let name = object_name(&deleted, "soif", &source()).unwrap();
    assert_eq!((name.url.as_str(), &*name.gatherer_id), ("http://a.org/x", "00000000000000aa"));
}

#[test]
fn metadata_cannot_choose_the_object_that_they_describe() {
    let (_, sent) = ours();
    let forged = harvested(&sent.metadata.clone().unwrap().0);
    let others = response::Record {
        header: Header {
            identifier: "oai:h.example.org:00000000000000bb/http://b.org/".to_owned(),
            ..sent.header.clone()
        },
        ..sent.clone()
    };
    for (record, prefix, url, gatherer_id, problems) in [
        (&forged, "oai_dc", "oai:archive.example.org:1", source().gatherer_id, 0),
        (&forged, "soif", "oai:archive.example.org:1", source().gatherer_id, 0),
        (&sent, "any", sent.header.identifier.as_str(), source().gatherer_id, 0),
        (&others, "soif", "http://b.org/", "00000000000000bb".to_owned(), 1),
    ] {
        let (made, found) = to_soif(record, prefix, &source(), true);
        let name = (made.url.as_str(), made.text("Gatherer-Id").unwrap().into_owned());
        assert_eq!((name, found.len()), ((url, gatherer_id.clone()), problems), "{prefix}");
        assert_eq!((made.text("Title").as_deref(), made.get("Origin-Version")), (Some("T"), None));
        let deleted = object_name(&record.header, prefix, &source()).unwrap();
        assert_eq!((deleted.url.as_str(), deleted.gatherer_id), (url, gatherer_id), "{prefix}");
    }
}

#[test]
fn objects_of_the_harvesting_gatherer_are_refused() {
    let source = SourceIdentity {
        refused_gatherer_id: Some("00000000000000aa".to_owned()),
        ..SourceIdentity::new(BASE_URL)
    };
    let (_, sent) = ours();
    let (made, problems) = to_soif(&sent, "soif", &source, false);
    assert_eq!((made.url.as_str(), problems[0].kind), (soif::NO_URL, ProblemKind::Nameless));
    assert_eq!(object_name(&sent.header, "soif", &source), None);
    assert!(object_name(&sent.header, "soif", &SourceIdentity::new(BASE_URL)).is_some());
}

#[test]
fn a_gathered_file_becomes_dublin_core() {
    let mut record = Record::new("FILE", "file:///srv/a.pdf");
    for (name, value) in [
        ("Title", "A < B\u{1}"),
        ("Author", "Ann\nBob"),
        ("Type", "PDF"),
        ("Last-Modification-Time", "793962520"),
        ("Declared-Keywords", "x, y"),
        ("Keywords", "a\nb"),
    ] {
        record.push(name, value);
    }
    let xml = Dissemination::OaiDc.write(&record, "http://h/oai").0;
    let body = xml.split_once("oai_dc.xsd\">").unwrap().1;
    assert_eq!(
        body,
        "<dc:title>A &lt; B</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>\
         <dc:subject>x, y</dc:subject><dc:date>1995-02-28</dc:date><dc:type>PDF</dc:type>\
         <dc:identifier>file:///srv/a.pdf</dc:identifier></oai_dc:dc>"
    );
    // The subjects of a catalog or a person come first.
    record.push("Subject", "Wells\nWater");
    let xml = Dissemination::OaiDc.write(&record, "http://h/oai").0;
    let subjects = "<dc:subject>Wells</dc:subject><dc:subject>Water</dc:subject>\
                    <dc:subject>x, y</dc:subject><dc:date>";
    assert!(xml.contains(subjects), "{xml}");
    // The words of a text are not its subjects.
    let mut record = Record::new("FILE", "http://a.org/");
    let words: Vec<String> = (0..500).map(|n| format!("word{n}")).collect();
    record.push("Keywords", words.join("\n"));
    assert!(!Dissemination::OaiDc.write(&record, "http://h/oai").0.contains("subject"));
}

/// Checks inputs that would each take minutes if reading took quadratic time.
#[test]
fn hostile_metadata_are_read_in_bounded_time() {
    const DC: &str = "http://purl.org/dc/elements/1.1/";
    let dc = |inner: String| format!("<dc xmlns='{DC}'>{inner}</dc>");
    let many = |part: &str| part.repeat(10_000);
    let mods = "<mods xmlns='http://www.loc.gov/mods/v3'><originInfo>";
    let starts = many("<dateIssued point='start'>1</dateIssued>");
    let ids = many("x ");
    let sections = many("<dmdSec><mdWrap/></dmdSec>");
    for metadata in [
        dc(many("<title>a</title>")),
        dc(format!("{}{}", many("<subject>a</subject>"), many("<title>a</title>"))),
        dc((0..10_000).map(|n| format!("<subject>{n}</subject>")).collect()),
        dc((0..10_000).map(|n| format!("<x{n}>v</x{n}>")).collect()),
        dc(many("&amp; ")),
        dc(many("<a>")),
        format!(
            "<dc xmlns='{DC}' {}/>",
            (0..10_000).map(|n| format!("a{n}='' ")).collect::<String>()
        ),
        format!("<dc {}/>", (0..10_000).map(|n| format!("xmlns:a{n}='u' ")).collect::<String>()),
        format!("{mods}{starts}</originInfo></mods>"),
        format!(
            "<mets xmlns='http://www.loc.gov/METS/'>{sections}<structMap><div DMDID='{ids}'/></structMap></mets>"
        ),
        "<".repeat(200_000),
        many("<!-- "),
    ] {
        to_soif(&harvested(&metadata), "x", &source(), true);
    }
}

fn reread(record: &Record) -> Record {
    let mut stream = Vec::new();
    soif::write_record(&mut stream, record);
    soif::parse(&stream).unwrap().pop().unwrap()
}

fn line() -> impl Strategy<Value = String> {
    "[!-~é]{1,8}( [!-~é<&]{1,8}){0,3}"
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(line(), 0..4).prop_map(|mut lines| {
        let mut seen = std::collections::BTreeSet::new();
        lines.retain(|it| seen.insert(it.clone()));
        lines
    })
}

proptest! {
    #[test]
    fn dublin_core_keeps_the_searchable_attributes(
        title in line(), others in prop::collection::vec(lines(), 8), year in 1000_u16..3000,
    ) {
        const NAMES: [&str; 8] = ["Author", "Description", "Publisher", "Contributor", "Format",
                                  "Identifier", "Related", "Keywords"];
        let mut record = Record::new("FILE", "oai:archive.example.org:1");
        record.push("Title", title);
        record.push("Type", "Report");
        record.push("Date", format!("{year}-03"));
        record.push("Language", "eng");
        for (name, lines) in NAMES.iter().zip(others).filter(|(_, lines)| !lines.is_empty()) {
            record.push(*name, lines.join("\n"));
        }
        let xml = Dissemination::OaiDc.write(&record, "http://h/oai");
        let (found, problems) = to_soif(&harvested(&xml.0), "oai_dc", &source(), false);
        prop_assert_eq!(problems, vec![]);
        for name in NAMES.iter().chain(&["Title", "Type", "Date", "Language"]) {
            let mut given = record.text(name);
            if *name == "Identifier" && given.is_none() {
                given = Some(record.url.as_str().into());
            }
            prop_assert_eq!(found.text(name), given, "{}", name);
        }
    }

    #[test]
    fn any_text_gives_a_record(metadata in "\\PC{0,200}|(<(a|b:c|dc:title xmlns:dc='http://purl.org/dc/terms/') ?[a-z='\"/]{0,9}>|</?[a-c]>|&[a-z#0-9]{0,4};|<!\\[CDATA\\[|text|\\]\\]>|<!--|<\\?){0,30}",
                               prefix in "oai_dc|soif|x") {
        let (made, _) = to_soif(&harvested(&metadata), &prefix, &source(), true);
        prop_assert_eq!(reread(&made), made);
    }

    /// Checks that a record contains nothing that a stream would change, not even the name of a
    /// section.
    #[test]
    fn received_soif_survives_a_stream_unchanged(
        template in "FILE|UPDATE|delete|@x|[ -~]{0,6}", url in "[ -~é]{0,12}",
        identifier in "[ -~é]{0,12}|http://a b/[{}]",
        attributes in prop::collection::vec(("[ -~\\x00é]{1,6}|.{600,700}", ".{0,9}"), 0..5),
    ) {
        let mut record = Record::new(template, url);
        attributes.into_iter().for_each(|(name, value)| record.push(name, value));
        let mut harvested = harvested(&Dissemination::Soif.write(&record, "http://h/oai").0);
        harvested.header.identifier = identifier;
        let (made, _) = to_soif(&harvested, "soif", &source(), false);
        prop_assert_eq!(reread(&made), made);
    }
}

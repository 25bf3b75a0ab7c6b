//! Tests of conformance: our responses against the schemas of OAI-PMH and of their content.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/schemas.rs"]
mod schemas;

use oai::crosswalk::Dissemination;
use oai::identifier::{Identifier, RepositoryId};
use oai::repository::description::{self, Branding, Origin};
use oai::repository::oap::Totals;
use oai::repository::set::SetSpec;
use oai::repository::token::LogPosition;
use oai::repository::{self, Answer, Ask, Facts, Refused};
use oai::response::{Format, Header, Record};
use oai::{Code, Datestamp, Fault};
use schemas::{assert_valid, validate};

const BASE_URL: &str = "http://archive.example.org/oai?a=b&c=d";

/// Returns a response to Identify with this description.
fn identified(description: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a.example/oai</request>\
         <Identify><repositoryName>A</repositoryName><baseURL>http://a.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>admin@a.example</adminEmail>\
         <earliestDatestamp>2026-01-01T00:00:00Z</earliestDatestamp>\
         <deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\
         <description>{description}</description></Identify></OAI-PMH>"
    )
}

/// Returns a list of one record with this metadata, something about it, and this token.
fn listed(metadata: &str, about: &str, token: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a.example/oai</request>\
         <ListRecords><record><header><identifier>oai:a.example:1</identifier>\
         <datestamp>2026-01-01T00:00:00Z</datestamp></header><metadata>{metadata}</metadata>\
         <about>{about}</about></record>{token}</ListRecords></OAI-PMH>"
    )
}

/// Checks that the document with `good` is valid, and with any of `bad` is not.
#[track_caller]
fn check(document: impl Fn(&str) -> String, good: &str, bad: &[&str]) {
    assert_valid(document(good).as_bytes());
    for bad in bad {
        assert!(validate(document(bad).as_bytes()).is_err(), "valid: {bad}");
    }
}

const DC: &str = "<dc xmlns=\"http://www.openarchives.org/OAI/2.0/oai_dc/\">\
                  <title xmlns=\"http://purl.org/dc/elements/1.1/\">T</title></dc>";

fn origin(inner: &str, attributes: &str) -> String {
    format!(
        "<provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\">\
         <originDescription {attributes}><baseURL>http://b.example/oai</baseURL>\
         <identifier>oai:b.example:1</identifier><datestamp>2026-01-01</datestamp>\
         <metadataNamespace>urn:x</metadataNamespace>{inner}</originDescription></provenance>"
    )
}

#[test]
fn the_schemas_of_descriptions_accept_only_valid_ones() {
    let oai = |scheme: &str, repository: &str, sample: &str| {
        format!(
            "<oai-identifier xmlns=\"http://www.openarchives.org/OAI/2.0/oai-identifier\">\
             <scheme>{scheme}</scheme><repositoryIdentifier>{repository}</repositoryIdentifier>\
             <delimiter>:</delimiter><sampleIdentifier>{sample}</sampleIdentifier></oai-identifier>"
        )
    };
    check(
        identified,
        &oai("oai", "a-b.example.org", "oai:a-b.example.org:0f/http%3A%2F%2Fx%2F"),
        &[
            &oai("doi", "a.example", "oai:a.example:1"),
            &oai("oai", "localhost", "oai:localhost:1"),
            &oai("oai", "a.example", "oai:a.example:"),
            &oai("oai", "a.example", "oai:a.example:ü"),
            &oai("oai", "a.example", "oai:a.example:100%"),
        ],
    );
    let friends = |inner: &str| {
        format!("<friends xmlns=\"http://www.openarchives.org/OAI/2.0/friends/\">{inner}</friends>")
    };
    check(
        identified,
        &friends("<baseURL>http://b.example/</baseURL><baseURL>http://c.example/</baseURL>"),
        &[&friends(""), &friends("<url>http://b.example/</url>")],
    );
    let branding = |inner: &str| {
        format!(
            "<branding xmlns=\"http://www.openarchives.org/OAI/2.0/branding/\">{inner}</branding>"
        )
    };
    check(
        identified,
        &branding(
            "<collectionIcon><url>http://a.example/i.png</url><link>http://a.example/</link>\
             <title>A</title><width>88</width><height>31</height></collectionIcon>\
             <metadataRendering metadataNamespace=\"urn:x\" mimeType=\"text/xsl\">http://a.example/x\
             </metadataRendering>",
        ),
        &[
            &branding("<collectionIcon><link>http://a.example/</link></collectionIcon>"),
            &branding("<collectionIcon><url>u</url><width>wide</width></collectionIcon>"),
            &branding("<metadataRendering>http://a.example/x</metadataRendering>"),
        ],
    );
    let syndication = |inner: &str| {
        format!(
            "<syndication xmlns=\"http://purl.org/rss/1.0/modules/syndication/\">{inner}</syndication>"
        )
    };
    check(
        identified,
        &syndication(
            "<updateFrequency>2</updateFrequency><updatePeriod>daily</updatePeriod>\
             <updateBase>2026-01-31T12:00+00:00</updateBase>",
        ),
        &[
            &syndication("<updatePeriod>fortnightly</updatePeriod>"),
            &syndication("<updateFrequency>0</updateFrequency>"),
            &syndication("<updateBase>noon</updateBase>"),
        ],
    );
    let totals = |inner: &str| {
        format!("<totals xmlns=\"https://harvest.example/oap/1.0/\">{inner}</totals>")
    };
    check(
        identified,
        &totals("<totalElements>7</totalElements><completeListSize>9</completeListSize>"),
        &[&totals(""), &totals("<totalElements>-7</totalElements>")],
    );
}

#[test]
fn the_schemas_of_records_accept_only_valid_ones() {
    let stated = "harvestDate=\"2026-01-02T03:04:05Z\" altered=\"true\"";
    let inner = origin("", stated).replace("</provenance>", "");
    let inner = &inner[inner.find('>').unwrap() + 1..];
    check(
        |about| listed(DC, about, ""),
        &origin(inner, stated),
        &[
            &origin("", "altered=\"true\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05Z\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05.6Z\" altered=\"true\""),
            &origin("", "harvestDate=\"2026-01-02T03:04:05Z\" altered=\"perhaps\""),
        ],
    );
    let soif = |inner: &str| {
        format!(
            "<soif xmlns=\"https://harvest.example/soif/1.0/\" template=\"FILE\" \
             url=\"http://a.example/\">{inner}</soif>"
        )
    };
    let about = origin("", stated);
    check(
        |metadata| listed(metadata, &about, ""),
        &soif(
            "<attribute name=\"Title\">T</attribute><attribute name=\"X\" encoding=\"base64\">AA==</attribute>",
        ),
        &[
            &soif("<attribute name=\"Title\" encoding=\"rot13\">T</attribute>"),
            &soif("<title>T</title>"),
            "<x xmlns=\"urn:unknown\"/>",
            &DC.replace("title", "titel"),
        ],
    );
    check(
        |token| listed(DC, &about, token),
        "<resumptionToken cursor=\"0\" completeListSize=\"9\">t</resumptionToken>",
        &[
            "<resumptionToken totalElements=\"9\">t</resumptionToken>",
            "<resumptionToken completeListSize=\"0\">t</resumptionToken>",
        ],
    );
}

/// A repository of a few awkward records, with two on a page.
struct Small {
    facts: Facts,
    state: LogPosition,
    records: Vec<Record>,
}

fn awkward() -> Vec<soif::Record> {
    let mut plain = soif::Record::new("FILE", "http://www.example.org/a%20b?c=d&e=f#g");
    for (name, value) in [
        ("Title", "A <title> & more ]]> \u{fffe}\u{1}\r\n\u{10ffff}"),
        ("Author", "Bowman, C. Mic\nDanzig, Peter"),
        ("Keywords", "one\ntwo, three"),
        ("Type", "HTML"),
        ("Description", "tabs\tand \"quotes\" and 'more'"),
        ("Update-Time", "793962520"),
        ("Last-Modification-Time", "793962520"),
        ("Language", "en"),
        ("URL-References", "http://a.example/\nnot a url at all <"),
        ("File-Size", "2551"),
    ] {
        plain.push(name, value);
    }
    let mut bytes = soif::Record::new("FILE", "urn:x:\u{e9}\"<>&%");
    bytes.push("Title", b"\xff\xfe\x00\xc3(".to_vec());
    bytes.push("odd name\u{1} <&\">", "v");
    bytes.push("Empty", "");
    bytes.push("Partial-Text", "\0".repeat(100));
    let nothing = soif::Record::new("OTHER \u{b} <TYPE>", "file:///");
    vec![plain, bytes, nothing]
}

impl Small {
    fn new() -> Self {
        let format = |it: Dissemination| Format {
            prefix: it.prefix().to_owned(),
            schema: it.schema(BASE_URL),
            namespace: it.namespace().to_owned(),
        };
        let branding = Branding {
            icon: "http://a.example/i.png?a=b&c=d".to_owned(),
            link: Some("http://a.example/".to_owned()),
            title: Some("A & <B>".to_owned()),
        };
        let syndication = oai::syndication::Syndication {
            period: Some("daily".to_owned()),
            frequency: Some("2".to_owned()),
            base: Some("2026-01-31T12:00:00Z".to_owned()),
        };
        let friends = description::friends(&["http://b.example/oai?x=1&y=2".to_owned()]).unwrap();
        let facts = Facts {
            name: "A & <B> \u{1}".to_owned(),
            id: RepositoryId::parse("archive.example.org").unwrap(),
            base_url: BASE_URL.to_owned(),
            admin_emails: vec!["admin@example.org".to_owned()],
            formats: Dissemination::ALL.map(format).to_vec(),
            descriptions: vec![branding.to_xml(), friends, syndication.to_xml()],
            page_records: 2,
        };
        let records = awkward().iter().map(|it| record(&facts.id, Some(it))).collect();
        let mut small =
            Self { facts, state: LogPosition { epoch: 7, serial: 4, horizon: 0 }, records };
        small.records.push(record(&small.facts.id, None));
        small
    }

    /// Returns the response to a request, with its look-ups.
    fn answer(&self, query: &str) -> String {
        let date = Datestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let (request, ask) = match repository::ask(&self.facts, &self.state, query) {
            Ok(found) => found,
            Err(refused) => return repository::refusal(&self.facts.base_url, date, &refused),
        };
        let answer =
            Answer { facts: &self.facts, request: &request, date, epoch: self.state.epoch };
        match ask {
            Ask::Identify => answer.identify(date, &Totals { elements: 3, list: Some(4) }),
            Ask::Formats(item) => answer.formats(item.is_none_or(|it| self.find(&it).is_some())),
            Ask::Sets(from) if from.after.is_none() => {
                let sets = [SetSpec::Gatherers, SetSpec::Type("Odd <&>: type".to_owned())];
                answer.sets(&from, &sets, true)
            }
            Ask::Sets(from) => answer.sets(&from, &[SetSpec::Type("PDF".to_owned())], false),
            Ask::Record { item, prefix } => {
                let found = self.find(&item).map(|it| self.in_format(it, &prefix));
                answer.record(found.as_ref())
            }
            Ask::List(from) => {
                let none = from.chosen.until_secs.is_some_and(|it| it < 1_000_000_000);
                let (after, prefix) = (from.reached, from.chosen.prefix.clone());
                let after = after.map_or(0, |it| usize::try_from(it.serial).unwrap());
                let mut part = answer.list(from, Some(4), self.state.serial, None);
                let rest = self.records.iter().enumerate().skip(after);
                for (at, record) in rest.take_while(|_| !none) {
                    if part.is_full() {
                        return part.finish(true);
                    }
                    part.push(at as u64 + 1, &self.in_format(record, &prefix));
                }
                part.finish(false)
            }
        }
    }

    fn find(&self, item: &Identifier) -> Option<&Record> {
        self.records.iter().find(|it| it.header.identifier == item.to_string())
    }

    fn in_format(&self, record: &Record, prefix: &str) -> Record {
        let at = self.records.iter().position(|it| it == record).unwrap();
        let metadata = awkward()
            .get(at)
            .map(|it| Dissemination::by_prefix(prefix).unwrap().write(it, BASE_URL));
        Record { metadata, ..record.clone() }
    }
}

/// Returns a record's header and its provenance; without SOIF the record is deleted.
fn record(repository: &RepositoryId, soif: Option<&soif::Record>) -> Record {
    let url = soif.map_or("http://www.example.org/gone", |it| it.url.as_str()).to_owned();
    let identifier =
        Identifier { repository: repository.clone(), gatherer: "0123456789abcdef".to_owned(), url };
    let origin = Origin {
        base_url: "http://b.example/oai?x=1&y=2".to_owned(),
        identifier: "oai:b.example:1".to_owned(),
        datestamp: "2026-01-01".to_owned(),
        namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned(),
        harvested: "2026-01-02T03:04:05Z".to_owned(),
        altered: true,
    };
    Record {
        header: Header {
            identifier: identifier.to_string(),
            datestamp: Datestamp::parse("2026-01-30T12:00:00Z"),
            sets: vec![
                SetSpec::Gatherer("0123456789abcdef".to_owned()).to_string(),
                SetSpec::Type("Odd <&>: type".to_owned()).to_string(),
            ],
            deleted: soif.is_none(),
        },
        metadata: None,
        about: if soif.is_some() { vec![origin.to_xml()] } else { Vec::new() },
    }
}

fn token_of(response: &str) -> String {
    let at = response.find("<resumptionToken").unwrap();
    let value = response[at..].split_once('>').unwrap().1.split_once('<').unwrap().0;
    value.replace("&amp;", "&")
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[test]
fn every_response_is_valid_for_any_records() {
    let small = Small::new();
    for query in ["verb=Identify", "verb=ListMetadataFormats"] {
        assert_valid(small.answer(query).as_bytes());
    }
    let sets = small.answer("verb=ListSets");
    assert_valid(sets.as_bytes());
    assert_valid(
        small
            .answer(&format!("verb=ListSets&resumptionToken={}", encoded(&token_of(&sets))))
            .as_bytes(),
    );
    for prefix in Dissemination::ALL.map(Dissemination::prefix) {
        for verb in ["ListRecords", "ListIdentifiers"] {
            let first = small.answer(&format!("verb={verb}&metadataPrefix={prefix}"));
            assert_valid(first.as_bytes());
            let token = encoded(&token_of(&first));
            let second = small.answer(&format!("verb={verb}&resumptionToken={token}"));
            assert_valid(second.as_bytes());
            assert!(second.contains("status=\"deleted\""), "{second}");
            assert_eq!(token_of(&second), "");
        }
        for record in &small.records {
            let identifier = encoded(&record.header.identifier);
            let query = format!("verb=GetRecord&metadataPrefix={prefix}&identifier={identifier}");
            assert_valid(small.answer(&query).as_bytes());
            let query = format!("verb=ListMetadataFormats&identifier={identifier}");
            assert_valid(small.answer(&query).as_bytes());
        }
    }
    let full = "verb=ListRecords&metadataPrefix=soif&from=2026-01-01&until=2026-12-31&set=type";
    assert_valid(small.answer(full).as_bytes());
}

/// The wrong requests of the official validator, and more; each has its code and a valid response.
#[test]
fn every_error_is_the_one_that_the_standard_names() {
    let small = Small::new();
    let known = encoded(&small.records[0].header.identifier);
    for (query, code) in [
        ("", "badVerb"),
        ("verb=", "badVerb"),
        ("verb=identify", "badVerb"),
        ("verb=Identify&verb=Identify", "badVerb"),
        ("verb=Identify&set=type", "badArgument"),
        ("verb=ListMetadataFormats&identifier=invalid\"id", "badArgument"),
        ("verb=ListMetadataFormats&identifier=oai:archive.example.org:none/x", "idDoesNotExist"),
        ("verb=ListIdentifiers", "badArgument"),
        ("verb=ListRecords", "badArgument"),
        ("verb=GetRecord&metadataPrefix=oai_dc", "badArgument"),
        ("verb=GetRecord&identifier={}", "badArgument"),
        ("verb=GetRecord&identifier=invalid\"id&metadataPrefix=oai_dc", "badArgument"),
        ("verb=GetRecord&identifier=oai:other.example:1&metadataPrefix=oai_dc", "idDoesNotExist"),
        ("verb=GetRecord&identifier={}&metadataPrefix=marc21", "cannotDisseminateFormat"),
        ("verb=GetRecord&identifier={}&metadataPrefix=really_%20wrong", "badArgument"),
        ("verb=ListRecords&metadataPrefix=marc21", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=junk", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&until=junk", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-02-29", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-01T00:00:00", "badArgument"),
        (
            "verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-01&until=2026-01-02T00:00:00Z",
            "badArgument",
        ),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-02&until=2026-01-01", "badArgument"),
        ("verb=ListRecords&metadataPrefix=oai_dc&until=1990-01-10", "noRecordsMatch"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=no:such", "noRecordsMatch"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=no such", "badArgument"),
        ("verb=ListRecords&resumptionToken=junk", "badResumptionToken"),
        ("verb=ListRecords&resumptionToken=junk&until=2026-01-01", "badArgument"),
        ("verb=ListIdentifiers&resumptionToken=junk", "badResumptionToken"),
        ("verb=ListSets&resumptionToken=junk", "badResumptionToken"),
    ] {
        let response = small.answer(&query.replace("{}", &known));
        assert_valid(response.as_bytes());
        assert!(response.contains(&format!("<error code=\"{code}\">")), "{query}: {response}");
        // Arguments that are not sound are not repeated.
        let repeats = response.contains("<request verb=");
        assert_eq!(repeats, !matches!(code, "badVerb" | "badArgument"), "{query}: {response}");
    }
    // The two codes that a repository with records and formats never sends.
    for code in [Code::NoMetadataFormats, Code::NoSetHierarchy] {
        let date = Datestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let refused = Refused { request: None, faults: vec![Fault::new(code, "none & <none>")] };
        assert_valid(repository::refusal("http://a.example/oai", date, &refused).as_bytes());
    }
}

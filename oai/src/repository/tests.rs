//! Tests of the repository: requests, errors, and lists in parts.

use proptest::prelude::*;

use super::*;
use crate::response::Header;

const STATE: LogPosition = LogPosition { epoch: 7, serial: 100, horizon: 10 };

fn facts() -> Facts {
    let format = |prefix: &str| Format {
        prefix: prefix.to_owned(),
        schema: format!("http://s/{prefix}.xsd"),
        namespace: format!("http://n/{prefix}"),
    };
    Facts {
        name: "A & B".to_owned(),
        id: RepositoryId::parse("a.example.org").unwrap(),
        base_url: "http://a.example.org/oai".to_owned(),
        admin_emails: vec!["admin@a.example.org".to_owned()],
        formats: vec![format("oai_dc"), format("soif")],
        descriptions: Vec::new(),
        page_records: 3,
    }
}

fn date() -> Datestamp {
    Datestamp::parse("2026-01-31T12:00:00Z").unwrap()
}

/// Checks the error codes of a query, and whether the response repeats its arguments.
#[track_caller]
fn check(query: &str, expected: Result<(), (&[Code], bool)>) {
    let found = ask(&facts(), &STATE, query);
    let found = found.as_ref().map(|_| ()).map_err(|it| {
        (it.faults.iter().map(|it| it.code).collect::<Vec<_>>(), it.request.is_some())
    });
    assert_eq!(found, expected.map_err(|(codes, repeated)| (codes.to_vec(), repeated)), "{query}");
}

#[test]
fn all_kinds_of_requests_are_understood() {
    for query in [
        "verb=Identify",
        "verb=ListMetadataFormats",
        "verb=ListMetadataFormats&identifier=oai:a.example.org:g/http://x/",
        "verb=ListSets",
        "verb=ListRecords&metadataPrefix=soif&set=type:PDF&from=2026-01-31&until=2026-01-31",
        "verb=ListIdentifiers&metadataPrefix=oai_dc&set=gatherer&until=1066-10-14T00:00:00Z",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:a.example.org:g/http://x/",
    ] {
        check(query, Ok(()));
    }
}

/// Wrong requests of the official validator, and some more.
#[test]
fn every_error_has_its_code() {
    let bad = Err((&[Code::BadArgument][..], false));
    let unknown = Err((&[Code::IdDoesNotExist][..], true));
    let token = Err((&[Code::BadResumptionToken][..], true));
    let format = Err((&[Code::CannotDisseminateFormat][..], true));
    let none = Err((&[Code::NoRecordsMatch][..], true));
    for query in ["", "verb=NoSuchVerb", "verb=", "verb=Identify&verb=Identify"] {
        check(query, Err((&[Code::BadVerb], false)));
    }
    check("verb=ListMetadataFormats&identifier=invalid%22id", bad);
    check("verb=ListIdentifiers&until=2000-01-01", bad);
    check("verb=ListIdentifiers&metadataPrefix=oai_dc&from=really_wrong_date", bad);
    check("verb=ListIdentifiers&metadataPrefix=oai_dc&until=2000-13-01", bad);
    check("verb=ListIdentifiers&metadataPrefix=oai_dc&until=2000-01-01T00:00Z", bad);
    check(
        "verb=ListIdentifiers&metadataPrefix=oai_dc&from=2000-01-01&until=2001-01-01T00:00:00Z",
        bad,
    );
    check("verb=ListIdentifiers&metadataPrefix=oai_dc&from=2001-01-01&until=2000-01-01", bad);
    check("verb=ListIdentifiers&resumptionToken=t&until=2000-01-01", bad);
    check("verb=ListIdentifiers&resumptionToken=t&metadataPrefix=oai_dc", bad);
    check("verb=ListIdentifiers&resumptionToken=no-such-token", token);
    check("verb=ListRecords&resumptionToken=no-such-token", token);
    check("verb=ListSets&resumptionToken=no-such-token", token);
    check("verb=ListRecords", bad);
    check("verb=ListRecords&metadataPrefix=no_such", format);
    check("verb=ListRecords&metadataPrefix=no%20such", bad);
    check("verb=ListRecords&metadataPrefix=oai_dc&set=a%20b", bad);
    check("verb=ListRecords&metadataPrefix=oai_dc&set=no:such", none);
    check("verb=GetRecord", bad);
    check("verb=GetRecord&metadataPrefix=oai_dc", bad);
    check("verb=GetRecord&identifier=oai:a.example.org:g/http://x/", bad);
    check("verb=GetRecord&metadataPrefix=oai_dc&identifier=invalid%22id", bad);
    check("verb=GetRecord&metadataPrefix=oai_dc&identifier=no-such", unknown);
    check("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:b.example.org:g/http://x/", unknown);
    check("verb=GetRecord&metadataPrefix=no_such&identifier=oai:a.example.org:g/u", format);
}

#[test]
fn several_errors_are_reported_at_once() {
    check(
        "verb=GetRecord&metadataPrefix=no_such&identifier=no-such",
        Err((&[Code::IdDoesNotExist, Code::CannotDisseminateFormat], true)),
    );
    check(
        "verb=ListRecords&metadataPrefix=no_such&set=no:such",
        Err((&[Code::CannotDisseminateFormat, Code::NoRecordsMatch], true)),
    );
    let refused = ask(&facts(), &STATE, "verb=ListRecords&metadataPrefix=x&set=y").unwrap_err();
    let text = refusal("http://a/oai", date(), &refused);
    assert!(text.contains("<request verb=\"ListRecords\" metadataPrefix=\"x\" set=\"y\">"));
    assert_eq!(text.matches("<error code=").count(), 2);
}

#[test]
fn an_identifier_is_a_uri() {
    for good in ["oai:a.org:g/http://x/%20b", "http://x:80/a?b=c#d", "no-such", "urn:isbn:1", "a/b"]
    {
        assert!(is_uri(good), "{good}");
    }
    for bad in
        ["a\"b", "a b", "a%2", "a%", "%zz", "é", "1:2", "http://x:y/", "a#b#c", "<", "[", "{"]
    {
        assert!(!is_uri(bad), "{bad}");
    }
}

fn record(serial: u64) -> Record {
    let identifier = format!("oai:a.example.org:g/http://x/{serial}");
    let header = Header { identifier, datestamp: Some(date()), ..Header::default() };
    Record { header, metadata: Some(Xml("<m/>".to_owned())), about: Vec::new() }
}

/// Reads a list of the serials `wanted` to its end; `size` is their number as counted at first.
/// Returns the tokens as written.
fn read_list(query: &str, wanted: &[u64], size: Option<u64>, oap: Option<u64>) -> Vec<String> {
    let facts = facts();
    let mut query = query.to_owned();
    let mut tokens = Vec::new();
    loop {
        let (request, Ask::List(from)) = ask(&facts, &STATE, &query).unwrap() else { panic!() };
        let after = from.reached.map_or(0, |it| it.serial);
        let mut left = wanted.iter().filter(|it| after < **it).peekable();
        let answer = Answer { facts: &facts, request: &request, date: date(), epoch: STATE.epoch };
        let mut part = answer.list(from, size, STATE.serial, oap);
        while let Some(serial) = left.next_if(|_| !part.is_full()) {
            part.push(*serial, &record(*serial));
        }
        let text = part.finish(left.peek().is_some());
        let token = text.split("<resumptionToken").nth(1).and_then(|it| it.split("</").next());
        tokens.extend(token.map(str::to_owned));
        let value = token.and_then(|it| it.split('>').nth(1)).unwrap_or_default().to_owned();
        if value.is_empty() {
            return tokens;
        }
        query = format!("verb={}&resumptionToken={value}", request.verb().name());
    }
}

#[test]
fn a_list_continues_with_tokens_and_ends() {
    let wanted: Vec<u64> = (1..8).map(|it| it * 10).collect();
    let query = "verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-31";
    let tokens = read_list(query, &wanted, Some(7), None);
    let heads: Vec<&str> = tokens.iter().map(|it| it.split('>').next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            " completeListSize=\"7\" cursor=\"0\"",
            " completeListSize=\"7\" cursor=\"3\"",
            " completeListSize=\"7\" cursor=\"6\"",
        ]
    );
    assert!(tokens[2].ends_with('>'), "the last one is empty");
    let uncounted = read_list("verb=ListIdentifiers&metadataPrefix=soif", &wanted, None, None);
    assert!(uncounted[0].starts_with(" cursor=\"0\">"));
    assert!(uncounted[2].starts_with(" completeListSize=\"7\" cursor=\"6\">"));
}

#[test]
fn a_list_of_one_part_has_a_token_only_with_the_papers_attributes() {
    let query = "verb=ListRecords&metadataPrefix=oai_dc";
    assert_eq!(read_list(query, &[1, 2, 3], Some(3), None), Vec::<String>::new());
    assert_eq!(
        read_list(query, &[1, 2, 3], Some(3), Some(9)),
        [" completeListSize=\"3\" cursor=\"0\" totalElements=\"9\">"]
    );
}

#[test]
fn a_token_is_valid_for_its_verb_and_list_alone() {
    let facts = facts();
    let chosen = ListSelection {
        listed: Listed::Records,
        prefix: "oai_dc".to_owned(),
        from_secs: None,
        until_secs: Some(5),
        set: Some(SetSpec::Gatherers),
    };
    let reached = ListPosition { began: 100, serial: 50, cursor: 3, size: None };
    let token = token::write_list(STATE.epoch, &chosen, &reached);
    let (_, found) =
        ask(&facts, &STATE, &format!("verb=ListRecords&resumptionToken={token}")).unwrap();
    assert_eq!(found, Ask::List(ListFrom { chosen, reached: Some(reached) }));
    let refused = Err((&[Code::BadResumptionToken][..], true));
    check(&format!("verb=ListIdentifiers&resumptionToken={token}"), refused);
    check(&format!("verb=ListSets&resumptionToken={token}"), refused);
}

#[test]
fn an_empty_selection_is_answered_with_no_records_match() {
    let facts = facts();
    let (request, Ask::List(from)) =
        ask(&facts, &STATE, "verb=ListRecords&metadataPrefix=oai_dc").unwrap()
    else {
        panic!()
    };
    let answer = Answer { facts: &facts, request: &request, date: date(), epoch: 7 };
    let text = answer.list(from, Some(0), 100, Some(9)).finish(false);
    assert!(text.contains("<error code=\"noRecordsMatch\">") && !text.contains("<ListRecords>"));
    assert!(text.contains("<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">"));
}

#[test]
fn a_part_ends_at_the_limit_of_bytes() {
    let facts = Facts { page_records: u64::MAX, ..facts() };
    let (request, Ask::List(from)) =
        ask(&facts, &STATE, "verb=ListRecords&metadataPrefix=oai_dc").unwrap()
    else {
        panic!()
    };
    let answer = Answer { facts: &facts, request: &request, date: date(), epoch: 7 };
    let mut part = answer.list(from, None, 100, None);
    let mut large = record(1);
    large.metadata = Some(Xml(format!("<m>{}</m>", "x".repeat(PAGE_BYTES_MAX / 3))));
    let mut serial = 0;
    while !part.is_full() {
        serial += 1;
        part.push(serial, &large);
    }
    assert_eq!(part.len(), 3);
}

#[test]
fn sets_are_listed_in_parts() {
    let facts = facts();
    let all = [SetSpec::Gatherers, SetSpec::Gatherer("g".to_owned()), SetSpec::Types];
    let mut query = "verb=ListSets".to_owned();
    let mut seen = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..2 {
        let (request, Ask::Sets(from)) = ask(&facts, &STATE, &query).unwrap() else { panic!() };
        let rest: Vec<SetSpec> =
            all.iter().filter(|it| from.after.as_ref() < Some(*it)).cloned().collect();
        let page = &rest[..rest.len().min(2)];
        let answer = Answer { facts: &facts, request: &request, date: date(), epoch: 7 };
        let text = answer.sets(&from, page, page.len() < rest.len());
        seen.extend(page.to_vec());
        let token = text.split("<resumptionToken cursor=\"").nth(1).unwrap();
        let token = token.split("</").next().unwrap().split_once("\">").unwrap();
        query = format!("verb=ListSets&resumptionToken={}", token.1);
        texts.push((token.0.to_owned(), token.1.is_empty()));
    }
    assert_eq!(seen, all);
    assert_eq!(texts, [("0".to_owned(), false), ("2".to_owned(), true)]);
    let request = Request::Sets { token: None };
    let answer = Answer { facts: &facts, request: &request, date: date(), epoch: 7 };
    let one = answer.sets(&SetsFrom::default(), &all, false);
    assert!(one.contains("<setSpec>gatherer:g</setSpec>") && !one.contains("resumptionToken"));
    assert!(answer.sets(&SetsFrom::default(), &[], false).contains("\"noSetHierarchy\""));
    let behind = SetsFrom { after: Some(SetSpec::Types), cursor: 3 };
    assert!(answer.sets(&behind, &[], false).contains("\"badResumptionToken\""));
}

#[test]
fn identify_formats_and_records_are_answered() {
    let facts = facts();
    let answer =
        Answer { facts: &facts, request: &Request::Identify, date: date(), epoch: STATE.epoch };
    let text = answer.identify(date(), &oap::Totals { elements: 5, list: Some(6) });
    for part in [
        "<repositoryName>A &amp; B</repositoryName>",
        "<earliestDatestamp>2026-01-31T12:00:00Z</earliestDatestamp>\
         <deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\
         <compression>gzip</compression><description><oai-identifier",
        "<totalElements>5</totalElements><completeListSize>6</completeListSize>",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let known = answer.formats(true);
    assert!(known.contains("<metadataPrefix>oai_dc</metadataPrefix>"));
    assert!(answer.formats(false).contains("\"idDoesNotExist\""));
    assert!(answer.record(None).contains("\"idDoesNotExist\""));
    assert!(answer.record(Some(&record(1))).contains("<GetRecord><record><header>"));
}

proptest! {
    #[test]
    fn every_query_has_a_well_formed_answer(query in "(verb=(GetRecord|ListRecords|ListSets)&)?\\PC{0,60}") {
        if let Err(refused) = ask(&facts(), &STATE, &query) {
            let text = refusal("http://a/oai", date(), &refused);
            let mut reader = quick_xml::Reader::from_str(&text);
            while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
            prop_assert!(text.contains("<error code="));
        }
    }
}

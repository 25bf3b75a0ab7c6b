//! Tests of valid and invalid pages.

use super::*;

#[test]
fn identify_is_read() {
    let inner = "<repositoryName>A &amp; B</repositoryName><baseURL> http://a.example/oai </baseURL>\
        <protocolVersion>2.0</protocolVersion><adminEmail>ab@a.example</adminEmail>\
        <adminEmail>cd@a.example</adminEmail><earliestDatestamp>2001-02-03T04:05:06Z</earliestDatestamp>\
        <deletedRecord>transient</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\
        <compression>gzip</compression><description><x xmlns=\"u\"/></description>";
    let reading = read(page_of(Verb::Identify, inner).as_bytes(), Verb::Identify).unwrap();
    let expected = Identify {
        repository_name: "A & B".to_owned(),
        base_url: "http://a.example/oai".to_owned(),
        protocol_version: "2.0".to_owned(),
        admin_emails: vec!["ab@a.example".to_owned(), "cd@a.example".to_owned()],
        earliest_datestamp: Datestamp::parse("2001-02-03T04:05:06Z"),
        deleted_record: Deleted::Transient,
        granularity: Granularity::Second,
        compressions: vec!["gzip".to_owned()],
        descriptions: vec![Xml("<x xmlns=\"u\"/>".to_owned())],
    };
    assert_eq!(reading.response.body, Body::Identify(Box::new(expected)));
    assert_eq!(reading.response.response_date, Datestamp::parse("2026-01-31T12:00:00Z"));
    assert_eq!((reading.repaired, reading.notes), (false, vec![]));
}

#[test]
fn formats_sets_and_headers_are_read() {
    let inner = "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>s</schema>\
        <metadataNamespace>n</metadataNamespace></metadataFormat>";
    let page = page_of(Verb::ListMetadataFormats, inner);
    let reading = read(page.as_bytes(), Verb::ListMetadataFormats).unwrap();
    let [prefix, schema, namespace] = ["oai_dc", "s", "n"].map(str::to_owned);
    assert_eq!(reading.response.body, Body::Formats(vec![Format { prefix, schema, namespace }]));

    let inner = "<set><setSpec>a:b</setSpec><setName>A</setName><setDescription><d/></setDescription>\
        </set><set><setName>no spec</setName></set>";
    let page = page_of(Verb::ListSets, inner);
    let reading = read(page.as_bytes(), Verb::ListSets).unwrap();
    let Body::Sets(sets) = reading.response.body else { panic!() };
    let descriptions = vec![Xml(format!("<d xmlns=\"{NAMESPACE}\"/>"))];
    let [spec, name] = ["a:b", "A"].map(str::to_owned);
    assert_eq!(sets.items, [Set { spec, name, descriptions }]);
    assert_eq!(sets.quarantined.len(), 1);

    let inner = "<header status=\"deleted\"><identifier>x</identifier>\
        <datestamp>2026-01-31 10:00:00</datestamp><setSpec>a</setSpec><setSpec/></header>";
    let page = page_of(Verb::ListIdentifiers, inner);
    let reading = read(page.as_bytes(), Verb::ListIdentifiers).unwrap();
    let header = Header {
        identifier: "x".to_owned(),
        datestamp: Datestamp::parse("2026-01-31T10:00:00Z"),
        sets: vec!["a".to_owned()],
        deleted: true,
    };
    assert_eq!(reading.response.body, Body::Headers(Page::of(vec![header])));
    assert_eq!(reading.notes.len(), 1);
    assert_eq!(reading.notes[0].kind, NoteKind::DatestampForm);
}

#[test]
fn errors_are_read() {
    let faults = |inner: &str| {
        let page = format!("{HEAD}{inner}</OAI-PMH>");
        read(page.as_bytes(), Verb::ListRecords).map(|it| it.response.body)
    };
    assert_eq!(
        faults("<error code=\"noRecordsMatch\">none</error><error code='badVerb'/>"),
        Ok(Body::Faults(vec![
            Fault::new(Code::NoRecordsMatch, "none"),
            Fault::new(Code::BadVerb, ""),
        ]))
    );
    let case = faults("<error code=\"NoRecordsMatch\"/><ListRecords/>");
    assert_eq!(case, Ok(Body::Faults(vec![Fault::new(Code::NoRecordsMatch, "")])));
    let unknown = faults("<error code=\"outOfOrder\">later</error>");
    assert_eq!(unknown, Ok(Body::Faults(vec![Fault::new(Code::BadArgument, "outOfOrder later")])));
}

#[test]
fn tokens_are_read_in_all_their_forms() {
    let token = |text: &str| {
        let page = page_of(Verb::ListRecords, &format!("{}{text}", titled("a", "t")));
        let reading = read(page.as_bytes(), Verb::ListRecords).unwrap();
        (records(&reading).token.clone(), note_kinds(&reading))
    };
    let value = |text: &str| Some(Token { value: text.to_owned(), ..Token::default() });
    assert_eq!(token(""), (None, vec![]));
    assert_eq!(token("<resumptionToken/>"), (value(""), vec![]));
    assert_eq!(token("<resumptionToken> \n </resumptionToken>"), (value(""), vec![]));
    assert_eq!(token("<resumptionToken>\na b&amp;c </resumptionToken>"), (value("a b&c"), vec![]));
    let all = Token {
        value: "t".to_owned(),
        expires: Datestamp::parse("2026-02-01T00:00:00Z"),
        cursor: Some(0),
        complete_list_size: Some(12),
        total_elements: Some(34),
    };
    let dates = "expirationDate=\"2026-02-01T00:00:00Z\" completeListSize=\"12\" cursor=\" 0 \"";
    for total in ["totalElements=\"34\"", "xmlns:p=\"urn:p\" p:totalElements=\"34\""] {
        let found = token(&format!("<resumptionToken {dates} {total}>t</resumptionToken>"));
        assert_eq!(found, (Some(all.clone()), vec![]));
    }
    let bad =
        "<resumptionToken expirationDate=\"soon\" completeListSize=\"-1\">t</resumptionToken>";
    assert_eq!(token(bad), (value("t"), vec![NoteKind::TokenAttribute]));
    let two = "<resumptionToken/><resumptionToken>t</resumptionToken>";
    assert_eq!(token(two), (value("t"), vec![]));
    let two = "<resumptionToken>t</resumptionToken><resumptionToken>u</resumptionToken>";
    assert_eq!(token(two), (value("t"), vec![NoteKind::TokenPlace]));
}

#[test]
fn any_prefix_or_none_is_accepted() {
    let inner = "<o:ListRecords><o:record><o:header><o:identifier>a</o:identifier>\
        <o:datestamp>2026-01-01</o:datestamp></o:header><o:metadata><m/></o:metadata></o:record>\
        </o:ListRecords>";
    let page = format!(
        "<o:OAI-PMH xmlns:o=\"{NAMESPACE}\"><o:responseDate>2026-01-01T00:00:00Z\
        </o:responseDate>{inner}</o:OAI-PMH>"
    );
    check(page.as_bytes(), &[("a", "<m/>")], &[], &[]);
    let bare = page.replace("o:", "").replace("xmlns:o", "x").replace("xmlns", "x");
    let bare = bare.replace(&format!("x=\"{NAMESPACE}\""), "");
    check(bare.as_bytes(), &[("a", "<m/>")], &[], &[NoteKind::Namespace]);
}

#[test]
fn metadata_are_self_contained() {
    let cases = [
        ("<a/>", format!("<a xmlns=\"{NAMESPACE}\"/>")),
        ("<a xmlns='u'><b/></a>", "<a xmlns='u'><b/></a>".to_owned()),
        ("<p:a xmlns:p='u'><b xmlns=''/></p:a>", "<p:a xmlns:p='u'><b xmlns=''/></p:a>".to_owned()),
        (
            "<p:a xmlns:p='u' xsi:schemaLocation='u v'/>",
            "<p:a xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:p='u' \
             xsi:schemaLocation='u v'/>"
                .to_owned(),
        ),
        (
            "<a xmlns='u' type='xsi:string'>x</a>",
            "<a xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns='u' \
             type='xsi:string'>x</a>"
                .to_owned(),
        ),
        (
            "\n <a\nxmlns='u'>\r\n<![CDATA[<]]></a> ",
            "<a\nxmlns='u'>\r\n<![CDATA[<]]></a>".to_owned(),
        ),
        (
            "<record xmlns='http://www.loc.gov/MARC21/slim'><leader/></record>",
            "<record xmlns='http://www.loc.gov/MARC21/slim'><leader/></record>".to_owned(),
        ),
    ];
    for (metadata, expected) in &cases {
        let page = page_of(Verb::ListRecords, &record_of("a", metadata));
        check(page.as_bytes(), &[("a", expected)], &[], &[]);
        // A control character makes the reader scan: the result is the same.
        let broken = page_of(Verb::ListRecords, &(record_of("a", metadata) + &titled("b", "\x01")));
        check(broken.as_bytes(), &[("a", expected), ("b", " ")], &[], &[NoteKind::Character]);
    }
}

#[test]
fn a_declaration_of_the_list_holds_within_it() {
    let page = page_of(Verb::ListRecords, "").replace(
        "<ListRecords></ListRecords>",
        "<ListRecords xmlns:q=\"urn:&#34;q&quot;\"><record xmlns:r='urn:\"r'><header>\
         <identifier>a</identifier><datestamp>2026-01-01</datestamp></header><metadata><q:a r:b='1'/>\
         </metadata></record></ListRecords>",
    );
    let expected = "<q:a xmlns:r=\"urn:&quot;r\" xmlns:q=\"urn:&#34;q&quot;\" r:b='1'/>";
    check(page.as_bytes(), &[("a", expected)], &[], &[]);
    let broken = page.replace("</ListRecords>", "\x02</ListRecords>");
    check(broken.as_bytes(), &[("a", expected)], &[], &[NoteKind::Character]);
}

#[test]
fn a_bad_record_is_mended_or_left_out_alone() {
    let three =
        |middle: &str| page_of(Verb::ListRecords, &(titled("a", "A") + middle + &titled("c", "C")));
    let mended = |title: &str, expected: &str, kind: NoteKind| {
        check(
            three(&titled("b", title)).as_bytes(),
            &[("a", "A"), ("b", expected), ("c", "C")],
            &[],
            &[kind],
        );
    };
    mended("x\x02y", "x y", NoteKind::Character);
    mended("x&#xD800;y", "x\u{fffd}y", NoteKind::Character);
    mended("AT&T", "AT&amp;T", NoteKind::Ampersand);
    mended("&eacute;&nbsp;", "\u{e9}\u{a0}", NoteKind::Entity);
    mended("1 < 2", "1 &lt; 2", NoteKind::Markup);

    let lost = |middle: &str, problem: &str| {
        let page = three(middle);
        let offset = offset_of(&page, middle);
        check(page.as_bytes(), &[("a", "A"), ("c", "C")], &[("b", offset, problem)], &[]);
    };
    lost(&titled("b", "<i>x"), "</i>");
    lost(&titled("b", "x</dc:title><dc:title y>"), "attribute");
    lost(&titled("b", "<q:x/>"), "prefix \"q\"");
    lost(&titled("b", "<x a='1' a='2'/>"), "repeated");
    lost(&titled("b", "<!DOCTYPE x [<!ENTITY e 'e'>]>&e;"), "DOCTYPE");
    lost(&titled("b", &"<x>".repeat(DEPTH_MAX)), "deep");
    lost(&titled("b", "t").replace("</record>", ""), "no end tag");
    lost(&titled("b", "t").replace("</header>", ""), "</header>");
    let page = three(&titled("", "t"));
    let offset = offset_of(&page, &titled("", "t"));
    check(page.as_bytes(), &[("a", "A"), ("c", "C")], &[("", offset, "no identifier")], &[]);
}

#[test]
fn records_are_found_in_junk() {
    let page = page_of(Verb::ListRecords, &(titled("a", "A") + &titled("b", "B")));
    let both = [("a", "A"), ("b", "B")];
    check(page.as_bytes(), &both, &[], &[]);
    check(format!("\n{page}").as_bytes(), &both, &[], &[NoteKind::Junk]);
    check(format!("\u{feff}{page}").as_bytes(), &both, &[], &[]);
    let notice =
        "<br />\n<b>Notice</b>: Undefined index: x in <b>/oai.php</b> on line <b>3</b><br />\n";
    check(format!("{notice}{page}").as_bytes(), &both, &[], &[NoteKind::Junk]);
    check(format!("{page}{notice}").as_bytes(), &both, &[], &[NoteKind::Junk]);
    let between = page.replace("</record>\n<record>", &format!("</record>{notice}<record>"));
    check(between.as_bytes(), &both, &[], &[]);
    let between = between.replace("on line", "on <line").replace("<br />", "<br>");
    check(between.as_bytes(), &both, &[], &[NoteKind::Junk]);
    // Junk at the beginning of a record is named, and not lost.
    let within = page.replace("</record>\n<record>", "</record>\n<record>\x01Warning");
    let offset = offset_of(&within, "<record>\x01");
    check(within.as_bytes(), &[("a", "A")], &[("b", offset, "begin")], &[NoteKind::Character]);
}

#[test]
fn other_encodings_are_read() {
    let text = page_of(Verb::ListRecords, &titled("a", "Universit\u{e9}"));
    let latin = text.replace("UTF-8", "ISO-8859-1");
    let bytes: Vec<u8> = latin.chars().map(|it| u8::try_from(u32::from(it)).unwrap()).collect();
    check(&bytes, &[("a", "Universit\u{e9}")], &[], &[]);
    // Declared as Latin-1, but UTF-8.
    check(latin.as_bytes(), &[("a", "Universit\u{e9}")], &[], &[NoteKind::Encoding]);
    // Declared as UTF-8, but Latin-1.
    let bytes: Vec<u8> = text.chars().map(|it| u8::try_from(u32::from(it)).unwrap()).collect();
    check(&bytes, &[("a", "Universit\u{e9}")], &[], &[NoteKind::Utf8]);
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&bytes, &[("a", "Universit\u{e9}")], &[], &[]);
    let bytes = text.replace("UTF-8", "x-nobodys").into_bytes();
    check(&bytes, &[("a", "Universit\u{e9}")], &[], &[NoteKind::Encoding]);
}

#[test]
fn answers_that_are_not_responses_are_named() {
    let fails = |text: &str| read(text.as_bytes(), Verb::ListRecords).unwrap_err();
    assert_eq!(fails(""), Unreadable::Empty);
    assert_eq!(fails(" \r\n"), Unreadable::Empty);
    assert!(matches!(
        fails("<!DOCTYPE html><html><body>Sorry</body></html>"),
        Unreadable::Html { .. }
    ));
    let page = "<HTML><head><Title lang='en'>\n Caf&eacute; &amp; co\x07</TITLE></head>";
    let html = fails(page);
    assert_eq!(html, Unreadable::Html { title: "Caf\u{e9} & co".to_owned() });
    assert!(html.to_string().starts_with("an HTML page titled \"Caf\u{e9} & co\" came"), "{html}");
    assert!(html.advised().contains("base URL"), "{}", html.advised());
    assert_eq!(fails("<HTML>"), Unreadable::Html { title: String::new() });
    assert_eq!(fails("<HTML>").to_string(), "an HTML page came instead of an OAI-PMH response");
    assert!(
        matches!(fails("{\"error\":1}"), Unreadable::NotOai { began } if began.starts_with('{'))
    );
    let began = "<rss version=\"2\">".to_owned();
    assert_eq!(fails("<rss\n version=\"2\">\x1b\n"), Unreadable::NotOai { began });
    assert!(matches!(fails("<ListRecords/>"), Unreadable::NotOai { .. }));
    let none = format!("{HEAD}</OAI-PMH>");
    assert_eq!(fails(&none), Unreadable::NoVerb { asked: Verb::ListRecords, found: None });
    let other = page_of(Verb::Identify, "");
    let found = Some(Verb::Identify);
    assert_eq!(fails(&other), Unreadable::NoVerb { asked: Verb::ListRecords, found });
    let page = page_of(Verb::ListRecords, &titled("a", "&lol;"));
    let bomb = page.replacen('\n', "\n<!DOCTYPE x [<!ENTITY lol \"lol\">]>", 1);
    assert_eq!(fails(&bomb), Unreadable::Doctype { offset: offset_of(&bomb, "<!DOCTYPE") });
    let page = page_of(Verb::GetRecord, "");
    let error = read(page.as_bytes(), Verb::GetRecord).unwrap_err();
    assert!(matches!(error, Unreadable::Malformed { .. }), "{error}");
}

#[test]
fn a_live_record_without_metadata_is_kept_by_its_header() {
    for bare in ["", "<metadata/>", "<metadata> </metadata>"] {
        let bare = record_of("b", "").replace("<metadata></metadata>", bare);
        // An ampersand on the page makes the reader scan.
        for title in ["A", "A & A"] {
            let page = page_of(Verb::ListRecords, &(titled("a", title) + &bare));
            let reading = read(page.as_bytes(), Verb::ListRecords).unwrap();
            let list = records(&reading);
            assert_eq!(list.quarantined, []);
            let kept = list.items.iter().find(|it| it.header.identifier == "b").unwrap();
            assert!(kept.metadata.is_none() && !kept.header.deleted);
            assert!(kept.header.datestamp.is_some());
        }
        let page = page_of(Verb::GetRecord, &bare);
        let reading = read(page.as_bytes(), Verb::GetRecord).unwrap();
        assert!(matches!(reading.response.body, Body::Record(it) if it.metadata.is_none()));
    }
}

#[test]
fn a_broken_start_tag_costs_only_its_record() {
    let page = page_of(Verb::ListRecords, &(titled("a", "A") + &titled("b", "B")));
    let first = page.replacen("<record>", "<rec\x00rd>", 1);
    check(first.as_bytes(), &[("b", "B")], &[("a", offset_of(&page, "<record>"), "")], &[]);
    let second = page.replace("\n<record>", "\n<rec\x00rd>");
    let offset = offset_of(&page, "\n<record>") + 1;
    check(second.as_bytes(), &[("a", "A")], &[("b", offset, "begin")], &[NoteKind::Character]);
    let only = page_of(Verb::ListRecords, &titled("a", "A")).replace("<record>", "<rec\x00rd>");
    check(only.as_bytes(), &[], &[("a", offset_of(&page, "<record>"), "")], &[]);
}

#[test]
fn a_truncated_page_keeps_its_complete_records() {
    let page = page_of(Verb::ListRecords, &(titled("a", "A") + &titled("b", "B")));
    let cut = page.split_at(page.len() - 60).0;
    let error = read(cut.as_bytes(), Verb::ListRecords).unwrap_err();
    assert!(matches!(error, Unreadable::Truncated { offset, .. } if offset == cut.len() as u64));
    let whole = error.into_whole().unwrap();
    assert_eq!(records(&whole).items.len(), 1);
    assert_eq!(records(&whole).quarantined, []);
    // The same with a byte that makes the reader scan.
    let cut = cut.replace(">A<", ">\x01<");
    let error = read(cut.as_bytes(), Verb::ListRecords).unwrap_err();
    assert!(matches!(error, Unreadable::Truncated { offset, .. } if offset == cut.len() as u64));
    let whole = error.into_whole().unwrap();
    assert_eq!(records(&whole).items.len(), 1);
    assert_eq!(records(&whole).quarantined, []);
}

#[test]
fn a_record_beyond_bounds_costs_only_itself() {
    let large = titled("b", &"x".repeat(RECORD_BYTES_MAX));
    for other in ["A", "\x01"] {
        let page = page_of(Verb::ListRecords, &(titled("a", other) + &large));
        let reading = read(page.as_bytes(), Verb::ListRecords).unwrap();
        let list = records(&reading);
        assert_eq!(list.items.len(), 1);
        assert_eq!(list.quarantined.len(), 1);
        assert_eq!(list.quarantined[0].identifier.as_deref(), Some("b"));
        assert_eq!(list.quarantined[0].offset, offset_of(&page, &large));
    }
    let many = format!("<record>{}</record>", "<x/>").repeat(QUARANTINED_MAX + 7);
    let reading = read(page_of(Verb::ListRecords, &many).as_bytes(), Verb::ListRecords).unwrap();
    let list = records(&reading);
    assert_eq!(list.quarantined.len(), QUARANTINED_MAX + 1);
    assert!(list.quarantined.last().unwrap().problem.starts_with("7 more"));
}

#[test]
fn two_elements_of_the_verb_are_one_list() {
    let page = page_of(Verb::ListRecords, &titled("a", "A"));
    let list = format!("<ListRecords>{}</ListRecords>", titled("b", "B"));
    let page = page.replace("</OAI-PMH>", &format!("{list}</OAI-PMH>"));
    check(page.as_bytes(), &[("a", "A"), ("b", "B")], &[], &[NoteKind::Repeated]);
}

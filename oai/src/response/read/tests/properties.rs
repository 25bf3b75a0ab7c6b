//! Property tests of the reader: round trips, and any bytes.

use super::*;

/// Returns the text of a response as our repositories write it.
fn page_text(response: &Response) -> String {
    let writer = Writer::new(response.response_date.unwrap(), "http://a.example/oai", None);
    match &response.body {
        Body::Records(page) => {
            let mut list = writer.list(Listed::Records);
            page.items.iter().for_each(|it| list.push(it));
            list.finish(page.token.as_ref())
        }
        Body::Headers(page) => {
            let mut list = writer.list(Listed::Identifiers);
            for header in &page.items {
                list.push(&Record { header: header.clone(), ..Record::default() });
            }
            list.finish(page.token.as_ref())
        }
        Body::Record(it) => writer.one(it),
        Body::Faults(faults) => writer.faults(faults),
        Body::Identify(it) => writer.identify(it),
        Body::Formats(it) => writer.formats(it),
        Body::Sets(page) => writer.sets(&page.items, page.token.as_ref()),
    }
}

/// Generates text that needs no trimming, with markup and references.
fn words() -> impl Strategy<Value = String> {
    "[a-z]([a-z&<>\"'\\]é\u{4e2d}\u{1f600}]|&amp;|]]>|<record><header>|</record>| [a-z]){1,12}"
}

fn xml(may_be_cdata: bool) -> impl Strategy<Value = Xml> {
    (words(), words(), any::<bool>()).prop_map(move |(a, b, cdata)| {
        let a = quick_xml::escape::escape(a);
        let b = if cdata && may_be_cdata {
            format!("<![CDATA[{}]]>", b.replace("]]>", ""))
        } else {
            quick_xml::escape::escape(b).into_owned()
        };
        Xml(format!("{DC}<dc:title xml:lang=\"{a}\">{b}</dc:title><dc:x/></oai_dc:dc>"))
    })
}

fn headers() -> impl Strategy<Value = Header> {
    let date = (0..4_000_000_000_i64, any::<bool>()).prop_map(|(secs, day)| {
        Datestamp::at(secs, if day { Granularity::Day } else { Granularity::Second })
    });
    (words(), date, prop::collection::vec(words(), 0..3), any::<bool>()).prop_map(
        |(identifier, date, sets, deleted)| Header {
            identifier,
            datestamp: Some(date),
            sets,
            deleted,
        },
    )
}

fn any_record(may_be_cdata: bool) -> impl Strategy<Value = Record> {
    (headers(), xml(may_be_cdata), prop::collection::vec(xml(may_be_cdata), 0..2)).prop_map(
        |(header, metadata, about)| {
            let metadata = (!header.deleted).then_some(metadata);
            Record { header, metadata, about }
        },
    )
}

fn tokens() -> impl Strategy<Value = Option<Token>> {
    let number = || prop::option::of(any::<u64>());
    let some = (prop::option::of(words()), number(), number(), number()).prop_map(
        |(value, cursor, complete_list_size, total_elements)| {
            let value = value.unwrap_or_default();
            Token { value, expires: None, cursor, complete_list_size, total_elements }
        },
    );
    prop::option::of(some)
}

fn identities() -> impl Strategy<Value = Identify> {
    let several = || prop::collection::vec(words(), 0..3);
    let deleted = prop::sample::select(vec![Deleted::No, Deleted::Persistent, Deleted::Transient]);
    let descriptions = prop::collection::vec(xml(true), 0..2);
    (words(), several(), several(), descriptions, deleted, any::<bool>()).prop_map(
        |(name, admin_emails, compressions, descriptions, deleted_record, day)| {
            let granularity = if day { Granularity::Day } else { Granularity::Second };
            Identify {
                repository_name: name,
                base_url: "http://a.example/oai".to_owned(),
                protocol_version: "2.0".to_owned(),
                admin_emails,
                earliest_datestamp: Some(Datestamp::at(981_173_106, granularity)),
                deleted_record,
                granularity,
                compressions,
                descriptions,
            }
        },
    )
}

fn responses() -> impl Strategy<Value = (Response, Verb)> {
    let records =
        (prop::collection::vec(any_record(true), 0..4), tokens()).prop_map(|(items, token)| {
            (Body::Records(Page { items, token, quarantined: Vec::new() }), Verb::ListRecords)
        });
    let list = (prop::collection::vec(headers(), 0..4), tokens()).prop_map(|(items, token)| {
        (Body::Headers(Page { items, token, quarantined: Vec::new() }), Verb::ListIdentifiers)
    });
    let one = any_record(true).prop_map(|it| (Body::Record(Box::new(it)), Verb::GetRecord));
    let fault = (0..8_usize, words()).prop_map(|(at, text)| Fault::new(Code::ALL[at], text));
    let faults = prop::collection::vec(fault, 1..3)
        .prop_map(|faults| (Body::Faults(faults), Verb::ListRecords));
    let set = (words(), words(), prop::collection::vec(xml(true), 0..2))
        .prop_map(|(spec, name, descriptions)| Set { spec, name, descriptions });
    let sets = (prop::collection::vec(set, 0..3), tokens()).prop_map(|(items, token)| {
        (Body::Sets(Page { items, token, quarantined: Vec::new() }), Verb::ListSets)
    });
    let format = (words(), words(), words()).prop_map(|(prefix, schema, namespace)| Format {
        prefix,
        schema,
        namespace,
    });
    let formats = prop::collection::vec(format, 0..3)
        .prop_map(|it| (Body::Formats(it), Verb::ListMetadataFormats));
    let identify = identities().prop_map(|it| (Body::Identify(Box::new(it)), Verb::Identify));
    let date = Datestamp::parse("2026-01-31T12:00:00Z");
    prop_oneof![records, list, one, faults, sets, formats, identify]
        .prop_map(move |(body, verb)| (Response { response_date: date, body }, verb))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_values_are_read_back((response, asked) in responses()) {
        let text = page_text(&response);
        let reading = read(text.as_bytes(), asked);
        prop_assert_eq!(reading, Ok(Reading { response, repaired: false, notes: vec![] }), "{}", text);
    }

    #[test]
    fn a_cut_page_is_unreadable((response, asked) in responses(), at in any::<prop::sample::Index>()) {
        let text = page_text(&response);
        let end = text.trim_end().len();
        let cut = text.as_bytes().split_at(at.index(end)).0;
        prop_assert!(read(cut, asked).is_err());
    }

    #[test]
    fn a_changed_byte_never_loses_a_record_silently(
        // Without CDATA, which may swallow a record and be well-formed.
        all in prop::collection::vec(any_record(false), 1..4), byte in any::<u8>(),
        at in any::<prop::sample::Index>(),
    ) {
        let count = all.len();
        let body = Body::Records(Page::of(all));
        let response_date = Datestamp::parse("2026-01-31T12:00:00Z");
        let text = page_text(&Response { response_date, body });
        let mut bytes = text.into_bytes();
        let start = memchr::memmem::find(&bytes, b"<ListRecords>").unwrap() + 13;
        let end = memchr::memmem::rfind(&bytes, b"</ListRecords>").unwrap();
        let at = start + at.index(end - start);
        bytes[at] = byte;
        if let Ok(reading) = read(&bytes, Verb::ListRecords) {
            let list = records(&reading);
            prop_assert!(count <= list.items.len() + list.quarantined.len(), "{:?}", reading);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for verb in Verb::ALL {
            let _ = read(&bytes, verb);
        }
    }

    #[test]
    fn any_markup_is_read_or_refused(pieces in prop::collection::vec(prop::sample::select(&[
        "<OAI-PMH>", "</OAI-PMH>", "<ListRecords>", "</ListRecords>", "<record>", "</record>", "<header>",
        "</header>", "<identifier>a", "</identifier>", "<metadata>", "</metadata>", "<a:b ", "xmlns:a='u'>",
        "</a:b>", "<![CDATA[", "]]>", "<!--", "-->", "&", "&#x1;", "\u{1}", "<", ">", "/>", "'", "\"", "=",
        "<resumptionToken>", "</resumptionToken>", "<?xml ", "?>", "<!DOCTYPE", " ", "é", "\u{ffff}",
    ][..]), 0..40)) {
        let text = pieces.concat();
        for text in [text.clone(), page_of(Verb::ListRecords, &text)] {
            for verb in [Verb::ListRecords, Verb::ListIdentifiers, Verb::Identify] {
                let _ = read(text.as_bytes(), verb);
            }
        }
    }
}

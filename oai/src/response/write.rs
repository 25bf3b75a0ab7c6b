//! The writer of responses. For all records, the responses are valid against OAI-PMH.xsd.
//!
//! Source: OAI-PMH §3.2 (the response), §3.5 (flow control), §4 (verbs), and the schema of version
//! 2.0.
//!
//! A list is written record by record, so that the caller can stop once a page has enough bytes.
//! Characters that XML cannot carry even when escaped are left out.
//!
//! # Differences from the standard
//!
//! * If a [`Token`] has the number of total elements, it is written as the attribute
//!   `totalElements` (Adly). The schema does not have this attribute, so only clients that ask for
//!   it may get it.

use std::fmt::Display;

use super::{Format, Header, Identify, Record, Set, Token, Xml};
use crate::datestamp::Datestamp;
use crate::error::Fault;
use crate::request::{Listed, Request, Verb};
use crate::xml::{self, INSTANCE};

/// Namespace of responses.
pub const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/";

/// Address of the schema of responses.
pub(crate) const SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

/// A response in progress.
#[derive(Clone, Debug)]
pub struct Writer {
    out: String,
}

impl Writer {
    /// Begins a response of `base_url` at `date`. `request` is the answered request; `None` if its
    /// verb or arguments are invalid, and must not be repeated.
    pub fn new(date: Datestamp, base_url: &str, request: Option<&Request>) -> Self {
        let mut writer = Self { out: String::with_capacity(4096) };
        writer.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH");
        writer.attribute("xmlns", NAMESPACE);
        writer.attribute("xmlns:xsi", INSTANCE);
        writer.attribute("xsi:schemaLocation", &format!("{NAMESPACE} {SCHEMA}"));
        writer.out.push('>');
        writer.element("responseDate", date);
        writer.out.push_str("<request");
        for (name, value) in request.map(Request::arguments).unwrap_or_default() {
            writer.attribute(name, &value);
        }
        writer.out.push('>');
        writer.text(base_url);
        writer.out.push_str("</request>");
        writer
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Ends the response with errors; at least one is needed.
    pub fn faults(mut self, faults: &[Fault]) -> String {
        for fault in faults {
            self.out.push_str("<error");
            self.attribute("code", fault.code.name());
            self.out.push('>');
            self.text(&fault.message);
            self.out.push_str("</error>");
        }
        self.end()
    }

    /// Ends the response with the description of the repository, which needs at least one e-mail
    /// address and the earliest datestamp.
    pub fn identify(mut self, it: &Identify) -> String {
        self.open(Verb::Identify.name());
        self.element("repositoryName", &it.repository_name);
        self.element("baseURL", &it.base_url);
        self.element("protocolVersion", &it.protocol_version);
        for email in &it.admin_emails {
            self.element("adminEmail", email);
        }
        if let Some(earliest) = it.earliest_datestamp {
            self.element("earliestDatestamp", earliest);
        }
        self.element("deletedRecord", it.deleted_record.name());
        self.element("granularity", it.granularity.name());
        for compression in &it.compressions {
            self.element("compression", compression);
        }
        for description in &it.descriptions {
            self.container("description", description);
        }
        self.close(Verb::Identify.name());
        self.end()
    }

    /// Ends the response with metadata formats; at least one is needed.
    pub fn formats(mut self, formats: &[Format]) -> String {
        self.open(Verb::ListMetadataFormats.name());
        for format in formats {
            self.open("metadataFormat");
            self.element("metadataPrefix", &format.prefix);
            self.element("schema", &format.schema);
            self.element("metadataNamespace", &format.namespace);
            self.close("metadataFormat");
        }
        self.close(Verb::ListMetadataFormats.name());
        self.end()
    }

    /// Ends the response with a part of the sets; at least one is needed.
    pub fn sets(mut self, sets: &[Set], token: Option<&Token>) -> String {
        self.open(Verb::ListSets.name());
        for set in sets {
            self.open("set");
            self.element("setSpec", &set.spec);
            self.element("setName", &set.name);
            for description in &set.descriptions {
                self.container("setDescription", description);
            }
            self.close("set");
        }
        self.token(token);
        self.close(Verb::ListSets.name());
        self.end()
    }

    /// Ends the response with one record.
    pub fn one(mut self, record: &Record) -> String {
        self.open(Verb::GetRecord.name());
        self.record(record);
        self.close(Verb::GetRecord.name());
        self.end()
    }

    /// Begins a list of headers or of records; at least one must follow.
    pub fn list(mut self, listed: Listed) -> ListWriter {
        let verb = match listed {
            Listed::Identifiers => Verb::ListIdentifiers,
            Listed::Records => Verb::ListRecords,
        };
        self.open(verb.name());
        ListWriter { writer: self, verb }
    }

    fn record(&mut self, record: &Record) {
        self.open("record");
        self.header(&record.header);
        if let Some(metadata) = &record.metadata {
            self.container("metadata", metadata);
        }
        for about in &record.about {
            self.container("about", about);
        }
        self.close("record");
    }

    fn header(&mut self, header: &Header) {
        self.out.push_str(if header.deleted { "<header status=\"deleted\">" } else { "<header>" });
        self.element("identifier", &header.identifier);
        if let Some(datestamp) = header.datestamp {
            self.element("datestamp", datestamp);
        }
        for set in &header.sets {
            self.element("setSpec", set);
        }
        self.close("header");
    }

    fn token(&mut self, token: Option<&Token>) {
        let Some(token) = token else { return };
        self.out.push_str("<resumptionToken");
        if let Some(expires) = token.expires {
            self.attribute("expirationDate", &expires.to_string());
        }
        // The schema does not allow a size of 0.
        let size = token.complete_list_size.filter(|it| *it != 0);
        let numbers = [
            ("completeListSize", size),
            ("cursor", token.cursor),
            ("totalElements", token.total_elements),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                self.attribute(name, &number.to_string());
            }
        }
        self.out.push('>');
        self.text(&token.value);
        self.close("resumptionToken");
    }

    fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn element(&mut self, name: &str, value: impl Display) {
        xml::push_element(&mut self.out, name, &value.to_string());
    }

    fn container(&mut self, name: &str, content: &Xml) {
        self.open(name);
        xml::push_markup(&mut self.out, &content.0);
        self.close(name);
    }

    fn attribute(&mut self, name: &str, value: &str) {
        xml::push_attribute(&mut self.out, name, value);
    }

    fn text(&mut self, value: &str) {
        xml::push_text(&mut self.out, value);
    }

    fn end(mut self) -> String {
        self.out.push_str("</OAI-PMH>\n");
        self.out
    }
}

/// A list in progress.
#[derive(Clone, Debug)]
pub struct ListWriter {
    writer: Writer,
    verb: Verb,
}

impl ListWriter {
    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> usize {
        self.writer.bytes()
    }

    /// Adds a record; a list of headers gets its header.
    pub fn push(&mut self, record: &Record) {
        match self.verb {
            Verb::ListIdentifiers => self.writer.header(&record.header),
            _ => self.writer.record(record),
        }
    }

    /// Ends the list and the response.
    pub fn finish(mut self, token: Option<&Token>) -> String {
        self.writer.token(token);
        self.writer.close(self.verb.name());
        self.writer.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datestamp::Granularity;
    use crate::error::Code;
    use crate::response::read::read;
    use crate::response::{Body, Deleted, Page, Response};

    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
        xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
        xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
        http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\
        <responseDate>2026-01-31T12:00:00Z</responseDate>";

    fn date() -> Datestamp {
        Datestamp::parse("2026-01-31T12:00:00Z").unwrap()
    }

    fn begin(query: &str) -> Writer {
        Writer::new(date(), "http://a.org/oai?x&y", Request::parse(query).ok().as_ref())
    }

    #[track_caller]
    fn check(found: &str, request: &str, expected: &str) {
        let request = format!("<request{request}>http://a.org/oai?x&amp;y</request>");
        let found = found.strip_prefix(HEAD).and_then(|it| it.strip_prefix(request.as_str()));
        assert_eq!(found.and_then(|it| it.strip_suffix("</OAI-PMH>\n")), Some(expected));
    }

    fn header(identifier: &str, deleted: bool) -> Header {
        let sets = if deleted { vec![] } else { vec!["a:b".to_owned()] };
        Header { identifier: identifier.to_owned(), datestamp: Some(date()), sets, deleted }
    }

    #[test]
    fn only_valid_arguments_are_repeated() {
        let faults =
            [Fault::new(Code::BadVerb, "a < b & \u{1}c"), Fault::new(Code::BadArgument, "")];
        check(
            &begin("verb=x").faults(&faults),
            "",
            "<error code=\"badVerb\">a &lt; b &amp; c</error><error code=\"badArgument\"></error>",
        );
        check(
            &begin("verb=GetRecord&identifier=a%22%3C%0A%00b&metadataPrefix=m").faults(&[]),
            " verb=\"GetRecord\" identifier=\"a&quot;&lt;&#10;b\" metadataPrefix=\"m\"",
            "",
        );
    }

    #[test]
    fn elements_are_in_the_order_of_the_schema() {
        let identify = Identify {
            repository_name: "N".to_owned(),
            base_url: "http://a.org/oai".to_owned(),
            protocol_version: "2.0".to_owned(),
            admin_emails: vec!["admin@a.org".to_owned()],
            earliest_datestamp: Some(date()),
            deleted_record: Deleted::Transient,
            granularity: Granularity::Second,
            compressions: vec!["gzip".to_owned()],
            descriptions: vec![Xml("<d xmlns=\"u\"/>".to_owned())],
        };
        check(
            &begin("verb=Identify").identify(&identify),
            " verb=\"Identify\"",
            "<Identify><repositoryName>N</repositoryName><baseURL>http://a.org/oai</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>admin@a.org</adminEmail>\
             <earliestDatestamp>2026-01-31T12:00:00Z</earliestDatestamp>\
             <deletedRecord>transient</deletedRecord>\
             <granularity>YYYY-MM-DDThh:mm:ssZ</granularity><compression>gzip</compression>\
             <description><d xmlns=\"u\"/></description></Identify>",
        );
        let format = |prefix: &str| Format {
            prefix: prefix.to_owned(),
            schema: "s".to_owned(),
            namespace: "n".to_owned(),
        };
        check(
            &begin("verb=ListMetadataFormats").formats(&[format("a")]),
            " verb=\"ListMetadataFormats\"",
            "<ListMetadataFormats><metadataFormat><metadataPrefix>a</metadataPrefix>\
             <schema>s</schema><metadataNamespace>n</metadataNamespace></metadataFormat>\
             </ListMetadataFormats>",
        );
        let set = Set { spec: "a:b".to_owned(), name: "B".to_owned(), descriptions: Vec::new() };
        check(
            &begin("verb=ListSets").sets(&[set], None),
            " verb=\"ListSets\"",
            "<ListSets><set><setSpec>a:b</setSpec><setName>B</setName></set></ListSets>",
        );
    }

    #[test]
    fn a_list_has_headers_or_records_and_perhaps_a_token() {
        let whole = Record {
            header: header("oai:a.org:1", false),
            metadata: Some(Xml("<m/>".to_owned())),
            about: vec![Xml("<p/>".to_owned())],
        };
        let gone = Record { header: header("oai:a.org:2", true), ..Record::default() };
        let first = "<header><identifier>oai:a.org:1</identifier>\
                     <datestamp>2026-01-31T12:00:00Z</datestamp><setSpec>a:b</setSpec></header>";
        let second = "<header status=\"deleted\"><identifier>oai:a.org:2</identifier>\
                      <datestamp>2026-01-31T12:00:00Z</datestamp></header>";
        let mut list = begin("verb=ListIdentifiers&resumptionToken=t").list(Listed::Identifiers);
        list.push(&whole);
        list.push(&gone);
        check(
            &list.finish(None),
            " verb=\"ListIdentifiers\" resumptionToken=\"t\"",
            &format!("<ListIdentifiers>{first}{second}</ListIdentifiers>"),
        );
        let mut list = begin("verb=ListRecords&metadataPrefix=m").list(Listed::Records);
        list.push(&whole);
        list.push(&gone);
        let token = Token {
            value: "t".to_owned(),
            expires: Some(date()),
            cursor: Some(0),
            complete_list_size: Some(3),
            total_elements: Some(9),
        };
        check(
            &list.finish(Some(&token)),
            " verb=\"ListRecords\" metadataPrefix=\"m\"",
            &format!(
                "<ListRecords><record>{first}<metadata><m/></metadata><about><p/></about></record>\
                 <record>{second}</record><resumptionToken expirationDate=\"2026-01-31T12:00:00Z\" \
                 completeListSize=\"3\" cursor=\"0\" totalElements=\"9\">t</resumptionToken>\
                 </ListRecords>"
            ),
        );
        check(
            &begin("verb=GetRecord&identifier=i&metadataPrefix=m").one(&gone),
            " verb=\"GetRecord\" identifier=\"i\" metadataPrefix=\"m\"",
            &format!("<GetRecord><record>{second}</record></GetRecord>"),
        );
    }

    /// Returns whether the character is a `Char` of XML 1.0 §2.2.
    fn is_char(it: char) -> bool {
        matches!(it, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    }

    fn stamp() -> impl Strategy<Value = Option<Datestamp>> {
        (0..4_000_000_000_i64).prop_map(|it| Some(Datestamp::at(it, Granularity::Second)))
    }

    fn record() -> impl Strategy<Value = Record> {
        let sets = prop::collection::vec("[a-z]{1,5}(:[a-z]{1,5})?", 0..3);
        let header = ("[!-~é]{1,20}", stamp(), sets, any::<bool>());
        (header, "[ -~é]{0,20}", any::<bool>()).prop_map(|(header, text, about)| {
            let (identifier, datestamp, sets, deleted) = header;
            let text = quick_xml::escape::escape(text.as_str());
            let xml = |name: &str| Xml(format!("<{name} xmlns=\"u\">{text}</{name}>"));
            let metadata = (!deleted).then(|| xml("m"));
            let about = if about { vec![xml("p")] } else { Vec::new() };
            Record { header: Header { identifier, datestamp, sets, deleted }, metadata, about }
        })
    }

    fn token() -> impl Strategy<Value = Token> {
        let number = || prop::option::of(1..u64::MAX);
        ("[!-~]{0,30}", prop::option::of(stamp()), number(), number(), number()).prop_map(
            |(value, expires, cursor, complete_list_size, total_elements)| {
                let expires = expires.flatten();
                Token { value, expires, cursor, complete_list_size, total_elements }
            },
        )
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(records in prop::collection::vec(record(), 1..5),
                                   token in prop::option::of(token()), date in stamp()) {
            let date = date.unwrap();
            let query = "verb=ListRecords&metadataPrefix=m";
            let request = Request::parse(query).unwrap();
            let mut list = Writer::new(date, "http://a/", Some(&request)).list(Listed::Records);
            records.iter().for_each(|it| list.push(it));
            let text = list.finish(token.as_ref());
            let found = read(text.as_bytes(), Verb::ListRecords).unwrap();
            let page = Page { items: records, token, quarantined: Vec::new() };
            let expected = Response { response_date: Some(date), body: Body::Records(page) };
            prop_assert_eq!(found.response, expected);
            prop_assert!(!found.repaired);
        }

        #[test]
        fn a_reader_gets_every_character_that_xml_can_carry(
            value in "(?s)(.|[\\x00-\\x1f\u{fffe}\u{ffff}\u{fffd}<>&\"]){0,40}"
        ) {
            let expected: String = value.chars().filter(|it| is_char(*it)).collect();
            let fault = Fault::new(Code::BadArgument, value.as_str());
            let request = Request::Get { identifier: format!("i{value}"), prefix: "m".to_owned() };
            let text = Writer::new(date(), &value, Some(&request)).faults(&[fault]);
            prop_assert!(text.chars().all(is_char));
            let mut reader = quick_xml::Reader::from_str(&text);
            let (mut texts, mut found) = (Vec::new(), String::new());
            loop {
                use quick_xml::events::Event;
                match reader.read_event().unwrap() {
                    Event::Start(start) => {
                        if let Some(it) = start.try_get_attribute("identifier").unwrap() {
                            let value = it.normalized_value(quick_xml::XmlVersion::Implicit1_0);
                            prop_assert_eq!(value.unwrap(), format!("i{expected}"));
                        }
                    }
                    Event::Text(text) => found.push_str(&text),
                    Event::GeneralRef(it) => found.push(match it.resolve_char_ref().unwrap() {
                        Some(letter) => letter,
                        None => match &*it { "amp" => '&', "lt" => '<', _ => '>' },
                    }),
                    Event::End(_) => texts.push(std::mem::take(&mut found)),
                    Event::Eof => break,
                    _ => {}
                }
            }
            prop_assert_eq!(&texts[1..3], &[expected.clone(), expected]);
        }
    }
}

//! MARCXML: one library record, or a collection of records.
//!
//! Source: the MARCXML schema (`collection`, `record`). Each record goes through the same crosswalk as
//! harvested records. A file whose outermost element is a `record` describes that one thing.

use oai::crosswalk;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::object::ProblemKind;

/// Deepest nesting, since the parser stores every open element. Records need four levels.
const DEPTH_MAX: usize = 100;

/// Returns the length of the longest record as XML, in bytes; escaping makes a MARC record several times as
/// long.
pub(crate) fn bytes_max() -> usize {
    8 * Limit::Entry.bound()
}

pub(crate) fn read(text: &str, reading: &mut Reading<'_>) {
    let mut reader = Reader::from_str(text);
    let (mut depth, mut open) = (0_usize, None);
    loop {
        let before = position(&reader);
        let event = match reader.read_event() {
            Ok(Event::Eof) if depth == 0 => return,
            Ok(Event::Eof) => return malformed("it ends within an element", reading),
            Ok(Event::DocType(_)) => {
                return malformed("it has a document type declaration", reading);
            }
            Ok(event) => event,
            Err(error) => return malformed(&error.to_string(), reading),
        };
        match event {
            Event::Start(start) => {
                if open.is_none() && start.local_name().as_ref() == "record" {
                    open = Some((depth, before));
                }
                depth += 1;
                if DEPTH_MAX < depth {
                    return malformed("its elements nest too deep", reading);
                }
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if let Some((_, start)) = open.take_if(|(at, _)| *at == depth) {
                    let raw = text.get(start..position(&reader)).unwrap_or_default();
                    if bytes_max() < raw.len() {
                        if reading.too_long(Limit::Entry, raw.as_bytes()) {
                            continue;
                        }
                        return;
                    }
                    if depth == 0 {
                        return reading.alone(raw.as_bytes(), fields(raw));
                    }
                    if !hand_out(raw, raw.as_bytes(), reading, || format!("at byte {start}")) {
                        return;
                    }
                }
            }
            _ => {}
        }
        if !reading.goes_on() {
            return;
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn malformed(why: &str, reading: &mut Reading<'_>) {
    let message = format!("is not well-formed after {} records: {why}", reading.count());
    reading.problem(ProblemKind::Broken, message);
}

/// Hands out the record in `xml`, whose part of the file is `raw`; returns whether to go on.
pub(crate) fn hand_out(
    xml: &str,
    raw: &[u8],
    reading: &mut Reading<'_>,
    position: impl FnOnce() -> String,
) -> bool {
    let Some(fields) = fields(xml) else { return reading.broken("", position) };
    let numbers = ["Control-Number", "Identifier"].map(|it| fields.first(it).to_owned());
    let key = numbers.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    reading.entry(&key, raw, fields)
}

fn fields(xml: &str) -> Option<EntryFields> {
    if bytes_max() < xml.len() {
        return None;
    }
    let (record, problems) = crosswalk::metadata_to_soif(xml, "marcxml");
    let is_broken = problems.iter().any(|it| it.kind == crosswalk::ProblemKind::Broken);
    let fields = EntryFields::of(&record);
    (!is_broken && !fields.is_empty()).then_some(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::MarcXml, text.as_bytes()), expected);
    }

    const RECORD: &str = "<marc:record><marc:leader>00000nam a2200000 a 4500</marc:leader>\
        <marc:controlfield tag='001'>7</marc:controlfield>\
        <marc:datafield tag='245' ind1='0' ind2='0'><marc:subfield code='a'>A &amp; B /</marc:subfield></marc:datafield>\
        </marc:record>";

    #[test]
    fn a_collection_is_a_list_and_a_record_is_not() {
        let other = RECORD.replace("marc:", "").replace(">7<", ">8<");
        check(
            &format!(
                "<?xml version='1.0'?>\n<marc:collection xmlns:marc='http://www.loc.gov/MARC21/slim'>{RECORD}\n{other}</marc:collection>"
            ),
            &[
                "7: Title=A & B; Resource-Type=Book; Control-Number=7",
                "8: Title=A & B; Resource-Type=Book; Control-Number=8",
            ],
        );
        check(&other, &["(alone): Title=A & B; Resource-Type=Book; Control-Number=8"]);
        assert_eq!(
            render("a.xml", Type::MarcXml, other.as_bytes()),
            "Title: A & B\nResource-Type: Book\nControl-Number: 8\nPartial-Text: A & B. Book. 8"
        );
    }

    #[test]
    fn malformed_xml_is_a_problem() {
        check(
            &format!("<collection>{RECORD}<record><leader>"),
            &[
                "7: Title=A & B; Resource-Type=Book; Control-Number=7",
                "! broken: is not well-formed after 1 records: it ends within an element",
            ],
        );
        check("<collection><record/><record></record></collection>", &["broken"]);
        let bomb = "<!DOCTYPE x [<!ENTITY a 'b'>]><collection>&a;</collection>";
        check(
            bomb,
            &["! broken: is not well-formed after 0 records: it has a document type declaration"],
        );
        let deep = "<a>".repeat(300_000);
        check(&deep, &["! broken: is not well-formed after 0 records: its elements nest too deep"]);
        render(
            "a.xml",
            Type::MarcXml,
            format!("<c>{}", "<record></record>".repeat(100_000)).as_bytes(),
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(text in "(<record>|</record>|<c>|</c>|<leader>|<!--|x|&amp;|<datafield tag='245'>|é){0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a.xml", Type::MarcXml, text.as_bytes());
            render("a.xml", Type::MarcXml, &bytes);
        }
    }
}

//! The metadata that a PDF declares: its information, its XMP packet, its form and its outline.
//!
//! Source: ISO 32000-1 §14.3.3 (information dictionary), §12.3.3 (outline), §12.7.2 (form); XMP
//! part 1 §7 and part 2 §3.1 (Dublin Core) for the packet. Templates weigh the metadata against the
//! pages, since word processors write values into it that no author chose.

use std::borrow::Cow;
use std::collections::HashSet;

use hayro_syntax::Pdf;
use hayro_syntax::object::{self, Array, DateTime, Dict, Stream};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::super::Draft;
use crate::limit::Limit;
use crate::text::{Body, decode};

/// Maximum number of entries of an outline that are counted.
const OUTLINE_ENTRIES_MAX: usize = 5_000;
/// Deepest entry of an outline that is counted.
const OUTLINE_DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    pub(super) title: String,
    pub(super) author: String,
    /// The programs that made it.
    pub(super) made_by: String,
    /// The day on which it was made.
    pub(super) created: String,
    pub(super) pages: usize,
    /// Width over height of its first page.
    pub(super) aspect: f64,
    /// Width of its first page, in points.
    pub(super) width: f64,
    /// Number of fields of its form.
    pub(super) fields: usize,
    /// Number of entries of its outline.
    pub(super) outline: usize,
}

/// Reads the metadata; puts values that are used as they are into `draft`.
pub(super) fn read(pdf: &Pdf, draft: &mut Draft<'_>) -> Declared {
    let information = pdf.metadata();
    let text = |value: &Option<Box<[u8]>>| value.as_deref().map(text_string).unwrap_or_default();
    draft.description = text(&information.subject);
    draft.keywords = text(&information.keywords);
    let (creator, producer) = (text(&information.creator), text(&information.producer));
    draft.other("Subject", draft.description.clone());
    draft.other("Declared-Keywords", draft.keywords.clone());
    draft.other("Creator", creator.clone());
    draft.other("Producer", producer.clone());
    let created = information.creation_date.as_ref().map(date).unwrap_or_default();
    draft.other("Creation-Date", created.clone());
    let mut declared = Declared {
        created,
        title: text(&information.title),
        author: text(&information.author),
        made_by: format!("{creator}\n{producer}"),
        pages: pdf.pages().len(),
        ..Declared::default()
    };
    if let Some(page) = pdf.pages().first() {
        let (width, height) = page.render_dimensions();
        declared.width = f64::from(width);
        declared.aspect = f64::from(width) / f64::from(height.max(1.0));
    }
    let Some(catalog) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return declared };
    if let Some(language) = catalog.get::<object::String<'_>>("Lang") {
        draft.other("Language", text_string(language.as_bytes()));
    }
    if let Some(form) = catalog.get::<Dict<'_>>("AcroForm") {
        let fields = form.get::<Array<'_>>("Fields");
        declared.fields = fields.map_or(0, |it| it.raw_iter().take(OUTLINE_ENTRIES_MAX).count());
    }
    if let Some(outlines) = catalog.get::<Dict<'_>>("Outlines") {
        let mut left = OUTLINE_ENTRIES_MAX;
        entries(&outlines, OUTLINE_DEPTH_MAX, &mut left);
        declared.outline = OUTLINE_ENTRIES_MAX - left;
    }
    if declared.title.is_empty() || declared.author.is_empty() {
        let packet = catalog.get::<Stream<'_>>("Metadata").and_then(|it| it.decoded().ok());
        let packet = packet.unwrap_or_default();
        if Limit::Packet.bound() < packet.len() {
            draft.cut(Limit::Packet.cut());
        }
        let front = packet.get(..packet.len().min(Limit::Packet.bound())).unwrap_or_default();
        from_packet(&decode(front, None), &mut declared);
    }
    declared
}

/// Adds the titles of the outline's entries, one a line.
pub(super) fn outline(pdf: &Pdf, body: &mut Body, cancelled: &dyn Fn() -> bool) {
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let Some(root) = catalog.and_then(|it| it.get::<Dict<'_>>("Outlines")) else { return };
    let (mut next, mut seen) = (Vec::from_iter(root.get::<Dict<'_>>("First")), HashSet::new());
    while let Some(entry) = next.pop() {
        // Entries that lead back to one another are passed once.
        if entry.obj_id().is_none_or(|it| !seen.insert(it)) {
            continue;
        }
        if body.is_full() || cancelled() {
            break;
        }
        if let Some(title) = entry.get::<object::String<'_>>("Title") {
            body.push_lines(&text_lines(title.as_bytes()));
        }
        next.extend(["Next", "First"].iter().filter_map(|it| entry.get::<Dict<'_>>(it)));
    }
}

/// Takes the entries below an entry of the outline off `left`.
fn entries(parent: &Dict<'_>, depth: usize, left: &mut usize) {
    let mut entry = parent.get::<Dict<'_>>("First");
    while let Some(it) = entry.filter(|_| 0 < *left && 0 < depth) {
        *left -= 1;
        entries(&it, depth - 1, left);
        entry = it.get::<Dict<'_>>("Next");
    }
}

/// Sets title and author from an XMP packet, if they are empty.
fn from_packet(packet: &str, declared: &mut Declared) {
    let mut reader = Reader::from_str(packet);
    let (mut title, mut creators) = (String::new(), Vec::new());
    let mut within = Vec::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                if 32 < within.len() {
                    break;
                }
                within.push(tag.local_name().as_ref().to_owned());
            }
            Ok(Event::End(_)) => {
                within.pop();
            }
            Ok(Event::Text(text)) => {
                let text = text.as_ref().trim().to_owned();
                let is_in = |name: &str| within.iter().any(|it| it == name);
                if is_in("title") && title.is_empty() {
                    title = text;
                } else if is_in("creator") && !text.is_empty() {
                    creators.push(text);
                }
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    if declared.title.is_empty() {
        declared.title = title;
    }
    if declared.author.is_empty() {
        declared.author = creators.join("\n");
    }
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, else UTF-8 or Windows-1252.
fn text_string(bytes: &[u8]) -> String {
    decoded(bytes).chars().filter(|it| !it.is_control()).collect()
}

/// Decodes a text string of several lines.
pub(super) fn text_lines(bytes: &[u8]) -> String {
    let text = decoded(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().map(|it| if it.is_control() && it != '\n' { ' ' } else { it }).collect()
}

fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..] => decode(bytes, None),
        _ => decode(bytes, Some("windows-1252")),
    }
}

fn date(it: &DateTime) -> String {
    format!("{:04}-{:02}-{:02}", it.year, it.month, it.day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fills_in() {
        let packet = "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF><rdf:Description>\
            <dc:title><rdf:Alt><rdf:li xml:lang='x-default'>On Wells</rdf:li></rdf:Alt></dc:title>\
            <dc:creator><rdf:Seq><rdf:li>A. One</rdf:li><rdf:li>B. Two</rdf:li></rdf:Seq></dc:creator>\
            </rdf:Description></rdf:RDF></x:xmpmeta>";
        let mut declared = Declared::default();
        from_packet(packet, &mut declared);
        assert_eq!(
            (declared.title.as_str(), declared.author.as_str()),
            ("On Wells", "A. One\nB. Two")
        );
        from_packet("<a><b", &mut declared);
        from_packet(&"<title>".repeat(100_000), &mut declared);
    }

    #[test]
    fn text_strings_have_three_encodings() {
        assert_eq!(text_string(b"The \xfcber title"), "The über title");
        assert_eq!(text_string(b"\xfe\xff\0A\0\xfc"), "Aü");
        assert_eq!(text_string(b"\xef\xbb\xbfA\xc3\xbc\n"), "Aü");
    }
}

//! What a PDF says of itself beside its pages: its information, its XMP packet, its form and outline.
//!
//! Source: ISO 32000-1 §14.3.3 (information dictionary), §12.3.3 (outline), §12.7.2 (form); XMP part 1
//! §7 and part 2 §3.1 (Dublin Core) for the packet. It is one witness among others: word processors put
//! there what nobody said.
//!
//! Sans-I/O.

use hayro_syntax::Pdf;
use hayro_syntax::object::{self, Array, DateTime, Dict, Stream};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::super::Draft;
use crate::text::decode;

/// Most entries of an outline that are counted.
const OUTLINE_ENTRIES_MAX: usize = 5_000;
/// Deepest entry of an outline that is counted.
const OUTLINE_DEPTH_MAX: usize = 8;
/// Longest XMP packet that is read, in bytes.
const PACKET_BYTES_MAX: usize = 256 * 1024;
/// Most events of a packet's XML that are looked at.
const PACKET_EVENTS_MAX: usize = 20_000;

/// What a PDF says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    pub(super) title: String,
    pub(super) author: String,
    /// The programs that made it.
    pub(super) made_by: String,
    pub(super) pages: usize,
    /// Width over height of its first page.
    pub(super) aspect: f64,
    /// Width of its first page, in points.
    pub(super) width: f64,
    /// Fields of its form.
    pub(super) fields: usize,
    /// Entries of its outline.
    pub(super) outline: usize,
}

/// Reads what there is, and puts into `draft` what is said nowhere else.
pub(super) fn read(pdf: &Pdf, draft: &mut Draft<'_>) -> Witness {
    let about = pdf.metadata();
    let text = |value: &Option<Box<[u8]>>| value.as_deref().map(text_string).unwrap_or_default();
    draft.description = text(&about.subject);
    draft.keywords = text(&about.keywords);
    let (creator, producer) = (text(&about.creator), text(&about.producer));
    draft.other("Subject", draft.description.clone());
    draft.other("Declared-Keywords", draft.keywords.clone());
    draft.other("Creator", creator.clone());
    draft.other("Producer", producer.clone());
    draft.other("Creation-Date", about.creation_date.as_ref().map(date).unwrap_or_default());
    let mut witness = Witness {
        title: text(&about.title),
        author: text(&about.author),
        made_by: format!("{creator}\n{producer}"),
        pages: pdf.pages().len(),
        ..Witness::default()
    };
    if let Some(page) = pdf.pages().first() {
        let (width, height) = page.render_dimensions();
        witness.width = f64::from(width);
        witness.aspect = f64::from(width) / f64::from(height.max(1.0));
    }
    let Some(catalog) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return witness };
    if let Some(language) = catalog.get::<object::String<'_>>("Lang") {
        draft.other("Language", text_string(language.as_bytes()));
    }
    if let Some(form) = catalog.get::<Dict<'_>>("AcroForm") {
        let fields = form.get::<Array<'_>>("Fields");
        witness.fields = fields.map_or(0, |it| it.raw_iter().take(OUTLINE_ENTRIES_MAX).count());
    }
    if let Some(outlines) = catalog.get::<Dict<'_>>("Outlines") {
        let mut left = OUTLINE_ENTRIES_MAX;
        entries(&outlines, OUTLINE_DEPTH_MAX, &mut left);
        witness.outline = OUTLINE_ENTRIES_MAX - left;
    }
    if witness.title.is_empty() || witness.author.is_empty() {
        let packet = catalog.get::<Stream<'_>>("Metadata").and_then(|it| it.decoded().ok());
        if let Some(packet) = packet.filter(|it| it.len() <= PACKET_BYTES_MAX) {
            from_packet(&decode(&packet, None), &mut witness);
        }
    }
    witness
}

/// Counts the entries below one of the outline's.
fn entries(parent: &Dict<'_>, depth: usize, left: &mut usize) {
    let mut entry = parent.get::<Dict<'_>>("First");
    while let Some(it) = entry.filter(|_| 0 < *left && 0 < depth) {
        *left -= 1;
        entries(&it, depth - 1, left);
        entry = it.get::<Dict<'_>>("Next");
    }
}

/// Takes title and creators from an XMP packet where the information has none.
fn from_packet(packet: &str, witness: &mut Witness) {
    let mut reader = Reader::from_str(packet);
    let (mut title, mut creators) = (String::new(), Vec::new());
    let mut within = Vec::new();
    for _ in 0..PACKET_EVENTS_MAX {
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
    if witness.title.is_empty() {
        witness.title = title;
    }
    if witness.author.is_empty() {
        witness.author = creators.join("\n");
    }
}

/// Decodes a text string: UTF-16 with a byte order mark, UTF-8 with one, or (nearly) Latin-1.
fn text_string(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..] => decode(bytes, None),
        _ => decode(bytes, Some("windows-1252")),
    };
    text.chars().filter(|it| !it.is_control()).collect()
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
        let mut witness = Witness::default();
        from_packet(packet, &mut witness);
        assert_eq!(
            (witness.title.as_str(), witness.author.as_str()),
            ("On Wells", "A. One\nB. Two")
        );
        from_packet("<a><b", &mut witness);
        from_packet(&"<title>".repeat(100_000), &mut witness);
    }

    #[test]
    fn text_strings_are_in_three_codes() {
        assert_eq!(text_string(b"The \xfcber title"), "The über title");
        assert_eq!(text_string(b"\xfe\xff\0A\0\xfc"), "Aü");
        assert_eq!(text_string(b"\xef\xbb\xbfA\xc3\xbc\n"), "Aü");
    }
}

//! Metadata in RDF: XMP packets of pictures and films, and the `metadata` element of SVG.
//!
//! Source: ISO 16684-1 (XMP) §7 (serialization), §8 (Dublin Core and XMP namespaces); Creative
//! Commons' RDF as drawing programs write it.
//!
//! # Differences from the specification
//!
//! * Properties are known by their conventional prefix, not by its namespace.
//! * Of a title in several languages, the first is the title, the others are text.

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use crate::cancellable::TimeLimit;
use crate::metadata::{Field, Metadata};
use crate::text::decode;

/// A collector of properties from the events of an XML reader.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    depth: usize,
    /// The open property, and its depth.
    open: Option<(Field, usize)>,
    text: String,
}

impl Properties {
    /// Handles the start of an element; an empty element is a start and an end.
    pub(crate) fn start(&mut self, element: &BytesStart<'_>, about: &mut Metadata) {
        self.depth += 1;
        if self.open.is_none()
            && let Some(field) = property(element.name().as_ref())
        {
            self.open = Some((field, self.depth));
        }
        self.text.clear();
        for attribute in element.attributes().with_checks(false).flatten() {
            let name = attribute.key.as_ref();
            let field = match (name, self.open) {
                // `<cc:license rdf:resource="http://…">`
                ("rdf:resource", Some((field @ Field::License, _))) => Some(field),
                _ => property(name),
            };
            let Some(field) = field else { continue };
            put(about, field, &unescape(&attribute.value).unwrap_or_default());
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        if self.open.is_some() {
            self.text.push_str(text);
        }
    }

    pub(crate) fn end(&mut self, about: &mut Metadata) {
        if let Some((field, depth)) = self.open {
            put(about, field, &self.text);
            if depth == self.depth {
                self.open = None;
            }
        }
        self.text.clear();
        self.depth = self.depth.saturating_sub(1);
    }
}

fn put(about: &mut Metadata, field: Field, value: &str) {
    match field {
        Field::Keyword => about.add_list(field, value, &[';', ',']),
        // Software writes this value by default.
        Field::Title | Field::Description if value.trim() == "x-default" => {}
        _ => about.add(field, value),
    }
}

/// Returns the field of the property `name`.
fn property(name: &str) -> Option<Field> {
    Some(match name {
        "dc:title" | "photoshop:Headline" => Field::Title,
        "dc:creator" => Field::Author,
        "dc:contributor" => Field::Contributor,
        "dc:publisher" => Field::Publisher,
        "dc:description" | "exif:UserComment" => Field::Description,
        "dc:subject" | "pdf:Keywords" => Field::Keyword,
        "dc:rights" => Field::Copyright,
        "cc:license" | "xmpRights:WebStatement" | "xmpRights:UsageTerms" => Field::License,
        "dc:date"
        | "photoshop:DateCreated"
        | "exif:DateTimeOriginal"
        | "xmp:CreateDate"
        | "xap:CreateDate" => Field::Date,
        "xmp:CreatorTool" | "xap:CreatorTool" => Field::Generator,
        "dc:language" => Field::Language,
        "photoshop:City" | "photoshop:State" | "photoshop:Country" | "Iptc4xmpCore:Location" => {
            Field::Location
        }
        "tiff:Model" => Field::Camera,
        "xmpDM:album" => Field::Album,
        "xmpDM:genre" => Field::Genre,
        "prism:doi" => Field::Identifier,
        _ => return None,
    })
}

pub(crate) fn read(packet: &[u8], about: &mut Metadata, time: &mut TimeLimit<'_>) {
    let text = decode(packet, None);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    let mut properties = Properties::default();
    while time.goes_on() {
        match reader.read_event() {
            Ok(Event::Start(element)) => properties.start(&element, about),
            Ok(Event::Empty(element)) => {
                properties.start(&element, about);
                properties.end(about);
            }
            Ok(Event::End(_)) => properties.end(about),
            Ok(Event::Text(text)) => properties.text(&text),
            Ok(Event::GeneralRef(name)) => properties.text(character(&name).as_str()),
            Ok(Event::CData(text)) => properties.text(&text),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
}

/// Returns the character of `&name;`, or nothing for entities that are not predefined in XML.
pub(crate) fn character(name: &str) -> String {
    unescape(&format!("&{name};")).map(|it| it.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(packet: &str, expected: &[(Field, &str)]) {
        let mut about = Metadata::default();
        read(packet.as_bytes(), &mut about, &mut TimeLimit::new(&|| false));
        for (field, lines) in expected {
            assert_eq!(about.lines(*field), *lines, "{field:?}");
        }
    }

    #[test]
    fn a_packet() {
        check(
            "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'>\
             <rdf:RDF><rdf:Description rdf:about='' xmp:CreatorTool='GIMP 2.10' \
             photoshop:City='K&#246;ln'>\
             <dc:title><rdf:Alt><rdf:li xml:lang='x-default'>Sea &amp; sand</rdf:li></rdf:Alt>\
             </dc:title><dc:creator><rdf:Seq><rdf:li>Ann</rdf:li><rdf:li>Bob</rdf:li></rdf:Seq>\
             </dc:creator><dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>sand</rdf:li></rdf:Bag>\
             </dc:subject><xmp:CreateDate>2020-01-02T03:04:05</xmp:CreateDate>\
             </rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end='w'?>",
            &[
                (Field::Title, "Sea & sand"),
                (Field::Author, "Ann\nBob"),
                (Field::Keyword, "sea\nsand"),
                (Field::Date, "2020-01-02T03:04:05"),
                (Field::Generator, "GIMP 2.10"),
                (Field::Location, "Köln"),
            ],
        );
    }

    #[test]
    fn the_metadata_of_a_drawing() {
        check(
            "<rdf:RDF><cc:Work><dc:title>Logo</dc:title><dc:creator><cc:Agent>\
             <dc:title>Ann Example</dc:title></cc:Agent></dc:creator>\
             <cc:license rdf:resource='http://creativecommons.org/licenses/by/4.0/'/>\
             </cc:Work></rdf:RDF>",
            &[
                (Field::Title, "Logo"),
                (Field::Author, "Ann Example"),
                (Field::License, "http://creativecommons.org/licenses/by/4.0/"),
            ],
        );
    }

    #[test]
    fn hostile_packets_end() {
        check(&"<a>".repeat(1_000_000), &[(Field::Title, "")]);
        check(&format!("<dc:title>{}", "&lt;".repeat(200_000)), &[]);
        check("<!DOCTYPE a [<!ENTITY b 'c'>]><dc:title>x&b;y</dc:title>", &[(Field::Title, "xy")]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes, &mut Metadata::default(), &mut TimeLimit::new(&|| false));
        }
    }
}

//! Drawings in SVG: their title, description, metadata and text.
//!
//! Source: SVG 1.1 §5.4 (`title`, `desc`), §21 (metadata), §10 (text), §7.10 (units).

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use super::xmp::{Properties, character};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::object::ProblemKind;
use crate::text::{Body, decode};
use crate::{Draft, Input};

/// The part of a drawing that text belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Region {
    #[default]
    Other,
    Title,
    Description,
    Text,
    Metadata,
}

/// The state of reading one drawing.
#[derive(Default)]
struct Drawing {
    about: Metadata,
    properties: Properties,
    words: Body,
    run: Body,
    region: Region,
    /// Depth of the region's element.
    region_depth: usize,
    depth: usize,
    references: Vec<String>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = decode(input.head(Limit::Drawing.bound()), None);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    let mut drawing = Drawing {
        words: Body::new(input.text_bytes_max()),
        run: Body::new(usize::MAX),
        ..Drawing::default()
    };
    let mut problem = None;
    let mut time = TimeLimit::new(input.cancelled);
    while time.goes_on() {
        if Limit::DrawingDepth.bound() < drawing.depth {
            problem = Some(Limit::DrawingDepth.cut().problem());
            break;
        }
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => drawing.event(&event),
            Err(_) => {
                if !input.object.truncated && text.len() < Limit::Drawing.bound() {
                    let message = format!("is not XML from byte {} on", reader.error_position());
                    problem = Some((ProblemKind::Broken, message));
                }
                break;
            }
        }
    }
    let mut draft = drawing.draft(input.text_bytes_max());
    time.report("the drawing", &mut draft);
    input.report(Limit::Drawing, &mut draft);
    draft.add_problems(problem);
    draft
}

impl Drawing {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(element) => self.start(element),
            Event::Empty(element) => {
                self.start(element);
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(text),
            Event::GeneralRef(name) => self.text(&character(name)),
            _ => {}
        }
    }

    fn start(&mut self, element: &BytesStart<'_>) {
        self.depth += 1;
        let name = element.local_name();
        match (name.as_ref(), self.region) {
            (_, Region::Metadata) => self.properties.start(element, &mut self.about),
            ("metadata", _) => self.enter(Region::Metadata),
            ("title", Region::Other) => self.enter(Region::Title),
            ("desc", Region::Other) => self.enter(Region::Description),
            ("text" | "flowRoot", Region::Other) => self.enter(Region::Text),
            ("svg", _) if self.depth == 1 => self.dimensions(element),
            ("a", _) => self.reference(element),
            _ => {}
        }
    }

    fn enter(&mut self, region: Region) {
        self.region = region;
        self.region_depth = self.depth;
    }

    fn text(&mut self, text: &str) {
        match self.region {
            Region::Other => {}
            Region::Metadata => self.properties.text(text),
            Region::Title | Region::Description => self.run.push_squeezed(text),
            Region::Text => self.words.push_squeezed(text),
        }
    }

    fn end(&mut self) {
        let leaves = self.depth == self.region_depth;
        match self.region {
            Region::Metadata if !leaves => self.properties.end(&mut self.about),
            Region::Title | Region::Description if leaves => {
                // The title at the top is the drawing's; titles of its parts are text.
                let run = self.run.take();
                let field = match self.region {
                    Region::Title if self.depth == 2 => Field::Title,
                    Region::Description if self.depth == 2 => Field::Description,
                    _ => Field::Text,
                };
                self.about.add(field, &run);
            }
            Region::Text if leaves => self.words.line(),
            _ => {}
        }
        if leaves {
            self.region = Region::Other;
            self.region_depth = 0;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn dimensions(&mut self, element: &BytesStart<'_>) {
        let (mut width, mut height, mut view) = (None, None, None);
        for attribute in element.attributes().with_checks(false).flatten() {
            let value = &attribute.value;
            match attribute.key.as_ref() {
                "width" => width = pixels(value),
                "height" => height = pixels(value),
                "viewBox" => view = view_box(value),
                "xml:lang" | "lang" => self.about.add(Field::Language, value),
                _ => {}
            }
        }
        if let Some((width, height)) = width.zip(height).or(view) {
            self.about.dimensions(width, height);
        }
    }

    fn reference(&mut self, element: &BytesStart<'_>) {
        for attribute in element.attributes().with_checks(false).flatten() {
            if attribute.key.local_name().as_ref() == "href" {
                let value = &attribute.value;
                let url = unescape(value).unwrap_or_default();
                if url.contains("://") {
                    self.references.push(url.into_owned());
                }
            }
        }
    }

    fn draft<'a>(self, text_bytes_max: usize) -> Draft<'a> {
        let mut draft = self.about.draft(text_bytes_max);
        let mut body = Body::new(text_bytes_max);
        body.push_line(&draft.body);
        body.push(self.words.as_str());
        draft.set_body(body);
        draft.references = self.references;
        draft
    }
}

/// Returns a length in pixels of 1/96 inch; `None` for a share of the window.
fn pixels(length: &str) -> Option<u64> {
    let length = length.trim();
    let end = length.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(length.len());
    let (number, unit) = length.split_at(end);
    let factor = match unit.trim() {
        "" | "px" => 1.0,
        "pt" => 96.0 / 72.0,
        "pc" => 16.0,
        "mm" => 96.0 / 25.4,
        "cm" => 96.0 / 2.54,
        "in" => 96.0,
        _ => return None,
    };
    whole(number.parse::<f64>().ok()? * factor)
}

fn view_box(value: &str) -> Option<(u64, u64)> {
    let mut numbers = value.split([' ', ',']).filter(|it| !it.is_empty()).skip(2);
    let mut next = || whole(numbers.next()?.parse().ok()?);
    Some((next()?, next()?))
}

fn whole(number: f64) -> Option<u64> {
    // A drawing has at least one pixel.
    let number = number.round().max(1.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in bounds")]
    (number < 1e9).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(drawing: &str, expected: &str) {
        assert_eq!(render("d.svg", Type::Svg, drawing.as_bytes()), expected);
    }

    #[test]
    fn a_drawing() {
        check(
            "<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg' \
             width='210mm' height='1in' xml:lang='en'><title>A &amp; B</title><desc>Two\n boxes</desc>\
             <metadata><rdf:RDF><cc:Work><dc:creator><cc:Agent><dc:title>Ann</dc:title></cc:Agent>\
             </dc:creator><dc:date>2020-01-02</dc:date></cc:Work></rdf:RDF></metadata>\
             <style>.a{fill:red}</style><g><title>box</title><text x='1'>Start<tspan> here</tspan>\
             </text></g><a xlink:href='http://o.example/?a&amp;b'><text>End</text></a></svg>",
            "Title: A & B\nAuthor: Ann\nDescription: Two boxes\nDate: 2020-01-02\nDate-Source: media metadata\n\
             Language: en\nLanguage-Source: declared\nDimensions: 794x96\nURL-References: http://o.example/?a&b\n\
             Partial-Text: Two boxes | box | Start here | End",
        );
    }

    #[test]
    fn its_size_may_be_its_view_box() {
        check("<svg viewBox='0,0 24.2 48'/>", "Title: d.svg\nDimensions: 24x48");
        check("<svg width='100%' height='10'/>", "Title: d.svg");
    }

    #[test]
    fn hostile_drawings_end() {
        let deep = format!("<svg>{}", "<g>".repeat(100_000));
        check(
            &deep,
            "Title: d.svg\nTruncated: drawing-depth 1000\n! limit: has more than 1000 elements in an element; the \
             rest was left out",
        );
        let laughs =
            "<!DOCTYPE s [<!ENTITY a '&b;&b;'><!ENTITY b 'x'>]><svg><text>y&a;</text></svg>";
        check(laughs, "Title: d.svg\nPartial-Text: y");
        check(
            "<svg><text>a</text",
            "Title: d.svg\nPartial-Text: a\n! broken: is not XML from byte 12 on",
        );
    }

    proptest! {
        #[test]
        fn any_drawing_gives_a_record(text in "(<(/?(svg|text|title|metadata|dc:title)|x a='b'|!--) ?>?|[a-z&;<> ])*") {
            render("d.svg", Type::Svg, text.as_bytes());
        }
    }
}

//! Slides of Office Open XML.
//!
//! Source: ECMA-376 part 1 §19 (PresentationML) and §21.1 (text in drawings).

use super::beside::Beside;
use super::package::Package;
use super::xml::Piece;
use super::{Kind, OfficeDraft};
use crate::limit::Limit;
use crate::text::Body;
use crate::{Draft, Input};

/// The part that lists the slides.
const MAIN: &str = "ppt/presentation.xml";

/// Summarizes a presentation: each slide with its diagrams, charts and comments, and the notes on it.
pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    document.properties.read_parts(package, &super::PROPERTIES);
    let related = package.relationships(MAIN);
    let slides = package.listed(MAIN, &related, "sldId", "ppt/slides/", Limit::Slides, |_| ());
    let count = slides.len();
    let mut beside = Beside::default();
    for (path, _) in slides {
        if document.body.is_full() || package.is_over() {
            break;
        }
        document.slide();
        slide(package, &path, &mut document, true);
        beside.read(package, &path, &mut document);
        let related = package.relationships(&path).into_iter();
        for it in related.filter(|it| it.kind == "notesSlide" && !it.is_external) {
            slide(package, &it.target, &mut document, false);
        }
    }
    document.slides = count;
    document.draft()
}

/// Reads the text of a slide, or of the notes on one.
fn slide(package: &mut Package<'_>, path: &str, document: &mut OfficeDraft, has_title: bool) {
    let mut paragraph = Body::new(Limit::Paragraph.bound());
    let mut title = Body::new(Limit::Paragraph.bound());
    let (mut in_text, mut in_title, mut in_number) = (false, false, false);
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "sp" => (in_title, in_number) = (false, false),
                "ph" => {
                    let kind = it.get("type");
                    in_title = has_title && matches!(&*kind, "title" | "ctrTitle");
                    in_number = matches!(&*kind, "sldNum" | "dt" | "ftr" | "hdr");
                }
                "t" => in_text = !in_number,
                "br" if in_title => title.space(),
                "br" => paragraph.line(),
                _ => {}
            },
            Piece::Text(text) if in_text && in_title => title.push(text),
            Piece::Text(text) if in_text => paragraph.push(text),
            Piece::Text(_) => {}
            Piece::End("t") => in_text = false,
            Piece::End("p") if in_title => title.space(),
            Piece::End("p" | "tc") => paragraph.line(),
            Piece::End("sp") => {
                document.take_paragraph(&mut title, Kind::Heading);
                (in_title, in_number) = (false, false);
            }
            Piece::End(_) => {}
        }
        true
    });
    document.take_paragraph(&mut paragraph, Kind::Text);
}

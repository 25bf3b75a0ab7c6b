//! The entries of a BibTeX bibliography, by the key that they are cited with.
//!
//! Source: Essence's Bibliographic summarizer and the manual's example of an exploder.
//!
//! Sans-I/O.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Entry, key};
use crate::object::ProblemKind;
use crate::summarize::bibtex::read;
use crate::summarize::{Draft, Input};
use crate::text::Body;

/// Hands out the entries that can be parsed.
pub(super) fn explode(
    input: &Input<'_>,
    each: &mut dyn FnMut(Entry) -> bool,
) -> Vec<(ProblemKind, String)> {
    let text = input.text();
    let mut number = 0;
    let ended = read(&text, input.cancelled, &mut |raw, cited| {
        number += 1;
        let Some(cited) = cited else { return true };
        let mut body = Body::new(input.text_bytes_max());
        cited.print(&mut body);
        let mut draft = Draft {
            title: cited.title,
            authors: cited.authors,
            r#abstract: cited.r#abstract,
            keywords: cited.keywords,
            body: Cow::Owned(body.finish()),
            ..Draft::default()
        };
        if let Some(year) = cited.year {
            draft.other("Date", year.to_string());
        }
        if !cited.url.is_empty() {
            draft.references.push(cited.url);
        }
        let bytes = Bytes::copy_from_slice(raw.text.as_bytes());
        each(Entry { key: key(&cited.key, number), bytes, draft })
    });
    if ended { Vec::new() } else { vec![(ProblemKind::Time, "ran out of time".to_owned())] }
}

#[cfg(test)]
mod tests {
    use crate::essence::{EssenceSettings, Explode, extract};
    use crate::object::Object;

    const TEXT: &str = "@string{cn = {Computer Networks}}\n\
        @article{bowman95, author = {Bowman, Mic}, title = {Harvest}, journal = cn, year = 1995}\n\
        @misc{broken, title = {\n\
        @misc{doe:2, title = {Second}}\n";

    fn extracted(explode: Explode) -> Vec<String> {
        let object = Object::whole("http://h.example/r.bib", TEXT.as_bytes().to_vec());
        let settings = EssenceSettings { explode, ..EssenceSettings::default() };
        let shown = |it: &crate::object::Summary| {
            let text = |name| it.record.text(name).unwrap_or_default().into_owned();
            let nested = text("Nested-Filename");
            format!("{} [{nested}] {} {}", it.record.url, text("Title"), text("Date"))
        };
        extract(object, &settings, &|| false).iter().map(shown).collect()
    }

    #[test]
    fn entries_are_records() {
        assert_eq!(
            extracted(Explode::All),
            [
                "http://h.example/r.bib [] r.bib ",
                "http://h.example/r.bib#bowman95 [bowman95] Harvest 1995",
                "http://h.example/r.bib#doe%3A2 [doe:2] Second ",
            ]
        );
        assert_eq!(extracted(Explode::None).len(), 1);
        assert_eq!(extracted(Explode::Types(["BibTeX".to_owned()].into())).len(), 3);
        assert_eq!(extracted(Explode::Types(["RIS".to_owned()].into())).len(), 1);
    }
}

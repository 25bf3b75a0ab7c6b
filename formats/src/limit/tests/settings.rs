//! The same property for the limits that settings give: text, words, links, and the front that is fetched.

use proptest::prelude::*;

use super::{check, sample};
use crate::limit::Limit;
use crate::object::Object;
use crate::pdf::tests::{paged, stream};
use crate::testing::{cut, summarize};
use crate::{Detail, FullText, Settings, Type};

/// Bytes of room in which a reader may not know whether its text goes on.
const SLACK: usize = 8;

/// Bytes of the keywords that a document may name itself, which are there beside a full text.
const DECLARED: usize = 8;

/// Documents of different words and, but for PDF and plain text, of as many links.
fn documents(count: usize) -> [(Type, Object); 4] {
    let words: String = (0..count).map(|n| format!("reaper{n} ")).collect();
    let link = |n: usize| format!("http://h.example/{n}");
    let pages: String = (0..count).map(|n| format!("<a href={}>reaper{n}</a> ", link(n))).collect();
    let marked: String = (0..count).map(|n| format!("[reaper{n}]({}) ", link(n))).collect();
    let page = stream("", format!("BT /F1 9 Tf ({words}) Tj ET").as_bytes());
    let object =
        |name: &str, bytes: Vec<u8>| Object::whole(format!("http://h.example/{name}"), bytes);
    [
        (Type::Text, object("a.txt", words.into_bytes())),
        (Type::Html, object("a.html", format!("<title>T</title><p>{pages}").into_bytes())),
        (Type::Markdown, object("a.md", marked.into_bytes())),
        (Type::Pdf, object("a.pdf", paged(&[page]))),
    ]
}

/// Checks that a limit is said exactly if there is more, with the full text and without it. Only
/// without it the words of the text are keywords.
fn check_with(it: &(Type, Object), limit: Limit, is_cut: bool, change: &dyn Fn(&mut Settings)) {
    for full_text in [FullText::None, FullText::All] {
        let is_cut = is_cut && (limit != Limit::Keywords || full_text == FullText::None);
        let mut settings = Settings { full_text, ..Settings::default() };
        change(&mut settings);
        let summary = summarize(&it.1, it.0, &settings, &|| false);
        check(&summary, limit, is_cut, &format!("{:?} {limit} {settings:?}", it.0));
    }
}

fn length(it: &(Type, Object), name: &str) -> usize {
    let full_text = if name == "Full-Text" { FullText::All } else { FullText::None };
    let settings = Settings { full_text, ..Settings::default() };
    let record = summarize(&it.1, it.0, &settings, &|| false).record;
    record.get(name).map_or(0, <[u8]>::len)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn limits_of_settings_are_said(count in 4..60_usize, share in 0.1..0.9_f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a rough share")]
        let part = |whole: usize| (whole as f64 * share) as usize;
        for it in &documents(count) {
            let text = length(it, "Full-Text");
            // Markup is read up to the same bound.
            let all = it.1.bytes.len().max(text) + SLACK;
            for (bound, is_cut) in [(part(text), true), (all, false)] {
                check_with(it, Limit::Text, is_cut, &|settings| {
                    settings.full_text_bytes_max = bound;
                    settings.keywords_text_bytes_max = bound;
                    settings.detail = Detail { partial_text_bytes_max: 16, ..Detail::RICH };
                });
            }
            let words = length(it, "Keywords");
            // A separator is counted after each word.
            for (bound, is_cut) in [(part(words).max(DECLARED), true), (words + 1, false)] {
                check_with(it, Limit::Keywords, is_cut, &|settings| settings.keywords_bytes_max = bound);
            }
            let links = if matches!(it.0, Type::Html | Type::Markdown) { count } else { 0 };
            for bound in [part(count), count, 2 * count] {
                check_with(it, Limit::References, bound < links, &|settings| settings.references_max = bound);
            }
            let links_bytes = length(it, "URL-References");
            for bound in [part(links_bytes), links_bytes + 1] {
                let is_cut = bound < links_bytes;
                check_with(it, Limit::References, is_cut, &|settings| settings.references_bytes_max = bound);
            }
            let front = cut(&it.1, part(it.1.bytes.len()));
            // Of a PDF, the rest is read.
            check_with(&(it.0, front.clone()), Limit::Read, it.0 != Type::Pdf, &|_| {});
            check_with(&(it.0, Object { rest: None, ..front }), Limit::Read, true, &|_| {});
            check_with(it, Limit::Read, false, &|_| {});
        }
    }
}

#[test]
fn a_front_of_which_more_is_read_is_said() {
    let of = [Limit::Pieces, Limit::FontNames, Limit::Commands, Limit::Symbols, Limit::Drawing];
    for limit in of.into_iter().chain([Limit::Message, Limit::Revisions, Limit::Playlist]) {
        let sample = sample(limit, 8).unwrap();
        let whole = Object::whole(format!("http://h.example/{}", sample.name), sample.bytes);
        let front = Object { rest: None, ..cut(&whole, whole.bytes.len() / 2) };
        check_with(&(sample.r#type, front), Limit::Read, true, &|_| {});
        check_with(&(sample.r#type, whole), Limit::Read, false, &|_| {});
    }
}

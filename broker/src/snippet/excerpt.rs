//! Excerpts: the snippets of hits, cut from the texts in the collection.
//!
//! The index stores no text. A hit's text is read whole, so that its snippet shows the words of the
//! query wherever they stand. If the object has changed since it was indexed, the snippet is of the
//! new text.

use std::borrow::Cow;

use collection::{Collection, Oid};
use query::Query;
use query::language::Languages;
use query::record::head;
use soif::Record;

use crate::answer::{Hit, Snippet};
use crate::highlight::Highlighter;
use crate::snippet::{cut, place};

/// Bytes of text that are read for the hits of one answer together; the rest have excerpts of their
/// descriptions.
const TEXTS_BYTES_MAX: usize = 64 << 20;
/// The same for a query with patterns, each of which may take long for each word.
const TEXTS_BYTES_MAX_BY_PATTERN: usize = 1 << 20;

/// The attributes with an object's text, the best first.
const TEXTS: [&str; 4] = ["Full-Text", "Partial-Text", "Body", "Abstract"];

/// Gives each hit the excerpt of its text, or else of its description, that shows the most words of
/// the query, as long as `goes_on` says; further hits have excerpts of their descriptions.
/// Blocks.
pub(crate) fn add(
    hits: &mut [Hit],
    query: &Query,
    collection: &Collection,
    goes_on: &dyn Fn() -> bool,
) {
    let highlighter = Highlighter::new(query);
    let bytes_max =
        if highlighter.has_patterns() { TEXTS_BYTES_MAX_BY_PATTERN } else { TEXTS_BYTES_MAX };
    let read = |hit: &Hit| match collection.get(&Oid::new(&hit.gatherer_id, &hit.url)) {
        Ok(stored) => stored.map(|it| it.record),
        Err(error) => {
            tracing::warn!(oid = hit.oid, %error, "a hit's text was not read");
            None
        }
    };
    add_within(hits, &highlighter, (bytes_max, goes_on), read);
}

fn add_within(
    hits: &mut [Hit],
    highlighter: &Highlighter,
    (mut left, goes_on): (usize, &dyn Fn() -> bool),
    read: impl Fn(&Hit) -> Option<Record>,
) {
    for hit in hits {
        let record = if left == 0 || !goes_on() { None } else { read(hit) };
        let record = record.unwrap_or_else(|| Record::new("FILE", ""));
        let (snippet, bytes) = excerpt(highlighter, &record, &hit.description, (left, goes_on));
        hit.snippet = snippet;
        left = left.saturating_sub(bytes);
    }
}

/// Returns the excerpt of the first `bytes_max` bytes, and the length of the whole text.
fn excerpt(
    highlighter: &Highlighter,
    record: &Record,
    description: &str,
    (bytes_max, goes_on): (usize, &dyn Fn() -> bool),
) -> (Snippet, usize) {
    let mut texts = TEXTS.into_iter().filter_map(|name| Some((name, record.text(name)?)));
    let found = texts.find(|(_, text)| !text.trim().is_empty());
    let (name, text) = found.unwrap_or_default();
    let shown = head(&text, bytes_max);
    let languages = Languages::of(record);
    let cut =
        |text| cut(text, highlighter.first_marks(text, languages, goes_on), highlighter.words());
    let (mut snippet, first) = cut(shown);
    let Some(at) = first else {
        let (other, first) = cut(description);
        let is_better = !description.is_empty() && (first.is_some() || shown.is_empty());
        return (if is_better { other } else { snippet }, text.len());
    };
    let placed = if record.get("Full-Text").is_some() { "Full-Text" } else { "Partial-Text" };
    // Bytes that are not UTF-8 are replaced, which moves the text behind them.
    let is_as_written = name == placed && matches!(text, Cow::Borrowed(_));
    let places = record.get(place::TEXT_PLACES).filter(|_| is_as_written);
    snippet.place = places.and_then(|it| place::name(it, shown, at));
    (snippet, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attributes: &[(&str, &[u8])], query: &str, text: &str, place: Option<&str>) {
        let mut record = Record::new("FILE", "http://h/");
        attributes.iter().for_each(|(name, value)| record.push(*name, *value));
        let highlighter = Highlighter::new(&query::parse(query).unwrap());
        let description = record.text("Description").unwrap_or_default();
        let (seen, _) = excerpt(&highlighter, &record, &description, (1 << 20, &|| true));
        assert_eq!((seen.text.as_str(), seen.place.as_deref()), (text, place), "{query}");
    }

    #[test]
    fn an_excerpt_has_the_place_of_its_first_word() {
        let places = ("Text-Places", b"page 1 0\npage 2 4\n".as_slice());
        check(&[], "two", "", None);
        check(&[places], "two", "", None);
        check(&[places, ("Partial-Text", b"one two")], "two", "one two", Some("page 2"));
        check(&[places, ("Full-Text", b"\none \n")], "one", "one", Some("page 1"));
        check(&[places, ("Full-Text", b"a"), ("Partial-Text", b"b")], "a", "a", Some("page 1"));
        check(&[places, ("Full-Text", b" "), ("Partial-Text", b" b")], "b", "b", None);
        check(&[places, ("Abstract", b" b ")], "b", "b", None);
        check(&[places, ("Partial-Text", b"\xff two")], "two", "\u{fffd} two", None);
    }

    #[test]
    fn a_description_is_shown_if_only_it_has_the_words() {
        let texts = [("Description", b"of it".as_slice()), ("Partial-Text", b"all")];
        check(&texts, "it", "of it", None);
        check(&texts, "all", "all", None);
        check(&texts, "none", "all", None);
        check(&texts[..1], "none", "of it", None);
    }

    #[test]
    fn a_sentence_far_behind_its_most_frequent_word_is_shown() {
        let mut text = format!("The orchard.{}", " It stands there.".repeat(100_000));
        text += " Nobody prunes the orchard by moonlight.";
        text += &" It stands there.".repeat(100_000);
        let mut record = Record::new("FILE", "http://h/");
        record.push("Full-Text", text);
        for (query, part) in [
            ("nobody prunes the orchard by moonlight", "Nobody prunes the orchard by moonlight"),
            ("orchard", "The orchard."),
            // A word that is nowhere.
            ("orchard quince", "The orchard."),
        ] {
            let highlighter = Highlighter::new(&query::parse(query).unwrap());
            let (seen, _) = excerpt(&highlighter, &record, "", (usize::MAX, &|| true));
            assert!(seen.text.contains(part), "{query}: {}", seen.text);
        }
    }

    #[test]
    fn texts_are_read_as_far_as_their_bytes_go() {
        let hit = Hit { description: "the end".to_owned(), ..Hit::default() };
        let mut hits = [hit.clone(), hit.clone(), hit];
        let mut record = Record::new("FILE", "http://h/");
        record.push("Partial-Text", "0123 the text");
        let highlighter = Highlighter::new(&query::parse("the").unwrap());
        add_within(&mut hits, &highlighter, (20, &|| true), |_| Some(record.clone()));
        let shown = hits.map(|it| it.snippet.text);
        assert_eq!(shown, ["0123 the text", "the end", "the end"], "the second is cut before it");
    }

    #[test]
    fn without_time_the_description_is_shown() {
        let hit = Hit { description: "the end".to_owned(), ..Hit::default() };
        let mut record = Record::new("FILE", "http://h/");
        record.push("Partial-Text", "filler ".repeat(10_000) + "the text");
        let highlighter = Highlighter::new(&query::parse("the").unwrap());
        let shown = |times: usize| {
            let (mut hits, asked) = ([hit.clone()], std::cell::Cell::new(0));
            let goes_on = || asked.replace(asked.get() + 1) < times;
            add_within(&mut hits, &highlighter, (1 << 20, &goes_on), |_| Some(record.clone()));
            hits[0].snippet.text.clone()
        };
        assert!(shown(usize::MAX).ends_with("the text"));
        // The time is over before the text is read, and while it is.
        assert_eq!([shown(0), shown(1)], ["the end", "the end"]);
    }

    #[test]
    fn a_long_text_is_not_read_to_its_end_for_words_that_came() {
        let filler = "filler ".repeat(100_000);
        let text = format!("one {filler} two {filler} one two");
        let mut record = Record::new("FILE", "http://h/");
        record.push("Full-Text", text);
        let highlighter = Highlighter::new(&query::parse("one two").unwrap());
        let (snippet, _) = excerpt(&highlighter, &record, "", (1 << 24, &|| true));
        assert!(snippet.text.starts_with("one filler filler"), "{}", snippet.text);
        // As long as there is time.
        let looks = std::cell::Cell::new(50);
        let goes_on = || looks.replace(looks.get() - 1) != 0;
        let (snippet, _) = excerpt(&highlighter, &record, "", (1 << 24, &goes_on));
        assert!(snippet.text.starts_with("one filler filler"), "{}", snippet.text);
    }

    #[test]
    fn words_at_the_end_of_a_long_text_are_shown() {
        let text = "filler ".repeat(100_000) + "the needle";
        let record = [("Full-Text", text.as_bytes()), ("Text-Places", b"page 1 0\npage 9 700100")];
        let end = "… filler filler filler filler filler filler filler filler the needle";
        check(&record, "\"the needle\"", end, Some("pages 1–8"));
    }
}

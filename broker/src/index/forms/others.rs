//! Forms in other languages than English, looked up by stem.
//!
//! For each word of a record in such a language, the index has a key: the language, the word's stem
//! and the word. So all forms of a word in a language have neighboring keys, and so have the compounds
//! that begin with it. The keys of an index without such records are none, and cost nothing.
//!
//! A form counts only in records of its language, which a column has: the same letters may be another
//! word in another language.

use std::collections::{BTreeMap, BTreeSet};

use query::field::TextField;
use query::forms::{Form, Forms, Own, stems};
use query::language::{Language, Languages};
use query::record::{Searched, searched};
use query::words::Words;
use soif::Record;
use tantivy::columnar::Column;
use tantivy::schema::Field;
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{DocId, SegmentReader, TantivyDocument};

use crate::index::schema::{Fields, name};

/// Maximum number of forms of a word in one language that a search uses in one segment.
const FORMS_MAX: usize = 128;
/// Maximum number of compounds with a word that a search uses in one language and segment: those that
/// most objects have.
pub(in crate::index) const COMPOUNDS_MAX: usize = 64;
/// Maximum number of keys that are read for the compounds with a word in one language and segment.
const READ_MAX: usize = 4_096;

/// The fields that have languages and keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyFields {
    pub(super) languages: Field,
    pub(super) forms: Field,
}

/// A form of a word in a segment.
pub(super) struct OtherForm {
    /// The languages in which it is a form.
    pub(super) languages: Languages,
    pub(super) form: Form,
    /// Number of objects of these languages that have it.
    pub(super) documents: u64,
}

/// Adds the languages of a record, and the keys of its words there.
pub(in crate::index) fn add(document: &mut TantivyDocument, fields: &Fields, record: &Record) {
    let languages = Languages::of(record);
    if languages.is_empty() {
        return;
    }
    for language in languages.iter() {
        document.add_u64(fields.languages, language.number());
    }
    let mut all: BTreeSet<String> = BTreeSet::new();
    let mut word = String::new();
    searched(record, &mut |_, what| {
        let Searched::Text(part, text) = what else { return };
        let mut words = Words::new(text);
        while TextField::is_inflected(part) && words.next_into(&mut word).is_some() {
            if !all.contains(&word) {
                all.insert(word.clone());
            }
        }
    });
    let mut tokens = Vec::new();
    for word in &all {
        stems(word, languages, &mut |language, stem| {
            let (text, position) = (key(language, &stem) + word, tokens.len());
            tokens.push(Token { text, position, ..Token::default() });
        });
    }
    let keys = PreTokenizedString { text: String::new(), tokens };
    document.add_pre_tokenized_text(fields.forms, keys);
}

/// Returns the beginning of the keys of all words with a stem.
fn key(language: Language, stem: &str) -> String {
    format!("{}{stem}\0", tag(language))
}

/// Returns the character with which the keys of a language begin.
fn tag(language: Language) -> char {
    u8::try_from(language.number()).map_or('?', |it| char::from(b'A' + it))
}

/// Returns the forms of a word in other languages that a segment has.
///
/// # Errors
///
/// The engine failed.
pub(super) fn of(
    word: &Forms,
    fields: KeyFields,
    segment: &SegmentReader,
) -> tantivy::Result<BTreeMap<String, OtherForm>> {
    let mut all = BTreeMap::new();
    let there = languages(fields.languages, segment)?;
    if there.is_empty() {
        return Ok(all);
    }
    for own in word.in_languages(there) {
        for (other, form, documents) in of_language(word, own, fields.forms, segment)? {
            let languages = Languages::default();
            let known = all.entry(other).or_insert(OtherForm { languages, form, documents: 0 });
            known.languages.add(own.language);
            known.form = known.form.max(form);
            known.documents += documents;
        }
    }
    Ok(all)
}

/// Returns the languages of the objects of a segment.
fn languages(field: Field, segment: &SegmentReader) -> tantivy::Result<Languages> {
    let index = segment.inverted_index(field)?;
    let mut languages = Languages::default();
    if index.terms().num_terms() == 0 {
        return Ok(languages);
    }
    let mut terms = index.terms().stream()?;
    while terms.advance() {
        let number = <[u8; 8]>::try_from(terms.key()).map(u64::from_be_bytes);
        number.ok().and_then(Language::by_number).into_iter().for_each(|it| languages.add(it));
    }
    Ok(languages)
}

/// Returns the forms in one language: the word, what it is, and how many objects have it.
fn of_language(
    word: &Forms,
    own: &Own,
    field: Field,
    segment: &SegmentReader,
) -> tantivy::Result<Vec<(String, Form, u64)>> {
    let index = segment.inverted_index(field)?;
    let mut found = Vec::new();
    // Calls `visit` with the stem and the word of each key that begins like this.
    let read = |beginning: String, max: usize, visit: &mut dyn FnMut(&str, &str, u64)| {
        let end = beginning.clone() + "\u{10ffff}";
        let keys = index.terms().range().ge(beginning.as_bytes()).lt(end.as_bytes());
        let mut keys = keys.into_stream()?;
        for _ in 0..max {
            if !keys.advance() {
                break;
            }
            let key = str::from_utf8(keys.key()).unwrap_or_default();
            let (stem, other) = key.split_once('\0').unwrap_or_default();
            let stem = stem.strip_prefix(tag(own.language)).unwrap_or_default();
            if word.may_be(other) && !word.is_english(other) {
                visit(stem, other, keys.value().doc_freq.into());
            }
        }
        tantivy::Result::Ok(())
    };
    read(key(own.language, &own.stem), FORMS_MAX, &mut |_, other, documents| {
        found.push((other.to_owned(), Form::Inflected, documents));
    })?;
    let Some(beginning) = &own.beginning else { return Ok(found) };
    let mut compounds = Vec::new();
    read(format!("{}{beginning}", tag(own.language)), READ_MAX, &mut |stem, other, documents| {
        if own.form(stem) == Some(Form::Compound) {
            compounds.push((other.to_owned(), Form::Compound, documents));
        }
    })?;
    if COMPOUNDS_MAX < compounds.len() {
        compounds.sort_by_key(|(_, _, documents)| std::cmp::Reverse(*documents));
        compounds.truncate(COMPOUNDS_MAX);
    }
    found.extend(compounds);
    Ok(found)
}

/// Says which objects of a segment are of some languages.
pub(super) struct Only {
    languages: Languages,
    column: Option<Column<u64>>,
}

impl Only {
    /// # Errors
    ///
    /// The engine failed.
    pub(super) fn new(languages: Languages, segment: &SegmentReader) -> tantivy::Result<Self> {
        let column = segment.fast_fields().column_opt::<u64>(name::LANGUAGES)?;
        Ok(Self { languages, column })
    }

    pub(super) fn has(&self, doc: DocId) -> bool {
        let Some(column) = &self.column else { return false };
        let mut languages = column.values_for_doc(doc).filter_map(Language::by_number);
        languages.any(|it| self.languages.has(it))
    }
}

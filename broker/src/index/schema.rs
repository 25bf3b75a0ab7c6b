//! The fields of the index: what it keeps of an object.

use query::field::{Part, Quantity};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, JsonObjectOptions, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};

use super::rank;
use super::words::EXACT;

/// Number of this layout and of the way words are made; an index of another is built anew.
pub(super) const LAYOUT: u32 = 3;

/// Part of an object that is searched by its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// Words, with positions.
    pub(super) field: Field,
    /// Whether a plain word is found in all its forms; not where endings mean nothing.
    pub(super) inflected: bool,
    /// What a word counts here.
    pub(super) weight: f32,
}

/// The fields of the index.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// `GATHERER-ID:URL`: what an object is replaced and deleted by.
    pub(super) oid: Field,
    pub(super) title: Text,
    pub(super) keywords: Text,
    pub(super) description: Text,
    pub(super) author: Text,
    pub(super) body: Text,
    /// Words of the address, and of the duplicates' addresses.
    pub(super) url: Text,
    pub(super) r#type: Text,
    pub(super) host: Text,
    /// Name, id and host of the gatherer.
    pub(super) gatherer: Text,
    /// `FACET NUL VALUE`, for counting and for filters.
    pub(super) facet: Field,
    /// All other attributes, by name in small letters: words with positions, whole numbers besides.
    pub(super) attributes: Field,
    /// Names of the attributes that the object has, in small letters.
    pub(super) names: Field,
    /// MD5 of an object that is not empty: what duplicates are told by.
    pub(super) content: Field,
    /// Whether another object with the same content answers for this one.
    pub(super) duplicate: Field,
    /// Unix seconds.
    pub(super) modified: Field,
    /// Unix seconds.
    pub(super) updated: Field,
    pub(super) year: Field,
    /// Bytes.
    pub(super) size: Field,
    /// What the address is ordered by.
    pub(super) url_key: Field,
    /// What the title is ordered by.
    pub(super) title_key: Field,
    /// What a hit shows, as JSON.
    pub(super) stored: Field,
}

/// Names of fast fields, which collectors ask for by name.
pub(super) mod name {
    pub(in crate::index) const FACET: &str = "facet";
    pub(in crate::index) const MODIFIED: &str = "modified";
    pub(in crate::index) const SIZE: &str = "size";
    pub(in crate::index) const URL_KEY: &str = "url_key";
    pub(in crate::index) const TITLE_KEY: &str = "title_key";
    pub(in crate::index) const OID: &str = "oid";
    pub(in crate::index) const CONTENT: &str = "content";
    pub(in crate::index) const DUPLICATE: &str = "duplicate";
}

impl Fields {
    /// Where the words of a part are.
    pub(super) fn text(&self, part: Part) -> Text {
        match part {
            Part::Title => self.title,
            Part::Keywords => self.keywords,
            Part::Description => self.description,
            Part::Author => self.author,
            Part::Body => self.body,
            Part::Url => self.url,
            Part::Type => self.r#type,
            Part::Host => self.host,
            Part::Gatherer => self.gatherer,
        }
    }

    /// Where a number is.
    pub(super) fn quantity(&self, quantity: Quantity) -> Field {
        match quantity {
            Quantity::Size => self.size,
            Quantity::Year => self.year,
            Quantity::Modified => self.modified,
            Quantity::Updated => self.updated,
        }
    }
}

/// Makes the schema.
pub(super) fn build() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(EXACT)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(words);
    let mut text = |name: &str, part: Part, weight: f32| Text {
        field: schema.add_text_field(name, words.clone()),
        inflected: part.is_inflected(),
        weight,
    };
    let title = text("title", Part::Title, rank::TITLE);
    let keywords = text("keywords", Part::Keywords, rank::KEYWORDS);
    let description = text("description", Part::Description, rank::DESCRIPTION);
    let body = text("body", Part::Body, rank::BODY);
    let author = text("author", Part::Author, rank::AUTHOR);
    let url = text("url", Part::Url, rank::URL);
    let r#type = text("type", Part::Type, 1.0);
    let host = text("host", Part::Host, 1.0);
    let gatherer = text("gatherer", Part::Gatherer, 1.0);
    let raw_fast = TextOptions::default().set_fast("raw");
    let attributes = JsonObjectOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(EXACT)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions),
    );
    let fields = Fields {
        oid: schema.add_text_field(name::OID, STRING | raw_fast.clone()),
        title,
        keywords,
        description,
        author,
        body,
        url,
        r#type,
        host,
        gatherer,
        facet: schema.add_text_field(name::FACET, STRING | raw_fast.clone()),
        attributes: schema.add_json_field("attributes", attributes),
        names: schema.add_text_field("names", STRING),
        content: schema.add_text_field(name::CONTENT, STRING | raw_fast.clone()),
        duplicate: schema.add_bool_field(name::DUPLICATE, INDEXED | FAST),
        modified: schema.add_i64_field(name::MODIFIED, FAST),
        updated: schema.add_i64_field("updated", FAST),
        year: schema.add_i64_field("year", FAST),
        size: schema.add_i64_field(name::SIZE, FAST),
        url_key: schema.add_text_field(name::URL_KEY, raw_fast.clone()),
        title_key: schema.add_text_field(name::TITLE_KEY, raw_fast),
        stored: schema.add_bytes_field("stored", STORED),
    };
    (schema.build(), fields)
}

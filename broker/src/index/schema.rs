//! The schema of the index: its fields.

use query::field::{Quantity, TextField};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, JsonObjectOptions, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};

use super::rank::{self, Factors, FieldWeight};
use super::words::EXACT;

/// Version of the schema, of the tokenizer and of the standing; an index of another version is built
/// anew.
pub(super) const LAYOUT: u32 = 12;

#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// Words, with positions.
    pub(super) field: Field,
    /// Whether a plain word matches all its forms; false in fields where endings have no meaning.
    pub(super) inflected: bool,
    pub(super) weight: FieldWeight,
}

#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// `GATHERER-ID:URL`, by which an object is replaced and deleted.
    pub(super) oid: Field,
    pub(super) title: Text,
    pub(super) keywords: Text,
    pub(super) description: Text,
    pub(super) author: Text,
    pub(super) body: Text,
    /// Words of the URL, and of the duplicates' URLs.
    pub(super) url: Text,
    /// Words of the URL below the root, and of the duplicates' URLs.
    pub(super) path: Text,
    /// Words of the name in the URL, which are words of `path` too.
    pub(super) name: Text,
    pub(super) r#type: Text,
    pub(super) host: Text,
    /// Name, id and host of the gatherer.
    pub(super) gatherer: Text,
    /// `FACET NUL VALUE`, for counting and for filters.
    pub(super) facet: Field,
    /// All other attributes, by name in lower case: words with positions, and whole numbers.
    pub(super) attributes: Field,
    /// Names of the attributes that the object has, in lower case.
    pub(super) names: Field,
    /// Numbers of the object's languages, but for English.
    pub(super) languages: Field,
    /// Keys of the object's words in these languages, by stem.
    pub(super) forms: Field,
    /// MD5 of a non-empty object, by which its duplicates are found.
    pub(super) content: Field,
    /// Whether another object with the same content represents this one.
    pub(super) duplicate: Field,
    /// Unix seconds.
    pub(super) modified: Field,
    /// Unix seconds.
    pub(super) updated: Field,
    pub(super) year: Field,
    /// Bytes.
    pub(super) size: Field,
    /// Percent.
    pub(super) standing: Field,
    /// The serial of the object's last change, by which those are counted that a view has.
    pub(super) serial: Field,
    pub(super) url_key: Field,
    pub(super) title_key: Field,
    /// The content of a hit, as JSON.
    pub(super) stored: Field,
    /// How the best hits are ranked again.
    pub(super) factors: Factors,
}

/// Names of the fast fields, since collectors refer to them by name.
pub(super) mod name {
    pub(in crate::index) const FACET: &str = "facet";
    pub(in crate::index) const MODIFIED: &str = "modified";
    pub(in crate::index) const UPDATED: &str = "updated";
    pub(in crate::index) const SIZE: &str = "size";
    pub(in crate::index) const STANDING: &str = "standing";
    pub(in crate::index) const SERIAL: &str = "serial";
    pub(in crate::index) const URL_KEY: &str = "url_key";
    pub(in crate::index) const TITLE_KEY: &str = "title_key";
    pub(in crate::index) const OID: &str = "oid";
    pub(in crate::index) const CONTENT: &str = "content";
    pub(in crate::index) const LANGUAGES: &str = "languages";
    pub(in crate::index) const DUPLICATE: &str = "duplicate";
}

impl Fields {
    pub(super) fn text(&self, part: TextField) -> Text {
        match part {
            TextField::Title => self.title,
            TextField::Keywords => self.keywords,
            TextField::Description => self.description,
            TextField::Author => self.author,
            TextField::Body => self.body,
            TextField::Url => self.url,
            TextField::Path => self.path,
            TextField::Type => self.r#type,
            TextField::Host => self.host,
            TextField::Gatherer => self.gatherer,
        }
    }

    pub(super) fn quantity(&self, quantity: Quantity) -> Field {
        match quantity {
            Quantity::Size => self.size,
            Quantity::Year => self.year,
            Quantity::Modified => self.modified,
            Quantity::Updated => self.updated,
        }
    }
}

pub(super) fn build() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(EXACT)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(words);
    let mut text = |name: &str, part: TextField, weight: FieldWeight| Text {
        field: schema.add_text_field(name, words.clone()),
        inflected: part.is_inflected(),
        weight,
    };
    let title = text("title", TextField::Title, rank::TITLE);
    let keywords = text("keywords", TextField::Keywords, rank::KEYWORDS);
    let description = text("description", TextField::Description, rank::DESCRIPTION);
    let body = text("body", TextField::Body, rank::BODY);
    let author = text("author", TextField::Author, rank::AUTHOR);
    let url = text("url", TextField::Url, rank::URL);
    let path = text("path", TextField::Path, rank::URL);
    let r#type = text("type", TextField::Type, rank::NAMED);
    let host = text("host", TextField::Host, rank::NAMED);
    let gatherer = text("gatherer", TextField::Gatherer, rank::NAMED);
    let named = TextFieldIndexing::default()
        .set_tokenizer(EXACT)
        .set_index_option(IndexRecordOption::WithFreqs);
    let named = TextOptions::default().set_indexing_options(named);
    let name =
        Text { field: schema.add_text_field("name", named), inflected: false, weight: rank::NAME };
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
        path,
        name,
        r#type,
        host,
        gatherer,
        facet: schema.add_text_field(name::FACET, STRING | raw_fast.clone()),
        attributes: schema.add_json_field("attributes", attributes),
        names: schema.add_text_field("names", STRING),
        languages: schema.add_u64_field(name::LANGUAGES, INDEXED | FAST),
        forms: schema.add_text_field("forms", STRING),
        content: schema.add_text_field(name::CONTENT, STRING | raw_fast.clone()),
        duplicate: schema.add_bool_field(name::DUPLICATE, INDEXED | FAST),
        modified: schema.add_i64_field(name::MODIFIED, FAST),
        updated: schema.add_i64_field(name::UPDATED, FAST),
        year: schema.add_i64_field("year", FAST),
        size: schema.add_i64_field(name::SIZE, FAST),
        standing: schema.add_u64_field(name::STANDING, FAST),
        serial: schema.add_u64_field(name::SERIAL, FAST),
        url_key: schema.add_text_field(name::URL_KEY, raw_fast.clone()),
        title_key: schema.add_text_field(name::TITLE_KEY, raw_fast),
        stored: schema.add_bytes_field("stored", STORED),
        factors: Factors::default(),
    };
    (schema.build(), fields)
}

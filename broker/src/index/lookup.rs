//! Look-ups of single documents in the last commit.

use collection::Oid;
use query::record::oid_parse;
use tantivy::schema::{Field, IndexRecordOption, Value as _};
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, TantivyDocument, Term};

use super::document::StoredHit;
use super::schema::{Fields, name};

/// Returns up to `count_max` live documents with the exact value `key`, in any order.
pub(super) fn having(
    searcher: &Searcher,
    field: Field,
    key: &str,
    count_max: usize,
) -> tantivy::Result<Vec<DocAddress>> {
    let term = Term::from_field_text(field, key);
    let mut found = Vec::new();
    for (ord, segment) in (0..).zip(searcher.segment_readers()) {
        let postings =
            segment.inverted_index(field)?.read_postings(&term, IndexRecordOption::Basic)?;
        let Some(mut postings) = postings else { continue };
        let mut doc = postings.doc();
        while doc != TERMINATED && found.len() < count_max {
            if !segment.is_deleted(doc) {
                found.push(DocAddress::new(ord, doc));
            }
            doc = postings.advance();
        }
    }
    Ok(found)
}

pub(super) fn stored(
    searcher: &Searcher,
    fields: &Fields,
    address: DocAddress,
) -> tantivy::Result<StoredHit> {
    let document: TantivyDocument = searcher.doc(address)?;
    let bytes = document.get_first(fields.stored).and_then(|value| value.as_bytes());
    Ok(serde_json::from_slice(bytes.unwrap_or_default())?)
}

/// Returns the content digest of a document; `None` if it has none.
pub(super) fn content_digest(
    searcher: &Searcher,
    address: DocAddress,
) -> tantivy::Result<Option<String>> {
    text(searcher, address, name::CONTENT)
}

/// Returns the term by which a document is replaced and deleted.
pub(super) fn oid_text(
    searcher: &Searcher,
    address: DocAddress,
) -> tantivy::Result<Option<String>> {
    text(searcher, address, name::OID)
}

/// Returns the OID of a document whose URL is short enough to have duplicates.
pub(super) fn oid(searcher: &Searcher, address: DocAddress) -> tantivy::Result<Option<Oid>> {
    let text = oid_text(searcher, address)?;
    let parts = text.as_deref().and_then(oid_parse);
    Ok(parts.map(|(gatherer, url)| Oid { gatherer, url: url.to_owned() }))
}

pub(super) fn is_duplicate(searcher: &Searcher, address: DocAddress) -> tantivy::Result<bool> {
    let segment = searcher.segment_reader(address.segment_ord);
    Ok(segment.fast_fields().bool(name::DUPLICATE)?.first(address.doc_id).unwrap_or(false))
}

fn text(searcher: &Searcher, address: DocAddress, field: &str) -> tantivy::Result<Option<String>> {
    let segment = searcher.segment_reader(address.segment_ord);
    let Some(column) = segment.fast_fields().str(field)? else { return Ok(None) };
    let Some(ord) = column.term_ords(address.doc_id).next() else { return Ok(None) };
    let mut text = String::new();
    Ok(column.ord_to_str(ord, &mut text)?.then_some(text))
}

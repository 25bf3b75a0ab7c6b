//! The hits of an answer: what is shown of each found object, with its twins.
//!
//! Among the best hits, objects with nearly the same text are one hit, that of the best of them; so
//! are objects of one URL from several gatherers, of which the newest is shown. Further down, each
//! object is a hit.

pub(super) mod twins;

use collection::Oid;
use query::record::{head, oid_text};
use soif::Record;
use tantivy::{DocAddress, Searcher};

use super::deadline::Deadline;
use super::document::{StoredHit, content_digest, title_of};
use super::lookup;
use super::rerank::{RANKED_MAX, Ranked};
use super::schema::Fields;
use super::search::Refusal;
use crate::answer::{DUPLICATES_MAX, Duplicate, Hit, SearchRequest, Snippet, Sort};
use twins::are_twins;

/// Maximum number of objects of one content that are read to name [`DUPLICATES_MAX`] of them.
const GROUP_READ_MAX: usize = 256;

/// A hit with the objects that it stands for.
struct Kept {
    ranked: Ranked,
    stored: StoredHit,
    twins: Vec<StoredHit>,
}

/// Returns the requested hits of all that were `found`, which begin with the first one, and the other
/// forms of the object that is to be no hit.
pub(super) fn hits(
    searcher: &Searcher,
    fields: &Fields,
    found: &[Ranked],
    request: &SearchRequest,
    deadline: Deadline,
) -> Result<(Vec<Hit>, Vec<Duplicate>), Refusal> {
    let is_by_relevance = request.sort == Sort::Relevance;
    let joined = if is_by_relevance && !request.duplicates { RANKED_MAX } else { 0 };
    let last = request.offset + request.limit;
    let mut kept: Vec<Kept> = Vec::new();
    let but = request.but.as_deref().map(|it| (it, print_of(it)));
    let mut forms = match &but {
        Some((record, _)) => copies(searcher, fields, record)?,
        None => Vec::new(),
    };
    for ranked in found.iter().take(joined) {
        if last <= kept.len() {
            break;
        }
        deadline.check()?;
        let stored = lookup::stored(searcher, fields, ranked.address)?;
        if but.as_ref().is_some_and(|(_, it)| are_twins(it, &stored)) {
            forms.push(Duplicate { similar: true, ..duplicate(stored) });
            continue;
        }
        match kept.iter_mut().find(|it| are_twins(&it.stored, &stored)) {
            Some(twin) => twin.take(*ranked, stored),
            None => kept.push(Kept { ranked: *ranked, stored, twins: Vec::new() }),
        }
    }
    let mut hits = Vec::with_capacity(request.limit);
    let rest = request.offset.saturating_sub(kept.len());
    let room = last.saturating_sub(kept.len().max(request.offset));
    for it in kept.into_iter().skip(request.offset) {
        hits.push(hit(searcher, fields, it, request)?);
    }
    for ranked in found.iter().skip(joined + rest).take(room) {
        deadline.check()?;
        let stored = lookup::stored(searcher, fields, ranked.address)?;
        let alone = Kept { ranked: *ranked, stored, twins: Vec::new() };
        hits.push(hit(searcher, fields, alone, request)?);
    }
    forms.truncate(2 * DUPLICATES_MAX);
    Ok((hits, forms))
}

impl Kept {
    /// Takes a twin. Of one URL, the newest is shown.
    fn take(&mut self, ranked: Ranked, mut other: StoredHit) {
        if other.url == self.stored.url && self.stored.modified < other.modified {
            std::mem::swap(&mut self.stored, &mut other);
            self.ranked.address = ranked.address;
        }
        self.twins.push(other);
    }
}

fn hit(
    searcher: &Searcher,
    fields: &Fields,
    kept: Kept,
    request: &SearchRequest,
) -> tantivy::Result<Hit> {
    let Kept { ranked, stored, twins } = kept;
    let digest = lookup::content_digest(searcher, ranked.address)?;
    let mut duplicates = match &digest {
        Some(digest) => of_content(searcher, fields, digest, |_, it| it != ranked.address)?,
        None => Vec::new(),
    };
    let similar = twins.into_iter().map(|it| Duplicate { similar: true, ..duplicate(it) });
    duplicates.extend(similar.take(DUPLICATES_MAX));
    let is_by_relevance = request.sort == Sort::Relevance;
    Ok(Hit {
        title: if stored.title.is_empty() { title_of(&stored.url) } else { stored.title },
        oid: oid_text(&stored.gatherer_id, &stored.url),
        url: stored.url,
        description: stored.description,
        r#type: stored.r#type,
        score: if is_by_relevance { ranked.reasons.score() } else { 0.0 },
        gatherer: stored.gatherer,
        gatherer_id: stored.gatherer_id,
        host: stored.host,
        size: stored.size,
        modified: stored.modified,
        part: stored.part,
        landing_page: stored.landing_page,
        snippet: Snippet::default(),
        duplicates,
        md5: digest.unwrap_or_default(),
        broker: None,
        reasons: (request.explain && is_by_relevance).then_some(ranked.reasons),
    })
}

fn duplicate(stored: StoredHit) -> Duplicate {
    let oid = oid_text(&stored.gatherer_id, &stored.url);
    let StoredHit { url, gatherer, r#type, modified, .. } = stored;
    Duplicate { url, gatherer, oid, r#type, modified, similar: false, broker: None }
}

/// Returns what twins of a record are known by.
fn print_of(record: &Record) -> StoredHit {
    let print = record.text("Text-Print").unwrap_or_default();
    let print = head(print.trim(), twins::PRINT_BYTES).to_owned();
    StoredHit { url: record.url.clone(), print, ..StoredHit::default() }
}

/// Returns other objects with the content of a record.
fn copies(
    searcher: &Searcher,
    fields: &Fields,
    record: &Record,
) -> tantivy::Result<Vec<Duplicate>> {
    let itself = Oid::of(record);
    match content_digest(record) {
        Some(digest) => {
            of_content(searcher, fields, &digest, |oid, _| Some(oid) != itself.as_ref())
        }
        None => Ok(Vec::new()),
    }
}

/// Returns the wanted objects with a content, the first [`DUPLICATES_MAX`] by (URL, gatherer).
fn of_content(
    searcher: &Searcher,
    fields: &Fields,
    digest: &str,
    is_wanted: impl Fn(&Oid, DocAddress) -> bool,
) -> tantivy::Result<Vec<Duplicate>> {
    let mut found = Vec::new();
    for other in lookup::having(searcher, fields.content, digest, GROUP_READ_MAX)? {
        if let Some(oid) = lookup::oid(searcher, other)?
            && is_wanted(&oid, other)
        {
            found.push((oid.key(), other));
        }
    }
    found.sort();
    found.truncate(DUPLICATES_MAX);
    let name = |(_, address): (Vec<u8>, DocAddress)| {
        Ok(duplicate(lookup::stored(searcher, fields, address)?))
    };
    found.into_iter().map(name).collect()
}

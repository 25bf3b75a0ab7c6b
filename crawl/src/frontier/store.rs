//! The store of URLs: texts one after another, what is known of each, and an index by key.
//!
//! A URL takes its text, 28 bytes, and about 10 bytes of the index. Everything grows by pieces, so
//! that nothing is copied and no capacity stays empty.
//!
//! Sans-I/O.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

use crate::key::URL_BYTES_MAX;

/// No URL, at the end of a queue.
pub(super) const NONE: u32 = u32::MAX;

/// Binary logarithm of the bytes of a piece of text.
const PIECE_BITS: u32 = 20;
/// Binary logarithm of the entries of a piece.
const ENTRY_BITS: u32 = 14;
/// Maximum number of pieces of text: 4 GiB, so that a position fits.
const PIECES_MAX: usize = 1 << (32 - PIECE_BITS);

/// Where a URL is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Fetching,
    Done,
    /// Done without a request, and still in its queue.
    Skipped,
    Failed,
    /// Kept out by robots.txt.
    Out,
}

/// What is known of a URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Position of its text; that of its key follows if it differs.
    at: u32,
    url_bytes: u16,
    /// 0: the URL is its own key.
    key_bytes: u16,
    pub(super) host: u32,
    /// The next one of its queue.
    pub(super) next: u32,
    /// What the phase needs: a failure, or a line of robots.txt.
    pub(super) detail: u32,
    pub(super) depth: u16,
    pub(super) tries: u8,
    pub(super) phase: Phase,
}

/// All URLs by number, from 0.
#[derive(Debug, Default)]
pub(super) struct Store {
    texts: Vec<Vec<u8>>,
    entries: Vec<Vec<Entry>>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl Store {
    /// Returns the number of URLs.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns all URLs, in the order of their numbers.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// Returns the number of the URL with that key.
    pub(super) fn find(&self, key: &str) -> Option<u32> {
        let is_same = |id: &u32| self.key(*id) == key.as_bytes();
        self.index.find(self.hasher.hash_one(key.as_bytes()), is_same).copied()
    }

    /// Adds a URL that is not there; `None`: it is too long, or the store is full.
    pub(super) fn insert(&mut self, url: &str, key: &str, host: u32, depth: u16) -> Option<u32> {
        let id = u32::try_from(self.len()).ok().filter(|it| *it < NONE)?;
        if URL_BYTES_MAX < url.len().max(key.len()) {
            return None;
        }
        let own_key = if url == key { "" } else { key };
        let at = self.append(url, own_key)?;
        let entry = Entry {
            at,
            url_bytes: u16::try_from(url.len()).ok()?,
            key_bytes: u16::try_from(own_key.len()).ok()?,
            host,
            next: NONE,
            detail: 0,
            depth,
            tries: 0,
            phase: Phase::Queued,
        };
        match self.entries.last_mut().filter(|it| it.len() < 1 << ENTRY_BITS) {
            Some(piece) => piece.push(entry),
            None => {
                let mut piece = Vec::with_capacity(1 << ENTRY_BITS);
                piece.push(entry);
                self.entries.push(piece);
            }
        }
        let hash = self.hasher.hash_one(key.as_bytes());
        let (texts, entries, hasher) = (&self.texts, &self.entries, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            hasher.hash_one(entry_of(entries, *id).map_or(&[][..], |it| key_of(texts, it)))
        });
        Some(id)
    }

    /// Appends the texts to the last piece if there is room; returns their position.
    fn append(&mut self, url: &str, key: &str) -> Option<u32> {
        let bytes = url.len() + key.len();
        let has_room = |it: &Vec<u8>| it.len() + bytes <= 1 << PIECE_BITS;
        if !self.texts.last().is_some_and(has_room) {
            if PIECES_MAX <= self.texts.len() {
                return None;
            }
            self.texts.push(Vec::with_capacity(1 << PIECE_BITS));
        }
        let number = self.texts.len() - 1;
        let piece = self.texts.last_mut()?;
        let at = u32::try_from(number << PIECE_BITS | piece.len()).ok()?;
        piece.extend_from_slice(url.as_bytes());
        piece.extend_from_slice(key.as_bytes());
        Some(at)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Entry> {
        entry_of(&self.entries, id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Entry> {
        let (piece, at) = place(id);
        self.entries.get_mut(piece)?.get_mut(at)
    }

    /// Returns the text of a URL, as it was added.
    pub(super) fn url(&self, id: u32) -> &str {
        let text = self.get(id).map(|it| text_of(&self.texts, it.at, it.url_bytes));
        std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
    }

    fn key(&self, id: u32) -> &[u8] {
        self.get(id).map_or(&[], |it| key_of(&self.texts, it))
    }

    /// Returns the number of allocated bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(Vec::capacity).sum();
        let entries: usize = self.entries.iter().map(Vec::capacity).sum();
        texts + entries * size_of::<Entry>() + self.index.allocation_size()
    }
}

fn place(id: u32) -> (usize, usize) {
    let id = id as usize;
    (id >> ENTRY_BITS, id & ((1 << ENTRY_BITS) - 1))
}

fn entry_of(entries: &[Vec<Entry>], id: u32) -> Option<&Entry> {
    let (piece, at) = place(id);
    entries.get(piece)?.get(at)
}

fn text_of(texts: &[Vec<u8>], at: u32, bytes: u16) -> &[u8] {
    let (piece, start) = ((at >> PIECE_BITS) as usize, (at & ((1 << PIECE_BITS) - 1)) as usize);
    let text = texts.get(piece).and_then(|it| it.get(start..start + usize::from(bytes)));
    text.unwrap_or_default()
}

fn key_of<'a>(texts: &'a [Vec<u8>], entry: &Entry) -> &'a [u8] {
    if entry.key_bytes == 0 {
        text_of(texts, entry.at, entry.url_bytes)
    } else {
        text_of(texts, entry.at + u32::from(entry.url_bytes), entry.key_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_found_by_their_keys() {
        let mut store = Store::default();
        for n in 0..40_000_u32 {
            let (url, key) = (format!("http://h/%7e{n}"), format!("http://h/~{n}"));
            let url = if n % 3 == 0 { &key } else { &url };
            assert_eq!(store.insert(url, &key, n, 7), Some(n));
            assert_eq!(store.url(n), url);
        }
        for n in 0..40_000_u32 {
            assert_eq!(store.find(&format!("http://h/~{n}")), Some(n));
            assert_eq!(store.get(n).unwrap().host, n);
        }
        assert_eq!(store.find("http://h/~40000"), None);
        assert_eq!(store.find("http://h/%7e1"), None);
        let long = "a".repeat(URL_BYTES_MAX + 1);
        assert_eq!(store.insert(&long, &long, 0, 0), None);
        // More than one piece of text.
        let long = "a".repeat(URL_BYTES_MAX - 5);
        for n in 0..300_u32 {
            let url = format!("{long}{n:05}");
            let id = store.insert(&url, &url, 0, 0).unwrap();
            assert_eq!((store.url(id), store.find(&url)), (&url[..], Some(id)));
        }
    }
}

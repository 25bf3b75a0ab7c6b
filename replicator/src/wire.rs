//! The wire reader: takes numbers (in network byte order), keys and short texts from the front of
//! bytes that others sent.
//!
//! Sans-I/O.

use std::ops::RangeInclusive;

use crate::version::{Name, Number};

/// The bytes that have not been read yet. The methods return `None` if too few bytes are left or
/// they are invalid.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[it]| it)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Takes a flag, and a value if it is set.
    pub(crate) fn option<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.flag()? { value(self).map(Some) } else { Some(None) }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// Takes all the rest if its length is in `lengths`.
    pub(crate) fn rest(&mut self, lengths: RangeInclusive<usize>) -> Option<Vec<u8>> {
        lengths.contains(&self.0.len()).then(|| std::mem::take(&mut self.0).to_vec())
    }

    /// Takes a length of one byte and as many bytes of text.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let count = self.u8()?;
        std::str::from_utf8(self.bytes(count.into())?).ok()
    }

    pub(crate) fn name(&mut self) -> Option<Name> {
        Name::new(self.text()?).ok()
    }

    /// Takes the number of a version.
    pub(crate) fn number(&mut self) -> Option<Number> {
        Some(Number { epoch: self.u64()?, sequence: self.u64()? })
    }

    /// Takes a count of two bytes and as many items; `None` if there are more than `max`.
    pub(crate) fn list<T>(
        &mut self,
        max: usize,
        mut one: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = usize::from(self.u16()?);
        if max < count {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    /// Returns `None` if bytes are left.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Writes the length of a text in one byte, then the text. Texts have at most 255 bytes: their
/// types make sure of it.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    bytes.extend(text);
}

/// Writes the count of items in two bytes, then the items. Items beyond 65,535 are left out.
pub(crate) fn put_list<T>(bytes: &mut Vec<u8>, list: &[T], mut one: impl FnMut(&mut Vec<u8>, &T)) {
    let list = list.get(..usize::from(u16::MAX)).unwrap_or(list);
    bytes.extend(u16::try_from(list.len()).unwrap_or(u16::MAX).to_be_bytes());
    for it in list {
        one(bytes, it);
    }
}

//! The wire reader: takes numbers (in network byte order), keys and short texts from the front of
//! bytes that others sent.
//!
//! Sans-I/O.

use crate::version::Name;

/// The bytes that have not been read yet. The methods return `None` if too few bytes are left or
/// they are invalid.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[it]| it)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// Takes a length of one byte and as many bytes of text.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let count = self.u8()?;
        std::str::from_utf8(self.bytes(count.into())?).ok()
    }

    pub(super) fn name(&mut self) -> Option<Name> {
        Name::new(self.text()?).ok()
    }

    /// Takes a count of two bytes and as many items; `None` if there are more than `max`.
    pub(super) fn list<T>(
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
    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Writes the length of a text in one byte, then the text. Its maker has checked that it has at
/// most 255 bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    bytes.extend(text);
}

/// Writes the count of items in two bytes, then the items. Items beyond the largest such count are
/// left out.
pub(super) fn put_list<T>(bytes: &mut Vec<u8>, list: &[T], mut one: impl FnMut(&mut Vec<u8>, &T)) {
    let list = list.get(..usize::from(u16::MAX)).unwrap_or(list);
    bytes.extend(u16::try_from(list.len()).unwrap_or(u16::MAX).to_be_bytes());
    for it in list {
        one(bytes, it);
    }
}

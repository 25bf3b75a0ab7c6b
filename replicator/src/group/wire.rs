//! The wire reader: takes numbers, keys and short texts off the front of foreign bytes, in network byte order.
//!
//! Sans-I/O.

use crate::version::Name;

/// The rest of some bytes. Its methods return `None` for what is not there.
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

    /// Takes text after its length of one byte.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let count = self.u8()?;
        std::str::from_utf8(self.bytes(count.into())?).ok()
    }

    pub(super) fn name(&mut self) -> Option<Name> {
        Name::new(self.text()?).ok()
    }

    /// Takes a count of two bytes, at most `max`, and as many items.
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

/// Writes text after its length. All text is checked where it is made: it has at most 255 bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    bytes.extend(text);
}

/// Writes a list after its count of two bytes. Items beyond that count are left out.
pub(super) fn put_list<T>(bytes: &mut Vec<u8>, list: &[T], mut one: impl FnMut(&mut Vec<u8>, &T)) {
    let list = list.get(..usize::from(u16::MAX)).unwrap_or(list);
    bytes.extend(u16::try_from(list.len()).unwrap_or(u16::MAX).to_be_bytes());
    for it in list {
        one(bytes, it);
    }
}

//! MD5 digests: they tell whether an object has changed, and which objects are the same.
//!
//! Source: TR §4 (MD5 attribute, RFC 1321). MD5 is no protection: anyone can make two objects with
//! one MD5.
//!
//! Sans-I/O.

use std::fmt;

use md5::Digest as _;

/// An MD5 sum. Displayed as 32 lower-case hex digits, as in the attribute `MD5`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Md5(pub [u8; 16]);

impl Md5 {
    /// Returns the sum of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(md5::Md5::digest(bytes).into())
    }

    /// Reads 32 hex digits in any case, with white space around them.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let digits = std::str::from_utf8(text.trim_ascii()).ok()?;
        // `from_str_radix` would take a sign, too.
        let is_hex = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let sum = is_hex.then(|| u128::from_str_radix(digits, 16).ok())??;
        Some(Self(sum.to_be_bytes()))
    }
}

impl fmt::Display for Md5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Md5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Md5({self})")
    }
}

/// MD5 of bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Md5Writer(md5::Md5);

impl Md5Writer {
    /// Returns the sum of no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the sum of all pieces.
    pub fn finish(self) -> Md5 {
        Md5(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321, appendix A.5.
    #[test]
    fn agrees_with_the_rfc() {
        for (text, expected) in
            [("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72")]
        {
            assert_eq!(Md5::of(text.as_bytes()).to_string(), expected);
            assert_eq!(
                Md5::from_hex(expected.to_uppercase().as_bytes()),
                Some(Md5::of(text.as_bytes()))
            );
        }
        let mut pieces = Md5Writer::new();
        pieces.update(b"a");
        pieces.update(b"bc");
        assert_eq!(pieces.finish(), Md5::of(b"abc"));
    }

    #[test]
    fn text_other_than_32_hex_digits_is_refused() {
        assert_eq!(Md5::from_hex(b"d41d8cd98f00b204e9800998ecf8427"), None);
        assert_eq!(Md5::from_hex(b"z41d8cd98f00b204e9800998ecf8427e"), None);
        assert_eq!(Md5::from_hex(b"+41d8cd98f00b204e9800998ecf8427e"), None);
    }
}

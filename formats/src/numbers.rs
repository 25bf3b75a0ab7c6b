//! Numbers (`be…`: big-endian, `le…`: little-endian) and slices of binary formats, read at any offset of
//! foreign bytes without a panic.

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the `len` bytes at `at`, if they are all there.
pub(crate) fn slice(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// Returns as many of the `len` bytes at `at` as there are.
pub(crate) fn slice_up_to(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.get(..len.min(rest.len())).unwrap_or_default()
}

/// Returns the bytes before the first zero.
pub(crate) fn up_to_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|it| *it == 0).next().unwrap_or_default()
}

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

pub(crate) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Returns a little-endian number of four bytes as a length or an offset.
pub(crate) fn le_len32(bytes: &[u8], at: usize) -> Option<usize> {
    le32(bytes, at).map(|it| it as usize)
}

/// Returns a big-endian number of two bytes as a length or an offset.
pub(crate) fn len16(bytes: &[u8], at: usize) -> Option<usize> {
    be16(bytes, at).map(usize::from)
}

/// Returns a big-endian number of four bytes as a length or an offset.
pub(crate) fn len32(bytes: &[u8], at: usize) -> Option<usize> {
    be32(bytes, at).map(|it| it as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_inside_the_bytes_only() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(be16(&bytes, 0), Some(0x0102));
        assert_eq!(le16(&bytes, 1), Some(0x0302));
        assert_eq!(be32(&bytes, 4), Some(0x0506_0708));
        assert_eq!(le32(&bytes, 4), Some(0x0807_0605));
        assert_eq!(be64(&bytes, 0), Some(0x0102_0304_0506_0708));
        assert_eq!(be16(&bytes, 7), None);
        assert_eq!(be32(&bytes, usize::MAX), None);
        assert_eq!(slice(&bytes, 6, 2), Some(&bytes[6..]));
        assert_eq!(slice(&bytes, 6, 3), None);
        assert_eq!(slice(&bytes, 6, usize::MAX), None);
        assert_eq!(slice_up_to(&bytes, 6, usize::MAX), &bytes[6..]);
        assert_eq!(slice_up_to(&bytes, 9, 1), b"");
    }
}

//! Workbooks that are protected against changes alone: they are locked by a password that all programs know.
//!
//! Source: Microsoft's \[MS-XLS\] 2.4.117 (`FilePass`) and 2.2.10 (which records are locked);
//! \[MS-OFFCRYPTO\] 2.3.6 (RC4).

use soif::digest::Md5;

use super::{PASSWORD, SHEET, START, record};

/// The password of workbooks that anybody may read.
const KNOWN: &str = "VelvetSweatshop";
/// The first bytes of a [`PASSWORD`] of RC4 with MD5.
const RC4: &[u8] = &[1, 0, 1, 0, 1, 0];
/// Bytes of a hash that make the key of all blocks.
const KEY_BYTES: usize = 5;
/// Bytes that are locked by one key.
const BLOCK_BYTES: usize = 1024;
/// The first records, among which the one with the password is.
const FRONT_RECORDS: usize = 8;
/// Records that are not locked: starts of sheets, and what is said for shared use.
const OPEN: [u16; 9] = [START, PASSWORD, 0x00e1, 0x0138, 0x0194, 0x0195, 0x0196, 0x01a9, 0x01b7];

/// Returns the workbook without its lock, if the password is the known one.
pub(super) fn opened(stream: &[u8]) -> Option<Vec<u8>> {
    let mut rest = stream;
    let password = (0..FRONT_RECORDS).find_map(|_| {
        let (kind, content, after) = record(rest)?;
        rest = after;
        (kind == PASSWORD).then_some(content)
    })?;
    let [salt, check, hash] = password.strip_prefix(RC4)?.as_chunks::<16>().0 else { return None };
    let key = key(salt);
    let mut lock = Lock::new(&key, 0);
    let [check, hash] = [check, hash].map(|it| it.map(|byte| byte ^ lock.next()));
    if Md5::of(&check).0 != hash {
        return None;
    }
    let mut opened = Vec::with_capacity(stream.len());
    let mut lock = Lock::new(&key, 0);
    let mut rest = stream;
    while let Some((kind, content, after)) = record(rest) {
        let head_bytes = rest.len() - content.len() - after.len();
        // Where a sheet begins is not locked.
        let open_bytes = match kind {
            SHEET => 4,
            kind if OPEN.contains(&kind) => content.len(),
            _ => 0,
        };
        for (at, byte) in rest.iter().take(head_bytes + content.len()).enumerate() {
            if opened.len().is_multiple_of(BLOCK_BYTES) {
                lock = Lock::new(&key, u32::try_from(opened.len() / BLOCK_BYTES).ok()?);
            }
            let mask = lock.next();
            opened.push(if at < head_bytes + open_bytes { *byte } else { byte ^ mask });
        }
        if kind == PASSWORD {
            // Without a lock, the record has no meaning.
            let start = stream.len() - rest.len();
            opened.get_mut(start..start + 2)?.fill(0);
        }
        rest = after;
    }
    Some(opened)
}

/// Returns the key that the keys of blocks are made of.
fn key(salt: &[u8]) -> Vec<u8> {
    let password: Vec<u8> = KNOWN.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let short = |bytes: &[u8]| Md5::of(bytes).0.into_iter().take(KEY_BYTES).collect::<Vec<u8>>();
    short(&[&short(&password)[..], salt].concat().repeat(16))
}

/// The bytes of RC4 that lock a block.
struct Lock {
    state: [u8; 256],
    first: u8,
    second: u8,
}

impl Lock {
    fn new(key: &[u8], block: u32) -> Self {
        let key = Md5::of(&[key, &block.to_le_bytes()[..]].concat()).0;
        let mut state: [u8; 256] = std::array::from_fn(|it| u8::try_from(it).unwrap_or(0));
        let mut second = 0_u8;
        for (at, part) in (0..=255).zip(key.iter().cycle()) {
            let own = state.get(at).copied().unwrap_or(0);
            second = second.wrapping_add(own).wrapping_add(*part);
            state.swap(at, usize::from(second));
        }
        Self { state, first: 0, second: 0 }
    }

    fn next(&mut self) -> u8 {
        let at = |state: &[u8; 256], it: u8| state.get(usize::from(it)).copied().unwrap_or(0);
        self.first = self.first.wrapping_add(1);
        self.second = self.second.wrapping_add(at(&self.state, self.first));
        self.state.swap(usize::from(self.first), usize::from(self.second));
        let sum = at(&self.state, self.first).wrapping_add(at(&self.state, self.second));
        at(&self.state, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(kind: u16, content: &[u8]) -> Vec<u8> {
        let size = u16::try_from(content.len()).unwrap().to_le_bytes();
        [&kind.to_le_bytes()[..], &size, content].concat()
    }

    #[test]
    fn workbooks_with_the_known_password_are_opened() {
        let salt = [7; 16];
        let key = key(&salt);
        let mut lock = Lock::new(&key, 0);
        let check = [9; 16];
        let sums = [check, Md5::of(&check).0].concat();
        let sums: Vec<u8> = sums.into_iter().map(|it| it ^ lock.next()).collect();
        let start = record_of(START, &[0, 6, 5, 0]);
        let password = record_of(PASSWORD, &[RC4, &salt, &sums].concat());
        let sheet = record_of(SHEET, b"\x01\x02\x03\x04name");
        let long = record_of(0x0204, &[b'x'; 3 * BLOCK_BYTES]);
        let mut locked = [&start[..], &password, &sheet, &long].concat();
        // Locking is the same as opening.
        let at = start.len() + password.len();
        let plain = locked.clone();
        let (sheet_at, long_at) = (at + 8, at + sheet.len() + 4);
        let mut lock = Lock::new(&key, 0);
        for (place, byte) in locked.iter_mut().enumerate() {
            if place.is_multiple_of(BLOCK_BYTES) {
                lock = Lock::new(&key, u32::try_from(place / BLOCK_BYTES).unwrap());
            }
            let mask = lock.next();
            if (sheet_at..at + sheet.len()).contains(&place) || long_at <= place {
                *byte ^= mask;
            }
        }
        let opened = opened(&locked).unwrap();
        assert_eq!(opened[at..], plain[at..]);
        assert_eq!(record(&opened[start.len()..]).map(|it| it.0), Some(0));
        // With another password.
        locked[start.len() + 4 + RC4.len()] ^= 1;
        assert!(super::opened(&locked).is_none());
        assert!(super::opened(&plain[..start.len() + 20]).is_none());
    }

    #[test]
    fn the_lock_is_rc4_with_known_bytes() {
        // The key is the hash of the block's number behind the key of all.
        let mut lock = Lock::new(&[1, 2, 3, 4, 5], 1);
        let bytes: Vec<u8> = (0..8).map(|_| lock.next()).collect();
        assert_eq!(bytes, [0xce, 0xae, 0x2c, 0x7a, 0x7a, 0x89, 0x89, 0x55]);
    }
}

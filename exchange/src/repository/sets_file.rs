//! The file of the sets, so that a restart reads only the end of the log.
//!
//! It is written completely under another name and then renamed. It can be deleted at any time: a
//! missing or damaged file, or one of another epoch, is rebuilt from the log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use collection::{Epoch, Version};
use disk::Disk;
use roaring::RoaringTreemap;
use soif::digest::Md5;

use super::bitmaps::{NamedBitmaps, OTHERS_MAX, SETS_MAX};
use super::sets::Sets;

/// First bytes of the file; the last one is the version of the file's format.
const MAGIC: &[u8; 8] = b"HVSETS 3";

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Bytes of the checksum at the end.
const SUM_BYTES: usize = 16;

/// Encodes the sets for [`save`].
pub(super) fn bytes(sets: &Sets) -> io::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    let mut number = |it: u64| bytes.extend_from_slice(&it.to_le_bytes());
    number(sets.reached.epoch.0);
    number(sets.reached.serial);
    number(sets.gone.len() as u64);
    for (oid, serial) in &sets.gone {
        number(*oid);
        number(*serial);
    }
    sets.typed.serialize_into(&mut bytes)?;
    for kind in [&sets.gatherers, &sets.types, &sets.languages] {
        let (all, count, is_full) = kind.all();
        bytes.extend_from_slice(&u64::from(is_full).to_le_bytes());
        bytes.extend_from_slice(&(count as u64).to_le_bytes());
        for (name, set) in all {
            bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            set.serialize_into(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// Writes the result of [`bytes`] to `path`. After a failure, the old file stays.
pub(super) fn save(mut bytes: Vec<u8>, path: &Path) -> io::Result<()> {
    let sum = Md5::of(&bytes);
    bytes.extend_from_slice(&sum.0);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Disk::System.replace(path, &path.with_extension("new"), disk::MODE, &bytes).map(drop)
}

/// Reads the file of [`save`]; `None` if it is missing or damaged.
pub(super) fn load(path: &Path) -> Option<Sets> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    if FILE_BYTES_MAX < length {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
    file.read_to_end(&mut bytes).ok()?;
    let (whole, sum) = bytes.split_at_checked(bytes.len().checked_sub(SUM_BYTES)?)?;
    if Md5::of(whole).0 != sum {
        tracing::warn!(file = %path.display(), "the file is damaged; the sets are rebuilt");
        return None;
    }
    read(whole.strip_prefix(MAGIC)?)
}

fn read(mut rest: &[u8]) -> Option<Sets> {
    let rest = &mut rest;
    let reached = Version { epoch: Epoch(number(rest)?), serial: number(rest)? };
    let mut sets = Sets { reached, ..Sets::default() };
    for _ in 0..number(rest)? {
        let (oid, serial) = (number(rest)?, number(rest)?);
        sets.gone.insert(oid, serial);
        sets.tombstones.insert(serial);
    }
    sets.typed = RoaringTreemap::deserialize_from(&mut *rest).ok()?;
    sets.gatherers = kind(rest)?;
    sets.types = kind(rest)?;
    sets.languages = kind(rest)?;
    rest.is_empty().then_some(sets)
}

fn kind(rest: &mut &[u8]) -> Option<NamedBitmaps> {
    let is_full = number(rest)? != 0;
    let count = usize::try_from(number(rest)?).ok();
    let count = count.filter(|it| *it <= SETS_MAX + OTHERS_MAX)?;
    let mut sets = BTreeMap::new();
    for _ in 0..count {
        let length = usize::try_from(number(rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        *rest = after;
        let name = String::from_utf8(name.to_vec()).ok()?;
        sets.insert(name, RoaringTreemap::deserialize_from(&mut *rest).ok()?);
    }
    Some(NamedBitmaps::new(sets, is_full))
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> Sets {
        let mut sets = Sets { reached: Version { epoch: Epoch(7), serial: 9 }, ..Sets::default() };
        sets.gone.insert(u64::MAX, 3);
        sets.tombstones.insert(3);
        [1, 3, 1 << 40].into_iter().for_each(|it| sets.gatherers.add("g".to_owned(), it));
        sets.types.add("PDF".to_owned(), 1);
        sets.languages.add("en".to_owned(), 1);
        sets.typed.insert(1);
        sets
    }

    #[test]
    fn saved_sets_are_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("oai/sets");
        assert_eq!(load(&path), None);
        for sets in [Sets::default(), sets()] {
            save(bytes(&sets).unwrap(), &path).unwrap();
            assert_eq!(load(&path), Some(sets));
        }
    }

    #[test]
    fn a_damaged_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sets");
        save(bytes(&sets()).unwrap(), &path).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(load(&path), None, "{at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(load(&path), None, "{at}");
        }
    }
}

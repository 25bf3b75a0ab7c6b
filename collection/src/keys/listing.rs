//! Walks through the index: to compare it with another one, and to list objects and confirmations.

use super::{EXPIRY, Keys, MD5, NOTE, OBJECT, Object, Outcome, ROOT, SOURCE, SOURCE_CURSOR, keyed};
use crate::member::get;

impl Keys {
    /// Returns the live objects with their keys, by key.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Outcome<(Vec<u8>, Object)>> + use<> {
        self.objects_from(&[])
    }

    /// Returns the live objects whose keys begin with `prefix`, by key.
    pub(crate) fn objects_from(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Outcome<(Vec<u8>, Object)>> + use<> {
        let prefix = keyed(OBJECT, &[prefix]);
        self.scan_objects(&prefix, &prefix)
    }

    /// Returns the live objects from the key `key` on, by key.
    pub(crate) fn objects_onward(
        &self,
        key: &[u8],
    ) -> impl Iterator<Item = Outcome<(Vec<u8>, Object)>> + use<> {
        self.scan_objects(&[OBJECT], &keyed(OBJECT, &[key]))
    }

    fn scan_objects(
        &self,
        prefix: &[u8],
        from: &[u8],
    ) -> impl Iterator<Item = Outcome<(Vec<u8>, Object)>> + use<> {
        self.store.scan(prefix, from).filter_map(|it| match it {
            Ok((key, value)) => Some(Ok((key[1..].to_vec(), Object::decode(&value)?))),
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the hashes of confirmed roots, and the serials of the confirmations.
    pub(crate) fn confirmations(&self) -> Outcome<Vec<(u64, u64)>> {
        let found = self.store.few(&[ROOT])?.into_iter();
        Ok(found
            .filter_map(|(key, value)| {
                let hash = u64::from_le_bytes(key[1..].try_into().ok()?);
                Some((hash, get(&mut &value[..])?))
            })
            .collect())
    }

    /// Returns everything that must be equal in a rebuilt index, in key order: all but the expiry
    /// queue, whose entries may have moved on.
    pub(crate) fn comparable(
        &self,
    ) -> Outcome<impl Iterator<Item = Outcome<(Vec<u8>, Vec<u8>)>> + '_> {
        let few = self.store.few(&[])?.into_iter().map(Ok);
        Ok(self.store.scan(&[], &[MD5]).chain(few).map(|item| {
            let (key, value) = item?;
            match Object::decode(&value) {
                Some(mut object) if key.first() == Some(&OBJECT) => {
                    let queued = keyed(EXPIRY, &[&object.due.to_be_bytes(), &key[1..]]);
                    // A missing queue entry must appear as a difference.
                    object.due = u64::from(self.store.get(&queued)?.is_none());
                    Ok((key, object.encode()))
                }
                _ => Ok((key, value)),
            }
        }))
    }
}

/// Renders a key of the index for people.
pub(crate) fn describe(key: &[u8]) -> String {
    let what = match key.first() {
        Some(&OBJECT) => "object",
        Some(&MD5) => "MD5",
        Some(&ROOT) => "root",
        Some(&NOTE) => "note",
        Some(&SOURCE) => "source",
        Some(&SOURCE_CURSOR) => "cursor",
        _ => "unknown key",
    };
    let rest = key.get(1..).unwrap_or_default();
    let parts: Vec<String> =
        rest.split(|it| *it == 0).map(|it| it.escape_ascii().to_string()).collect();
    format!("{what} {}", parts.join(" "))
}

//! A small sample of every type.

mod binary;
mod text;

use formats::Type;

pub(crate) struct Sample {
    pub(crate) r#type: Type,
    /// Its file's name.
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// Types that are recognized neither by name nor by content, each with its origin.
pub(crate) const UNSEEN: &[(Type, &str)] = &[
    (Type::SymbolicLink, "the file system; a link has the record of what it leads to"),
    (Type::Directory, "the file system; its files have records"),
];

/// Every sample, in the order of the types.
pub(crate) fn all() -> Vec<Sample> {
    let mut all: Vec<Sample> = text::all().into_iter().chain(binary::all()).collect();
    let place = |it: &Sample| Type::ALL.iter().position(|other| *other == it.r#type);
    all.sort_by_key(place);
    all
}

fn sample(r#type: Type, name: &'static str, bytes: impl Into<Vec<u8>>) -> Sample {
    Sample { r#type, name, bytes: bytes.into() }
}

//! Items of Outlook in files of their own (`.msg`, `.oft`): compound files with a stream for each long
//! property, and a storage for each recipient and attachment.
//!
//! Source: Microsoft's \[MS-OXMSG\] 2.1 to 2.4, and 2.2.3 for the names of properties.

use std::borrow::Cow;
use std::collections::HashMap;

use super::mapi::{self, ATTACHED, Key, PropertyBag, SUBJECT, Value};
use super::{Attachment, Fault, Item};
use crate::limit::Limit;
use crate::numbers::{le16, le32};
use crate::object::ProblemKind;
use crate::office::compound::tree::Tree;
use crate::office::compound::{Compound, Node, ROOT};

/// The stream of an item, a recipient or an attachment with its short properties.
pub(in crate::office) const PROPERTIES: &str = "__properties_version1.0";
/// The storage with the names of properties.
const NAMES: &str = "__nameid_version1.0";
/// The beginnings of the names of streams, and of storages.
const LONG: &str = "__substg1.0_";
const RECIPIENT: &str = "__recip_version1.0_";
const ATTACHMENT: &str = "__attach_version1.0_";
/// Bytes before the short properties of an item, of an item in another one, and of anything else.
const ITEM_HEADER_BYTES: usize = 32;
const INNER_HEADER_BYTES: usize = 24;
const OTHER_HEADER_BYTES: usize = 8;
/// Bytes of a short property.
const PROPERTY_BYTES: usize = 16;
/// Maximum number of named properties.
const NAMED_MAX: usize = 0x7fff;

pub(super) fn item(file: &Compound<'_>) -> Result<Item<'static>, Fault> {
    if file.child(ROOT, PROPERTIES).is_none() {
        let message = "has no properties of a message of Outlook";
        return Err((ProblemKind::Broken, message.to_owned()));
    }
    let names = names(file);
    let mut item =
        Item { properties: bag(file, ROOT, ITEM_HEADER_BYTES, &names), ..Item::default() };
    let mut others = |beginning: &str, limit: Limit| {
        let storages = storages(file, beginning);
        item.faults.extend(super::too_many(storages.len(), limit));
        let listed = storages.into_iter().take(limit.bound());
        listed.map(|it| bag(file, it, OTHER_HEADER_BYTES, &names)).collect()
    };
    item.recipients = others(RECIPIENT, Limit::Recipients);
    item.attachments = others(ATTACHMENT, Limit::Attachments);
    Ok(item)
}

/// Returns the storages right below the root whose names begin so, in the order of their names.
fn storages(file: &Compound<'_>, beginning: &str) -> Vec<usize> {
    let all = file.children(ROOT).filter(|it| it.is_storage);
    let named = all.filter(|it| after(&it.name, beginning).is_some());
    let mut found: Vec<(&str, usize)> = named.map(|it| (&*it.name, it.number)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, number)| number).collect()
}

/// Returns what stands after the beginning of a name.
fn after<'n>(name: &'n str, beginning: &str) -> Option<&'n str> {
    let (front, rest) = name.split_at_checked(beginning.len())?;
    front.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// Returns the keys of the named properties, by their numbers in this file.
fn names(file: &Compound<'_>) -> HashMap<u16, Key> {
    let storage = file.child(ROOT, NAMES).map(|it| it.number);
    let stream = |name: &str| storage.and_then(|it| file.stream_in(it, name)).unwrap_or_default();
    let (sets, entries) = (stream("__substg1.0_00020102"), stream("__substg1.0_00030102"));
    let read = |entry: &[u8]| {
        let kind = le16(entry, 4)?;
        // The first two sets are well known, and none of those that are read; text names have an odd kind.
        let set = usize::from(kind >> 1).checked_sub(3).filter(|_| kind & 1 == 0)?;
        let key = mapi::named(le32(&sets, 16 * set)?, le32(entry, 0)?)?;
        Some((le16(entry, 6)?.checked_add(0x8000)?, key))
    };
    entries.chunks_exact(8).take(NAMED_MAX).filter_map(read).collect()
}

/// Returns the number and the kind in the name of a long property's stream.
fn property_of(name: &str) -> Option<(u16, u16)> {
    let (number, kind) = after(name, LONG)?.split_at_checked(4)?;
    let hexadecimal = |digits| u16::from_str_radix(digits, 16).ok();
    Some((hexadecimal(number)?, hexadecimal(kind)?))
}

fn bag(
    file: &Compound<'_>,
    storage: usize,
    header_bytes: usize,
    names: &HashMap<u16, Key>,
) -> PropertyBag<'static> {
    let mut bag = PropertyBag::default();
    let key = |number: u16| names.get(&number).copied().unwrap_or_else(|| number.into());
    let short = file.stream_in(storage, PROPERTIES).unwrap_or_default();
    for entry in short.get(header_bytes..).unwrap_or_default().chunks_exact(PROPERTY_BYTES) {
        let (kind, number) = (le16(entry, 0).unwrap_or(0), le16(entry, 2).unwrap_or(0));
        let value = entry.get(8..).unwrap_or_default().to_vec();
        // Of a long property, this is the length alone.
        let value = Value::of(kind, Cow::Owned(value));
        if let Some(value @ (Value::Number(_) | Value::Time(_))) = value {
            bag.add(key(number), value);
        }
    }
    for node in file.children(storage).filter(|it| !it.is_storage) {
        let Some((number, kind)) = property_of(&node.name) else { continue };
        if !mapi::is_read(key(number)) {
            continue;
        }
        let value = file.content(node.number).and_then(|it| Value::of(kind, Cow::Owned(it)));
        if let Some(value) = value {
            bag.add(key(number), value);
        }
    }
    bag
}

/// Calls `visit` with each attachment.
pub(super) fn attachments(
    file: &Compound<'_>,
    visit: &mut dyn FnMut(Attachment) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let names = names(file);
    for storage in storages(file, ATTACHMENT) {
        let bag = bag(file, storage, OTHER_HEADER_BYTES, &names);
        let mut attachment = Attachment { name: super::name_of(&bag), ..Attachment::default() };
        // The parts of signed mail are mail themselves, and have no name.
        if bag.text(&[mapi::MEDIA_TYPE]).starts_with("multipart/") {
            attachment.extension = ".eml";
        }
        let is_attached = |it: &&Node| {
            property_of(&it.name).is_some_and(|(number, _)| Key::from(number) == ATTACHED)
        };
        // An object of a program may have a picture of it, too.
        let mut nodes: Vec<_> = file.children(storage).filter(is_attached).collect();
        nodes.sort_by_key(|it| !it.is_storage);
        match nodes.first() {
            Some(node) if node.is_storage => {
                inner(file, node.number, &names, &mut attachment);
            }
            Some(node) => attachment.bytes = file.content(node.number).unwrap_or_default(),
            None => {}
        }
        attachment.fault = attachment.fault.or_else(|| file.cut());
        visit(attachment)?;
    }
    Ok(())
}

/// Makes a file of what is attached as a storage: an item, or the document of another program.
fn inner(
    file: &Compound<'_>,
    storage: usize,
    names: &HashMap<u16, Key>,
    attachment: &mut Attachment,
) {
    let mut tree = Tree::new();
    let is_item = file.child(storage, PROPERTIES).is_some();
    let mut copied = tree.copy(file, storage, ROOT);
    if is_item {
        if attachment.name.is_empty() {
            attachment.name = bag(file, storage, INNER_HEADER_BYTES, names).text(&[SUBJECT]);
        }
        attachment.extension = ".msg";
        if let Some(short) = tree.stream_mut(PROPERTIES) {
            let header = INNER_HEADER_BYTES.min(short.len());
            short.splice(header..header, [0; ITEM_HEADER_BYTES - INNER_HEADER_BYTES]);
        }
        // Named properties have their names in the outermost item.
        if let Some(node) = file.child(ROOT, NAMES).filter(|_| copied.is_some()) {
            let into = tree.add(ROOT, NAMES, None);
            copied = tree.copy(file, node.number, into);
        }
    }
    match copied {
        Some(()) => attachment.bytes = tree.into_bytes(),
        None => {
            let message = "has streams that overlap; not opened".to_owned();
            attachment.fault = Some((ProblemKind::Broken, message));
        }
    }
}

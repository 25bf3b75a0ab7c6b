//! Lists in XML: sitemaps and feeds, by the local names of their elements.
//!
//! There is no DTD, and there are no entities but the five of XML, so that nothing expands.
//!
//! Sans-I/O.

use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use url::Url;

use super::{DEPTH_MAX, Flaw, Kind, List, NoList};
use crate::date;
use crate::key::URL_BYTES_MAX;

/// A part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Loc,
    /// A URL that counts if there is no other.
    Guid,
    Changed,
}

#[derive(Debug, Default)]
struct Item {
    loc: String,
    guid: String,
    changed_ms: Option<u64>,
}

#[derive(Debug)]
struct Walk<'a> {
    base: &'a Url,
    list: List,
    depth: usize,
    /// The entry under way, with its depth.
    item: Option<(usize, Item)>,
    /// The field under way: a child of the entry.
    field: Option<Field>,
    text: String,
}

/// Reads a list from text that begins with `<`.
pub(super) fn read(base: &Url, text: &str) -> Result<List, NoList> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut walk = None;
    let flaw = loop {
        let before = reader.buffer_position();
        match (reader.read_event(), &mut walk) {
            (Ok(Event::DocType(_)), None) => return Err(NoList::Doctype),
            (Ok(Event::Start(root)), None) => walk = Some(Walk::new(base, &root)?),
            (Ok(Event::Start(tag)), Some(walk)) if walk.depth < DEPTH_MAX => walk.start(&tag),
            (Ok(Event::Text(text)), Some(walk)) => walk.push(&text),
            (Ok(Event::CData(text)), Some(walk)) => walk.push(&text),
            (Ok(Event::GeneralRef(reference)), Some(walk)) => walk.refer(&reference),
            (Ok(Event::End(_)), Some(walk)) => {
                if !walk.end() {
                    break walk.list.flaw;
                }
                if walk.depth == 0 {
                    break None;
                }
            }
            (Ok(Event::Eof), Some(_)) => break Some(Flaw::Truncated),
            (Ok(Event::Eof), None) => return Err(NoList::Root(String::new())),
            (Ok(Event::Start(_) | Event::DocType(_)) | Err(_), _) => {
                break Some(Flaw::Malformed { at: before });
            }
            (Ok(_), _) => {}
        }
    };
    let mut list = walk.ok_or_else(|| NoList::Root(String::new()))?.list;
    list.flaw = flaw;
    Ok(list)
}

impl<'a> Walk<'a> {
    fn new(base: &'a Url, root: &BytesStart<'_>) -> Result<Self, NoList> {
        let name = root.local_name();
        let kind = match name.as_ref() {
            "urlset" => Kind::Objects,
            "sitemapindex" => Kind::Lists,
            "rss" | "RDF" | "feed" => Kind::News,
            other => return Err(NoList::Root(other.chars().take(40).collect())),
        };
        let list = List::new(kind);
        Ok(Self { base, list, depth: 1, item: None, field: None, text: String::new() })
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        self.depth += 1;
        let name = tag.local_name();
        let name = name.as_ref();
        let Some((depth, item)) = &mut self.item else {
            let is_item = match self.list.kind {
                Kind::Objects => name == "url",
                Kind::Lists => name == "sitemap",
                Kind::News => matches!(name, "item" | "entry"),
            };
            if is_item {
                self.item = Some((self.depth, Item::default()));
            }
            return;
        };
        if self.depth != *depth + 1 {
            return;
        }
        self.text.clear();
        let is_feed = self.list.kind == Kind::News;
        self.field = match name {
            "loc" if !is_feed => Some(Field::Loc),
            "lastmod" if !is_feed => Some(Field::Changed),
            "link" if is_feed => match attribute(tag, "href") {
                // Atom has a link in an attribute, and other links beside that to the entry.
                Some(href) => {
                    let rel = attribute(tag, "rel");
                    if item.loc.is_empty() && rel.is_none_or(|it| it == "alternate") {
                        item.loc = href;
                    }
                    None
                }
                None => Some(Field::Loc),
            },
            "guid" if attribute(tag, "isPermaLink").is_none_or(|it| it == "true") && is_feed => {
                Some(Field::Guid)
            }
            "updated" | "pubDate" | "date" if is_feed => Some(Field::Changed),
            _ => None,
        };
    }

    fn push(&mut self, text: &str) {
        let is_child = self.item.as_ref().is_some_and(|it| it.0 + 1 == self.depth);
        // What is too long for a URL is cut, and so refused, by a byte more.
        if is_child && self.field.is_some() && self.text.len() <= URL_BYTES_MAX {
            let room = URL_BYTES_MAX + 1;
            self.text.extend(text.chars().take(room));
        }
    }

    fn refer(&mut self, reference: &BytesRef<'_>) {
        match reference.resolve_char_ref() {
            Ok(Some(char)) => self.push(char.encode_utf8(&mut [0; 4])),
            _ => self.push(resolve_xml_entity(reference).unwrap_or_default()),
        }
    }

    /// Ends an element; false if the list is full.
    fn end(&mut self) -> bool {
        let depth = self.depth;
        self.depth -= 1;
        let Some((item_depth, item)) = &mut self.item else { return true };
        if depth == *item_depth + 1
            && let Some(field) = self.field.take()
        {
            let text = self.text.trim();
            match field {
                Field::Loc if item.loc.is_empty() => text.clone_into(&mut item.loc),
                Field::Guid => text.clone_into(&mut item.guid),
                Field::Changed => item.changed_ms = item.changed_ms.max(date::any_ms(text)),
                Field::Loc => {}
            }
        }
        if depth != *item_depth {
            return true;
        }
        let Some((_, item)) = self.item.take() else { return true };
        let loc = if item.loc.is_empty() { &item.guid } else { &item.loc };
        self.list.push(self.base, loc, item.changed_ms)
    }
}

/// Returns the value of an attribute without a prefix.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.attributes().flatten().find(|it| it.key.as_ref() == name)?;
    Some(unescape(&found.value).map_or_else(|_| found.value.to_string(), |it| it.into_owned()))
}

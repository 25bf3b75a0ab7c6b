//! Writer of ResourceSync documents.
//!
//! Source: Z39.99-2017 §5 (the elements `md` and `ln`), §4.1 (a sitemap, or an index of sitemaps).

use std::fmt::Display;

use super::{Capability, ChangeKind, Document, Entry, SITEMAP, TERMS};
use crate::xml as text;

/// Estimated bytes of an entry.
const ENTRY_BYTES: usize = 256;

impl Document {
    /// Returns the document as XML.
    pub fn to_xml(&self) -> String {
        let (list, item) =
            if self.is_index { ("sitemapindex", "sitemap") } else { ("urlset", "url") };
        let mut xml = String::with_capacity(512 + self.entries.len() * ENTRY_BYTES);
        xml.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        xml.push_str(&format!("<{list} xmlns=\"{SITEMAP}\" xmlns:rs=\"{TERMS}\">\n"));
        for (rel, href) in [("up", &self.up), ("index", &self.index)] {
            if let Some(href) = href {
                xml.push_str("<rs:ln");
                text::push_attribute(&mut xml, "rel", rel);
                text::push_attribute(&mut xml, "href", href);
                xml.push_str("/>");
            }
        }
        xml.push_str("<rs:md");
        attribute(&mut xml, "capability", Some(self.capability.name()));
        attribute(&mut xml, "at", self.at);
        attribute(&mut xml, "from", self.from);
        xml.push_str("/>\n");
        for one in &self.entries {
            xml.push_str(&format!("<{item}>"));
            text::push_element(&mut xml, "loc", &one.loc);
            entry(&mut xml, one);
            xml.push_str(&format!("</{item}>\n"));
        }
        xml.push_str(&format!("</{list}>\n"));
        xml
    }
}

/// Writes the elements after the address of an entry.
fn entry(xml: &mut String, entry: &Entry) {
    if let Some(lastmod) = entry.lastmod {
        xml.push_str(&format!("<lastmod>{lastmod}</lastmod>"));
    }
    let mut md = String::new();
    attribute(&mut md, "capability", entry.capability.map(Capability::name));
    attribute(&mut md, "change", entry.change.map(ChangeKind::name));
    attribute(&mut md, "datetime", entry.datetime);
    attribute(&mut md, "hash", entry.md5.as_ref().map(|it| format!("md5:{it}")));
    attribute(&mut md, "length", entry.length);
    if !md.is_empty() {
        xml.push_str(&format!("<rs:md{md}/>"));
    }
}

fn attribute(xml: &mut String, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        text::push_attribute(xml, name, &value.to_string());
    }
}

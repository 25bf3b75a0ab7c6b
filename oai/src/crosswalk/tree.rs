//! A record's metadata as a tree of elements that borrows from its text.
//!
//! Source: XML 1.0; Namespaces in XML 1.0.
//!
//! Namespaces are told apart by what they mean to a crosswalk ([`Space`]): what a repository calls a
//! version of a schema makes no difference here. There is no DTD and no entity but XML's own five. What is
//! not well-formed ends the tree; what was read until then stays, and [`Tree::flaw`] says why.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;

/// Deepest nesting of elements that is read.
const DEPTH_MAX: usize = 64;
/// Most elements of one record.
const ELEMENTS_MAX: usize = 100_000;
/// Most attributes of one record.
const ATTRIBUTES_MAX: usize = 200_000;
/// Most namespaces that are declared at one time.
const DECLARATIONS_MAX: usize = 1_000;

/// What a namespace is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// No namespace.
    None,
    /// Dublin Core, elements 1.1 and terms alike, and the container of `oai_dc`.
    DublinCore,
    Marc,
    Mods,
    DataCite,
    /// What DataCite's own repository puts around a record.
    OaiDataCite,
    Mets,
    Rfc1807,
    Soif,
    /// Any other.
    Other,
}

impl Space {
    fn named(uri: &str) -> Self {
        let uri = uri.trim();
        let rest = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"));
        match rest.unwrap_or(uri).trim_end_matches('/') {
            "" => Self::None,
            "purl.org/dc/elements/1.1"
            | "purl.org/dc/elements/1.0"
            | "purl.org/dc/terms"
            | "www.openarchives.org/OAI/2.0/oai_dc"
            | "www.openarchives.org/OAI/dc" => Self::DublinCore,
            "www.loc.gov/MARC21/slim" => Self::Marc,
            "www.loc.gov/mods/v3" | "www.loc.gov/mods" => Self::Mods,
            "www.loc.gov/METS" => Self::Mets,
            "info.internet.isi.edu:80/in-notes/rfc/files/rfc1807.txt" => Self::Rfc1807,
            it if it.starts_with("datacite.org/schema/kernel-")
                || it.starts_with("schema.datacite.org/meta/kernel-") =>
            {
                Self::DataCite
            }
            it if it.starts_with("schema.datacite.org/oai/oai-") => Self::OaiDataCite,
            _ if uri == super::soif_xml::NAMESPACE => Self::Soif,
            _ => Self::Other,
        }
    }
}

/// An element and where what is in it ends.
#[derive(Debug)]
struct Node<'a> {
    space: Space,
    name: &'a str,
    /// Its own text, without that of the elements in it.
    text: Cow<'a, str>,
    /// Its first attribute's place.
    attributes: usize,
    /// The place after its last attribute.
    attributes_end: usize,
    /// The place after the last element in it.
    end: usize,
}

/// Elements in the order of their start tags.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    attributes: Vec<(&'a str, Cow<'a, str>)>,
    /// The namespace of the outermost element, as it is written.
    namespace: Option<Cow<'a, str>>,
    flaw: Option<Cow<'static, str>>,
}

/// An element of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'t, 'a> {
    tree: &'t Tree<'a>,
    at: usize,
}

impl<'a> Tree<'a> {
    /// Reads a tree, or as much of it as is well-formed and within bounds.
    pub(super) fn read(text: &'a str) -> Self {
        let mut tree = Self { nodes: Vec::with_capacity(32), ..Self::default() };
        if let Err(flaw) = Build::default().run(&mut tree, text) {
            tree.flaw = Some(flaw);
            let end = tree.nodes.len();
            // What was open when it ended.
            tree.nodes.iter_mut().filter(|it| it.end == 0).for_each(|it| it.end = end);
        }
        tree
    }

    /// What is wrong with the text; lower-case, without a full stop.
    pub(super) fn flaw(&self) -> Option<&str> {
        self.flaw.as_deref()
    }

    /// The namespace of the outermost element, as it is written; `None` if it has none.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|it| !it.is_empty())
    }

    /// The outermost element.
    pub(super) fn root(&self) -> Option<Element<'_, 'a>> {
        (!self.nodes.is_empty()).then_some(Element { tree: self, at: 0 })
    }
}

impl<'t, 'a> Element<'t, 'a> {
    fn node(self) -> Option<&'t Node<'a>> {
        self.tree.nodes.get(self.at)
    }

    /// What its namespace is of.
    pub(super) fn space(self) -> Space {
        self.node().map_or(Space::None, |it| it.space)
    }

    /// Its name without a prefix.
    pub(super) fn name(self) -> &'a str {
        self.node().map_or("", |it| it.name)
    }

    /// Its own text, as it is written.
    pub(super) fn text(self) -> &'t str {
        self.node().map_or("", |it| &it.text)
    }

    /// Its own text, or else, if it has elements, that of all of them, a space between each two.
    pub(super) fn whole_text(self) -> Cow<'t, str> {
        let Some(node) = self.node() else { return Cow::Borrowed("") };
        if node.end == self.at + 1 {
            return Cow::Borrowed(&node.text);
        }
        let within = self.tree.nodes.get(self.at..node.end).unwrap_or_default();
        let mut whole = String::new();
        for text in within.iter().map(|it| it.text.trim()).filter(|it| !it.is_empty()) {
            if !whole.is_empty() {
                whole.push(' ');
            }
            whole.push_str(text);
        }
        Cow::Owned(whole)
    }

    /// The value of an attribute by its name as it is written; `None` if there is none.
    pub(super) fn given(self, name: &str) -> Option<&'t str> {
        let node = self.node()?;
        let all = self.tree.attributes.get(node.attributes..node.attributes_end)?;
        all.iter().find(|(it, _)| *it == name).map(|(_, value)| &**value)
    }

    /// The value of an attribute by its name as it is written, white space at its ends left out; by the
    /// part after the prefix if `name` starts with a colon. Empty if there is none.
    pub(super) fn attribute(self, name: &str) -> &'t str {
        let Some(node) = self.node() else { return "" };
        let all = self.tree.attributes.get(node.attributes..node.attributes_end);
        let is = |it: &str| it == name || (name.starts_with(':') && it.ends_with(name));
        let mut all = all.unwrap_or_default().iter();
        all.find(|(it, _)| is(it)).map_or("", |(_, value)| value.trim())
    }

    /// The elements in it, one level deep.
    pub(super) fn children(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        let end = self.node().map_or(0, |it| it.end);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let child = Self { tree: self.tree, at };
            let node = child.node().filter(|_| at < end)?;
            at = node.end.max(at + 1);
            Some(child)
        })
    }

    /// The elements of that name in it, one level deep.
    pub(super) fn all(self, name: &'static str) -> impl Iterator<Item = Self> + use<'t, 'a> {
        self.children().filter(move |it| it.name() == name)
    }

    /// The first element of that name in it, one level deep.
    pub(super) fn child(self, name: &'static str) -> Option<Self> {
        self.all(name).next()
    }

    /// All text of the first element of that name in it; empty if there is none.
    pub(super) fn text_of(self, name: &'static str) -> Cow<'t, str> {
        self.child(name).map_or(Cow::Borrowed(""), Self::whole_text)
    }

    /// The elements in it at any depth, in their order.
    pub(super) fn descendants(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        let end = self.node().map_or(0, |it| it.end);
        (self.at + 1..end).map(move |at| Self { tree: self.tree, at })
    }
}

/// What is open while a tree is read.
#[derive(Debug, Default)]
struct Build<'a> {
    open: Vec<usize>,
    /// Prefix, what it stands for, and how many elements were open where it was declared.
    declared: Vec<(&'a str, Space, usize)>,
}

impl<'a> Build<'a> {
    fn run(mut self, tree: &mut Tree<'a>, text: &'a str) -> Result<(), Cow<'static, str>> {
        let mut reader = Reader::from_str(text);
        loop {
            let before = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let event = reader.read_event().map_err(|it| Cow::Owned(it.to_string()))?;
            match event {
                Event::Start(start) => {
                    let content = text.get(before + 1..before + 1 + start.len());
                    self.start(tree, content.unwrap_or_default(), start.name().as_ref().len())?;
                }
                Event::Empty(start) => {
                    let content = text.get(before + 1..before + 1 + start.len());
                    self.start(tree, content.unwrap_or_default(), start.name().as_ref().len())?;
                    self.end(tree);
                }
                Event::End(_) => self.end(tree),
                Event::Text(text) => self.text(tree, text.xml_content(XmlVersion::Implicit1_0)),
                Event::CData(text) => self.text(tree, text.xml_content(XmlVersion::Implicit1_0)),
                Event::GeneralRef(reference) => self.reference(tree, &reference),
                Event::DocType(_) => return Err("it has a document type declaration".into()),
                Event::Eof if self.open.is_empty() => return Ok(()),
                Event::Eof => return Err("it ends within an element".into()),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    /// `content` is what stands between `<` and `>`, and begins with a name of `name_len` bytes.
    fn start(
        &mut self,
        tree: &mut Tree<'a>,
        content: &'a str,
        name_len: usize,
    ) -> Result<(), Cow<'static, str>> {
        if self.open.is_empty() && !tree.nodes.is_empty() {
            return Err("it has more than one outermost element".into());
        }
        if DEPTH_MAX <= self.open.len() {
            return Err(format!("its elements nest deeper than {DEPTH_MAX}").into());
        }
        if ELEMENTS_MAX <= tree.nodes.len() {
            return Err(format!("it has more than {ELEMENTS_MAX} elements").into());
        }
        let attributes = tree.attributes.len();
        let name = content.get(..name_len).unwrap_or_default();
        let (own_prefix, local) = name.split_once(':').unwrap_or(("", name));
        let mut found = Attributes::new(content, name_len);
        // Which one counts is the first: no need to compare each with all.
        for attribute in found.with_checks(false) {
            let attribute = attribute.map_err(|it| Cow::Owned(it.to_string()))?;
            let name = attribute.key.0;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            // An entity that nobody declared: the text as it is written says more than nothing.
            let value = value.unwrap_or(attribute.value);
            let default = if name == "xmlns" { Some("") } else { None };
            let prefix = name.strip_prefix("xmlns:").or(default);
            if let Some(prefix) = prefix {
                if self.declared.len() < DECLARATIONS_MAX {
                    self.declared.push((prefix, Space::named(&value), self.open.len()));
                }
                if tree.nodes.is_empty() && prefix == own_prefix {
                    tree.namespace = Some(value);
                }
            } else if tree.attributes.len() < ATTRIBUTES_MAX {
                tree.attributes.push((name, value));
            }
        }
        let declared = self.declared.iter().rev().find(|(it, ..)| *it == own_prefix);
        let undeclared = if own_prefix.is_empty() { Space::None } else { Space::Other };
        self.open.push(tree.nodes.len());
        tree.nodes.push(Node {
            space: declared.map_or(undeclared, |(_, space, _)| *space),
            name: local,
            text: Cow::Borrowed(""),
            attributes,
            attributes_end: tree.attributes.len(),
            end: 0,
        });
        Ok(())
    }

    fn end(&mut self, tree: &mut Tree<'a>) {
        let end = tree.nodes.len();
        if let Some(node) = self.open.pop().and_then(|at| tree.nodes.get_mut(at)) {
            node.end = end;
        }
        let depth = self.open.len();
        while self.declared.pop_if(|(_, _, at)| depth <= *at).is_some() {}
    }

    fn text(&self, tree: &mut Tree<'a>, text: Cow<'a, str>) {
        let Some(at) = self.open.last().copied() else { return };
        let has_children = at + 1 < tree.nodes.len();
        let Some(node) = tree.nodes.get_mut(at) else { return };
        if node.text.is_empty() {
            node.text = text;
        } else if !has_children || !text.trim_ascii_start().is_empty() {
            // What stands between two elements is most often their indent.
            node.text.to_mut().push_str(&text);
        }
    }

    fn reference(&self, tree: &mut Tree<'a>, reference: &BytesRef<'a>) {
        let name = reference.xml10_content();
        match reference.resolve_char_ref() {
            Ok(Some(char)) => self.text(tree, Cow::Owned(char.to_string())),
            Ok(None) if resolve_xml_entity(&name).is_some() => {
                self.text(tree, Cow::Borrowed(resolve_xml_entity(&name).unwrap_or_default()));
            }
            // No others: there is no DTD to declare them.
            Ok(None) | Err(_) => self.text(tree, Cow::Owned(format!("&{name};"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(element: Element<'_, '_>) -> String {
        let inner: Vec<String> = element.children().map(shape).collect();
        let text = element.text().trim();
        format!("{}[{text}]({})", element.name(), inner.join(" "))
    }

    #[track_caller]
    fn check(text: &str, expected: &str, flaw: bool) {
        let tree = Tree::read(text);
        let found = tree.root().map(shape).unwrap_or_default();
        assert_eq!((found.as_str(), tree.flaw().is_some()), (expected, flaw), "{:?}", tree.flaw());
    }

    #[test]
    fn elements_keep_their_order_and_their_text() {
        check(
            "<a>x<b>y</b>z<c/><b><d>1 &lt; 2&#33;</d></b></a>",
            "a[xz](b[y]() c[]() b[](d[1 < 2!]()))",
            false,
        );
        check("<p:a xmlns:p='u'><![CDATA[<b>]]></p:a>", "a[<b>]()", false);
        check("<a>one &nbsp; two</a>", "a[one &nbsp; two]()", false);
        check("", "", false);
    }

    #[test]
    fn what_was_read_before_a_flaw_stays() {
        check("<a><b>1</b><c>2", "a[](b[1]() c[2]())", true);
        check("<a><b>1</c></a>", "a[](b[1]())", true);
        check("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "", true);
        check("<a/><b/>", "a[]()", true);
        let deep = format!("{}{}", "<a>".repeat(70), "</a>".repeat(70));
        assert!(Tree::read(&deep).flaw().is_some_and(|it| it.contains("deeper than 64")));
        let many = format!("<a>{}</a>", "<b/>".repeat(ELEMENTS_MAX));
        assert!(Tree::read(&many).flaw().is_some_and(|it| it.contains("100000 elements")));
    }

    #[test]
    fn a_namespace_counts_where_it_is_declared() {
        let tree = Tree::read(
            "<dc xmlns='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:x='u'><x:a/>\
             <b xmlns='http://www.loc.gov/mods/v3'><c/></b><d xmlns=''/><e/><y:f/></dc>",
        );
        let spaces: Vec<(&str, Space)> =
            tree.root().unwrap().descendants().map(|it| (it.name(), it.space())).collect();
        let expected = [
            ("a", Space::Other),
            ("b", Space::Mods),
            ("c", Space::Mods),
            ("d", Space::None),
            ("e", Space::DublinCore),
            ("f", Space::Other),
        ];
        assert_eq!(spaces, expected);
        assert_eq!(tree.namespace(), Some("http://www.openarchives.org/OAI/2.0/oai_dc/"));
        assert_eq!(Tree::read("<x:a xmlns='u' xmlns:x='v'/>").namespace(), Some("v"));
        assert_eq!(Tree::read("<a xmlns:x='v'><b xmlns='u'/></a>").namespace(), None);
    }

    #[test]
    fn attributes_are_found_by_name_or_by_its_end() {
        let tree = Tree::read("<a x:href=' u&amp;v ' type='t' x:type='s'/>");
        let root = tree.root().unwrap();
        assert_eq!((root.attribute(":href"), root.attribute("type")), ("u&v", "t"));
        assert_eq!((root.attribute("href"), root.attribute(":type")), ("", "s"));
    }
}

//! The tree of a record's metadata: elements that borrow from the text.
//!
//! Source: XML 1.0; Namespaces in XML 1.0.
//!
//! Namespaces are distinguished by their meaning to a crosswalk ([`Space`]), not by the version of
//! a schema. There is no DTD, and there are no entities except the five of XML. The tree ends where
//! the text is not well-formed; the elements before stay, and [`Tree::flaw`] gives the reason.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;

/// Deepest nesting of elements.
const DEPTH_MAX: usize = 64;
/// Maximum number of elements of one record.
const ELEMENTS_MAX: usize = 100_000;
/// Maximum number of attributes of one record.
const ATTRIBUTES_MAX: usize = 200_000;
/// Maximum number of namespace declarations in force at one time.
const DECLARATIONS_MAX: usize = 1_000;

/// The meaning of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// No namespace.
    None,
    /// Dublin Core, elements 1.1 and terms alike, and the container of `oai_dc`.
    DublinCore,
    Marc,
    Mods,
    DataCite,
    /// The wrapper of DataCite's own repository.
    OaiDataCite,
    Mets,
    Rfc1807,
    Soif,
    /// Any other.
    Other,
}

impl Space {
    fn by_uri(uri: &str) -> Self {
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

/// An element, and the ends of its content.
#[derive(Debug)]
struct Node<'a> {
    space: Space,
    name: &'a str,
    /// Its own text, without that of its child elements.
    text: Cow<'a, str>,
    /// Index of its first attribute.
    attributes: usize,
    /// Index after its last attribute.
    attributes_end: usize,
    /// Index after its last descendant.
    end: usize,
}

/// Elements in the order of their start tags.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    attributes: Vec<(&'a str, Cow<'a, str>)>,
    /// The namespace of the outermost element, as written.
    namespace: Option<Cow<'a, str>>,
    flaw: Option<Cow<'static, str>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'t, 'a> {
    tree: &'t Tree<'a>,
    at: usize,
}

impl<'a> Tree<'a> {
    /// Reads a tree, or the beginning of it that is well-formed and within the limits.
    pub(super) fn read(text: &'a str) -> Self {
        let mut tree = Self { nodes: Vec::with_capacity(32), ..Self::default() };
        if let Err(flaw) = TreeBuilder::default().run(&mut tree, text) {
            tree.flaw = Some(flaw);
            let end = tree.nodes.len();
            // Close the elements that are still open.
            tree.nodes.iter_mut().filter(|it| it.end == 0).for_each(|it| it.end = end);
        }
        tree
    }

    /// Returns the reason why the tree is incomplete, lower-case, without a full stop; `None` if it
    /// is complete.
    pub(super) fn flaw(&self) -> Option<&str> {
        self.flaw.as_deref()
    }

    /// Returns the namespace of the outermost element, as written; `None` if it has none.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|it| !it.is_empty())
    }

    /// Returns the outermost element; `None` if there is none.
    pub(super) fn root(&self) -> Option<Element<'_, 'a>> {
        (!self.nodes.is_empty()).then_some(Element { tree: self, at: 0 })
    }
}

impl<'t, 'a> Element<'t, 'a> {
    fn node(self) -> Option<&'t Node<'a>> {
        self.tree.nodes.get(self.at)
    }

    pub(super) fn space(self) -> Space {
        self.node().map_or(Space::None, |it| it.space)
    }

    /// Returns its name without a prefix.
    pub(super) fn name(self) -> &'a str {
        self.node().map_or("", |it| it.name)
    }

    /// Returns its own text, as written.
    pub(super) fn text(self) -> &'t str {
        self.node().map_or("", |it| &it.text)
    }

    /// Returns its text. For an element with children this is all text in it, separated by spaces.
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

    /// Returns the value of the attribute with this qualified name, untrimmed; `None` if there is
    /// none.
    pub(super) fn raw_attribute(self, name: &str) -> Option<&'t str> {
        let node = self.node()?;
        let all = self.tree.attributes.get(node.attributes..node.attributes_end)?;
        all.iter().find(|(it, _)| *it == name).map(|(_, value)| &**value)
    }

    /// Returns the trimmed value of the attribute with this qualified name, or with this local name
    /// if `name` starts with a colon. Empty if there is none.
    pub(super) fn attribute(self, name: &str) -> &'t str {
        let Some(node) = self.node() else { return "" };
        let all = self.tree.attributes.get(node.attributes..node.attributes_end);
        let is = |it: &str| it == name || (name.starts_with(':') && it.ends_with(name));
        let mut all = all.unwrap_or_default().iter();
        all.find(|(it, _)| is(it)).map_or("", |(_, value)| value.trim())
    }

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

    pub(super) fn all<'n>(self, name: &'n str) -> impl Iterator<Item = Self> + use<'t, 'a, 'n> {
        self.children().filter(move |it| it.name() == name)
    }

    pub(super) fn child(self, name: &'static str) -> Option<Self> {
        self.all(name).next()
    }

    /// Returns all text of the first child of that name; empty if there is none.
    pub(super) fn text_of(self, name: &'static str) -> Cow<'t, str> {
        self.child(name).map_or(Cow::Borrowed(""), Self::whole_text)
    }

    /// Returns all descendants, in document order.
    pub(super) fn descendants(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        let end = self.node().map_or(0, |it| it.end);
        (self.at + 1..end).map(move |at| Self { tree: self.tree, at })
    }
}

#[derive(Debug, Default)]
struct TreeBuilder<'a> {
    open: Vec<usize>,
    /// Prefix, meaning, and the number of open elements at the declaration.
    declared: Vec<(&'a str, Space, usize)>,
}

impl<'a> TreeBuilder<'a> {
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

    /// Opens an element; `content` is the tag between `<` and `>`, and begins with a name of
    /// `name_len` bytes.
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
        // Of repeated attributes only the first is used, so they need no check.
        for attribute in found.with_checks(false) {
            let attribute = attribute.map_err(|it| Cow::Owned(it.to_string()))?;
            let name = attribute.key.0;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            // If the value has an undeclared entity, keep the raw text, which is better than
            // nothing.
            let value = value.unwrap_or(attribute.value);
            let default = if name == "xmlns" { Some("") } else { None };
            let prefix = name.strip_prefix("xmlns:").or(default);
            if let Some(prefix) = prefix {
                if self.declared.len() < DECLARATIONS_MAX {
                    self.declared.push((prefix, Space::by_uri(&value), self.open.len()));
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
            // Text between two elements is usually indentation.
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
            // Without a DTD no other entity is declared.
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
    fn elements_before_a_flaw_stay() {
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
    fn a_namespace_holds_where_it_is_declared() {
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
    fn attributes_are_found_by_qualified_or_local_name() {
        let tree = Tree::read("<a x:href=' u&amp;v ' type='t' x:type='s'/>");
        let root = tree.root().unwrap();
        assert_eq!((root.attribute(":href"), root.attribute("type")), ("u&v", "t"));
        assert_eq!((root.attribute("href"), root.attribute(":type")), ("", "s"));
    }
}

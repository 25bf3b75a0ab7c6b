//! What a repository says of itself and of where its records come from.
//!
//! Source: the OAI implementation guidelines: oai-identifier (version 2.0), friends, branding; and
//! provenance, of records that were themselves harvested.
//!
//! Each element declares its namespace and says where the public schema is.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::oap::Totals;
use crate::identifier::{Identifier, RepositoryId};
use crate::response::Xml;
use crate::syndication::Syndication;
use crate::xml;

/// How the repository's identifiers are made.
pub fn oai_identifier(repository: &RepositoryId) -> Xml {
    let sample = Identifier {
        repository: repository.clone(),
        gatherer: "0123456789abcdef".to_owned(),
        url: "http://www.example.org/".to_owned(),
    };
    let mut xml = Element::begin(
        "oai-identifier",
        "http://www.openarchives.org/OAI/2.0/oai-identifier",
        "http://www.openarchives.org/OAI/2.0/oai-identifier.xsd",
    );
    xml.field("scheme", "oai");
    xml.field("repositoryIdentifier", repository.name());
    xml.field("delimiter", ":");
    xml.field("sampleIdentifier", &sample.to_string());
    xml.end("oai-identifier")
}

/// Other repositories that a harvester may want to know of; `None` of none.
pub fn friends(base_urls: &[String]) -> Option<Xml> {
    let mut xml = Element::begin(
        "friends",
        "http://www.openarchives.org/OAI/2.0/friends/",
        "http://www.openarchives.org/OAI/2.0/friends.xsd",
    );
    for url in base_urls {
        xml.field("baseURL", url);
    }
    (!base_urls.is_empty()).then(|| xml.end("friends"))
}

/// The picture that stands for a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branding {
    /// Where the picture is.
    pub icon: String,
    /// Where it leads.
    pub link: Option<String>,
    /// Its title.
    pub title: Option<String>,
}

impl Branding {
    /// The description that says so.
    pub fn written(&self) -> Xml {
        let mut xml = Element::begin(
            "branding",
            "http://www.openarchives.org/OAI/2.0/branding/",
            "http://www.openarchives.org/OAI/2.0/branding.xsd",
        );
        xml.out.push_str("<collectionIcon>");
        xml.field("url", &self.icon);
        for (name, value) in [("link", &self.link), ("title", &self.title)] {
            if let Some(value) = value {
                xml.field(name, value);
            }
        }
        xml.out.push_str("</collectionIcon>");
        xml.end("branding")
    }
}

/// Where a record was harvested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Address of the repository.
    pub base_url: String,
    /// What the item is called there.
    pub identifier: String,
    /// The record's datestamp there, as it was written.
    pub datestamp: String,
    /// Namespace of the metadata there.
    pub namespace: String,
    /// When it was harvested, as a date and time in UTC.
    pub harvested: String,
    /// Whether the metadata here differ from those there.
    pub altered: bool,
}

impl Origin {
    /// The element for `about` that says so.
    pub fn written(&self) -> Xml {
        let mut xml = Element::begin(
            "provenance",
            "http://www.openarchives.org/OAI/2.0/provenance",
            "http://www.openarchives.org/OAI/2.0/provenance.xsd",
        );
        xml.out.push_str("<originDescription");
        xml::push_attribute(&mut xml.out, "harvestDate", &self.harvested);
        xml::push_attribute(&mut xml.out, "altered", &self.altered.to_string());
        xml.out.push('>');
        xml.field("baseURL", &self.base_url);
        xml.field("identifier", &self.identifier);
        xml.field("datestamp", &self.datestamp);
        xml.field("metadataNamespace", &self.namespace);
        xml.out.push_str("</originDescription>");
        xml.end("provenance")
    }
}

/// Longest description that is read, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 64 << 10;

/// A description that is known, as anybody's repository has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// How its identifiers are made.
    Identifiers {
        /// What they begin with, after `oai:`.
        repository: String,
        /// One of them.
        sample: String,
    },
    /// Base URLs of other repositories.
    Friends(Vec<String>),
    /// The picture that stands for it.
    Branding(Branding),
    /// How many records it has.
    Totals(Totals),
    /// When it is updated.
    Syndication(Syndication),
}

impl Description {
    /// Reads a description; `None` of one that is not known, or no XML.
    pub fn read(description: &Xml) -> Option<Self> {
        let (root, leaves) = leaves(description)?;
        let all = |name: &'static str| {
            let named = leaves.iter().filter(move |(it, _)| it == name);
            named.map(|(_, text)| text.clone())
        };
        match root.as_str() {
            "oai-identifier" => Some(Self::Identifiers {
                repository: all("repositoryIdentifier").next()?,
                sample: all("sampleIdentifier").next()?,
            }),
            "friends" => Some(Self::Friends(all("baseURL").collect())),
            "branding" => Some(Self::Branding(Branding {
                icon: all("url").next()?,
                link: all("link").next(),
                title: all("title").next(),
            })),
            "totals" => Totals::read(description).map(Self::Totals),
            "syndication" => Syndication::read(description).map(Self::Syndication),
            _ => None,
        }
    }
}

/// The name of the root, and names and texts of the elements that hold text alone, without prefixes.
fn leaves(description: &Xml) -> Option<(String, Vec<(String, String)>)> {
    let text = Some(description.0.as_str()).filter(|it| it.len() <= DESCRIPTION_BYTES_MAX)?;
    let mut reader = Reader::from_str(text);
    let (mut root, mut leaves) = (None, Vec::new());
    let mut open: Option<(String, String)> = None;
    loop {
        let event = reader.read_event().ok()?;
        match (&event, &mut open) {
            (Event::Start(start), _) => {
                let name = start.local_name().as_ref().to_owned();
                root.get_or_insert_with(|| name.clone());
                open = Some((name, String::new()));
            }
            (Event::Text(text), Some((_, value))) => {
                value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
            }
            (Event::CData(text), Some((_, value))) => {
                value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
            }
            (Event::GeneralRef(it), Some((_, value))) => match it.resolve_char_ref().ok()? {
                Some(char) => value.push(char),
                None => value.push_str(resolve_xml_entity(&it.xml10_content())?),
            },
            (Event::End(_), _) => {
                let ended = open.take().map(|(name, value)| (name, value.trim().to_owned()));
                leaves.extend(ended.filter(|(_, value)| !value.is_empty()));
            }
            (Event::DocType(_), _) => return None,
            (Event::Eof, _) => break,
            _ => {}
        }
    }
    Some((root?, leaves))
}

/// An element in the making.
struct Element {
    out: String,
}

impl Element {
    fn begin(name: &str, namespace: &str, schema: &str) -> Self {
        let mut out = format!("<{name}");
        xml::push_attribute(&mut out, "xmlns", namespace);
        xml::push_attribute(&mut out, "xmlns:xsi", xml::INSTANCE);
        xml::push_attribute(&mut out, "xsi:schemaLocation", &format!("{namespace} {schema}"));
        out.push('>');
        Self { out }
    }

    fn field(&mut self, name: &str, value: &str) {
        xml::push_element(&mut self.out, name, value);
    }

    fn end(mut self, name: &str) -> Xml {
        self.out.push_str(&format!("</{name}>"));
        Xml(self.out)
    }
}

/// A description with the place of its schema, for those who must have one to accept it. `file` is below
/// [`SCHEMAS`] of the repository at `base_url`.
pub fn located(description: &Xml, namespace: &str, base_url: &str, file: &str) -> Xml {
    let text = description.0.as_str();
    let (name, rest) = text.split_at(text.find([' ', '>', '/']).unwrap_or(text.len()));
    let mut out = name.to_owned();
    xml::push_attribute(&mut out, "xmlns:xsi", xml::INSTANCE);
    let place = format!("{namespace} {}", schema_at(base_url, file));
    xml::push_attribute(&mut out, "xsi:schemaLocation", &place);
    Xml(out + rest)
}

/// Where the repository at `base_url` has the schema `file`.
pub fn schema_at(base_url: &str, file: &str) -> String {
    format!("{}{SCHEMAS}{file}", base_url.trim_end_matches('/'))
}

/// Where a repository has the schemas of what nobody else serves, below its base URL.
pub const SCHEMAS: &str = "/schemas/";

/// These schemas: file names and contents.
pub const SCHEMA_FILES: [(&str, &str); 3] = [
    ("totals.xsd", include_str!("../../../docs/schemas/totals.xsd")),
    ("syndication.xsd", include_str!("../../../docs/schemas/syndication.xsd")),
    ("soif.xsd", crate::crosswalk::SCHEMA_XSD),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &Xml, name: &str, namespace: &str, expected: &str) {
        let schema = namespace.trim_end_matches('/');
        let head = format!(
            "<{name} xmlns=\"{namespace}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{namespace} {schema}.xsd\">"
        );
        assert_eq!(found.0, format!("{head}{expected}</{name}>"));
    }

    #[test]
    fn a_repository_says_who_it_is() {
        let repository = RepositoryId::parse("a.example.org").unwrap();
        check(
            &oai_identifier(&repository),
            "oai-identifier",
            "http://www.openarchives.org/OAI/2.0/oai-identifier",
            "<scheme>oai</scheme><repositoryIdentifier>a.example.org</repositoryIdentifier>\
             <delimiter>:</delimiter><sampleIdentifier>\
             oai:a.example.org:0123456789abcdef/http://www.example.org/</sampleIdentifier>",
        );
        assert_eq!(friends(&[]), None);
        check(
            &friends(&["http://b/oai?x&y".to_owned()]).unwrap(),
            "friends",
            "http://www.openarchives.org/OAI/2.0/friends/",
            "<baseURL>http://b/oai?x&amp;y</baseURL>",
        );
        let branding = Branding {
            icon: "http://a/i.png".to_owned(),
            link: None,
            title: Some("A & B".to_owned()),
        };
        check(
            &branding.written(),
            "branding",
            "http://www.openarchives.org/OAI/2.0/branding/",
            "<collectionIcon><url>http://a/i.png</url><title>A &amp; B</title></collectionIcon>",
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let friends = vec!["http://b/oai?x&y".to_owned(), "http://c/".to_owned()];
        let branding = Branding {
            icon: "http://a/i.png".to_owned(),
            link: None,
            title: Some("A & B".to_owned()),
        };
        let repository = RepositoryId::parse("a.example.org").unwrap();
        let sample = "oai:a.example.org:0123456789abcdef/http://www.example.org/".to_owned();
        for (written, expected) in [
            (
                oai_identifier(&repository),
                Description::Identifiers { repository: repository.to_string(), sample },
            ),
            (super::friends(&friends).unwrap(), Description::Friends(friends)),
            (branding.written(), Description::Branding(branding)),
        ] {
            assert_eq!(Description::read(&written), Some(expected));
        }
        for text in ["", "<x/>", "<friends", "<!DOCTYPE x><friends><baseURL>a</baseURL></friends>"]
        {
            assert_eq!(Description::read(&Xml(text.to_owned())), None, "{text}");
        }
    }

    #[test]
    fn a_record_says_where_it_was_harvested() {
        let origin = Origin {
            base_url: "http://b/oai".to_owned(),
            identifier: "oai:b.org:1".to_owned(),
            datestamp: "2026-01-31".to_owned(),
            namespace: "http://n/".to_owned(),
            harvested: "2026-02-01T00:00:00Z".to_owned(),
            altered: true,
        };
        check(
            &origin.written(),
            "provenance",
            "http://www.openarchives.org/OAI/2.0/provenance",
            "<originDescription harvestDate=\"2026-02-01T00:00:00Z\" altered=\"true\">\
             <baseURL>http://b/oai</baseURL><identifier>oai:b.org:1</identifier>\
             <datestamp>2026-01-31</datestamp><metadataNamespace>http://n/</metadataNamespace>\
             </originDescription>",
        );
    }
}

//! Descriptions: the statements of a repository about itself and the origin of its records.
//!
//! Source: the OAI implementation guidelines: oai-identifier (version 2.0), friends, branding, and
//! provenance of harvested records.
//!
//! Each element declares its namespace and the address of its public schema.

use super::oap::Totals;
use crate::identifier::{Identifier, RepositoryId};
use crate::response::Xml;
use crate::syndication::Syndication;
use crate::xml::{INSTANCE, push_attribute, push_element};

/// Returns the description of the repository's identifiers.
pub fn oai_identifier(repository: &RepositoryId) -> Xml {
    let sample = Identifier {
        repository: repository.clone(),
        gatherer: "0123456789abcdef".to_owned(),
        url: "http://www.example.org/".to_owned(),
    };
    let mut xml = begin(
        "oai-identifier",
        "http://www.openarchives.org/OAI/2.0/oai-identifier",
        "http://www.openarchives.org/OAI/2.0/oai-identifier.xsd",
    );
    push_element(&mut xml, "scheme", "oai");
    push_element(&mut xml, "repositoryIdentifier", repository.name());
    push_element(&mut xml, "delimiter", ":");
    push_element(&mut xml, "sampleIdentifier", &sample.to_string());
    Xml(xml + "</oai-identifier>")
}

/// Returns the description that recommends other repositories; `None` if there are none.
pub fn friends(base_urls: &[String]) -> Option<Xml> {
    let mut xml = begin(
        "friends",
        "http://www.openarchives.org/OAI/2.0/friends/",
        "http://www.openarchives.org/OAI/2.0/friends.xsd",
    );
    for url in base_urls {
        push_element(&mut xml, "baseURL", url);
    }
    (!base_urls.is_empty()).then(|| Xml(xml + "</friends>"))
}

/// The icon of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branding {
    /// Address of the icon.
    pub icon: String,
    /// Address that it links to.
    pub link: Option<String>,
    /// Its title.
    pub title: Option<String>,
}

impl Branding {
    /// Returns the description.
    pub fn to_xml(&self) -> Xml {
        let mut xml = begin(
            "branding",
            "http://www.openarchives.org/OAI/2.0/branding/",
            "http://www.openarchives.org/OAI/2.0/branding.xsd",
        );
        xml.push_str("<collectionIcon>");
        push_element(&mut xml, "url", &self.icon);
        for (name, value) in [("link", &self.link), ("title", &self.title)] {
            if let Some(value) = value {
                push_element(&mut xml, name, value);
            }
        }
        xml.push_str("</collectionIcon>");
        Xml(xml + "</branding>")
    }
}

/// The origin of a harvested record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Address of the repository.
    pub base_url: String,
    /// Identifier of the item there.
    pub identifier: String,
    /// Datestamp of the record there, as written.
    pub datestamp: String,
    /// Namespace of the metadata there.
    pub namespace: String,
    /// Time of the harvest, as a date and time in UTC.
    pub harvested: String,
    /// Whether the metadata here differ from those there.
    pub altered: bool,
}

impl Origin {
    /// Returns the element for `about`.
    pub fn to_xml(&self) -> Xml {
        let mut xml = begin(
            "provenance",
            "http://www.openarchives.org/OAI/2.0/provenance",
            "http://www.openarchives.org/OAI/2.0/provenance.xsd",
        );
        xml.push_str("<originDescription");
        push_attribute(&mut xml, "harvestDate", &self.harvested);
        push_attribute(&mut xml, "altered", &self.altered.to_string());
        xml.push('>');
        push_element(&mut xml, "baseURL", &self.base_url);
        push_element(&mut xml, "identifier", &self.identifier);
        push_element(&mut xml, "datestamp", &self.datestamp);
        push_element(&mut xml, "metadataNamespace", &self.namespace);
        xml.push_str("</originDescription>");
        Xml(xml + "</provenance>")
    }
}

/// Longest description that is read, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 64 << 10;

/// A known kind of description, of any repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// The form of its identifiers.
    Identifiers {
        /// Their repository part, after `oai:`.
        repository: String,
        /// An example.
        sample: String,
    },
    /// Base URLs of other repositories.
    Friends(Vec<String>),
    /// Its icon.
    Branding(Branding),
    /// Its numbers of records.
    Totals(Totals),
    /// Its update schedule.
    Syndication(Syndication),
}

impl Description {
    /// Reads a description; `None` if it is unknown, or not XML.
    pub fn read(description: &Xml) -> Option<Self> {
        let (root, leaves) = description.leaves(DESCRIPTION_BYTES_MAX)?;
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

/// Begins an element that names its schema.
fn begin(name: &str, namespace: &str, schema: &str) -> String {
    let mut xml = format!("<{name}");
    push_attribute(&mut xml, "xmlns", namespace);
    push_attribute(&mut xml, "xmlns:xsi", INSTANCE);
    push_attribute(&mut xml, "xsi:schemaLocation", &format!("{namespace} {schema}"));
    xml.push('>');
    xml
}

/// Adds the address of the schema to a description, since validating clients need it. `file` is
/// below [`SCHEMAS`] of the repository at `base_url`.
pub fn with_schema(description: &Xml, namespace: &str, base_url: &str, file: &str) -> Xml {
    let text = description.0.as_str();
    let (name, rest) = text.split_at(text.find([' ', '>', '/']).unwrap_or(text.len()));
    let mut out = name.to_owned();
    push_attribute(&mut out, "xmlns:xsi", INSTANCE);
    let location = format!("{namespace} {}", schema_at(base_url, file));
    push_attribute(&mut out, "xsi:schemaLocation", &location);
    Xml(out + rest)
}

/// Returns the address of the schema `file` at the repository `base_url`.
pub fn schema_at(base_url: &str, file: &str) -> String {
    format!("{}{SCHEMAS}{file}", base_url.trim_end_matches('/'))
}

/// Path of our own schemas below a repository's base URL.
pub const SCHEMAS: &str = "/schemas/";

/// Our own schemas: file names and contents.
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
    fn descriptions_of_a_repository_are_written() {
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
            &branding.to_xml(),
            "branding",
            "http://www.openarchives.org/OAI/2.0/branding/",
            "<collectionIcon><url>http://a/i.png</url><title>A &amp; B</title></collectionIcon>",
        );
    }

    #[test]
    fn written_values_are_read_back() {
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
            (branding.to_xml(), Description::Branding(branding)),
        ] {
            assert_eq!(Description::read(&written), Some(expected));
        }
        for text in ["", "<x/>", "<friends", "<!DOCTYPE x><friends><baseURL>a</baseURL></friends>"]
        {
            assert_eq!(Description::read(&Xml(text.to_owned())), None, "{text}");
        }
    }

    #[test]
    fn provenance_is_written() {
        let origin = Origin {
            base_url: "http://b/oai".to_owned(),
            identifier: "oai:b.org:1".to_owned(),
            datestamp: "2026-01-31".to_owned(),
            namespace: "http://n/".to_owned(),
            harvested: "2026-02-01T00:00:00Z".to_owned(),
            altered: true,
        };
        check(
            &origin.to_xml(),
            "provenance",
            "http://www.openarchives.org/OAI/2.0/provenance",
            "<originDescription harvestDate=\"2026-02-01T00:00:00Z\" altered=\"true\">\
             <baseURL>http://b/oai</baseURL><identifier>oai:b.org:1</identifier>\
             <datestamp>2026-01-31</datestamp><metadataNamespace>http://n/</metadataNamespace>\
             </originDescription>",
        );
    }
}

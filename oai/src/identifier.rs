//! Identifiers of our repository's items: `oai:REPOSITORY:GATHERER/URL`, which contain the object's
//! name.
//!
//! Source: OAI-PMH §2.4 (unique identifier); the oai-identifier format of the implementation
//! guidelines, version 2.0 (scheme `oai`, a domain name, a local part in the characters of a URI).
//!
//! The local part is the gatherer's id, a slash, and the object's URL; characters that are special
//! in a query or in XML are percent-encoded. So no table is needed for GetRecord and for deletions,
//! and a harvester of our repository can find the object of a deleted record.

use std::fmt;

use crate::escape;

/// The scheme, with its colon.
const SCHEME: &str = "oai:";

/// The repository part of identifiers: a domain name such as `archive.example.org`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepositoryId(String);

impl RepositoryId {
    /// Reads a repository identifier, and converts it to lower case. `None` unless it is a domain
    /// name of two labels or more. Each label is a letter and then letters, digits and hyphens; all
    /// but the first have two characters or more.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let is_label = |label: &str| {
            label.starts_with(|it: char| it.is_ascii_lowercase())
                && label.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
        };
        let mut labels = name.split('.');
        let first = labels.next().is_some_and(is_label);
        let later = labels.clone().all(|it| 2 <= it.len() && is_label(it));
        let sound = first && later && labels.next().is_some();
        sound.then_some(Self(name))
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identifier of an item: a repository and the two parts of an object identifier.
///
/// It is displayed as in a record's header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier {
    /// The repository.
    pub repository: RepositoryId,
    /// The id of the object's gatherer; not empty.
    pub gatherer: String,
    /// The object's URL; not empty.
    pub url: String,
}

impl Identifier {
    /// Reads an identifier; `None` if it is not exactly as a Harvest repository writes it: each
    /// object has only one spelling.
    pub fn read(text: &str) -> Option<Self> {
        let (repository, local) = text.strip_prefix(SCHEME)?.split_once(':')?;
        let (gatherer, url) = local.split_once('/')?;
        let found = Self {
            repository: RepositoryId::parse(repository)?,
            gatherer: escape::read(gatherer, '%')?,
            url: escape::read(url, '%')?,
        };
        let is_named = !found.gatherer.is_empty() && !found.url.is_empty();
        (is_named && found.to_string() == text).then_some(found)
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, &self.repository, &self.gatherer, &self.url)
    }
}

/// Writes the identifier with these parts.
pub fn write(
    mut out: impl fmt::Write,
    repository: &RepositoryId,
    gatherer: &str,
    url: &str,
) -> fmt::Result {
    out.write_str(SCHEME)?;
    out.write_str(repository.name())?;
    out.write_char(':')?;
    escape::write(&mut out, gatherer, '%', |byte| byte != b'/' && is_plain(byte))?;
    out.write_char('/')?;
    escape::write(&mut out, url, '%', is_plain)
}

/// Returns whether a byte is not escaped: a URI character without a meaning in a query or in XML.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.!~*();/?:@=$,".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<[&str; 3]>) {
        let found = Identifier::read(text);
        let parts = found.as_ref().map(|it| [it.repository.name(), &it.gatherer, &it.url]);
        assert_eq!(parts, expected, "{text}");
        if let Some(found) = found {
            assert_eq!(found.to_string(), text);
        }
    }

    #[test]
    fn an_identifier_names_its_object() {
        check(
            "oai:a.example.org:0123456789abcdef/http://x.org/a%2520b?c=d%26e%23f",
            Some(["a.example.org", "0123456789abcdef", "http://x.org/a%20b?c=d&e#f"]),
        );
        check("oai:a.org:a%2Fb/file:/%C3%A9", Some(["a.org", "a/b", "file:/é"]));
    }

    #[test]
    fn foreign_identifiers_are_none() {
        for text in [
            "",
            "invalid\"id",
            "oai:a.org",
            "oai:a.org:g",
            "oai:a.org:g/",
            "oai:a.org:/u",
            "oai:localhost:g/u",
            "oai:A.org:g/u",
            "oai:a.org:g/%",
            "oai:a.org:g/%2",
            "oai:a.org:g/%c3%a9",
            "oai:a.org:g/%41",
            "oai:a.org:g/%FF",
            "oai:a.org:g/a b",
            "OAI:a.org:g/u",
            "https://a.org/g/u",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_repository_identifier_is_a_domain_name() {
        for name in ["a.org", "Archive.Example.ORG", "x-1.y2.museum", "A.ex"] {
            assert!(RepositoryId::parse(name).is_some(), "{name}");
        }
        for name in [
            "",
            "org",
            "localhost",
            "127.0.0.1",
            "a.b",
            ".org",
            "a..org",
            "a.org.",
            "a_b.org",
            "a.1e",
        ] {
            assert_eq!(RepositoryId::parse(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(gatherer in "\\PC{1,20}", url in "(?s).{1,60}") {
            let repository = RepositoryId::parse("a.example.org").unwrap();
            let identifier = Identifier { repository, gatherer, url };
            let text = identifier.to_string();
            prop_assert!(text.bytes().all(|it| it.is_ascii_graphic() && !b"\"'<>&#+ ".contains(&it)));
            prop_assert_eq!(Identifier::read(&text), Some(identifier));
        }

        #[test]
        fn any_text_is_an_identifier_or_none(text in "\\PC{0,60}") {
            let _ = Identifier::read(&text);
        }
    }
}

//! Metadata of packages, for the package's own record.
//!
//! Sources: Debian's policy, chapter 5 (`control`); Python's core metadata (`METADATA`, `PKG-INFO`);
//! the manifest of Cargo (`Cargo.toml`); the JAR file specification and OSGi (`MANIFEST.MF`).

use serde::Deserialize;

use super::Member;
use crate::Draft;
use crate::limit::Limit;
use crate::text::decode;

/// Returns the metadata of the package around `member`, if `member` is the package's metadata file.
pub(super) fn of_member(member: &Member) -> Option<Draft<'static>> {
    let mut path = member.path.split('/');
    let (first, second) = (path.next()?, path.next());
    if path.next().is_some() {
        return None;
    }
    let read = match second {
        Some("METADATA") if first.ends_with(".dist-info") => python,
        Some("PKG-INFO") => python,
        Some("Cargo.toml") => cargo,
        Some("MANIFEST.MF") if first == "META-INF" => manifest,
        None if first == "PKG-INFO" => python,
        _ => return None,
    };
    front(&member.object.bytes, read)
}

/// Reads the front of `bytes` that a limit allows, and says if that is not all.
fn front(bytes: &[u8], read: fn(&[u8]) -> Option<Draft<'static>>) -> Option<Draft<'static>> {
    let bound = Limit::Metadata.bound();
    let mut draft = read(bytes.get(..bytes.len().min(bound)).unwrap_or_default());
    if bound < bytes.len() {
        draft.get_or_insert_default().cut(Limit::Metadata.cut());
    }
    draft
}

/// Fields in the form of a mail header, with continuation lines, and the text after them.
struct HeaderFields {
    fields: Vec<(String, String)>,
    rest: String,
}

impl HeaderFields {
    /// Reads the fields; `join` is put between the lines of a field.
    fn read(bytes: &[u8], join: &str) -> Self {
        let text = decode(bytes, None);
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut lines = text.lines();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            if let Some(more) = line.strip_prefix([' ', '\t']) {
                if let Some((_, value)) = fields.last_mut() {
                    value.push_str(join);
                    value.push_str(more);
                }
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let rest = lines.collect::<Vec<_>>().join("\n");
        Self { fields, rest }
    }

    /// Returns the values of all fields called `name`, except empty ones and `unknown`.
    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let known = |value: &&str| !value.is_empty() && !value.eq_ignore_ascii_case("unknown");
        self.fields.iter().filter(move |it| it.0 == name).map(|it| it.1.as_str()).filter(known)
    }

    /// Returns the first value of the first of `names` that has one.
    fn first(&self, names: &[&str]) -> &str {
        names.iter().find_map(|name| self.all(name).next()).unwrap_or_default()
    }
}

/// Reads the `control` file of a Debian package.
pub(super) fn control(bytes: &[u8]) -> Option<Draft<'static>> {
    front(bytes, debian)
}

fn debian(bytes: &[u8]) -> Option<Draft<'static>> {
    let fields = HeaderFields::read(bytes, "\n");
    let description = fields.first(&["description"]);
    let (short, long) = description.split_once('\n').unwrap_or((description, ""));
    // A dot stands for an empty line.
    let long = long.lines().map(|line| if line.trim() == "." { "" } else { line });
    let mut draft = Draft {
        title: fields.first(&["package"]).to_owned(),
        authors: vec![fields.first(&["maintainer"]).to_owned()],
        description: short.to_owned(),
        r#abstract: long.collect::<Vec<_>>().join("\n"),
        keywords: [fields.first(&["section"]), fields.first(&["tag"])].join(" "),
        references: fields.all("homepage").map(str::to_owned).collect(),
        ..Draft::default()
    };
    for (name, field) in
        [("Package", "package"), ("Version", "version"), ("Architecture", "architecture")]
    {
        draft.other(name, fields.first(&[field]));
    }
    Some(draft)
}

/// Reads the core metadata of a Python package.
fn python(bytes: &[u8]) -> Option<Draft<'static>> {
    let fields = HeaderFields::read(bytes, "\n");
    let mut authors: Vec<String> = Vec::new();
    for name in ["author", "author-email", "maintainer", "maintainer-email"] {
        // Without `author`, `author-email` has the name, too.
        if authors.is_empty() {
            authors.extend(fields.all(name).map(str::to_owned));
        }
    }
    // `Project-URL: Source, https://…`
    let projects = fields.all("project-url").filter_map(|it| it.rsplit([',', ' ']).next());
    let references = fields.all("home-page").chain(projects).map(str::to_owned).collect();
    let long =
        if fields.rest.trim().is_empty() { fields.first(&["description"]) } else { &fields.rest };
    let mut draft = Draft {
        title: fields.first(&["name"]).to_owned(),
        authors,
        description: fields.first(&["summary"]).to_owned(),
        r#abstract: long.to_owned(),
        keywords: fields.first(&["keywords"]).replace(',', " "),
        references,
        ..Draft::default()
    };
    draft.other("Package", fields.first(&["name"]));
    draft.other("Version", fields.first(&["version"]));
    let license = fields.first(&["license-expression", "license"]);
    draft.other("License", license.lines().next().unwrap_or_default());
    Some(draft)
}

/// Reads a manifest of Java; `None` if it has no metadata.
fn manifest(bytes: &[u8]) -> Option<Draft<'static>> {
    // Lines are cut at 72 bytes and continue without a separator.
    let fields = HeaderFields::read(bytes, "");
    let name = ["bundle-name", "implementation-title", "specification-title"];
    let version = ["bundle-version", "implementation-version", "specification-version"];
    let vendor = ["bundle-vendor", "implementation-vendor", "specification-vendor"];
    let package = ["bundle-symbolicname", "automatic-module-name", "implementation-vendor-id"];
    let mut draft = Draft {
        title: fields.first(&name).to_owned(),
        description: fields.first(&["bundle-description"]).to_owned(),
        references: fields.all("bundle-docurl").map(str::to_owned).collect(),
        ..Draft::default()
    };
    let symbolic = fields.first(&package);
    draft.other("Package", symbolic.split(';').next().unwrap_or_default());
    draft.other("Version", fields.first(&version));
    draft.other("Publisher", fields.first(&vendor));
    draft.other("License", fields.first(&["bundle-license"]));
    let is_telling = !draft.title.is_empty() || !draft.others.is_empty();
    draft.other("Generator", fields.first(&["created-by"]));
    is_telling.then_some(draft)
}

/// The parts of `Cargo.toml` that are read. In a packed crate, Cargo has written it: it inherits nothing.
#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Option<toml::Value>,
    #[serde(default)]
    authors: Vec<String>,
    description: Option<toml::Value>,
    homepage: Option<toml::Value>,
    documentation: Option<toml::Value>,
    repository: Option<toml::Value>,
    license: Option<toml::Value>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

fn cargo(bytes: &[u8]) -> Option<Draft<'static>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let Manifest { package } = toml::from_str(text).ok()?;
    // In a workspace, an inherited value is a table.
    let text = |it: Option<toml::Value>| match it {
        Some(toml::Value::String(text)) => text,
        _ => String::new(),
    };
    let links = [package.homepage, package.repository, package.documentation].map(text);
    let mut draft = Draft {
        title: package.name.clone(),
        authors: package.authors,
        description: text(package.description),
        keywords: [package.keywords, package.categories].concat().join("\n"),
        references: links.into_iter().filter(|it| !it.is_empty()).collect(),
        ..Draft::default()
    };
    draft.other("Package", package.name);
    draft.other("Version", text(package.version));
    draft.other("License", text(package.license));
    Some(draft)
}

//! The sources of a program as one object: what its README, its build file and its manual page say.
//!
//! Source: TR §4 ("source distributions": summarized by their README and manual pages); the manifests
//! of Cargo, npm, Python (PEP 621), autoconf, Maven, R (DESCRIPTION) and Perl (META.json).
//!
//! The container's opener hands over every member that [`Distribution::wants`]; no member is kept.
//!
//! Sans-I/O.

use std::borrow::Cow;

use super::source::legal;
use crate::Draft;
use crate::prose::plain;
use crate::text::{decode, front, one_line};

/// How much of a member is read, in bytes.
const MEMBER_BYTES_MAX: usize = 64 * 1024;
/// How deep members lie that speak for the whole, in directories.
const DEPTH_MAX: usize = 2;
/// Longest value of a field, in bytes.
const VALUE_BYTES_MAX: usize = 500;
/// Longest text of the README, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Files that build programs, in the order in which they are believed.
const BUILD_FILES: &[&str] = &[
    "cargo.toml",
    "pyproject.toml",
    "package.json",
    "pom.xml",
    "description",
    "meta.json",
    "setup.cfg",
    "setup.py",
    "configure.ac",
    "configure.in",
    "makefile.pl",
    "build.pl",
    "cmakelists.txt",
    "meson.build",
    "configure",
    "go.mod",
    "build.gradle",
    "imakefile",
    "makefile.in",
    "makefile",
];

/// What the members say of the whole, as far as they have been met.
#[derive(Debug, Default)]
pub struct Distribution {
    /// Fields of the build file that is most believed, and which it was.
    build: Option<(usize, Fields)>,
    readme: String,
    manual: String,
    license: String,
    /// The directory that all is in: `name-1.2`.
    root: String,
}

/// What a build file says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    version: String,
    description: String,
    license: String,
    homepage: String,
    authors: Vec<String>,
}

/// Returns whether an archive with members of these names holds the sources of a program: something
/// near its root builds it.
pub fn is_source_distribution<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
    names.into_iter().any(|path| {
        let (depth, name) = place(path);
        // A makefile or a configure file elsewhere is a part's.
        depth <= 1 && BUILD_FILES.contains(&name.as_str())
    })
}

/// Returns how many directories a member lies in, and its name in small letters.
fn place(path: &str) -> (usize, String) {
    let path = path.trim_start_matches("./");
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    (path.matches('/').count(), name)
}

impl Distribution {
    /// Returns whether the member at `path` says something of the whole.
    pub fn wants(path: &str) -> bool {
        let (depth, name) = place(path);
        depth <= DEPTH_MAX && (speaks(&name) && depth <= 1 || is_manual(&name))
    }

    /// Takes a member, or the front of it.
    pub fn meet(&mut self, path: &str, bytes: &[u8]) {
        if !Self::wants(path) {
            return;
        }
        let text = decode(bytes.get(..bytes.len().min(MEMBER_BYTES_MAX)).unwrap_or(bytes), None);
        let (_, name) = place(path);
        if self.root.is_empty() {
            let root = path.trim_start_matches("./").split_once('/');
            root.map_or("", |(root, _)| root).clone_into(&mut self.root);
        }
        if let Some(rank) = BUILD_FILES.iter().position(|it| *it == name) {
            if self.build.as_ref().is_none_or(|(known, _)| rank < *known) {
                self.build = Some((rank, fields(&name, &text)));
            }
        } else if name.starts_with("readme") {
            if self.readme.is_empty() {
                front(&text, TEXT_BYTES_MAX).clone_into(&mut self.readme);
            }
        } else if is_manual(&name) {
            if self.manual.is_empty() {
                self.manual = manual(&text);
            }
        } else if self.license.is_empty() {
            self.license = legal::license(&text);
        }
    }

    /// Returns what has been found.
    pub fn finish(self) -> Draft<'static> {
        let fields = self.build.map(|(_, fields)| fields).unwrap_or_default();
        let (root_name, root_version) = split_version(&self.root);
        let or = |first: String, second: &str| {
            if first.is_empty() { second.to_owned() } else { first }
        };
        let (headline, said) = plain::headline(&self.readme);
        let name = or(fields.name, root_name);
        let mut draft = Draft {
            title: or(name.clone(), &headline),
            description: or(or(fields.description, &self.manual), &said).trim().to_owned(),
            authors: fields.authors,
            ..Draft::default()
        };
        draft.other("Package", name);
        draft.other("Version", or(fields.version, root_version));
        draft.other("License", or(fields.license, &self.license));
        draft.other("Homepage", fields.homepage.clone());
        draft.references.extend(Some(fields.homepage).filter(|it| it.contains("://")));
        draft.body = Cow::Owned(self.readme);
        draft
    }
}

fn speaks(name: &str) -> bool {
    BUILD_FILES.contains(&name)
        || name.starts_with("readme")
        || ["license", "licence", "copying"].iter().any(|it| name.starts_with(it))
}

/// `sort.1`: a page of commands, library functions, formats or for the administrator.
fn is_manual(name: &str) -> bool {
    let section = name.rsplit_once('.').filter(|(stem, _)| !stem.contains('.'));
    section.is_some_and(|(_, section)| matches!(section, "1" | "3" | "5" | "8"))
}

/// Returns what a manual page says in its `NAME`.
fn manual(text: &str) -> String {
    let mut lines = text.lines().skip_while(|it| {
        !it.to_ascii_uppercase().starts_with(".SH NAME") && !it.starts_with(".SH \"NAME\"")
    });
    let line = lines.by_ref().skip(1).find(|it| !it.starts_with(".\\\"")).unwrap_or_default();
    let mdoc = lines.find_map(|it| it.strip_prefix(".Nd "));
    let told = line.split_once("\\- ").or_else(|| line.split_once(" - ")).map(|(_, it)| it);
    told.or(mdoc).unwrap_or_default().trim().to_owned()
}

/// Splits `name-1.2` into name and version.
fn split_version(root: &str) -> (&str, &str) {
    let at = root
        .match_indices('-')
        .find(|(at, _)| root.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit));
    match at.and_then(|(at, _)| root.split_at_checked(at)) {
        Some((name, version)) => (name, version.trim_start_matches('-')),
        None => (root, ""),
    }
}

/// Returns what a build file says, by its name.
fn fields(name: &str, text: &str) -> Fields {
    match name {
        "cargo.toml" => of_toml(text, "package"),
        "pyproject.toml" => of_toml(text, "project"),
        "package.json" | "meta.json" => of_json(text),
        "description" => {
            of_lines(text, &["Package:", "Version:", "Title:", "License:", "URL:", "Author:"])
        }
        "setup.cfg" => of_lines(
            text,
            &["name =", "version =", "description =", "license =", "url =", "author ="],
        ),
        "setup.py" | "makefile.pl" | "build.pl" => of_calls(text),
        "pom.xml" => of_pom(text),
        "configure.ac" | "configure.in" => of_autoconf(text),
        "go.mod" => of_lines(text, &["module "]),
        _ => Fields::default(),
    }
}

fn of_toml(text: &str, table: &str) -> Fields {
    let Ok(whole) = text.parse::<toml::Table>() else { return Fields::default() };
    let Some(package) = whole.get(table).and_then(toml::Value::as_table) else {
        return Fields::default();
    };
    let field = |name: &str| {
        let value = package.get(name);
        let value = value.and_then(|it| it.get("text").or(Some(it)));
        value.and_then(toml::Value::as_str).map(bounded).unwrap_or_default()
    };
    let authors = package.get("authors").and_then(toml::Value::as_array);
    let authors = authors.into_iter().flatten();
    let authors = authors.filter_map(|it| it.get("name").unwrap_or(it).as_str()).map(bounded);
    let urls = package.get("urls").and_then(|it| it.get("Homepage"));
    let homepage = urls.and_then(toml::Value::as_str).map_or_else(|| field("homepage"), bounded);
    Fields {
        name: field("name"),
        version: field("version"),
        description: field("description"),
        license: field("license"),
        homepage,
        authors: authors.take(20).collect(),
    }
}

fn of_json(text: &str) -> Fields {
    let Ok(whole) = serde_json::from_str::<serde_json::Value>(text) else {
        return Fields::default();
    };
    let field = |name: &str| {
        let value = whole.get(name).and_then(|it| it.get(0).or(Some(it)));
        value.and_then(serde_json::Value::as_str).map(bounded).unwrap_or_default()
    };
    let author =
        whole.get("author").and_then(|it| it.get("name").or_else(|| it.get(0)).or(Some(it)));
    let abstract_ = field("abstract");
    let description = field("description");
    Fields {
        name: field("name"),
        version: field("version"),
        description: if description.is_empty() { abstract_ } else { description },
        license: field("license"),
        homepage: field("homepage"),
        authors: author.and_then(serde_json::Value::as_str).map(bounded).into_iter().collect(),
    }
}

/// Takes the values of lines that start with `names`, in the order of [`Fields`].
fn of_lines(text: &str, names: &[&str]) -> Fields {
    let field = |at: usize| {
        let name = names.get(at).copied()?;
        let value = text.lines().find_map(|it| it.strip_prefix(name))?;
        Some(bounded(value.trim()))
    };
    Fields {
        name: field(0).unwrap_or_default(),
        version: field(1).unwrap_or_default(),
        description: field(2).unwrap_or_default(),
        license: field(3).unwrap_or_default(),
        homepage: field(4).unwrap_or_default(),
        authors: field(5).into_iter().collect(),
    }
}

/// `name='x'` of Python, `NAME => 'x'` of Perl.
fn of_calls(text: &str) -> Fields {
    let field = |names: &[&str]| {
        let value = text.lines().find_map(|line| {
            let line = line.trim();
            let rest = names.iter().find_map(|it| line.strip_prefix(it))?.trim_start();
            let rest = rest.strip_prefix("=>").or_else(|| rest.strip_prefix('='))?.trim_start();
            let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
            rest.get(1..)?.split(quote).next()
        });
        value.map(bounded).unwrap_or_default()
    };
    Fields {
        name: field(&["name", "NAME", "module_name"]),
        version: field(&["version", "VERSION"]),
        description: field(&["description", "ABSTRACT"]),
        license: field(&["license", "LICENSE"]),
        homepage: field(&["url"]),
        authors: Some(field(&["author", "AUTHOR"]))
            .filter(|it| !it.is_empty())
            .into_iter()
            .collect(),
    }
}

/// The first of each element; the parent's come before the project's own in its element only.
fn of_pom(text: &str) -> Fields {
    let own = match (text.split_once("<parent>"), text.split_once("</parent>")) {
        (Some((before, _)), Some((_, after))) => [before, after].concat(),
        _ => text.to_owned(),
    };
    let field = |name: &str| {
        let after = own.split_once(&format!("<{name}>")).map_or("", |(_, it)| it);
        bounded(after.split('<').next().unwrap_or_default())
    };
    Fields {
        name: field("artifactId"),
        version: field("version"),
        description: field("description"),
        license: String::new(),
        homepage: field("url"),
        authors: Vec::new(),
    }
}

/// `AC_INIT([name], [version], [bugs], [tarname], [url])`.
fn of_autoconf(text: &str) -> Fields {
    let Some((_, after)) = text.split_once("AC_INIT(") else { return Fields::default() };
    let inside = after.split(')').next().unwrap_or_default();
    let arguments: Vec<String> = inside
        .split(',')
        .map(|it| bounded(it.trim_matches(|it: char| it.is_whitespace() || "[]".contains(it))))
        .collect();
    let argument =
        |at: usize| arguments.get(at).filter(|it| !it.contains("m4_")).cloned().unwrap_or_default();
    // The old form names a file of the sources.
    if arguments.len() < 2 {
        return Fields::default();
    }
    Fields { name: argument(0), version: argument(1), homepage: argument(4), ..Fields::default() }
}

fn bounded(text: &str) -> String {
    one_line(text, VALUE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(members: &[(&str, &str)], expected: &str) {
        let mut whole = Distribution::default();
        for (path, text) in members {
            whole.meet(path, text.as_bytes());
        }
        let draft = whole.finish();
        let mut said = vec![draft.title, draft.authors.join(", "), draft.description];
        said.extend(draft.others.iter().map(|(name, value)| format!("{name}: {value}")));
        assert_eq!(said.join("\n"), expected);
    }

    #[test]
    fn what_builds_is_a_distribution() {
        assert!(is_source_distribution(["sort-1.2/README", "sort-1.2/configure.ac"]));
        assert!(is_source_distribution(["./Makefile"]));
        assert!(!is_source_distribution(["photos/a.png", "photos/README"]));
        assert!(!is_source_distribution(["a/b/c/Makefile"]));
    }

    #[test]
    fn crates_and_tarballs() {
        check(
            &[
                ("sort-1.2/README.md", "# Sort\n\nIt sorts.\n"),
                (
                    "sort-1.2/Cargo.toml",
                    "[package]\nname = \"sort\"\nversion = \"1.2.0\"\nauthors = [\"A\"]\nlicense = \"MIT\"\nhomepage = \"https://h.example/\"\n",
                ),
                ("sort-1.2/Makefile", "all:\n"),
            ],
            "sort\nA\nIt sorts.\nPackage: sort\nVersion: 1.2.0\nLicense: MIT\nHomepage: https://h.example/",
        );
        check(
            &[
                ("sort-1.2/COPYING", "GNU GENERAL PUBLIC LICENSE\n"),
                ("sort-1.2/sort.1", ".TH SORT 1\n.SH NAME\nsort \\- sorts lines\n"),
                ("sort-1.2/configure.ac", "AC_INIT([sort], [1.2], [b@h.example])\n"),
            ],
            "sort\n\nsorts lines\nPackage: sort\nVersion: 1.2\nLicense: GPL",
        );
        check(
            &[(
                "p/package.json",
                "{\"name\": \"p\", \"version\": \"2.0.1\", \"author\": {\"name\": \"B\"}, \"description\": \"Does.\"}",
            )],
            "p\nB\nDoes.\nPackage: p\nVersion: 2.0.1",
        );
        check(
            &[("p/setup.py", "setup(\n    name='p',\n    version=\"1.0\",\n)\n")],
            "p\n\n\nPackage: p\nVersion: 1.0",
        );
        check(
            &[(
                "p/pom.xml",
                "<project><parent><artifactId>q</artifactId></parent><artifactId>p</artifactId><version>3</version></project>",
            )],
            "p\n\n\nPackage: p\nVersion: 3",
        );
    }

    proptest! {
        #[test]
        fn any_member_gives_a_draft(at in 0..BUILD_FILES.len(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut whole = Distribution::default();
            whole.meet(&format!("a-1/{}", BUILD_FILES[at]), &bytes);
            whole.meet("a-1/x.1", &bytes);
            whole.finish();
        }
    }
}

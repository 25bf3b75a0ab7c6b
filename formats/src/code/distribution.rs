//! Source distributions: one draft from a program's README, build file, manual page and license.
//!
//! Source: TR §4 ("source distributions": summarized by their README and manual pages); the manifests
//! of Cargo, npm, Python (PEP 621), autoconf, Maven, R (DESCRIPTION) and Perl (META.json).
//!
//! The container's opener passes each member that [`Distribution::wants`] accepts; none is stored.

use std::borrow::Cow;

use super::source::legal;
use crate::Draft;
use crate::numbers::slice_up_to;
use crate::prose::plain;
use crate::text::{decode, front, one_line};

/// Maximum number of bytes of a member that are read.
const MEMBER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of directories around a manual page that is read.
const DEPTH_MAX: usize = 2;
/// Longest value of a field, in bytes.
const VALUE_BYTES_MAX: usize = 500;
/// Longest text of the README, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Files that build programs, in order of precedence.
const BUILD_FILES: &str = "cargo.toml pyproject.toml package.json pom.xml description meta.json \
    setup.cfg setup.py configure.ac configure.in makefile.pl build.pl cmakelists.txt meson.build \
    configure go.mod build.gradle imakefile makefile.in makefile";

/// The values that the members so far give for the whole.
#[derive(Debug, Default)]
pub struct Distribution {
    /// Fields of the best build file so far, and its rank in [`BUILD_FILES`].
    build: Option<(usize, BuildFields)>,
    readme: String,
    manual: String,
    license: String,
    /// The outermost directory of the first member that is in one: `name-1.2`.
    root: String,
}

/// The fields of a build file.
#[derive(Debug, Default, PartialEq, Eq)]
struct BuildFields {
    name: String,
    version: String,
    description: String,
    license: String,
    homepage: String,
    authors: Vec<String>,
}

/// Returns whether an archive with members of these names holds the sources of a program: a build
/// file is in its root or one directory below.
pub fn is_source_distribution<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
    names.into_iter().any(|path| {
        let (depth, name) = depth_and_name(path);
        // A makefile or configure file elsewhere belongs to a part.
        depth <= 1 && build_rank(&name).is_some()
    })
}

/// Returns the count of directories around a member, and its name in lower case.
fn depth_and_name(path: &str) -> (usize, String) {
    let path = path.trim_start_matches("./");
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    (path.matches('/').count(), name)
}

impl Distribution {
    /// Returns whether the member at `path` describes the whole.
    pub fn wants(path: &str) -> bool {
        let (depth, name) = depth_and_name(path);
        depth <= DEPTH_MAX && (describes_whole(&name) && depth <= 1 || is_manual(&name))
    }

    /// Reads a member, or the front of it.
    pub fn add_member(&mut self, path: &str, bytes: &[u8]) {
        if !Self::wants(path) {
            return;
        }
        let text = decode(slice_up_to(bytes, 0, MEMBER_BYTES_MAX), None);
        let (_, name) = depth_and_name(path);
        if self.root.is_empty() {
            let root = path.trim_start_matches("./").split_once('/');
            root.map_or("", |(root, _)| root).clone_into(&mut self.root);
        }
        if let Some(rank) = build_rank(&name) {
            if self.build.as_ref().is_none_or(|(best, _)| rank < *best) {
                self.build = Some((rank, fields(&name, &text).unwrap_or_default()));
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

    /// Returns the draft.
    pub fn finish(self) -> Draft<'static> {
        let fields = self.build.map(|(_, fields)| fields).unwrap_or_default();
        let (root_name, root_version) = split_version(&self.root);
        let or = |first: String, second: &str| {
            if first.is_empty() { second.to_owned() } else { first }
        };
        let (headline, paragraph) = plain::headline(&self.readme);
        let name = or(fields.name, root_name);
        let mut draft = Draft {
            title: or(name.clone(), &headline),
            description: or(or(fields.description, &self.manual), &paragraph).trim().to_owned(),
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

fn build_rank(name: &str) -> Option<usize> {
    BUILD_FILES.split(' ').position(|it| it == name)
}

fn describes_whole(name: &str) -> bool {
    build_rank(name).is_some()
        || name.starts_with("readme")
        || ["license", "licence", "copying"].iter().any(|it| name.starts_with(it))
}

/// Returns whether a name is a manual page's (`sort.1`), in the section of commands, library functions,
/// formats or administration.
fn is_manual(name: &str) -> bool {
    let section = name.rsplit_once('.').filter(|(stem, _)| !stem.contains('.'));
    section.is_some_and(|(_, section)| matches!(section, "1" | "3" | "5" | "8"))
}

/// Returns the purpose in a manual page's section `NAME`.
fn manual(text: &str) -> String {
    let mut lines = text.lines().skip_while(|it| {
        !it.to_ascii_uppercase().starts_with(".SH NAME") && !it.starts_with(".SH \"NAME\"")
    });
    let line = lines.by_ref().skip(1).find(|it| !it.starts_with(".\\\"")).unwrap_or_default();
    let mdoc = lines.find_map(|it| it.strip_prefix(".Nd "));
    let purpose = line.split_once("\\- ").or_else(|| line.split_once(" - ")).map(|(_, it)| it);
    purpose.or(mdoc).unwrap_or_default().trim().to_owned()
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

/// Reads a build file by its name.
fn fields(name: &str, text: &str) -> Option<BuildFields> {
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
        _ => None,
    }
}

fn of_toml(text: &str, table: &str) -> Option<BuildFields> {
    let whole = text.parse::<toml::Table>().ok()?;
    let package = whole.get(table)?.as_table()?;
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
    Some(BuildFields {
        name: field("name"),
        version: field("version"),
        description: field("description"),
        license: field("license"),
        homepage,
        authors: authors.take(20).collect(),
    })
}

fn of_json(text: &str) -> Option<BuildFields> {
    let whole = serde_json::from_str::<serde_json::Value>(text).ok()?;
    let field = |name: &str| {
        let value = whole.get(name).and_then(|it| it.get(0).or(Some(it)));
        value.and_then(serde_json::Value::as_str).map(bounded).unwrap_or_default()
    };
    let author =
        whole.get("author").and_then(|it| it.get("name").or_else(|| it.get(0)).or(Some(it)));
    let descriptions = [field("description"), field("abstract")];
    Some(BuildFields {
        name: field("name"),
        version: field("version"),
        description: descriptions.into_iter().find(|it| !it.is_empty()).unwrap_or_default(),
        license: field("license"),
        homepage: field("homepage"),
        authors: author.and_then(serde_json::Value::as_str).map(bounded).into_iter().collect(),
    })
}

/// Reads the values of lines that start with `names`, which are in the order of [`BuildFields`].
fn of_lines(text: &str, names: &[&str]) -> Option<BuildFields> {
    let value = |name: &&str| text.lines().find_map(|it| it.strip_prefix(name)).map(str::trim);
    let mut values = names.iter().map(|it| value(it).map(bounded));
    let mut next = || values.next().flatten();
    Some(BuildFields {
        name: next().unwrap_or_default(),
        version: next().unwrap_or_default(),
        description: next().unwrap_or_default(),
        license: next().unwrap_or_default(),
        homepage: next().unwrap_or_default(),
        authors: next().into_iter().collect(),
    })
}

/// Reads `name='x'` of Python and `NAME => 'x'` of Perl.
fn of_calls(text: &str) -> Option<BuildFields> {
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
    let author = Some(field(&["author", "AUTHOR"])).filter(|it| !it.is_empty());
    Some(BuildFields {
        name: field(&["name", "NAME", "module_name"]),
        version: field(&["version", "VERSION"]),
        description: field(&["description", "ABSTRACT"]),
        license: field(&["license", "LICENSE"]),
        homepage: field(&["url"]),
        authors: author.into_iter().collect(),
    })
}

/// Reads the first element of each name outside of `parent`.
fn of_pom(text: &str) -> Option<BuildFields> {
    let own = match (text.split_once("<parent>"), text.split_once("</parent>")) {
        (Some((before, _)), Some((_, after))) => [before, after].concat(),
        _ => text.to_owned(),
    };
    let field = |name: &str| {
        let after = own.split_once(&format!("<{name}>")).map_or("", |(_, it)| it);
        bounded(after.split('<').next().unwrap_or_default())
    };
    Some(BuildFields {
        name: field("artifactId"),
        version: field("version"),
        description: field("description"),
        homepage: field("url"),
        ..BuildFields::default()
    })
}

/// Reads `AC_INIT([name], [version], [bugs], [tarname], [url])`.
fn of_autoconf(text: &str) -> Option<BuildFields> {
    let (_, after) = text.split_once("AC_INIT(")?;
    let inside = after.split(')').next().unwrap_or_default();
    let arguments: Vec<String> = inside
        .split(',')
        .map(|it| bounded(it.trim_matches(|it: char| it.is_whitespace() || "[]".contains(it))))
        .collect();
    let argument =
        |at: usize| arguments.get(at).filter(|it| !it.contains("m4_")).cloned().unwrap_or_default();
    let [name, version, homepage] = [0, 1, 4].map(argument);
    // The old form has a file name as its only argument.
    let fields = BuildFields { name, version, homepage, ..BuildFields::default() };
    (2 <= arguments.len()).then_some(fields)
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
            whole.add_member(path, text.as_bytes());
        }
        let draft = whole.finish();
        let mut lines = vec![draft.title, draft.authors.join(", "), draft.description];
        lines.extend(draft.others.iter().map(|(name, value)| format!("{name}: {value}")));
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn an_archive_with_a_build_file_is_a_distribution() {
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
        fn any_member_gives_a_draft(at in 0..BUILD_FILES.split(' ').count(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut whole = Distribution::default();
            whole.add_member(&format!("a-1/{}", BUILD_FILES.split(' ').nth(at).unwrap()), &bytes);
            whole.add_member("a-1/x.1", &bytes);
            whole.finish();
        }
    }
}

//! The standing of an object: what its type and its place say before any word is looked for.
//!
//! Of two objects with the same words, most people want the manual, not its change log or the data
//! of a test. Standing only weighs; it never hides an object.
//!
//! Sans-I/O.

use query::record::type_of;
use soif::Record;

/// The standing of a document that people read, in percent; all others have less.
pub(super) const FULL: u64 = 100;

/// Types with their standing, in percent. Others have [`FULL`].
const TYPES: &[(u64, &[&str])] = &[
    (95, &["Text", "FormattedText", "Mail", "News", "Tex", "Troff", "Presentation", "PowerPoint"]),
    (
        90,
        &["Excel", "Spreadsheet", "Notebook", "Command", "Debian-Package", "RPM", "Wheel", "Crate"],
    ),
    (
        80,
        &[
            "C",
            "CHeader",
            "C++",
            "Rust",
            "Python",
            "Perl",
            "ShellScript",
            "JavaScript",
            "TypeScript",
            "Java",
            "Go",
            "Awk",
            "Tcl",
            "OtherCode",
            "Makefile",
            "XML",
            "SVG",
            "SGML",
            "JSON",
            "Configuration",
            "DotFile",
            "Data",
            "CSV",
            "Database",
            "ScientificData",
            "Image",
            "Audio",
            "Video",
            "Font",
            "Mailbox",
        ],
    ),
    (70, &["ChangeLog"]),
    (60, &["Patch", "RCS", "SCCS", "Object", "Binary", "Unknown", "SymbolicLink", "Backup"]),
];

/// Words of a path with their standing, in percent: as a whole part of it, or as the beginning of
/// the last part before a sign.
const PARTS: &[(u64, &[&str])] = &[
    (70, &["changelog", "changes", "copyright", "copying", "license", "licence", "licenses"]),
    (60, &["test", "tests", "testdata", "testing", "fixture", "fixtures", "__tests__", "mocks"]),
    (70, &["node_modules", "vendor", "third_party", "build", "dist", "target", "_sources"]),
    (70, &["genindex", "modindex", "py-modindex", "search", "toc", "sitemap"]),
    (90, &["news", "example", "examples", "sample", "samples", "old", "archive", "attic"]),
];

/// Percent that remain with each level of folders.
const LEVEL: f32 = 0.99;
/// Number of levels that count.
const LEVELS_MAX: usize = 12;

/// Returns the standing of an object, in percent, from 1 to [`FULL`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a percentage"
)]
pub(super) fn standing(record: &Record) -> u64 {
    let root = record.text("Gatherer-Root").unwrap_or_default();
    let path = place_of(&record.url, &root).to_ascii_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let stem = name.split(['.', '-', '_']).next().unwrap_or_default();
    let folders: Vec<&str> = folders.split(['/', '#']).filter(|it| !it.is_empty()).collect();
    let is_in = |words: &&(u64, &[&str])| {
        words.1.iter().any(|it| *it == stem || *it == name || folders.contains(it))
    };
    let part = PARTS.iter().filter(is_in).map(|it| it.0).min().unwrap_or(FULL);
    let kind = type_of(record);
    let kind = TYPES.iter().find(|it| it.1.contains(&&*kind)).map_or(FULL, |it| it.0);
    let levels = i32::try_from(folders.len().min(LEVELS_MAX)).unwrap_or_default();
    let standing = kind.min(part) as f32 * LEVEL.powi(levels);
    (standing.round() as u64).clamp(1, FULL)
}

/// Returns the place of an object among those of its gatherer's root: the part of its URL below that.
/// The folders on the way to the root, such as `build` or `archive`, say nothing of one beside another.
fn place_of<'a>(url: &'a str, root: &str) -> &'a str {
    let is_below = |rest: &&str| root.ends_with('/') || rest.starts_with(['/', '#']);
    let below = url.strip_prefix(root).filter(|_| !root.is_empty()).filter(is_below);
    below.map_or_else(|| path_of(url), without_query)
}

/// Returns the part of a URL behind its host, without the query.
fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, it)| it);
    without_query(behind.find('/').and_then(|at| behind.get(at..)).unwrap_or_default())
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// Returns the name of an object for people: the last part of its URL without the endings that name
/// a format, or that of its folder for an index page.
pub(super) fn name_of(url: &str) -> String {
    let path = path_of(url);
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let mut parts = path.rsplit(['/', '#']).filter(|it| !it.is_empty());
    let name = without_ending(parts.next().unwrap_or_default());
    if name.eq_ignore_ascii_case("index") {
        parts.next().unwrap_or(name).to_owned()
    } else {
        name.to_owned()
    }
}

fn without_ending(name: &str) -> &str {
    let Some((before, ending)) = name.rsplit_once('.').filter(|(before, _)| !before.is_empty())
    else {
        return name;
    };
    let is_packed = ["gz", "bz2", "xz", "zst"].contains(&ending);
    // The source of a page is served as text.
    let is_source =
        |it: &str| [".rst", ".md", ".adoc", ".html"].iter().any(|end| it.ends_with(end));
    if is_packed || ending == "txt" && is_source(before) { without_ending(before) } else { before }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, kind: &str, expected: u64) {
        let mut record = Record::new("FILE", url);
        record.push("Type", kind);
        assert_eq!(standing(&record), expected, "{url} {kind}");
    }

    #[test]
    fn a_manual_stands_above_a_change_log_above_nothing() {
        check("http://h/git.html", "HTML", 100);
        check("file:///usr/share/doc/git/html/git.html", "HTML", 95);
        check("file:///usr/share/doc/git/changelog.Debian.gz", "Text", 67);
        check("file:///usr/share/doc/git/NEWS.gz", "Text", 86);
        check("file:///a/tests/data/one.html", "HTML", 58);
        check("file:///a/tests/changelog", "ChangeLog", 59);
        check("http://h/latest/tested.html", "HTML", 99);
        check("http://h/x?/tests/", "HTML", 100);
        check("http://h/a.c", "C", 80);
        check("oai:h:1", "", 100);
        check(&format!("http://h/{}x", "a/".repeat(99)), "HTML", 89);
    }

    #[test]
    fn the_way_to_the_root_does_not_count() {
        let check = |url: &str, root: &str, expected: u64| {
            let mut record = Record::new("FILE", url);
            record.push("Gatherer-Root", root);
            assert_eq!(standing(&record), expected, "{url} below {root}");
        };
        let root = "file:///home/ada/build/archive/docs";
        check("file:///home/ada/build/archive/docs/git.html", root, 100);
        check("file:///home/ada/build/archive/docs/tests/git.html", root, 59);
        check("file:///home/ada/build/archive/docs/tests/git.html", "", 56);
        check("file:///home/ada/build/archive/docs-old/git.html", root, 67);
        check("http://h/old/a.html?/tests/", "http://h/old/", 100);
        // A root that is one file or archive.
        check("file:///old/tests.tar#tests/a", "file:///old/tests.tar", 59);
        check("file:///old/a", "file:///old/a", 89);
    }

    #[test]
    fn a_name_has_no_ending() {
        let check = |url: &str, expected: &str| assert_eq!(name_of(url), expected, "{url}");
        check("file:///usr/share/man/man1/git.1.gz", "git");
        check("file:///doc/Annual%20Report.pdf", "Annual Report");
        check("http://h/docs/git/index.html", "git");
        check("http://h/a.tar#dir/b.txt", "b");
        check("http://h/", "");
        check("http://h/.profile", ".profile");
        check("http://h/node.js.html?x=y", "node.js");
        check("http://h/_sources/node.js.rst.txt", "node.js");
    }
}

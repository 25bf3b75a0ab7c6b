//! The templates of a daemon's pages: built in, and replaceable by files of an administrator.
//!
//! A wrong replacement never takes a page down: it is named in
//! [`Pages::problems`](crate::Pages::problems), and the built-in template is used instead.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior};
use serde::Serialize;

use crate::Error;
use settings::nearest;

/// Longest template or asset that is read from a folder, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of files that are read from a folder.
pub const FILES_MAX: usize = 256;

/// A template that is built into the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, which ends in `.html`. An administrator's file of this name replaces it.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The templates that all daemons have.
pub const SHARED: &[Source] = &[
    Source { name: "layout.html", text: include_str!("../templates/layout.html") },
    Source { name: "failure.html", text: include_str!("../templates/failure.html") },
];

/// Files of an administrator's folder, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) problems: BTreeMap<String, String>,
}

impl Folder {
    /// Reads the files of `folder`, without going into folders below it. Blocks.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::TemplatesFolder { path: folder.to_owned(), source };
        let mut read = Self::default();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if !path.is_file() {
                continue;
            }
            if FILES_MAX <= read.files.len() {
                let problem = format!("left out: the folder has more than {FILES_MAX} files");
                read.problems.insert(name.to_owned(), problem);
                break;
            }
            match read_bounded(&path) {
                Ok(bytes) => {
                    read.files.insert(name.to_owned(), bytes);
                }
                Err(problem) => {
                    read.problems.insert(name.to_owned(), problem);
                }
            }
        }
        Ok(read)
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let too_long = usize::try_from(FILE_BYTES_MAX).is_ok_and(|max| max < bytes.len());
    if too_long { Err(format!("is longer than {FILE_BYTES_MAX} bytes")) } else { Ok(bytes) }
}

#[derive(Debug)]
pub(crate) struct Templates {
    embedded: Environment<'static>,
    /// The built-in templates with the administrator's over them; `None` without such files.
    replaced: Option<Environment<'static>>,
    /// The problems of the administrator's files, by the file's name.
    problems: Mutex<BTreeMap<String, String>>,
}

impl Templates {
    /// Reads `sources`, then `folder`'s `.html` files. `prepare` adds functions and globals.
    pub(crate) fn new(
        sources: &[Source],
        folder: &Folder,
        prepare: impl Fn(&mut Environment<'static>),
    ) -> Result<Self, Error> {
        let mut embedded = environment();
        prepare(&mut embedded);
        for source in sources {
            embedded
                .add_template(source.name, source.text)
                .map_err(|error| Error::Template { name: source.name.to_owned(), source: error })?;
        }
        let mut problems = folder.problems.clone();
        let mut replaced = None;
        for (name, bytes) in folder.files.iter().filter(|(name, _)| name.ends_with(".html")) {
            let into = replaced.get_or_insert_with(|| embedded.clone());
            if let Err(problem) = add(into, name, bytes) {
                problems.insert(name.clone(), problem);
            } else if let Some(near) = misspelled(sources, name) {
                problems
                    .insert(name.clone(), format!("is not the template of a page; is it {near}?"));
            }
        }
        Ok(Self { embedded, replaced, problems: Mutex::new(problems) })
    }

    /// Renders the template `name`; the built-in one if the administrator's fails.
    pub(crate) fn render(&self, name: &str, context: &impl Serialize) -> Result<String, Error> {
        let context = Value::from(Serde(context));
        if let Some(replaced) = &self.replaced {
            match render(replaced, name, &context) {
                Ok(text) => return Ok(text),
                Err(error) => self.note(name, &error),
            }
        }
        render(&self.embedded, name, &context)
            .map_err(|error| Error::Template { name: name.to_owned(), source: error })
    }

    /// Returns the problems of the administrator's files, as `NAME: PROBLEM`, by name.
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        problems.iter().map(|(name, problem)| format!("{name}: {problem}")).collect()
    }

    fn note(&self, page: &str, error: &minijinja::Error) {
        // The error may be in an included template; the innermost error names it.
        let error = innermost(error);
        let file = error.name().unwrap_or(page);
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        // One entry for each file, so each problem is logged once.
        if problems.insert(file.to_owned(), error.to_string()).is_none() {
            tracing::warn!(file, %error, "template failed; the built-in one is used");
        }
    }
}

fn render(from: &Environment<'_>, name: &str, context: &Value) -> Result<String, minijinja::Error> {
    from.get_template(name)?.render(context.clone())
}

fn innermost(mut error: &minijinja::Error) -> &minijinja::Error {
    while let Some(inner) = std::error::Error::source(error).and_then(|it| it.downcast_ref()) {
        error = inner;
    }
    error
}

fn add(into: &mut Environment<'static>, name: &str, bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("is not UTF-8: {error}"))?;
    into.add_template_owned(name.to_owned(), text.to_owned()).map_err(|error| error.to_string())
}

/// Returns the built-in template that `name` may be a misspelling of.
fn misspelled(sources: &[Source], name: &str) -> Option<&'static str> {
    if sources.iter().any(|it| it.name == name) {
        return None;
    }
    // Without the extension, which would make all names alike.
    let stem = |name: &'static str| name.trim_end_matches(".html");
    let near = nearest(name.trim_end_matches(".html"), sources.iter().map(|it| stem(it.name)))?;
    sources.iter().map(|it| it.name).find(|it| stem(it) == near)
}

fn environment() -> Environment<'static> {
    let mut made = Environment::new();
    // A misspelled variable is reported to the administrator instead of rendered as empty.
    made.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    made.set_formatter(format_value);
    made.add_filter("grouped", grouped);
    made.add_filter("size", size);
    made.add_filter("querypart", query_part);
    made
}

/// Encodes `text` as a value in the query of an address.
fn query_part(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Writes a value, escaped in HTML; `/` stays, so that addresses can be read in the source.
fn format_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let plain =
        value.as_str().filter(|_| !value.is_safe() && *state.auto_escape() == AutoEscape::Html);
    match plain {
        Some(text) => out.write_str(&escape(text)).map_err(minijinja::Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}

/// Escapes `text` for HTML, in an element or in a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Renders a duration in the largest unit of which it has at least two.
pub fn ago(secs: u64) -> String {
    let (count, unit) = match secs {
        0..120 => (secs, "s"),
        120..7_200 => (secs / 60, "min"),
        7_200..172_800 => (secs / 3_600, "h"),
        _ => (secs / 86_400, "days"),
    };
    format!("{} {unit}", grouped(count))
}

/// Writes a whole number with its digits in groups of three: `12,345`.
pub fn grouped(number: u64) -> String {
    group(&number.to_string())
}

/// Writes `digits` in groups of three.
pub(crate) fn group(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if 0 < i && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a size for people: `512 bytes`, `1.4 KiB`, `23 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1_024 {
        return if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") };
    }
    // In tenths of the unit, rounded down.
    let mut tenths = u128::from(bytes) * 10 / 1_024;
    let mut unit = 0;
    while 10_240 <= tenths && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if tenths < 100 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", tenths / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Source = Source { name: "page.html", text: "built in: {{ word }}" };

    fn folder(files: &[(&str, &str)]) -> Folder {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        Folder { files: files.collect(), problems: BTreeMap::new() }
    }

    fn check(files: &[(&str, &str)], expected: &str, problem: Option<&str>) {
        let templates = Templates::new(&[PAGE], &folder(files), |_| ()).unwrap();
        let context = serde_json::json!({ "word": "a<b>'\"&/" });
        for _ in 0..2 {
            assert_eq!(templates.render("page.html", &context).unwrap(), expected);
        }
        let problems = templates.problems();
        assert_eq!(problems.len(), usize::from(problem.is_some()), "{problems:?}");
        assert!(problem.is_none_or(|it| problems[0].contains(it)), "{problems:?}");
    }

    #[test]
    fn values_are_escaped() {
        check(&[], "built in: a&lt;b&gt;&#39;&quot;&amp;/", None);
    }

    #[test]
    fn a_file_replaces_a_template_and_may_include_others() {
        check(
            &[("page.html", "mine{% include 'part.html' %}"), ("part.html", ": {{ word|length }}")],
            "mine: 8",
            None,
        );
    }

    #[test]
    fn a_wrong_file_is_named_and_the_built_in_template_is_used() {
        let built_in = "built in: a&lt;b&gt;&#39;&quot;&amp;/";
        check(&[("page.html", "{% if %}")], built_in, Some("page.html: syntax error"));
        check(&[("page.html", "one\n{{ wrod }}")], built_in, Some("(in page.html:2)"));
        check(&[("page.html", "{% include 'none.html' %}")], built_in, Some("page.html"));
        check(
            &[("page.html", "{% include 'part.html' %}"), ("part.html", "{{ wrod }}")],
            built_in,
            Some("part.html"),
        );
        check(&[("pgae.html", "x")], built_in, Some("is it page.html?"));
    }

    #[test]
    fn a_folder_is_read_with_its_bounds() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.html"), "a").unwrap();
        fs::write(dir.path().join("b.html"), vec![b'x'; (1 << 20) + 1]).unwrap();
        fs::create_dir(dir.path().join("c.html")).unwrap();
        let read = Folder::read(dir.path()).unwrap();
        assert_eq!(read.files.keys().collect::<Vec<_>>(), ["a.html"]);
        assert!(read.problems["b.html"].contains("longer than"), "{:?}", read.problems);
        let message = Folder::read(&dir.path().join("none")).unwrap_err().to_string();
        assert!(message.contains("none") && message.contains("make it"), "{message}");
    }

    #[test]
    fn numbers_for_people() {
        let check = |number, expected_grouped: &str, expected_size: &str| {
            assert_eq!(
                (grouped(number).as_str(), size(number).as_str()),
                (expected_grouped, expected_size)
            );
        };
        check(0, "0", "0 bytes");
        check(1, "1", "1 byte");
        check(1_023, "1,023", "1023 bytes");
        check(1_024, "1,024", "1.0 KiB");
        check(123_456, "123,456", "120 KiB");
        check(5_000_000, "5,000,000", "4.7 MiB");
        check(u64::MAX, "18,446,744,073,709,551,615", "15 EiB");
    }
}

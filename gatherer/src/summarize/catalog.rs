//! Catalogs: files that list many things. What all of them share: how entries are counted, bounded and
//! told, and the record of the list as a whole.
//!
//! Source: Essence's Bibliographic summarizer; the manual's exploder ("turns one file into a stream of
//! SOIF objects"). One module a format finds the entries; it is read once for the list's own record, and
//! once more for those of the entries (see `explode`).
//!
//! # Differences from the paper
//!
//! * A broken entry costs itself only; its words can still be found.
//! * A format that describes one thing without a list around it (a dataset's metadata) gives that thing's
//!   record: there is nothing to explode.
//!
//! Sans-I/O.

pub(crate) mod json;

use std::borrow::Cow;

use oai::crosswalk;
use soif::Record;

use super::{
    Draft, Input, bibtex, csl, datacite, iafa, jsonld, lsm, marc, marcxml, ris, soif as own,
};
use crate::object::ProblemKind;
use crate::text::{Body, decode, one_line};
use crate::typing::Type;

/// How much of a catalog is read, in bytes: 10,000 entries, the most that become records, of 3 KiB.
const CATALOG_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Longest entry that is parsed, in bytes.
pub(crate) const ENTRY_BYTES_MAX: usize = 256 * 1024;
/// Longest value of an entry, in bytes.
const VALUE_BYTES_MAX: usize = 8 * 1024;
/// Longest attribute of an entry, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 16 * 1024;
/// Most values that are taken of one entry.
const VALUES_MAX: usize = 1_000;
/// Most attributes of an entry.
const ATTRIBUTES_MAX: usize = 60;
/// Longest name of an attribute that the file itself gives, in bytes.
const NAME_BYTES_MAX: usize = 60;
/// Most authors, and most titles, that the list's own record has.
const NAMES_MAX: usize = 500;
/// Steps between two looks at the clock.
const POLL_STEPS: u32 = 64;

/// Years that a thing may be of.
const YEARS: std::ops::Range<i32> = 1000..3000;

/// What an entry's line in its list leaves out: it says nothing to a reader without its name.
const UNTOLD: &[&str] = &[
    "Date",
    "Date-Modified",
    "Language",
    "Original-Date",
    "Original-Language",
    "Year",
    "Volume",
    "Issue",
    "Page-Range",
    "Format",
];

/// Returns whether files of this type are catalogs.
pub(crate) fn is_catalog(r#type: Type) -> bool {
    noun(r#type).is_some()
}

/// What a catalog is called.
fn noun(r#type: Type) -> Option<&'static str> {
    Some(match r#type {
        Type::BibTeX | Type::Ris | Type::CslJson => "Bibliography",
        Type::Marc | Type::MarcXml => "Library catalog",
        Type::DataCite => "Catalog of datasets",
        Type::JsonLd => "Linked data",
        Type::Lsm => "Software map",
        Type::Iafa => "Archive index",
        Type::Soif => "Summaries",
        _ => return None,
    })
}

/// Hands out the entries of a catalog of any format.
pub(crate) fn read(input: &Input<'_>, reading: &mut Reading<'_>) {
    if CATALOG_BYTES_MAX < input.object.bytes.len() {
        let message = format!("is longer than {CATALOG_BYTES_MAX} bytes; only its front was read");
        reading.problem(ProblemKind::Limit, message);
    }
    let bytes = input.head(CATALOG_BYTES_MAX);
    match input.r#type {
        Type::Marc => marc::read(bytes, reading),
        Type::Soif => own::read(bytes, reading),
        Type::BibTeX => bibtex::read(&decode(bytes, None), reading),
        Type::Ris => ris::read(&decode(bytes, None), reading),
        Type::CslJson => csl::read(&decode(bytes, None), reading),
        Type::MarcXml => marcxml::read(&decode(bytes, None), reading),
        Type::DataCite => datacite::read(&decode(bytes, None), reading),
        Type::JsonLd => jsonld::read(&decode(bytes, None), reading),
        Type::Lsm => lsm::read(&decode(bytes, None), reading),
        Type::Iafa => iafa::read(&decode(bytes, None), reading),
        _ => {}
    }
}

/// One entry of a catalog.
pub(crate) struct Item<'t> {
    /// What names it in the catalog and elsewhere; may be empty.
    pub(crate) key: String,
    /// Its part of the file.
    pub(crate) raw: &'t [u8],
    /// What there is to say.
    pub(crate) draft: Draft<'static>,
    /// Whether the file is about it alone, without a list around it.
    pub(crate) is_alone: bool,
}

/// What is handed out.
pub(crate) enum Found<'t> {
    /// An entry.
    Entry(Item<'t>),
    /// The text of an entry that cannot be parsed; empty where it is no text.
    Broken(&'t str),
}

/// One pass over a catalog.
pub(crate) struct Reading<'r> {
    cancelled: &'r dyn Fn() -> bool,
    each: &'r mut dyn FnMut(Found<'_>) -> bool,
    steps: u32,
    count: usize,
    broken: usize,
    first_broken: String,
    is_late: bool,
    problems: Vec<(ProblemKind, String)>,
}

impl<'r> Reading<'r> {
    /// Returns a pass that hands everything to `each` until that says `false`.
    pub(crate) fn new(
        cancelled: &'r dyn Fn() -> bool,
        each: &'r mut dyn FnMut(Found<'_>) -> bool,
    ) -> Self {
        let (problems, first_broken) = (Vec::new(), String::new());
        Self {
            cancelled,
            each,
            steps: 0,
            count: 0,
            broken: 0,
            first_broken,
            is_late: false,
            problems,
        }
    }

    /// Returns whether to go on; to be asked in every loop.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.is_late |= self.steps.is_multiple_of(POLL_STEPS) && (self.cancelled)();
        self.steps = self.steps.wrapping_add(1);
        !self.is_late
    }

    /// Hands out an entry of a list; returns whether to go on.
    pub(crate) fn entry(&mut self, key: &str, raw: &[u8], fields: Fields) -> bool {
        self.item(Item { key: key.to_owned(), raw, draft: fields.finish(), is_alone: false })
    }

    /// Hands out what the file as a whole is about.
    pub(crate) fn alone(&mut self, raw: &[u8], fields: Fields) {
        self.item(Item { key: String::new(), raw, draft: fields.finish(), is_alone: true });
    }

    fn item(&mut self, item: Item<'_>) -> bool {
        self.count += 1;
        self.goes_on() && (self.each)(Found::Entry(item))
    }

    /// Tells of an entry that cannot be parsed, and where it is (`in line 7`); returns whether to go on.
    pub(crate) fn broken(&mut self, text: &str, place: impl FnOnce() -> String) -> bool {
        self.count += 1;
        self.broken += 1;
        if self.broken == 1 {
            self.first_broken = place();
        }
        self.goes_on() && (self.each)(Found::Broken(text))
    }

    /// Tells what is wrong with the catalog as a whole.
    pub(crate) fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        // A format has a handful at most.
        if self.problems.len() < 8 {
            self.problems.push((kind, message.into()));
        }
    }

    /// Returns how many entries there were so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns what was wrong with the catalog as a whole.
    pub(crate) fn into_problems(mut self) -> Vec<(ProblemKind, String)> {
        if self.is_late {
            let message = format!("ran out of time after {} entries", self.count);
            self.problems.push((ProblemKind::Time, message));
        }
        if 0 < self.broken {
            let (broken, count, first) = (self.broken, self.count, self.first_broken);
            let message =
                format!("{broken} of {count} entries cannot be parsed, the first {first}");
            self.problems.push((ProblemKind::Broken, message));
        }
        self.problems
    }

    /// Returns whether it ended because time was up.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}

/// Summarizes a catalog: how many entries, of which years, by whom, and their titles.
pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut body = Body::new(input.text_bytes_max());
    let (mut titles, mut authors, mut alone) = (Vec::new(), Vec::new(), None);
    let (mut first_year, mut last_year) = (i32::MAX, i32::MIN);
    let mut each = |found: Found<'_>| {
        let draft = match found {
            Found::Entry(Item { is_alone: true, draft, .. }) => {
                alone = Some(draft);
                return true;
            }
            Found::Entry(item) => item.draft,
            Found::Broken(text) => {
                body.push(text);
                body.line();
                return true;
            }
        };
        cite(&draft, &mut body);
        if let Some(year) = year(&draft) {
            (first_year, last_year) = (first_year.min(year), last_year.max(year));
        }
        if titles.len() < NAMES_MAX && !draft.title.is_empty() {
            titles.push(draft.title);
        }
        if authors.len() < NAMES_MAX {
            authors.extend(draft.authors);
        }
        true
    };
    let mut reading = Reading::new(input.cancelled, &mut each);
    read(input, &mut reading);
    let (count, problems) = (reading.count(), reading.into_problems());
    let mut draft = alone.unwrap_or_else(|| {
        let years = match first_year.cmp(&last_year) {
            std::cmp::Ordering::Less => format!("{first_year}-{last_year}"),
            std::cmp::Ordering::Equal => first_year.to_string(),
            std::cmp::Ordering::Greater => String::new(),
        };
        let span = if years.is_empty() { String::new() } else { format!(" of {years}") };
        let (noun, plural) =
            (noun(input.r#type).unwrap_or("List"), if count == 1 { "entry" } else { "entries" });
        let description = format!("{noun} with {count} {plural}{span}");
        let mut draft = Draft { authors, description, ..Draft::default() };
        draft.other("Entries", count.to_string());
        draft.other("Years", years);
        draft.other("Titles", titles.join("\n"));
        draft.body = Cow::Owned(body.finish());
        draft
    });
    draft.problems.splice(0..0, problems);
    draft
}

fn year(draft: &Draft<'_>) -> Option<i32> {
    let (_, date) = draft.others.iter().find(|(name, _)| name == "Date")?;
    let year = date.get(..4)?.parse().ok()?;
    YEARS.contains(&year).then_some(year)
}

/// Writes an entry as one line: `Title / Author; Author (1995). Where it appeared. What else there is`.
pub(crate) fn cite(draft: &Draft<'_>, body: &mut Body) {
    body.push(&draft.title);
    if !draft.authors.is_empty() {
        body.push(" / ");
        body.push(&draft.authors.join("; "));
    }
    if let Some(year) = year(draft) {
        body.push(&format!(" ({year})"));
    }
    let others = draft.others.iter().filter(|(name, _)| !UNTOLD.contains(&name.as_str()));
    let others = others.map(|(_, value)| value.as_str());
    let references = draft.references.iter().map(String::as_str);
    for it in others.chain(references).chain([draft.description.as_str(), &draft.r#abstract]) {
        if !it.is_empty() && !body.is_full() {
            if !body.as_str().is_empty() && !body.as_str().ends_with('\n') {
                body.push(". ");
            }
            body.push_squeezed(it);
        }
    }
    body.line();
}

/// What an entry says, value by value.
#[derive(Default)]
pub(crate) struct Fields {
    draft: Draft<'static>,
    others: Vec<(Cow<'static, str>, String)>,
    /// More text to find it by.
    text: String,
    values: usize,
}

impl Fields {
    /// Takes down a value, unless it is empty, under the name that the attribute has in a record: several
    /// become lines of it. `Date`, `Language` and `Identifier` get the spelling that all records have;
    /// `URL-References` are only taken if they are of the web; `Partial-Text` is the text.
    pub(crate) fn put(&mut self, name: impl Into<Cow<'static, str>>, value: &str) {
        let (name, value) = (name.into(), one_line(value, VALUE_BYTES_MAX));
        if value.is_empty() || VALUES_MAX <= self.values {
            return;
        }
        self.values += 1;
        match &*name {
            "Title" if self.draft.title.is_empty() => self.draft.title = value,
            "Title" => self.other(Cow::Borrowed("Alternative-Title"), value),
            "Author" => self.draft.authors.push(value),
            "Description" => append(&mut self.draft.description, &value, " "),
            "Abstract" => append(&mut self.draft.r#abstract, &value, "\n"),
            "URL-References" if is_address(&value) => self.draft.references.push(value),
            "URL-References" => {}
            "Date" => {
                let date = crosswalk::date(value.trim_end_matches('/'));
                self.other(name, date.unwrap_or(value));
            }
            "Language" => {
                let tag = crosswalk::language_tag(&value).map(Cow::into_owned);
                self.other(name, tag.unwrap_or(value));
            }
            _ => self.other(name, value),
        }
    }

    /// Takes down an identifier by the name of its scheme (`doi`, `isbn`, `issn` …).
    pub(crate) fn put_identifier(&mut self, scheme: &str, value: &str) {
        let value = bare_doi(value);
        let scheme = if value.starts_with("10.") { "doi" } else { scheme };
        self.put("Identifier", &crosswalk::identified(scheme, value));
    }

    /// Takes down each of the words or phrases that `marks` stand between.
    pub(crate) fn put_all(&mut self, name: &'static str, values: &str, marks: &[char]) {
        values.split(marks).for_each(|it| self.put(name, it));
    }

    /// Takes down a value under a name that the file itself gives; what a name in a record cannot have
    /// becomes a hyphen, and names that have a meaning for gatherers and brokers are left out.
    pub(crate) fn put_foreign(&mut self, prefix: &str, name: &str, value: &str) {
        let mut made = prefix.to_owned();
        for it in name.trim().chars() {
            let plain =
                if it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.') { it } else { '-' };
            if NAME_BYTES_MAX <= made.len() {
                break;
            }
            if plain != '-' || !made.ends_with('-') {
                made.push(plain);
            }
        }
        made.truncate(made.trim_end_matches('-').len());
        let is_empty = made.len() <= prefix.trim_end_matches('-').len();
        if !is_empty && !is_ours(&made) {
            self.put(made, value);
        }
    }

    /// Adds text to find it by, and to show.
    pub(crate) fn put_text(&mut self, text: &str) {
        append(&mut self.text, text.trim(), "\n");
    }

    fn other(&mut self, name: Cow<'static, str>, value: String) {
        let Some((_, old)) = self.others.iter_mut().find(|(it, _)| *it == name) else {
            if self.others.len() < ATTRIBUTES_MAX {
                self.others.push((name, value));
            }
            return;
        };
        if old.len() + value.len() < ATTRIBUTE_BYTES_MAX && !old.lines().any(|it| it == value) {
            append(old, &value, "\n");
        }
    }

    /// Returns the first value of an attribute; empty if there is none.
    pub(crate) fn first(&self, name: &str) -> &str {
        match name {
            "Title" => &self.draft.title,
            "URL-References" => self.draft.references.first().map_or("", String::as_str),
            _ => {
                let found = self.others.iter().find(|(it, _)| it == name);
                found.and_then(|(_, value)| value.lines().next()).unwrap_or_default()
            }
        }
    }

    /// Returns whether nothing was taken down.
    pub(crate) fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// Takes down the attributes that a crosswalk made.
    pub(crate) fn of(record: &Record) -> Self {
        let mut fields = Self::default();
        for attribute in record.attributes() {
            let value = String::from_utf8_lossy(&attribute.value);
            for line in value.lines() {
                match attribute.name.as_str() {
                    "Type" => fields.put("Resource-Type", line),
                    "Keywords" => fields.put("Subject", line),
                    "Landing-Page" => {
                        if !fields.draft.references.iter().any(|it| it == line) {
                            fields.put("URL-References", line);
                        }
                    }
                    // What they say is in `Date` and `Language`.
                    "Year" | "Original-Date" | "Original-Language" => {}
                    name => fields.put(name.to_owned(), line),
                }
            }
        }
        fields.draft.references.dedup();
        fields
    }

    fn finish(self) -> Draft<'static> {
        let Self { mut draft, others, text, .. } = self;
        for (name, value) in others {
            draft.other(&name, value);
        }
        let mut body = Body::new(ENTRY_BYTES_MAX);
        cite(&draft, &mut body);
        body.push(&text);
        draft.body = Cow::Owned(body.finish());
        draft
    }
}

/// Appends up to the bound of one attribute.
fn append(old: &mut String, new: &str, between: &str) {
    if old.len() + new.len() < ENTRY_BYTES_MAX {
        if !old.is_empty() {
            old.push_str(between);
        }
        old.push_str(new);
    }
}

/// A DOI without the address that leads to it.
fn bare_doi(value: &str) -> &str {
    let value = value.trim();
    let hosts =
        ["https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/"];
    hosts
        .iter()
        .find_map(|it| value.strip_prefix(it))
        .filter(|it| it.starts_with("10."))
        .unwrap_or(value)
}

/// Whether a browser or a mirror opens it.
fn is_address(text: &str) -> bool {
    let schemes = ["http://", "https://", "ftp://"];
    schemes.iter().any(|it| text.len() > it.len() && text.starts_with(it)) && !text.contains(' ')
}

/// Whether an attribute says what only whoever gathered the object can say: no file speaks for that.
pub(crate) fn is_ours(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let exact = [
        "type",
        "file-size",
        "md5",
        "last-modification-time",
        "update-time",
        "time-to-live",
        "refresh-rate",
        "nested-filename",
        "origin-version",
        "set-spec",
        "original-metadata",
        "metadata-namespace",
        "landing-page",
        "year",
        "entries",
        "years",
        "titles",
    ];
    let prefixes = ["gatherer-", "broker-", "embed<", "annotation-", "harvest-"];
    exact.contains(&lower.as_str()) || prefixes.iter().any(|it| lower.starts_with(it))
}

/// What the tests of all catalogs share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::object::Object;
    use crate::summarize::Settings;

    /// Renders each entry as `key: Name=value; Name=value`, one a line, and then what went wrong.
    pub(crate) fn entries(r#type: Type, bytes: &[u8]) -> Vec<String> {
        let object = Object::whole("http://h.example/d/list", bytes.to_vec());
        let settings = Settings::default();
        let input = Input { object: &object, r#type, settings: &settings, cancelled: &|| false };
        let mut lines = Vec::new();
        let mut each = |found: Found<'_>| {
            lines.push(match found {
                Found::Broken(_) => "broken".to_owned(),
                Found::Entry(item) => {
                    let mark = if item.is_alone { "(alone)" } else { &item.key };
                    format!("{mark}: {}", told(&item.draft).join("; "))
                }
            });
            true
        };
        let mut reading = Reading::new(&|| false, &mut each);
        read(&input, &mut reading);
        let problems = reading.into_problems().into_iter();
        let problems = problems.filter(|(_, message)| !message.contains("cannot be parsed"));
        lines.extend(problems.map(|(kind, message)| format!("! {kind}: {message}")));
        lines
    }

    fn told(draft: &Draft<'_>) -> Vec<String> {
        let lines = |lines: &[String]| lines.join("|");
        let others = draft.others.iter().map(|(n, v)| (n.as_str(), v.replace('\n', "|")));
        let first = [
            ("Title", draft.title.clone()),
            ("Author", lines(&draft.authors)),
            ("Description", draft.description.clone()),
            ("Abstract", draft.r#abstract.clone()),
        ];
        let last = [("URL-References", lines(&draft.references))];
        let all = first.into_iter().chain(others).chain(last);
        all.filter(|(_, it)| !it.is_empty()).map(|(n, it)| format!("{n}={it}")).collect()
    }
}

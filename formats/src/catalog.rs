//! Catalogs: files that list many things. Common code for all formats: counting, bounding and citing
//! entries, and the record of the list as a whole.
//!
//! Source: Essence's Bibliographic summarizer; the manual's exploder ("turns one file into a stream of
//! SOIF objects"). One module for each format finds the entries. A file is read once for the list's own
//! record, and once more for the records of the entries (see `explode`).
//!
//! # Differences from the paper
//!
//! * A broken entry affects no other entry, and its words can still be found.
//! * A file that describes one thing without a list (a dataset's metadata) gives that thing's record, and
//!   is not exploded.

pub(crate) mod bibtex;
pub(crate) mod csl;
pub(crate) mod datacite;
mod fields;
pub mod iafa;
pub(crate) mod json;
pub(crate) mod jsonld;
pub(crate) mod lsm;
pub(crate) mod marc;
pub(crate) mod marcxml;
pub(crate) mod ris;
pub(crate) mod soif;

use std::collections::HashSet;

use super::{Draft, Input};
use crate::Type;
use crate::cancellable::TimeLimit;
use crate::limit::{Cut, Limit};
use crate::object::ProblemKind;
use crate::text::{Body, decode};
pub(crate) use fields::EntryFields;

/// Maximum number of titles that the list's own record has as such. All of them stand in its text.
const TITLES_MAX: usize = 500;

/// Plausible years of a thing.
const YEARS: std::ops::Range<i32> = 1000..3000;

/// Attributes left out of an entry's line in its list: their values mean nothing without their names.
const NOT_CITED: &str = "Date Date-Source Date-Modified Language Original-Date Original-Language Year Volume \
    Issue Page-Range Format";

/// Returns whether files of this type are catalogs.
pub(crate) fn is_catalog(r#type: Type) -> bool {
    noun(r#type).is_some()
}

/// Returns the name for catalogs of this type; `None` if the type is not a catalog.
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
    if Limit::List.bound() < input.object.bytes.len() {
        reading.cut(Limit::List.cut());
    }
    let bytes = input.head(Limit::List.bound());
    match input.r#type {
        Type::Marc => marc::read(bytes, reading),
        Type::Soif => soif::read(bytes, reading),
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

#[derive(Debug)]
pub(crate) struct CatalogEntry<'t> {
    /// The key that identifies it in the catalog and elsewhere; may be empty.
    pub key: String,
    /// The part of the file that it was read from.
    pub raw: &'t [u8],
    /// Its draft.
    pub draft: Draft<'static>,
    /// Whether the file describes only this thing, without a list.
    pub is_alone: bool,
}

/// An entry, or the text of an entry that cannot be parsed, for search; the text may be empty.
pub(crate) type ParsedEntry<'t> = Result<CatalogEntry<'t>, &'t str>;

/// One reading of a catalog from its start.
pub(crate) struct Reading<'r> {
    time: TimeLimit<'r>,
    each: &'r mut dyn FnMut(ParsedEntry<'_>) -> bool,
    count: usize,
    broken: usize,
    first_broken: String,
    problems: Vec<(ProblemKind, String)>,
}

impl<'r> Reading<'r> {
    /// Returns a reading that calls `each` with every entry until `each` returns `false`.
    pub(crate) fn new(
        cancelled: &'r dyn Fn() -> bool,
        each: &'r mut dyn FnMut(ParsedEntry<'_>) -> bool,
    ) -> Self {
        let time = TimeLimit::of_long_steps(cancelled);
        let (problems, first_broken) = (Vec::new(), String::new());
        Self { time, each, count: 0, broken: 0, first_broken, problems }
    }

    /// Returns whether to go on; every loop must call it.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.time.goes_on()
    }

    /// Hands out an entry of a list; returns whether to go on.
    pub(crate) fn entry(&mut self, key: &str, raw: &[u8], fields: EntryFields) -> bool {
        let (key, draft) = (key.to_owned(), fields.finish());
        self.item(CatalogEntry { key, raw, draft, is_alone: false })
    }

    /// Hands out the one thing that the whole file describes; `None` if it cannot be parsed.
    pub(crate) fn alone(&mut self, raw: &[u8], fields: Option<EntryFields>) {
        let Some(draft) = fields.map(EntryFields::finish) else {
            self.broken("", || "at its start".to_owned());
            return;
        };
        self.item(CatalogEntry { key: String::new(), raw, draft, is_alone: true });
    }

    fn item(&mut self, item: CatalogEntry<'_>) -> bool {
        self.count += 1;
        self.goes_on() && (self.each)(Ok(item))
    }

    /// Reports an entry that cannot be parsed, with its position (`in line 7`); returns whether to go on.
    pub(crate) fn broken(&mut self, text: &str, position: impl FnOnce() -> String) -> bool {
        self.count += 1;
        self.broken += 1;
        if self.broken == 1 {
            self.first_broken = position();
        }
        self.goes_on() && (self.each)(Err(text))
    }

    /// Reports an entry that is longer than the limit allows; the front of its text can still be found.
    /// Returns whether to go on.
    pub(crate) fn too_long(&mut self, limit: Limit, text: &[u8]) -> bool {
        self.cut(limit.cut());
        self.count += 1;
        let front = text.get(..text.len().min(limit.bound())).unwrap_or_default();
        self.goes_on() && (self.each)(Err(&decode(front, None)))
    }

    /// Says that there is more than a limit allows.
    pub(crate) fn cut(&mut self, cut: Cut) {
        let (kind, message) = cut.problem();
        self.problem(kind, message);
    }

    /// Reports a problem of the catalog as a whole, unless it is one more of the same limit.
    pub(crate) fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        let is_new = !self.problems.iter().any(|(it, _)| it.is_same_limit(kind));
        // A format has at most a handful.
        if is_new && self.problems.len() < 8 {
            self.problems.push((kind, message.into()));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the problems of the catalog as a whole.
    pub(crate) fn into_problems(mut self) -> Vec<(ProblemKind, String)> {
        if self.is_late() {
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

    pub(crate) fn is_late(&self) -> bool {
        self.time.is_over()
    }
}

/// Summarizes a catalog: count, years, authors and titles of its entries.
pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut body = Body::new(input.text_bytes_max());
    let (mut titles, mut authors, mut alone) = (Vec::new(), Vec::new(), None);
    let (mut seen, mut cuts) = (HashSet::new(), Draft::default());
    let (mut first_year, mut last_year) = (i32::MAX, i32::MIN);
    let mut each = |entry: ParsedEntry<'_>| {
        let draft = match entry {
            Ok(CatalogEntry { is_alone: true, draft, .. }) => {
                alone = Some(draft);
                return true;
            }
            Ok(item) => item.draft,
            Err(text) => {
                body.push_line(text);
                return true;
            }
        };
        cite(&draft, &mut body);
        if let Some(year) = year(&draft) {
            (first_year, last_year) = (first_year.min(year), last_year.max(year));
        }
        if titles.len() < TITLES_MAX && !draft.title.is_empty() {
            titles.push(draft.title);
        }
        for author in draft.authors {
            // One more than a record has shows that there are more.
            if authors.len() <= Limit::Authors.bound() && seen.insert(author.clone()) {
                authors.push(author);
            }
        }
        cuts.add_problems(draft.problems);
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
        draft.set_body(body);
        draft
    });
    let own = std::mem::take(&mut draft.problems);
    draft.add_problems(problems);
    draft.add_problems(own);
    draft.add_problems(cuts.problems);
    draft
}

fn year(draft: &Draft<'_>) -> Option<i32> {
    let (_, date) = draft.others.iter().find(|(name, _)| name == "Date")?;
    let year = date.get(..4)?.parse().ok()?;
    YEARS.contains(&year).then_some(year)
}

/// Writes an entry as one line: `Title / Author; Author (1995). Source. Other values`.
pub(crate) fn cite(draft: &Draft<'_>, body: &mut Body) {
    body.push(&draft.title);
    if !draft.authors.is_empty() {
        body.push(" / ");
        body.push(&draft.authors.join("; "));
    }
    if let Some(year) = year(draft) {
        body.push(&format!(" ({year})"));
    }
    let others = draft.others.iter().filter(|(name, _)| !NOT_CITED.split(' ').any(|it| it == name));
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

/// Helpers for the tests of all catalogs.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::Settings;
    use crate::object::Object;

    /// Renders each entry as a line `key: Name=value; Name=value`, and then the problems.
    pub(crate) fn entries(r#type: Type, bytes: &[u8]) -> Vec<String> {
        let object = Object::whole("http://h.example/d/list", bytes.to_vec());
        let settings = Settings::default();
        let input = Input { object: &object, r#type, settings: &settings, cancelled: &|| false };
        let mut lines = Vec::new();
        let mut each = |entry: ParsedEntry<'_>| {
            lines.push(match entry {
                Err(_) => "broken".to_owned(),
                Ok(item) => {
                    let mark = if item.is_alone { "(alone)" } else { &item.key };
                    format!("{mark}: {}", attributes(&item.draft).join("; "))
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

    pub(crate) fn attributes(draft: &Draft<'_>) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use crate::Type;
    use crate::testing::render;

    #[test]
    fn authors_that_are_left_out_are_said() {
        for (count, is_said) in [(600, false), (1_000, false), (1_001, true)] {
            let entry = |it| format!("TY  - JOUR\nAU  - A{it}\nER  - \n").repeat(2);
            let list: String = (0..count).map(entry).collect();
            let seen = render("l.ris", Type::Ris, list.as_bytes());
            assert!(seen.contains(" | A599\n") || seen.contains(" | A599 |"), "{count}");
            assert_eq!(seen.contains("more than 1000 authors"), is_said, "{count}");
        }
    }
}

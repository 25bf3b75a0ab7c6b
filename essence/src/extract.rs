//! Extraction: the summaries of one fetched object.
//!
//! Source: TR §4 and Figure 5: type recognition, presentation unnesting, summarizing. The pipeline
//! makes only this call. A fault of a summarizer (a panic) does not end the run: it becomes a
//! problem of the object, which gets a record made from its name.
//!
//! # Differences from the paper
//!
//! * A compressed file with one content gives one record, under its own URL, with the type of the
//!   content, for which users search. An archive gives a record of its own, whose text is the names
//!   of its members, and one for each member. The record of a package has the package's metadata.
//!   Messages and mailboxes keep the records of their summarizer.
//! * The `Truncated` attribute of a record says which parts could not be opened.
//!
//! Sans-I/O.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use formats::code::distribution::{Distribution, is_source_distribution};
use formats::explode::{self, Entry};
use formats::limit::Limit;
use formats::object::{Object, Problem, ProblemKind, ProgramInput, Summary};
use formats::office::COMPOUND;
use formats::text::Body;
use formats::unnest::{self, Budget, Format, Limits, Member, Packing};
use formats::{Draft, Input, Type};
use serde::{Deserialize, Serialize};

use crate::select::{LeftOut, Selection};
use crate::summarize::Settings as SummarySettings;
use crate::typing::head_of;

/// Maximum number of bytes that are unpacked of backups and what is unknown: they are only typed.
const PEEK_BYTES: usize = 64 * 1024;

const MEBIBYTE: usize = 1024 * 1024;
/// Number of times its packed size that a list usually has at most.
const PACKED_MAX: usize = 8;

/// Memory of an attribute's text, or of any other, in addition to its bytes, in bytes.
const TEXT_BYTES: usize = 64;

/// Settings of opening and summarizing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EssenceSettings {
    /// Limits of unnesting.
    pub unnest: Limits,
    /// Selection of objects.
    pub select: Arc<Selection>,
    /// Settings of typing and summarizing.
    pub summary: SummarySettings,
    /// Types of lists whose entries get records of their own.
    pub explode: Explode,
    /// Types for which the site has programs.
    pub programs: BTreeSet<Type>,
}

impl EssenceSettings {
    /// Returns the object's type.
    pub fn type_of(&self, object: &Object) -> Type {
        self.summary.typing.recognize(&object.url, &object.name, head_of(&object.bytes))
    }

    /// Returns whether entries of lists of this type get records of their own.
    fn explodes(&self, r#type: Type) -> bool {
        self.explode.has(r#type, self.summary.typing.name(r#type))
    }

    /// Returns how many MiB of the object, unpacked, are read as a list whose entries get records of
    /// their own; an estimate for a packed list.
    pub(crate) fn list_mebibytes(&self, object: &Object) -> u32 {
        // Most objects are shorter, and need not be typed once more.
        if object.bytes.len() < MEBIBYTE / PACKED_MAX {
            return 0;
        }
        let (r#type, bytes) = match self.type_of(object) {
            Type::Gzip => {
                let Some((name, head)) = unnest::peek(object) else { return 0 };
                let inner = self.summary.typing.recognize(&object.url, &name, &head);
                (inner, object.bytes.len().saturating_mul(PACKED_MAX))
            }
            known => (known, object.bytes.len()),
        };
        let bytes = if self.explodes(r#type) { bytes.min(explode::LIST_BYTES_MAX) } else { 0 };
        u32::try_from(bytes / MEBIBYTE).unwrap_or_default()
    }

    /// Adds the object to its summary, for the site's program for its type, if there is one.
    /// `given` is the number of bytes of the same fetched object that go to programs.
    fn give(&self, object: &Object, r#type: Type, given: &mut u64, summary: &mut Summary) {
        if !self.programs.contains(&r#type) {
            return;
        }
        let all = *given + object.bytes.len() as u64;
        let given_max = Limit::Given.standard();
        if (given_max as u64) < all {
            let message = format!(
                "is not given to the program for its type: the programs for this file would get more \
                than {given_max} bytes"
            );
            let kind = Limit::Given.kind_at(given_max);
            summary.add_problems(vec![Problem::new(&object.url, kind, message)]);
            return;
        }
        *given = all;
        summary.given =
            Some(ProgramInput { name: object.name.clone(), bytes: object.bytes.clone() });
    }
}

/// The lists that are exploded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Explode {
    /// Every type with an exploder, except tables.
    #[default]
    All,
    /// No list.
    None,
    /// These types, by the value of the `Type` attribute.
    Types(BTreeSet<String>),
}

impl Explode {
    /// Returns whether lists of this type are exploded; `name` is the `Type` attribute's value.
    fn has(&self, r#type: Type, name: &str) -> bool {
        explode::is_list(r#type)
            && match self {
                Self::All => explode::is_list_by_default(r#type),
                Self::None => false,
                Self::Types(names) => names.contains(name),
            }
    }
}

/// Types, unnests and summarizes `object`. Returns its own record first, then one for each member
/// of an archive or entry of a list, in their order. Each URL occurs once: of several members of
/// one name, the last is kept.
///
/// `cancelled` is called inside every long loop, and serves both as the deadline and as the stop of
/// the run. When it returns true, this function returns the summaries made so far, with a problem
/// that says so. Never panics; returns no summaries only if selection leaves everything out.
pub fn extract(
    object: Object,
    settings: &EssenceSettings,
    cancelled: &dyn Fn() -> bool,
) -> Vec<Summary> {
    extract_selected(object, settings, cancelled, &mut |_why| ())
}

/// Does the same as [`extract`], and calls `left_out` for each object that selection leaves out.
pub fn extract_selected(
    object: Object,
    settings: &EssenceSettings,
    cancelled: &dyn Fn() -> bool,
    left_out: &mut dyn FnMut(LeftOut),
) -> Vec<Summary> {
    let budget = Budget::new(settings.unnest, cancelled);
    let mut run =
        Run { settings, cancelled, budget: &budget, found: Vec::new(), given: 0, left_out };
    // Cheap, since the bytes are shared.
    let spare = object.clone();
    let root = Opening { object, path: None, problems: Vec::new(), depth: 0 };
    if let Err(fault) = catch_fault(|| run.open(root)) {
        let problem = Problem::new(&spare.url, ProblemKind::Fault, fault);
        match run.found.iter_mut().find(|it| it.record.url == spare.url) {
            Some(summary) => summary.problems.push(problem),
            None => run.found.insert(0, bare_summary(&spare, settings, problem)),
        }
    }
    last_of_each_url(run.found)
}

/// Returns a summary with `problem` of an object that could not be read. It is made from the
/// object's name and the start of its content. A program of the site may still read the object.
pub fn by_name(object: &Object, settings: &EssenceSettings, problem: Problem) -> Summary {
    let mut summary = bare_summary(object, settings, problem);
    let r#type = settings.type_of(object);
    if Format::of(object, r#type).is_none_or(Format::is_summarized) {
        settings.give(object, r#type, &mut 0, &mut summary);
    }
    summary
}

fn bare_summary(object: &Object, settings: &EssenceSettings, problem: Problem) -> Summary {
    let (r#type, settings) = (settings.type_of(object), &settings.summary);
    let input = settings.input(object, r#type, &|| true);
    let mut summary = settings.finish(&input, Draft::default());
    summary.add_problems(vec![problem]);
    summary
}

struct Opening {
    object: Object,
    /// Its path in its container.
    path: Option<String>,
    problems: Vec<Problem>,
    /// Number of containers around the object.
    depth: u32,
}

struct Run<'a> {
    settings: &'a EssenceSettings,
    cancelled: &'a dyn Fn() -> bool,
    budget: &'a Budget<'a>,
    found: Vec<Summary>,
    /// Number of bytes of the fetched object that go to programs of the site.
    given: u64,
    left_out: &'a mut dyn FnMut(LeftOut),
}

impl Run<'_> {
    fn open(&mut self, mut it: Opening) {
        let r#type = self.settings.type_of(&it.object);
        let format = Format::of(&it.object, r#type);
        let packed = format.is_some_and(|it| !it.is_summarized());
        let select = &self.settings.select;
        // A packed object may contain objects of allowed types.
        if let Some(why) = if packed { select.stops(r#type) } else { select.by_type(r#type) } {
            (self.left_out)(why);
            return;
        }
        if format.is_some() && self.settings.unnest.depth_max <= it.depth {
            let message = "lies too deep in other containers; not opened";
            let kind = Limit::Depth.kind_at(it.depth);
            it.problems.push(Problem::new(&it.object.url, kind, message));
            self.summarize(it, r#type);
            return;
        }
        match format {
            Some(Format::Stream(packing)) => self.unpack(it, packing),
            Some(format) => self.container(it, r#type, format),
            None if self.settings.explodes(r#type) => self.list(it, r#type),
            None => self.summarize(it, r#type),
        }
    }

    /// Unpacks the object, and continues with its content under the same URL, size and digest.
    fn unpack(&mut self, it: Opening, packing: Packing) {
        let Opening { object, path, mut problems, depth } = it;
        let opened = unnest::unpack(&object, packing, self.budget, &|name, head| {
            let inside = self.settings.summary.typing.recognize(&object.url, name, head);
            if self.settings.explodes(inside) {
                usize::MAX
            } else {
                self.wanted_bytes(inside, head)
            }
        });
        problems.extend(opened.problems);
        // Users fetch the packed object: the digest is that of its bytes.
        let md5 = object.digest();
        let inner = Object {
            name: opened.name,
            bytes: opened.bytes.into(),
            truncated: opened.truncated,
            rest: None,
            md5,
            ..object
        };
        let path = path.or_else(|| Some(inner.name.clone()));
        let bytes = inner.bytes.len();
        self.budget.hold(bytes);
        self.open(Opening { object: inner, path, problems, depth: depth + 1 });
        self.budget.release(bytes);
    }

    /// Returns how many bytes are useful of a content of the type `inside`.
    fn wanted_bytes(&self, inside: Type, head: &[u8]) -> usize {
        match inside {
            _ if Format::of_head(head, inside).is_some() => usize::MAX,
            // The type shows only in the whole of it.
            _ if head.starts_with(COMPOUND) => usize::MAX,
            _ if self.settings.programs.contains(&inside) => usize::MAX,
            Type::Backup | Type::Unknown => PEEK_BYTES,
            inside if inside.is_text() => self.settings.summary.formats.text_bytes_max(inside),
            _ => usize::MAX,
        }
    }

    /// Makes the record of a container, then those of its members.
    fn container(&mut self, it: Opening, r#type: Type, format: Format) {
        let Opening { mut object, path, problems, depth } = it;
        object.md5 = object.digest();
        let position = self.found.len();
        if format.is_summarized() {
            let (object, path) = (object.clone(), path.clone());
            self.summarize(Opening { object, path, problems, depth }, r#type);
        } else {
            // The container's record comes first, but its content is complete only at the end.
            let mut summary = self.finish(&object, r#type, Draft::default());
            summary.problems = problems;
            self.add(summary);
        }
        let mut listing = Body::new(self.settings.summary.formats.text_bytes_max(r#type));
        let mut count = 0_u64;
        let mut sources = Distribution::default();
        let budget = self.budget;
        let report = unnest::members(&object, format, budget, &mut |member: Member| {
            count += 1;
            listing.push(&member.path);
            listing.line();
            let Member { object, path, problems } = member;
            if Distribution::wants(&path) {
                sources.add_member(&path, &object.bytes);
            }
            if let Some(why) = self.settings.select.by_name(Path::new(&path), object.size) {
                (self.left_out)(why);
                return;
            }
            self.open(Opening { object, path: Some(path), problems, depth: depth + 1 });
        });
        let Some(own) = self.found.get_mut(position) else { return };
        if format.is_summarized() {
            // The record already has the problems that were found before the opening.
            own.add_truncated(truncated(&report.problems, &object.url));
            own.problems.extend(report.problems);
            return;
        }
        own.problems.extend(report.problems);
        let problems = std::mem::take(&mut own.problems);
        let names = listing.as_str().lines();
        let is_source = report.about.is_none() && is_source_distribution(names);
        let r#type = if is_source { Type::SourceDistribution } else { r#type };
        let mut draft = if is_source { sources.finish() } else { report.about.unwrap_or_default() };
        draft.set_body(listing);
        draft.other("Members", count.to_string());
        set_nesting(&mut draft, path.as_deref(), &truncated(&problems, &object.url));
        let mut summary = self.finish(&object, r#type, draft);
        summary.problems.extend(problems);
        if let Some(own) = self.found.get_mut(position) {
            self.budget.add_record(record_bytes(&summary));
            *own = summary;
        }
        if let Some(why) = self.settings.select.by_type(r#type) {
            (self.left_out)(why);
            let own = self.found.remove(position);
            // The container's problems name their object: a member's summary can carry them.
            if let Some(member) = self.found.get_mut(position) {
                member.problems.splice(0..0, own.problems);
            }
        }
    }

    /// Summarizes a list, then each of its entries.
    fn list(&mut self, it: Opening, r#type: Type) {
        let object = it.object.clone();
        self.summarize(it, r#type);
        let position = self.found.len() - 1;
        let input = self.input(&object, r#type);
        let (budget, settings) = (self.budget, &self.settings.summary);
        let (mut entries, mut full) = (Vec::new(), None);
        let exploded = catch_fault(|| {
            explode::explode(&input, &mut |Entry { key, bytes, mut draft }| {
                if let Err(problem) = budget.take_member(&object, key.as_bytes()) {
                    full = Some(problem);
                    return false;
                }
                let url = unnest::member_url(&object.url, key.as_bytes());
                set_nesting(&mut draft, Some(&key), &[]);
                let entry =
                    Object { name: key, modified: object.modified, ..Object::whole(url, bytes) };
                let input = Input { object: &entry, r#type, ..input };
                let summary = settings.finish(&input, draft);
                budget.add_record(record_bytes(&summary));
                entries.push(summary);
                true
            })
        });
        let problems = match exploded {
            Ok(problems) => problems,
            Err(fault) => vec![(ProblemKind::Fault, fault)],
        };
        let problems = problems.into_iter();
        let problems = problems.map(|(kind, it)| Problem::new(&object.url, kind, it));
        let problems: Vec<Problem> = full.into_iter().chain(problems).collect();
        if let Some(own) = self.found.get_mut(position) {
            own.add_truncated(truncated(&problems, &object.url));
            own.problems.extend(problems);
        }
        self.found.append(&mut entries);
    }

    fn summarize(&mut self, it: Opening, r#type: Type) {
        let Opening { object, path, problems, .. } = it;
        let input = self.input(&object, r#type);
        let summarized = catch_fault(|| {
            let mut draft = self.settings.summary.draft(&input);
            set_nesting(&mut draft, path.as_deref(), &truncated(&problems, &object.url));
            self.settings.summary.finish(&input, draft)
        });
        let mut summary = match summarized {
            Ok(summary) => summary,
            Err(fault) => {
                let problem = Problem::new(&object.url, ProblemKind::Fault, fault);
                let mut summary = bare_summary(&object, self.settings, problem);
                summary.record.set("Type", self.settings.summary.typing.name(r#type));
                summary
            }
        };
        summary.problems.splice(0..0, problems);
        self.settings.give(&object, r#type, &mut self.given, &mut summary);
        self.budget.hold(summary.given.as_ref().map_or(0, |it| it.bytes.len()));
        self.add(summary);
    }

    /// Adds a summary, which stays in memory until all are made.
    fn add(&mut self, summary: Summary) {
        self.budget.add_record(record_bytes(&summary));
        self.found.push(summary);
    }

    fn input<'o>(&'o self, object: &'o Object, r#type: Type) -> Input<'o> {
        self.settings.summary.input(object, r#type, self.cancelled)
    }

    fn finish(&self, object: &Object, r#type: Type, draft: Draft<'_>) -> Summary {
        self.settings.summary.finish(&self.input(object, r#type), draft)
    }
}

/// Sets the object's path in its container, and what is said about parts that could not be opened.
fn set_nesting(draft: &mut Draft<'_>, path: Option<&str>, truncated: &[String]) {
    // Not by `other`: these have room beside any number of attributes.
    let both = [
        ("Nested-Filename", path.unwrap_or_default().to_owned()),
        ("Truncated", truncated.join("\n")),
    ];
    let both = both.into_iter().filter(|(_, value)| !value.is_empty());
    draft.others.extend(both.map(|(name, value)| (name.to_owned(), value)));
}

/// Returns the lines of `Truncated` for the problems of the object at `url`, each once.
fn truncated(problems: &[Problem], url: &str) -> Vec<String> {
    let own = problems.iter().filter(|it| it.object == url);
    let mut lines: Vec<String> = Vec::new();
    for line in own.map(Problem::truncated) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns an estimate of the memory of a record and its problems, in bytes.
fn record_bytes(Summary { record, problems, .. }: &Summary) -> usize {
    let attributes = record.attributes().iter();
    let attributes = attributes.map(|it| 2 * TEXT_BYTES + it.name.len() + it.value.len());
    let problems = problems.iter().map(|it| 2 * TEXT_BYTES + it.object.len() + it.message.len());
    record.url.len() + attributes.chain(problems).sum::<usize>()
}

/// Runs `work`; turns a panic into a message.
fn catch_fault<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let what = payload
            .downcast_ref::<&str>()
            .map(|it| (*it).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        format!("the summarizer failed on it ({what}); please report it with this object")
    })
}

/// Keeps the last summary of each URL: archives may contain a name twice, and the last one is
/// valid.
fn last_of_each_url(found: Vec<Summary>) -> Vec<Summary> {
    let mut positions: HashMap<String, usize> = HashMap::with_capacity(found.len());
    let mut kept: Vec<Summary> = Vec::with_capacity(found.len());
    for summary in found {
        match positions.get(&summary.record.url).and_then(|at| kept.get_mut(*at)) {
            Some(older) => *older = summary,
            None => {
                positions.insert(summary.record.url.clone(), kept.len());
                kept.push(summary);
            }
        }
    }
    kept
}

#[cfg(test)]
mod limits;

#[cfg(test)]
mod tests {
    use formats::FullText;
    use proptest::prelude::*;
    use soif::digest::Md5;

    use super::*;
    use crate::builders::{bomb, deb, gzip, tarball, zipped};
    use crate::select::SelectionSettings;
    use crate::typing::Recognizer;

    /// Extracts, and renders each record as `url type [nested] title`.
    fn extracted(name: &str, bytes: Vec<u8>) -> Vec<String> {
        let object = Object::whole(format!("http://h.example/{name}"), bytes);
        let mut lines = Vec::new();
        for summary in extract(object, &EssenceSettings::default(), &|| false) {
            let text = |name: &str| summary.record.text(name).unwrap_or_default().into_owned();
            lines.push(format!(
                "{} {} [{}] {}",
                summary.record.url,
                text("Type"),
                text("Nested-Filename"),
                text("Title")
            ));
            lines.extend(summary.problems.iter().map(|it| format!("! {}: {it}", it.kind)));
        }
        lines
    }

    fn check(name: &str, bytes: Vec<u8>, expected: &[&str]) {
        assert_eq!(extracted(name, bytes), expected);
    }

    #[test]
    fn a_compressed_file_has_the_type_of_its_content() {
        let page = b".TH LS 1\n.SH NAME\nls \\- list directory contents\n";
        check(
            "ls.1.gz",
            gzip(page),
            &["http://h.example/ls.1.gz ManPage [ls.1] ls - list directory contents"],
        );
        let object = Object::whole("http://h.example/ls.1.gz", gzip(page));
        let sum = Md5::of(&object.bytes).to_string();
        let size = object.size;
        let summaries = extract(object, &EssenceSettings::default(), &|| false);
        let record = &summaries[0].record;
        assert_eq!(record.text("MD5").as_deref(), Some(sum.as_str()));
        assert_eq!(record.number("File-Size"), Some(size));
    }

    #[test]
    fn archives_have_a_record_and_so_have_their_members() {
        let inner = zipped(&[("deep.txt", b"Deep title\n\nwords")]);
        let tar =
            tarball(&[("d/a.txt", &b"First"[..]), ("in.zip", &inner), ("d/a.txt", &b"Last"[..])]);
        check(
            "x.tar.gz",
            gzip(&tar),
            &[
                "http://h.example/x.tar.gz GNUCompressedTar [] x.tar.gz",
                "http://h.example/x.tar.gz#d/a.txt Text [d/a.txt] Last",
                "http://h.example/x.tar.gz#in.zip PCCompressed [in.zip] in.zip",
                "http://h.example/x.tar.gz#in.zip!/deep.txt Text [deep.txt] Deep title",
            ],
        );
    }

    #[test]
    fn an_archive_s_text_is_its_listing() {
        let object = Object::whole("http://h.example/x.zip", zipped(&[("a/b.c", b"int x;")]));
        let summaries = extract(object, &EssenceSettings::default(), &|| false);
        assert_eq!(summaries[0].record.text("Partial-Text").as_deref(), Some("a/b.c"));
    }

    #[test]
    fn the_record_of_a_package_has_its_metadata_and_what_was_cut() {
        let control = "Package: hello\nVersion: 2.10-3\nDescription: example package\n";
        let bytes = deb(control, &[("./a", b"one"), ("./b", b"two"), ("./c", b"three")]);
        let object = Object::whole("http://h.example/hello.deb", bytes);
        let unnest = Limits { members_max: 2, ..Limits::default() };
        let settings = EssenceSettings { unnest, ..EssenceSettings::default() };
        let found = extract(object, &settings, &|| false);
        let record = &found[0].record;
        let message = "has more than 2 members; the rest was left out (last member: b)";
        for (name, expected) in [
            ("Title", "hello"),
            ("Description", "example package"),
            ("Version", "2.10-3"),
            ("Members", "2"),
            ("Truncated", "members 2"),
            ("Partial-Text", "a\nb"),
        ] {
            assert_eq!(record.text(name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(found[0].problems[0].message, message);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].record.get("Truncated"), None);
    }

    #[test]
    fn messages_and_their_attachments_are_records() {
        let message = "From: a@a.example\nTo: b@b.example\nSubject: With a cat\n\
            Message-ID: <1@a.example>\nMIME-Version: 1.0\n\
            Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nHi\n\
            --B\nContent-Type: application/x-uuencode; name=\"x.uue\"\n\n\
            begin 644 cat.txt\n#0V%T\n`\nend\n--B--\n";
        let mailbox = format!("From a@a Mon Jan  1 00:00:00 2024\n{message}").into_bytes();
        let seen = extracted("inbox.mbox", mailbox);
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert!(seen[0].starts_with("http://h.example/inbox.mbox "), "{}", seen[0]);
        assert_eq!(
            seen[1..],
            [
                "http://h.example/inbox.mbox#1%40a.example Mail [1@a.example] With a cat",
                "http://h.example/inbox.mbox#1%40a.example!/x.uue Uuencoded [x.uue] x.uue",
                "http://h.example/inbox.mbox#1%40a.example!/x.uue!/cat.txt Text [cat.txt] Cat",
            ]
        );
    }

    #[test]
    fn mixed_nesting_ends_at_the_limit() {
        let mut bytes = b"the kernel".to_vec();
        for round in 0..20 {
            bytes = match round % 4 {
                0 => zipped(&[("x.tar", &bytes)]),
                1 => tarball(&[("x.zip.gz", &bytes)]),
                2 => gzip(&bytes),
                _ => deb("Package: x\n", &[("x.deb", &bytes)]),
            };
        }
        let seen = extracted("matryoshka.deb", bytes);
        assert!(seen.last().is_some_and(|it| it.contains("lies too deep")), "{seen:?}");
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let mut bytes = b"the kernel".to_vec();
        for _ in 0..12 {
            bytes = gzip(&bytes);
        }
        let seen = extracted("matryoshka.gz", bytes);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen[1].contains("lies too deep"), "{seen:?}");
    }

    #[test]
    fn a_gigabyte_in_a_megabyte_is_cut() {
        let gigabyte = bomb(1024);
        assert!(gigabyte.len() < 1_200_000);
        // Text is unpacked as far as it is useful; the rest is not unpacked.
        let problem = "! limit: http://h.example/bomb.gz: has more than 1048576 bytes of text; the rest was left out";
        let record = "http://h.example/bomb.gz Text [bomb] bomb";
        check("bomb.gz", gigabyte.clone(), &[record, problem]);
        let seen = extracted("bomb.tar.gz", gigabyte);
        assert_eq!(seen.len(), 2);
        assert!(seen[1].contains("tar data breaks off"), "{seen:?}");
        // A tar must be read to its end to know its members.
        let tar = tarball(&[("pad", &vec![b' '; 1 << 20]), ("x", b"x")]);
        let unnest = Limits { bytes_max: 1 << 19, ..Limits::default() };
        let settings = EssenceSettings { unnest, ..EssenceSettings::default() };
        let object = Object::whole("http://h.example/pad.tgz", gzip(&tar));
        let found = extract(object, &settings, &|| false);
        let problem = &found[0].problems[0].message;
        assert!(problem.contains("opens to more than 524288 bytes in all"), "{problem}");
        assert_eq!(found.len(), 2, "the member that was cut is known");
    }

    const RULES: &str = "[[type]]\nname = 'Recipe'\nby_name = '[.]recipe$'\n\
                         [[type]]\nname = 'Minutes'\nby_url = '[.]zip#'\nby_content = '^Minutes'\n";

    fn with_rules() -> EssenceSettings {
        let typing = Recognizer::read(&[("t.toml".into(), RULES.to_owned())]).unwrap();
        let recipe = typing.by_name("Recipe").unwrap();
        let mut settings = EssenceSettings::default();
        settings.summary.typing = Arc::new(typing);
        settings.summary.formats.full_text = FullText::Types([recipe].into());
        settings
    }

    /// Extracts, and renders each record as `url type`, then the reasons of objects left out.
    fn selected(name: &str, bytes: Vec<u8>, settings: &EssenceSettings) -> Vec<String> {
        let object = Object::whole(format!("f:{name}"), bytes);
        let mut reasons = Vec::new();
        let found =
            extract_selected(object, settings, &|| false, &mut |why| reasons.push(why.name()));
        let shown = |it: &Summary| {
            format!("{} {}", it.record.url, it.record.text("Type").unwrap_or_default())
        };
        let reasons = reasons.into_iter().map(|it| format!("- {it}"));
        found.iter().map(shown).chain(reasons).collect()
    }

    #[test]
    fn types_of_the_site_are_summarized_by_their_names() {
        let settings = with_rules();
        let object = Object::whole("f:cake.recipe.gz", gzip(b"Apple cake\n\nPeel the apples.\n"));
        let found = extract(object, &settings, &|| false);
        let text = |name| found[0].record.text(name).unwrap_or_default().into_owned();
        assert_eq!((text("Type"), text("Title")), ("Recipe".into(), "Apple cake".into()));
        assert!(text("Full-Text").contains("Peel"));
        let object = Object::whole("f:/cake.recipe", &b"\0\x01\x02"[..]);
        let record = extract(object, &settings, &|| false).remove(0).record;
        assert_eq!(record.text("Title").as_deref(), Some("cake.recipe"));
        assert_eq!(record.get("Full-Text"), None);
        let zip = zipped(&[("a", b"Minutes of May"), ("b", b"Hours")]);
        assert_eq!(
            selected("x.zip", zip, &settings),
            ["f:x.zip PCCompressed", "f:x.zip#a Minutes", "f:x.zip#b Text"]
        );
    }

    #[test]
    fn objects_that_are_left_out_have_no_record() {
        let tar = || gzip(&tarball(&[("a.o", b"\x7fELF\0"), ("b.html", b"<p>"), ("c.tmp", b"c")]));
        let check = |choice: SelectionSettings, name: &str, bytes: Vec<u8>, expected: &[&str]| {
            let select = Arc::new(Selection::new(&choice).unwrap());
            let settings = EssenceSettings { select, ..EssenceSettings::default() };
            assert_eq!(selected(name, bytes, &settings), expected, "{choice:?}");
        };
        let stop = |r#type| SelectionSettings {
            stop_types: [r#type].into(),
            ..SelectionSettings::default()
        };
        check(
            SelectionSettings { stop_names: vec!["*.tmp".into()], ..stop(Type::Object) },
            "x.tgz",
            tar(),
            &[
                "f:x.tgz GNUCompressedTar",
                "f:x.tgz#b.html HTML",
                "- stopped-type",
                "- stopped-name",
            ],
        );
        check(stop(Type::GzipTar), "x.tgz", tar(), &["- stopped-type"]);
        check(stop(Type::Html), "a.html.gz", gzip(b"<p>x"), &["- stopped-type"]);
        let allow = |r#type| SelectionSettings {
            allow_types: [r#type].into(),
            ..SelectionSettings::default()
        };
        let not = "- type-not-allowed";
        check(allow(Type::Html), "x.tgz", tar(), &["f:x.tgz#b.html HTML", not, not, not]);
        check(allow(Type::Html), "a.html.gz", gzip(b"<p>x"), &["f:a.html.gz HTML"]);
        check(
            SelectionSettings { size_min: 2, ..SelectionSettings::default() },
            "x.tgz",
            tar(),
            &[
                "f:x.tgz GNUCompressedTar",
                "f:x.tgz#a.o Object",
                "f:x.tgz#b.html HTML",
                "- too-small",
            ],
        );
        // Problems of an archive are reported although it has no record.
        let select = Arc::new(Selection::new(&allow(Type::Html)).unwrap());
        let settings = EssenceSettings { select, ..EssenceSettings::default() };
        let mut broken = tarball(&[("b.html", b"<p>"), ("c", &[b'c'; 2_000])]);
        broken.truncate(2_100);
        let found = extract(Object::whole("f:x.tar", broken), &settings, &|| false);
        assert_eq!(found[0].record.url, "f:x.tar#b.html");
        assert_eq!(found[0].problems[0].object, "f:x.tar");
    }

    #[test]
    fn programs_of_the_site_are_given_whole_objects() {
        let programs = [Type::Text, Type::Mailbox, Type::Tar].into();
        let settings = EssenceSettings { programs, ..EssenceSettings::default() };
        // Extracts, and renders an object for programs as `name bytes`, or else the problems.
        let given = |name: &str, bytes: Vec<u8>| -> Vec<String> {
            let found = extract(Object::whole(format!("f:/{name}"), bytes), &settings, &|| false);
            let shown = |it: &Summary| match &it.given {
                Some(ProgramInput { name, bytes }) => format!("{name} {}", bytes.len()),
                None => it.problems.iter().map(|it| it.message.clone()).collect(),
            };
            found.iter().map(shown).collect()
        };
        let long = "word\n".repeat(1 << 19).into_bytes();
        assert_eq!(given("a.txt.gz", gzip(&long)), [format!("a.txt {}", long.len())]);
        let tar = tarball(&[("a.txt", b"a"), ("b.html", b"<p>"), ("c.txt", b"two")]);
        assert_eq!(given("x.tar", tar), ["", "a.txt 1", "", "c.txt 3"]);
        let mailbox = b"From a@a Mon Jan  1 00:00:00 2024\nFrom: a@a.example\nTo: b@b.example\n\
                        Subject: x\nMessage-ID: <1@a.example>\n\nHi\n";
        assert_eq!(given("a.mbox", mailbox.to_vec())[0], format!("a.mbox {}", mailbox.len()));
        // The total size of these objects is bounded.
        let object = Object::whole("f:/a.txt", &b"two"[..]);
        let mut bytes = Limit::Given.standard() as u64 - 3;
        for expected in [true, false] {
            let problem = Problem::new("f:/a.txt", ProblemKind::Time, "late");
            let mut summary = bare_summary(&object, &settings, problem);
            settings.give(&object, Type::Text, &mut bytes, &mut summary);
            assert_eq!(
                (summary.given.is_some(), summary.problems.len() == 1),
                (expected, expected)
            );
            assert_eq!(summary.record.get("Truncated").is_some(), !expected);
        }
        // A program may read an object that could not be read, but not one that is opened.
        for (name, bytes, expected) in
            [("a.txt", b"x".to_vec(), true), ("a.tar", tarball(&[]), false)]
        {
            let object = Object::whole(format!("f:/{name}"), bytes);
            let problem = Problem::new("f:", ProblemKind::Time, "late");
            assert_eq!(by_name(&object, &settings, problem).given.is_some(), expected, "{name}");
        }
    }

    #[test]
    fn the_length_of_lists_is_known_before_they_are_read() {
        let settings = EssenceSettings::default();
        let length = |name: &str, bytes: Vec<u8>| {
            settings.list_mebibytes(&Object::whole(format!("f:/{name}"), bytes))
        };
        let entries: String = (0..40_000)
            .map(|it| format!("@book{{a{it}, title = {{Title {}}}}}\n", it * it))
            .collect();
        let text = entries.into_bytes();
        assert_eq!(length("a.bib", text.clone()), 1);
        assert!((1..8).contains(&length("a.bib.gz", gzip(&text))));
        let words = b"words ".repeat(1 << 20);
        assert_eq!(length("a.txt", words.clone()), 0);
        assert_eq!(length("a.txt.gz", gzip(&words)), 0);
        assert_eq!(length("a.bib", text.repeat(40)), 32);
    }

    #[test]
    fn a_member_with_many_attributes_keeps_its_path() {
        let fields: String = (0..70).map(|n| format!("<meta name=x{n} content=a>")).collect();
        let zip = zipped(&[("p.html", format!("<title>T</title>{fields}").as_bytes())]);
        let found = extract(Object::whole("f:/a.zip", zip), &EssenceSettings::default(), &|| false);
        assert_eq!(found[1].record.text("Nested-Filename").as_deref(), Some("p.html"));
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        let list = b"@book{a, title = {A}}\n@book{b, title = {B}}\n@book{c, title = {C}}\n";
        let unnest = Limits { members_max: 2, ..Limits::default() };
        let settings = EssenceSettings { unnest, ..EssenceSettings::default() };
        let found = extract(Object::whole("f:/a.bib", &list[..]), &settings, &|| false);
        assert_eq!(found.len(), 3);
        let message = "has more than 2 members; the rest was left out";
        assert_eq!(found[0].record.text("Truncated").as_deref(), Some("members 2"));
        assert_eq!(found[0].problems[0].message, message);
    }

    #[test]
    fn what_is_in_memory_at_once_is_bounded() {
        let within = |unnest, object| {
            let settings = EssenceSettings { unnest, ..EssenceSettings::default() };
            extract(object, &settings, &|| false)
        };
        // Each layer holds the whole of the next one.
        let core = b"words ".repeat(20_000);
        let deep = (0..6).fold(core, |inner, _| tarball(&[("x", &inner)]));
        let limits = Limits { held_bytes_max: 480_000, ..Limits::default() };
        let found = within(limits, Object::whole("f:x.tar", deep));
        let last = found.last().unwrap();
        assert_eq!(last.record.url, "f:x.tar#x!/x!/x!/x");
        let messages: Vec<&str> = last.problems.iter().map(|it| it.message.as_str()).collect();
        assert!(messages[0].contains("all that memory is left for; only its front was read"));
        assert_eq!(found.len(), 5, "{messages:?}");

        // Sixteen files in sixteen zips in sixteen zips, five deep.
        let words: String = (0..2_000).map(|it| format!("word{it} ")).collect();
        let nested = (0..5).fold(words.into_bytes(), |inner, layer| {
            let names = (0..16)
                .map(|it| if layer == 0 { format!("{it}.txt") } else { format!("{it}.zip") });
            let names: Vec<String> = names.collect();
            let members = names.iter().map(|name| (name.as_str(), inner.as_slice()));
            zipped(&members.collect::<Vec<_>>())
        });
        let limits = Limits { records_bytes_max: 1 << 20, ..Limits::default() };
        let found = within(limits, Object::whole("f:x.zip", nested));
        assert!((20..80).contains(&found.len()), "{}", found.len());
        let message = "has more than 1048576 bytes of records of its members; the rest was left out \
                       (last member: 0.zip)";
        assert_eq!(found[0].problems[0].message, message);
        assert_eq!(found[0].record.text("Truncated").as_deref(), Some("records 1048576"));
        let texts = found.iter().filter(|it| it.record.url.ends_with(".txt"));
        assert!(15 < texts.clone().count() && texts.clone().all(|it| it.problems.is_empty()));
    }

    #[test]
    fn time_that_is_up_from_the_start_gives_a_record() {
        for (name, bytes) in [
            ("a.txt", b"words".to_vec()),
            ("a.html", b"<p>words".to_vec()),
            ("a.gz", gzip(b"words")),
            ("a.zip", zipped(&[("a", b"words")])),
        ] {
            let object = Object::whole(format!("http://h.example/{name}"), bytes);
            let url = object.url.clone();
            let found = extract(object, &EssenceSettings::default(), &|| true);
            assert_eq!(found[0].record.url, url);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn any_bytes_under_any_name_give_records(
            bytes in proptest::collection::vec(any::<u8>(), 0..1500),
            text in "[ -~\n]{0,400}",
            which in any::<prop::sample::Index>(),
        ) {
            let names = ["a.txt", "a.html", "a.xml", "a.md", "a.pdf", "a.c", "a.py", "Makefile", "a.1",
                "a.eml", "a.bib", "a.gz", "a.tar", "a.tgz", "a.zip", "a.json", "a.png", "a.sh", "x"];
            let name = names[which.index(names.len())];
            for bytes in [bytes.clone(), text.clone().into_bytes(), [text.as_bytes(), &bytes[..]].concat()] {
                let object = Object::whole(format!("http://h.example/{name}"), bytes);
                let found = extract(object, &EssenceSettings::default(), &|| false);
                prop_assert!(!found.is_empty());
                for summary in found {
                    prop_assert!(summary.problems.iter().all(|it| it.kind != ProblemKind::Fault), "{:?}", summary.problems);
                }
            }
        }
    }
}

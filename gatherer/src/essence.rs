//! Essence: one fetched object in, its summaries out.
//!
//! Source: TR §4 and Figure 5: type recognition, presentation unnesting, summarizing. This is the
//! one call that the pipeline makes, and the place that keeps a fault of a summarizer (a panic) from
//! reaching the run: it becomes a problem of that object, beside a record by name.
//!
//! # Differences from the paper
//!
//! * A compressed file of one content gives one record, under its own URL, with the type of what is
//!   inside: that is what users look for. An archive gives a record of its own, with the names of its
//!   members as its text, and one for each member.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::explode::{self, Entry};
use crate::object::{Object, Problem, ProblemKind, Summary};
use crate::summarize::{self, Draft, Input, Settings as SummarySettings};
use crate::text::Body;
use crate::typing::{HEAD_BYTES, Type, recognize};
use crate::unnest::{self, Budget, Limits, Member};

/// Most of a file that is only looked at because it may hold something, when its type keeps no text:
/// pictures and other binaries inside gzip are typed and no more, in bytes.
const PEEK_BYTES: usize = 64 * 1024;

/// How objects are opened and summarized.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EssenceSettings {
    /// How much of an archive is opened.
    pub unnest: Limits,
    /// How much a record says.
    pub summary: SummarySettings,
    /// Types of lists whose entries are records of their own.
    pub explode: Explode,
}

/// Which lists are exploded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Explode {
    /// Every type for which there is an exploder, but tables.
    #[default]
    All,
    /// None.
    None,
    /// These types, by the name that the `Type` attribute has.
    Types(BTreeSet<String>),
}

impl Explode {
    fn has(&self, r#type: Type) -> bool {
        explode::is_list(r#type)
            && match self {
                Self::All => explode::is_list_by_default(r#type),
                Self::None => false,
                Self::Types(names) => names.contains(r#type.name()),
            }
    }
}

/// Types, unnests and summarizes `object`: its own record first, then one for each member of an
/// archive, in the archive's order, each URL once (the last member of a name wins).
///
/// `cancelled` is polled inside every long loop, so that it serves as the deadline and as the stop
/// of the run alike; when it says true, what has been found so far is returned with a problem that
/// says so. Never panics, never returns nothing.
pub fn extract(
    object: Object,
    settings: &EssenceSettings,
    cancelled: &dyn Fn() -> bool,
) -> Vec<Summary> {
    let budget = Budget::new(settings.unnest, cancelled);
    let mut run = Run { settings, cancelled, budget: &budget, found: Vec::new() };
    // Cheap: the bytes are shared.
    let spare = object.clone();
    let root = Opening { object, path: None, problems: Vec::new(), depth: 0 };
    if let Err(fault) = guarded(|| run.open(root)) {
        let problem = Problem::new(&spare.url, ProblemKind::Fault, fault);
        match run.found.iter_mut().find(|it| it.record.url == spare.url) {
            Some(summary) => summary.problems.push(problem),
            None => run.found.insert(0, run.by_name(&spare, problem)),
        }
    }
    last_of_each_url(run.found)
}

/// Returns the record of an object of which no more is known than its name and the front of its
/// content, with the reason.
pub(crate) fn by_name(object: &Object, settings: &EssenceSettings, problem: Problem) -> Summary {
    let (r#type, settings) = (type_of(object), &settings.summary);
    let input = Input { object, r#type, settings, cancelled: &|| true };
    let mut summary = summarize::finish(&input, Draft::default());
    summary.problems.push(problem);
    summary
}

/// Something to open or summarize.
struct Opening {
    object: Object,
    /// Its path in its container.
    path: Option<String>,
    problems: Vec<Problem>,
    /// How many containers are around it.
    depth: u32,
}

struct Run<'a> {
    settings: &'a EssenceSettings,
    cancelled: &'a dyn Fn() -> bool,
    budget: &'a Budget<'a>,
    found: Vec<Summary>,
}

impl Run<'_> {
    fn open(&mut self, mut it: Opening) {
        let r#type = type_of(&it.object);
        let packed = matches!(r#type, Type::Gzip | Type::GzipTar | Type::Tar | Type::Zip);
        if packed && self.settings.unnest.depth_max <= it.depth {
            let message = "lies too deep in other containers; not opened";
            it.problems.push(Problem::new(&it.object.url, ProblemKind::Limit, message));
            self.summarize(it, r#type);
            return;
        }
        match r#type {
            Type::Gzip => self.gunzip(it),
            Type::GzipTar | Type::Tar | Type::Zip => self.container(it, r#type),
            _ if self.settings.explode.has(r#type) => self.list(it, r#type),
            _ => self.summarize(it, r#type),
        }
    }

    /// Goes on with what is inside, under the same URL, size and sum.
    fn gunzip(&mut self, it: Opening) {
        let Opening { object, path, mut problems, depth } = it;
        let opened = unnest::gunzip(&object, self.budget, &|name, head| {
            let inside = recognize(name, head);
            if self.settings.explode.has(inside) {
                usize::MAX
            } else if inside.is_text() {
                self.settings.summary.text_bytes_max(inside)
            } else if matches!(inside, Type::Pdf | Type::Gzip | Type::Tar | Type::Zip) {
                usize::MAX
            } else {
                PEEK_BYTES
            }
        });
        problems.extend(opened.problems);
        // Only the content is another; the sum is of what users fetch.
        let md5 = object
            .md5
            .or_else(|| (!object.truncated).then(|| soif::digest::Md5::of(&object.bytes)));
        let inner = Object {
            name: opened.name,
            bytes: opened.bytes.into(),
            truncated: opened.truncated || object.truncated,
            md5,
            ..object
        };
        let path = path.or_else(|| Some(inner.name.clone()));
        self.open(Opening { object: inner, path, problems, depth: depth + 1 });
    }

    /// Summarizes an archive by the names of its members, and then those.
    fn container(&mut self, it: Opening, r#type: Type) {
        let Opening { object, path, mut problems, depth } = it;
        let place = self.found.len();
        let listing_bytes_max = self.settings.summary.text_bytes_max(r#type);
        let mut listing = Body::new(listing_bytes_max);
        // Its own record comes first; what it says is known last.
        self.found.push(self.by_name_with(&object, r#type, &mut problems));
        let budget = self.budget;
        let found = unnest::members(&object, r#type, budget, &mut |member: Member| {
            listing.push(&member.path);
            listing.line();
            let Member { object, path, problems } = member;
            self.open(Opening { object, path: Some(path), problems, depth: depth + 1 });
        });
        let input = self.input(&object, r#type);
        let mut draft = Draft { body: Cow::Owned(listing.finish()), ..Draft::default() };
        nested(&mut draft, path.as_deref());
        let mut summary = summarize::finish(&input, draft);
        if let Some(own) = self.found.get_mut(place) {
            summary.problems.append(&mut own.problems);
            summary.problems.extend(found);
            *own = summary;
        }
    }

    /// Summarizes a list, and then each of its entries.
    fn list(&mut self, it: Opening, r#type: Type) {
        let object = it.object.clone();
        self.summarize(it, r#type);
        let place = self.found.len() - 1;
        let input = self.input(&object, r#type);
        let (budget, settings) = (self.budget, &self.settings.summary);
        let (mut entries, mut full) = (Vec::new(), None);
        let exploded = guarded(|| {
            explode::explode(&input, &mut |Entry { key, bytes, mut draft }| {
                if let Err(problem) = budget.take_member(&object, key.as_bytes()) {
                    full = Some(problem);
                    return false;
                }
                let url = unnest::member_url(&object.url, key.as_bytes());
                let size = bytes.len() as u64;
                nested(&mut draft, Some(&key));
                let modified = object.modified;
                let entry =
                    Object { url, name: key, bytes, modified, size, truncated: false, md5: None };
                let input = Input { object: &entry, r#type, settings, ..input };
                entries.push(summarize::finish(&input, draft));
                true
            })
        });
        let problems = match exploded {
            Ok(problems) => problems,
            Err(fault) => vec![(ProblemKind::Fault, fault)],
        };
        if let Some(own) = self.found.get_mut(place) {
            own.problems.extend(full);
            let problems = problems.into_iter();
            own.problems.extend(problems.map(|(kind, it)| Problem::new(&object.url, kind, it)));
        }
        self.found.append(&mut entries);
    }

    fn summarize(&mut self, it: Opening, r#type: Type) {
        let Opening { object, path, problems, .. } = it;
        let input = self.input(&object, r#type);
        let summarized = guarded(|| {
            let mut draft = summarize::draft(&input);
            nested(&mut draft, path.as_deref());
            summarize::finish(&input, draft)
        });
        let mut summary = match summarized {
            Ok(summary) => summary,
            Err(fault) => {
                let problem = Problem::new(&object.url, ProblemKind::Fault, fault);
                let mut summary = self.by_name(&object, problem);
                summary.record.set("Type", r#type.name());
                summary
            }
        };
        summary.problems.splice(0..0, problems);
        self.found.push(summary);
    }

    fn input<'o>(&'o self, object: &'o Object, r#type: Type) -> Input<'o> {
        Input { object, r#type, settings: &self.settings.summary, cancelled: self.cancelled }
    }

    fn by_name(&self, object: &Object, problem: Problem) -> Summary {
        self.by_name_with(object, type_of(object), &mut vec![problem])
    }

    fn by_name_with(&self, object: &Object, r#type: Type, problems: &mut Vec<Problem>) -> Summary {
        let mut summary = summarize::finish(&self.input(object, r#type), Draft::default());
        summary.problems.append(problems);
        summary
    }
}

fn nested(draft: &mut Draft<'_>, path: Option<&str>) {
    draft.other("Nested-Filename", path.unwrap_or_default());
}

fn type_of(object: &Object) -> Type {
    let head = object.bytes.get(..object.bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    recognize(&object.name, head)
}

/// Runs `work`; a panic becomes its message.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let what = payload
            .downcast_ref::<&str>()
            .map(|it| (*it).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        format!("the summarizer failed on it ({what}); please report it with this object")
    })
}

/// Archives may hold a name twice; unpacked, the last one stays.
fn last_of_each_url(found: Vec<Summary>) -> Vec<Summary> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(found.len());
    let mut kept: Vec<Summary> = Vec::with_capacity(found.len());
    for summary in found {
        match places.get(&summary.record.url).and_then(|place| kept.get_mut(*place)) {
            Some(older) => *older = summary,
            None => {
                places.insert(summary.record.url.clone(), kept.len());
                kept.push(summary);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::unnest::tests::{bomb, gzip, tarball, zipped};

    /// Extracts and renders each record as `url type title [nested]`.
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
    fn a_compressed_file_is_what_is_inside() {
        let page = b".TH LS 1\n.SH NAME\nls \\- list directory contents\n";
        check(
            "ls.1.gz",
            gzip(page),
            &["http://h.example/ls.1.gz ManPage [ls.1] ls - list directory contents"],
        );
        let object = Object::whole("http://h.example/ls.1.gz", gzip(page));
        let sum = soif::digest::Md5::of(&object.bytes).to_string();
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
        // Text is opened as far as it is of use; what follows is not even looked at.
        check("bomb.gz", gigabyte.clone(), &["http://h.example/bomb.gz Text [bomb] bomb"]);
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

    #[test]
    fn time_may_be_up_from_the_start() {
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

//! The middle of the route: reads one object, checks whether its content is new, and makes its
//! records.
//!
//! No object stops a run: an object that cannot be read or understood becomes a problem on the
//! list.

use std::sync::atomic::Ordering::Relaxed;

use collection::Oid;
use essence::chain::{self, Extractor, RuleCommands};
use essence::rules::{AppliedRule, Verdict};
use essence::worker::budget::ProgramBudget;
use formats::object::{Leads, Object, ProblemKind, Summary};
use net::clock;
use soif::Record;

use super::run::{Candidate, Fetched, Prepared, Run};
use super::web::renew_twins;
use crate::lock::lock;
use crate::note::{self, Basis, Brief, Difference, ObjectNote};
use crate::tree::file::OpenFile;

/// Attribute with the time when a record was made.
pub(super) const UPDATE_TIME: &str = "Update-Time";

/// Reads one object, and summarizes it if its content is new. Returns `None` if there is nothing to
/// commit; the reason is then counted.
pub(crate) fn prepare(run: &Run<'_>, candidate: &Candidate) -> Option<Prepared> {
    let (site, settings) = (run.site, run.plan.summarizing.settings);
    let Fetched { object, md5, validator, sure, file } = run.fetch(candidate)?;
    let url = candidate.url.clone();
    let key = note::object_key(&run.plan.url, &url);
    // Read before the note, so that a commit between the two reads is noticed later.
    let against = lock(&run.root.known).committed(&url);
    // Only a known object has a note.
    let stored = against.map_or(Ok(None), |_walk| site.collection.note(&key));
    let stored = match stored {
        Ok(stored) => stored,
        Err(error) => {
            site.metrics.fetch.drop_one("unreadable-note");
            site.problem_from_walk(run.walk, url, "collection", error.to_string());
            return None;
        }
    };
    let old: Option<ObjectNote> = stored.as_deref().and_then(note::from_bytes);
    let annotations = run.annotations.fingerprint_of_file(&object.url);
    // The digest of a long file is that of its front: only metadata show changes of its rest.
    let may_differ = |old: &ObjectNote| file.is_some() && old.brief.validator != validator;
    let same_content = !run.regather
        && old.as_ref().is_some_and(|old| {
            old.is_of(&md5, &validator, settings) && !may_differ(old) && old.has_own(&object.url)
        });
    let same = same_content && old.as_ref().is_some_and(|old| old.brief.annotations == annotations);
    let was_late = old.as_ref().is_some_and(|old| old.late);
    let mut crawled = None;
    let Decision { difference, late, again } = if same {
        site.counts.unchanged.fetch_add(1, Relaxed);
        crawled = run.crawled(candidate, old.as_ref(), None);
        Decision { difference: unchanged(old.as_ref()), late: was_late, again: false }
    } else {
        site.metrics.fetch.leave(1);
        site.resolve(&url, &object.url);
        let public = object.url.clone();
        let mut made = summarize(run, object, file.as_deref(), old.is_some())?;
        if candidate.got.is_some() {
            crawled = run.crawled(candidate, old.as_ref(), Some(&made.leads));
            crawled.iter_mut().for_each(|it| renew_twins(&mut it.0, &mut made.records));
        }
        let has_same_date = |old: &ObjectNote| old.brief.validator.is_dated_as(&validator);
        let same_content = same_content && old.as_ref().is_some_and(has_same_date);
        if crawled.as_ref().is_some_and(|(_, hides)| *hides) {
            // The records that it has stay for the time of grace, and go as all go that are gone.
            site.metrics.left_out.add("noindex", 1);
            Decision { difference: unchanged(old.as_ref()), late: was_late, again: false }
        } else {
            let mut decision = decide(run, (&public, old.as_ref()), same_content, made);
            if let (Some((crawled, _)), Some(old)) = (&mut crawled, &old)
                && !run.regather
                && old.brief.settings == settings
            {
                run.weigh_change(crawled, old, &mut decision.difference);
            }
            decision
        }
    };
    let sure = sure && file.is_none_or(|it| it.is_unchanged());
    // No settings have the inverted fingerprint: so the next pass tries again, with more time or
    // resources.
    let settings = if again { !settings } else { settings };
    let brief = Brief { validator, unsure: !sure, settings, annotations };
    let crawled = crawled.map(|(crawled, _)| crawled);
    let note =
        ObjectNote { brief, md5: md5.to_string(), late, records: difference.records, crawled };
    if same && old.as_ref() == Some(&note) {
        // A file with a date in the future is read at every pass; its note has not changed.
        site.metrics.fetch.drop_one("as-remembered");
        return None;
    }
    if same {
        site.metrics.fetch.drop_one("same-content");
    }
    let Difference { updated, deleted, .. } = difference;
    Some(Prepared { url, key, against, note, updated, deleted, kept: None })
}

struct Decision {
    difference: Difference,
    /// Whether time was too short for all of the records.
    late: bool,
    /// Whether the next pass has to try again.
    again: bool,
}

/// Decides on an object's records: the old records stay if the new ones are late for the first
/// time. After that, too, those stay for which there was no time.
fn decide(
    run: &Run<'_>,
    (public, old): (&str, Option<&ObjectNote>),
    same_content: bool,
    made: MadeRecords,
) -> Decision {
    let MadeRecords { records, may_pass, late, .. } = made;
    // An object that was late before has had its second try, even if its content is new: otherwise
    // an object that changes all the time would never be published.
    let first_late = late && !old.is_some_and(|old| old.late);
    let mut difference = if first_late && old.is_some() && !run.regather {
        unchanged(old)
    } else {
        compare(run, old, same_content, records)
    };
    let has_kept = late && difference.keep(public, old);
    Decision { difference, late, again: may_pass || first_late || has_kept }
}

/// Returns the difference that leaves an object's records unchanged.
fn unchanged(old: Option<&ObjectNote>) -> Difference {
    let records = old.map(|old| old.records.clone()).unwrap_or_default();
    Difference { updated: Vec::new(), deleted: Vec::new(), records }
}

/// Lays annotations over an object's new records, and compares the results with the old records.
fn compare(
    run: &Run<'_>,
    old: Option<&ObjectNote>,
    same_content: bool,
    records: Vec<Record>,
) -> Difference {
    let annotated = |mut record| {
        let annotations = run.annotations.lay_over(&mut record);
        (record, annotations)
    };
    let settings =
        if run.regather { !run.plan.summarizing.settings } else { run.plan.summarizing.settings };
    let basis = Basis { settings, same_content };
    let mut difference = note::compare(old, basis, records.into_iter().map(annotated).collect());
    if !run.regather && old.is_some_and(|old| old.brief.settings != settings) {
        // Even with other settings or another release, the records may be the same.
        difference.updated.retain(|record| !is_published(run, record));
    }
    difference
}

/// Returns whether the collection has the same record, apart from its `Update-Time`. An unreadable
/// record is taken for missing.
fn is_published(run: &Run<'_>, record: &Record) -> bool {
    let oid = Oid::new(&run.site.id, &record.url);
    let Ok(Some(stored)) = run.site.collection.get(&oid) else { return false };
    let mut before = stored.record;
    before.set(UPDATE_TIME, record.text(UPDATE_TIME).unwrap_or_default().into_owned());
    before == *record
}

struct MadeRecords {
    records: Vec<Record>,
    /// Where the object leads.
    leads: Leads,
    /// Whether the records are incomplete for a temporary reason.
    may_pass: bool,
    /// Whether time was too short for all of the records.
    late: bool,
}

/// Stage 3: makes the object's records, its own first. Returns `None` if the run was stopped
/// meanwhile, or if a process could not be started, or the rest of the `file` not read, and an
/// earlier pass has made better records (`has_old`).
fn summarize(
    run: &Run<'_>,
    object: Object,
    file: Option<&OpenFile>,
    has_old: bool,
) -> Option<MadeRecords> {
    let (site, plan) = (run.site, run.plan);
    let stage = &site.metrics.summarize;
    stage.enter(1);
    let extractor = Extractor {
        settings: &plan.summarizing.essence,
        fingerprint: plan.summarizing.settings,
        library: &plan.summarizing.library,
        workers: &site.workers,
        programs: site.programs.as_ref(),
    };
    let summaries = extractor.extract(object, &|| run.is_stopped(), &mut |why, count| {
        site.metrics.left_out.add(why.name(), count);
    });
    if run.is_stopped() {
        // The stop may have cut the records short: the next run makes them anew.
        stage.drop_one("stopped");
        return None;
    }
    let Some(mut made) = make_records(run, summaries) else {
        stage.drop_one("stopped");
        return None;
    };
    made.may_pass |= file.is_some_and(OpenFile::has_failed);
    // If everything is published again, the collection has lost the old records.
    if made.may_pass && has_old && !run.regather {
        stage.drop_one("cannot-start");
        return None;
    }
    // An object without records gets a note, too: so it is not read again, and its old records are
    // deleted.
    stage.leave(1);
    Some(made)
}

/// Makes an object's summaries into records of this gatherer; `None` if the run was stopped
/// meanwhile.
fn make_records(run: &Run<'_>, summaries: Vec<Summary>) -> Option<MadeRecords> {
    let links_max = run.plan.summarizing.essence.summary.formats.leads_max;
    let (records, leads) = (Vec::new(), leads(&summaries, links_max));
    let mut made = MadeRecords { records, leads, may_pass: false, late: false };
    let now = (clock::now_ms() / 1_000).to_string();
    let mut budget = chain::rules_budget(clock::monotonic);
    for summary in summaries {
        let has = |kind| summary.problems.iter().any(|it| it.kind == kind);
        made.may_pass |= has(ProblemKind::Start);
        made.late |= has(ProblemKind::Time);
        let record = make_record(run, summary, &now);
        made.records.extend(tune(run, record, &mut budget, &mut made.may_pass));
        // A command that was ended by the stop is not at fault.
        if run.is_stopped() {
            return None;
        }
    }
    Some(made)
}

/// Returns where the object leads, whose own summary comes first: a page says so itself, others by
/// their references and those of their entries; these are at most `links_max`.
fn leads(summaries: &[Summary], links_max: usize) -> Leads {
    if let Some(leads) = summaries.first().and_then(|it| it.leads.as_deref()) {
        return leads.clone();
    }
    let mut links = Vec::new();
    // The links of pages within an archive are meant within it.
    for it in summaries.iter().filter(|it| it.leads.is_none()) {
        let references = it.record.text("URL-References").unwrap_or_default();
        let left = links_max.saturating_sub(links.len());
        links.extend(references.lines().take(left).map(str::to_owned));
    }
    Leads { links, ..Leads::default() }
}

fn make_record(run: &Run<'_>, summary: Summary, now: &str) -> Record {
    let (site, plan) = (run.site, run.plan);
    for problem in summary.problems {
        site.problem(problem.object, problem.kind.name(), problem.message);
    }
    let mut record = summary.record;
    let name = record.text("Type").map_or_else(|| "Unknown".to_owned(), |it| it.into_owned());
    *lock(&site.counts.by_type).entry(name).or_default() += 1;
    record.set(UPDATE_TIME, now);
    for (name, value) in &plan.attributes {
        record.set(*name, value.as_str());
    }
    record
}

/// Changes a record by the site's rules; `None` if the rules leave it out.
fn tune(
    run: &Run<'_>,
    mut record: Record,
    budget: &mut ProgramBudget,
    may_pass: &mut bool,
) -> Option<Record> {
    let (site, plan) = (run.site, run.plan);
    if plan.summarizing.rules.is_empty() {
        return Some(record);
    }
    let commands =
        RuleCommands { programs: site.programs.as_ref(), read: &plan.summarizing.programs_read };
    let tuned = commands.tune(&plan.summarizing.rules, &mut record, budget, &|| run.is_stopped());
    *may_pass |= tuned.may_pass;
    for message in tuned.applied.iter().flat_map(AppliedRule::failures) {
        site.problem(record.url.clone(), "rule", message);
    }
    if tuned.verdict == Verdict::Deleted {
        site.metrics.left_out.add("rule", 1);
        return None;
    }
    Some(record)
}

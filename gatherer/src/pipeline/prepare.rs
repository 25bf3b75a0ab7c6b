//! The middle of the route, one object at a time: read it, see whether its content is new, and make its
//! records.
//!
//! Nothing here stops a run: an object that cannot be read or understood is a problem on the list.

use std::sync::atomic::Ordering::Relaxed;

use collection::Oid;
use essence::chain::{self, Commands, Means};
use essence::rules::Verdict;
use essence::worker::spent::Spent;
use formats::object::{Object, ProblemKind, Summary};
use net::clock;
use soif::Record;

use super::run::{Candidate, Fetched, Prepared, Run};
use crate::lock::lock;
use crate::note::{self, Basis, Difference, ObjectNote};

/// The attribute that says when a record was made.
const UPDATE_TIME: &str = "Update-Time";

/// Reads one object, and summarizes it if its content is new. `None`: there is nothing to commit, and
/// it was counted why.
pub(crate) fn prepare(run: &Run<'_>, candidate: &Candidate) -> Option<Prepared> {
    let (site, settings) = (run.site, run.plan.making.settings);
    let Fetched { object, md5, validator, sure } = run.fetch(candidate)?;
    let url = candidate.url.clone();
    let key = note::object_key(&run.plan.url, &url);
    // Asked before the note is read: what is committed in between shows when this is.
    let against = lock(&run.tract.known).committed(&url);
    // Only an object that is known has one.
    let stored = against.map_or(Ok(None), |_walk| site.collection.note(&key));
    let stored = match stored {
        Ok(stored) => stored,
        Err(error) => {
            site.metrics.fetch.drop_one("unreadable-note");
            site.problem_met(run.walk, url, "collection", error.to_string());
            return None;
        }
    };
    let old: Option<ObjectNote> = stored.as_deref().and_then(note::from_bytes);
    let annotations = run.annotations.print_of_file(&object.url);
    let same_content = !run.regather
        && old.as_ref().is_some_and(|old| {
            old.is_of(&md5, &validator, settings)
                && old.records.first().is_some_and(|record| record.url == object.url)
        });
    let same = same_content && old.as_ref().is_some_and(|old| old.annotations == annotations);
    let was_late = old.as_ref().is_some_and(|old| old.late);
    let Outcome { difference, late, again } = if same {
        site.counts.unchanged.fetch_add(1, Relaxed);
        Outcome { difference: as_before(old.as_ref()), late: was_late, again: false }
    } else {
        site.metrics.fetch.leave(1);
        site.resolve(&url, &object.url);
        let made = summarize(run, object, old.is_some())?;
        let is_of_now = |old: &ObjectNote| old.validator.is_dated_as(&validator);
        let same_content = same_content && old.as_ref().is_some_and(is_of_now);
        judge(run, old.as_ref(), same_content, made)
    };
    let note = ObjectNote {
        validator,
        unsure: !sure,
        // No settings are these: what was lacking may be there at the next pass, and be it time.
        settings: if again { !settings } else { settings },
        annotations,
        md5: md5.to_string(),
        late,
        records: difference.records,
    };
    if same && old.as_ref() == Some(&note) {
        // A file dated in the future is read at every pass; there is nothing new to remember.
        site.metrics.fetch.drop_one("as-remembered");
        return None;
    }
    if same {
        site.metrics.fetch.drop_one("same-content");
    }
    let Difference { updated, deleted, .. } = difference;
    Some(Prepared { url, key, against, note, updated, deleted })
}

/// What becomes of an object's records.
struct Outcome {
    difference: Difference,
    /// Whether there was not enough time for all of them.
    late: bool,
    /// Whether the next pass is to try again.
    again: bool,
}

/// Says what becomes of an object's records: those that there are stay when the new ones are late for the first
/// time.
fn judge(run: &Run<'_>, old: Option<&ObjectNote>, same_content: bool, made: Made) -> Outcome {
    let Made { records, may_pass, late } = made;
    // What was late before has had its second try, also where its content is another by now: else an object
    // that changes all the time would never be published.
    let first_late = late && !old.is_some_and(|old| old.late);
    let difference = if first_late && old.is_some() && !run.regather {
        as_before(old)
    } else {
        compare(run, old, same_content, records)
    };
    Outcome { difference, late, again: may_pass || first_late }
}

/// Leaves an object's records as they are.
fn as_before(old: Option<&ObjectNote>) -> Difference {
    let records = old.map(|old| old.records.clone()).unwrap_or_default();
    Difference { updated: Vec::new(), deleted: Vec::new(), records }
}

/// Lays over an object's new records what people say of their objects, and compares them with the old.
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
    let settings = if run.regather { !run.plan.making.settings } else { run.plan.making.settings };
    let basis = Basis { settings, same_content };
    let mut difference = note::compare(old, basis, records.into_iter().map(annotated).collect());
    if !run.regather && old.is_some_and(|old| old.settings != settings) {
        // Other settings, or another release, need not have made others of them.
        difference.updated.retain(|record| !is_published(run, record));
    }
    difference
}

/// Whether the collection has this very record, whenever that was made. One that it cannot read it has not.
fn is_published(run: &Run<'_>, record: &Record) -> bool {
    let oid = Oid::new(&run.site.id, &record.url);
    let Ok(Some(stored)) = run.site.collection.get(&oid) else { return false };
    let mut before = stored.record;
    before.set(UPDATE_TIME, record.text(UPDATE_TIME).unwrap_or_default().into_owned());
    before == *record
}

/// What an object's records have come to.
struct Made {
    records: Vec<Record>,
    /// Whether they are less than they might be, for a reason that may pass.
    may_pass: bool,
    /// Whether there was not enough time for all of them.
    late: bool,
}

/// Stage 3: makes the object's records, its own first. `None` when the run was stopped meanwhile, or when
/// what it takes could not be started and the records of an earlier pass (`has_old`) are better than these.
fn summarize(run: &Run<'_>, object: Object, has_old: bool) -> Option<Made> {
    let (site, plan) = (run.site, run.plan);
    let stage = &site.metrics.summarize;
    stage.enter(1);
    let means = Means {
        settings: &plan.making.essence,
        print: plan.making.settings,
        library: &plan.making.library,
        workers: &site.workers,
        programs: site.programs.as_ref(),
    };
    let summaries = means.extract(object, &|| run.is_stopped(), &mut |why, count| {
        site.metrics.left_out.add(why.name(), count);
    });
    if run.is_stopped() {
        // What came out may be cut short by the stop: the next run makes it anew.
        stage.drop_one("stopped");
        return None;
    }
    let Some(made) = dress_all(run, summaries) else {
        stage.drop_one("stopped");
        return None;
    };
    // Where all is published again, the collection has lost what there was.
    if made.may_pass && has_old && !run.regather {
        stage.drop_one("cannot-start");
        return None;
    }
    // What was left out is noted all the same, so that it is not read again, and records that it had go.
    stage.leave(1);
    Some(made)
}

/// Makes an object's summaries the records of this gatherer; `None` if the run was stopped meanwhile.
fn dress_all(run: &Run<'_>, summaries: Vec<Summary>) -> Option<Made> {
    let mut made = Made { records: Vec::new(), may_pass: false, late: false };
    let now = (clock::now_ms() / 1_000).to_string();
    let mut spent = chain::rules_spent(clock::monotonic);
    for summary in summaries {
        let has = |kind| summary.problems.iter().any(|it| it.kind == kind);
        made.may_pass |= has(ProblemKind::Start);
        made.late |= has(ProblemKind::Time);
        let record = dress(run, summary, &now);
        made.records.extend(tune(run, record, &mut spent, &mut made.may_pass));
        // A command that was ended by the stop has failed for no reason of its own.
        if run.is_stopped() {
            return None;
        }
    }
    Some(made)
}

fn dress(run: &Run<'_>, summary: Summary, now: &str) -> Record {
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

/// Changes a record as the site's rules say; `None` if they leave it out.
fn tune(
    run: &Run<'_>,
    mut record: Record,
    spent: &mut Spent,
    may_pass: &mut bool,
) -> Option<Record> {
    let (site, plan) = (run.site, run.plan);
    if plan.making.rules.is_empty() {
        return Some(record);
    }
    let commands = Commands { programs: site.programs.as_ref(), read: &plan.making.programs_read };
    let tuned = commands.tune(&plan.making.rules, &mut record, spent, &|| run.is_stopped());
    *may_pass |= tuned.may_pass;
    for rule in &tuned.applied {
        for (action, outcome) in &rule.done {
            if let Err(why) = outcome {
                let message = format!("rule of line {}: `{action}`: {why}", rule.line);
                site.problem(record.url.clone(), "rule", message);
            }
        }
    }
    if tuned.verdict == Verdict::Deleted {
        site.metrics.left_out.add("rule", 1);
        return None;
    }
    Some(record)
}

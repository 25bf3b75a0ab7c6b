//! The summarizing chain: all steps of Essence for one object, without a collection.
//!
//! `harvest essence` uses it to show the records that a gatherer with the same settings publishes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formats::FullText;
use formats::object::{Object, Summary};
use soif::Record;

use crate::annotations::{self, Annotations, sources::FileProblem};
use crate::config::{EssenceConfig, SitePrograms};
use crate::error::Error;
use crate::extract::EssenceSettings;
use crate::rules::{AppliedRule, Rules, Verdict};
use crate::select::{LeftOut, Selection};
use crate::worker::budget::ProgramBudget;
use crate::worker::library::Library;
use crate::worker::pool::{Bounds, Pool};
use crate::worker::program::{Job, Programs, RunDeadline};
use crate::worker::{Clock, Program};

/// Time limit for unnesting and summarizing one object: CPU time, so that a busy machine cuts
/// nothing.
const SUMMARIZE_TIME_MAX: Duration = Duration::from_secs(8);
/// Additional time for each MiB of a list, whose entries all get records of their own.
const LIST_TIME: Duration = Duration::from_secs(1);

/// Time limit for one command of the site's rules, and for all such commands of one record.
const RULES_TIME_MAX: Duration = Duration::from_secs(10);

/// Summarizing chain with a site's settings.
#[derive(Debug)]
pub struct Chain {
    settings: EssenceSettings,
    library: Library,
    rules: Arc<Rules>,
    /// Files and folders that commands of rules may read.
    read: Vec<PathBuf>,
    annotations: Annotations,
    annotation_problems: Vec<FileProblem>,
    workers: Pool,
    programs: Option<Programs>,
    clock: Clock,
}

/// Environment of a chain: processes, scratch folder and clock.
#[derive(Debug)]
pub struct Host {
    /// Command that starts workers and programs. Without it, no program runs, and this process
    /// itself reads all objects.
    pub starter: Option<Program>,
    /// Parent of the working folders of programs; its content is deleted.
    pub scratch: PathBuf,
    /// Clock that measures durations.
    pub clock: Clock,
    /// The present moment, in Unix milliseconds.
    pub now_ms: u64,
}

impl EssenceSettings {
    /// Returns a gatherer's settings of summarizing, and the site's programs that summarize. Reads
    /// the folder of programs; blocks.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, the folder cannot be read, or a path of `programs_read` does not
    /// exist.
    pub fn of(essence: &EssenceConfig, full_text: &FullText) -> Result<(Self, Library), Error> {
        let library = library(essence)?;
        let mut settings = Self::default();
        settings.summary.formats.full_text = full_text.clone();
        settings.summary.typing = essence.typing.clone();
        settings.summary.formats.markup = essence.markup.clone();
        settings.summary.formats.templates = essence.templates.clone();
        settings.summary.formats.detail = essence.detail;
        settings.explode = essence.explode.clone();
        settings.summary.declared = essence.declared.clone();
        settings.select = Arc::new(Selection::new(&essence.select)?);
        settings.programs = library.types.clone();
        Ok((settings, library))
    }
}

fn library(essence: &EssenceConfig) -> Result<Library, Error> {
    let read = &essence.programs_read;
    for path in read {
        let found = std::fs::metadata(path);
        found.map_err(|source| Error::Read { path: path.clone(), source })?;
    }
    let Some(SitePrograms { folder, time_max }) = &essence.programs else {
        return Ok(Library::default());
    };
    let library = Library::read(folder, *time_max, &essence.typing);
    let mut library =
        library.map_err(|source| Error::Programs { folder: folder.clone(), source })?;
    library.read.extend_from_slice(read);
    Ok(library)
}

/// Returns the files whose names are like those of programs but which a gatherer with these
/// settings does not use, each with the reason. Blocks.
///
/// # Errors
///
/// The folder of programs cannot be read, or a path of `programs_read` does not exist.
pub fn unused_programs(essence: &EssenceConfig) -> Result<Vec<(PathBuf, String)>, Error> {
    Ok(library(essence)?.unused)
}

impl Chain {
    /// Returns the chain of a gatherer with these settings.
    ///
    /// # Errors
    ///
    /// The same as for [`EssenceSettings::of`].
    pub fn new(essence: &EssenceConfig, full_text: &FullText, host: Host) -> Result<Self, Error> {
        let Host { starter, scratch, clock, now_ms } = host;
        let programs =
            starter.clone().map(|starter| Programs::new(starter, scratch, clock, now_ms));
        let (settings, library) = EssenceSettings::of(essence, full_text)?;
        let (annotations, annotation_problems) =
            annotations::sources::read_once(&essence.annotations, now_ms);
        Ok(Self {
            settings,
            library,
            annotations,
            annotation_problems,
            rules: essence.rules.clone(),
            read: essence.programs_read.clone(),
            workers: Pool::new(starter, clock),
            programs,
            clock,
        })
    }

    /// Types, opens and summarizes an object, also with programs of the site. Blocks for about ten
    /// seconds at most, unless it is a long list or the machine is busy, plus the time of the
    /// programs.
    pub fn extract(&self, object: Object, left_out: &mut dyn FnMut(LeftOut, u64)) -> Vec<Summary> {
        let extractor = Extractor {
            settings: &self.settings,
            fingerprint: 0,
            library: &self.library,
            workers: &self.workers,
            programs: self.programs.as_ref(),
        };
        extractor.extract(object, &|| false, left_out)
    }

    /// Applies the site's rules to a record. Returns their verdict, and the rules that applied.
    /// Blocks for at most about ten seconds.
    pub fn tune(&self, record: &mut Record) -> (Verdict, Vec<AppliedRule>) {
        let extractor = RuleCommands { programs: self.programs.as_ref(), read: &self.read };
        let tuned = extractor.tune(&self.rules, record, &mut rules_budget(self.clock), &|| false);
        (tuned.verdict, tuned.applied)
    }

    /// Lays the annotations about a record's object over the record. Returns their statements, each
    /// list with its `FILE:LINE`. Call it after the rules, since a person's statement takes
    /// precedence.
    pub fn annotate(&self, record: &mut Record) -> Vec<(String, Vec<annotations::Statement>)> {
        self.annotations.lay_over(record);
        let about = self.annotations.about(&record.url);
        about.map(|it| (it.to_string(), it.statements().to_vec())).collect()
    }

    /// Returns the problems with annotation files.
    pub fn annotation_problems(&self) -> &[FileProblem] {
        &self.annotation_problems
    }
}

/// Settings, workers and programs that summarize objects.
#[derive(Clone, Copy, Debug)]
pub struct Extractor<'a> {
    /// Settings of opening and summarizing.
    pub settings: &'a EssenceSettings,
    /// Fingerprint of the settings.
    pub fingerprint: u64,
    /// The site's programs that summarize.
    pub library: &'a Library,
    /// Workers for objects that are not safe to read in this process.
    pub workers: &'a Pool,
    /// Runner of programs; `None` if programs cannot be run.
    pub programs: Option<&'a Programs>,
}

impl Extractor<'_> {
    /// Types, opens and summarizes an object; see `Pool::extract`. Programs of the site run last.
    /// Blocks.
    pub fn extract(
        self,
        object: Object,
        stopped: &(dyn Fn() -> bool + Sync),
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Vec<Summary> {
        let time_max = SUMMARIZE_TIME_MAX + LIST_TIME * self.settings.list_mebibytes(&object);
        let bounds = Bounds { time_max, stopped };
        let mut found =
            self.workers.extract(object, (self.settings, self.fingerprint), bounds, left_out);
        self.library.summarize(self.programs, self.workers.clock, &mut found, stopped);
        found
    }
}

/// Runner of the commands of rules.
#[derive(Clone, Copy, Debug)]
pub struct RuleCommands<'a> {
    /// Runner of programs; `None` if programs cannot be run.
    pub programs: Option<&'a Programs>,
    /// Files and folders that commands may read in addition to those of the system.
    pub read: &'a [PathBuf],
}

/// Outcome of the rules for a record.
#[derive(Debug)]
pub struct TuneOutcome {
    /// Whether the record is published.
    pub verdict: Verdict,
    /// Rules that applied.
    pub applied: Vec<AppliedRule>,
    /// Whether a command could not be run for a reason that may be temporary.
    pub may_pass: bool,
}

/// Returns a fresh budget for the rules' commands for one file.
pub fn rules_budget(clock: Clock) -> ProgramBudget {
    ProgramBudget::new(RULES_TIME_MAX, clock)
}

impl RuleCommands<'_> {
    /// Changes a record by the site's rules; `budget` is shared with the commands for other records
    /// of the same file.
    pub fn tune(
        self,
        rules: &Rules,
        record: &mut Record,
        budget: &mut ProgramBudget,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> TuneOutcome {
        let mut may_pass = false;
        // All commands for one record share the time limit of one command.
        let first = budget.next();
        let (verdict, applied) = rules.apply(record, &mut |command, input| {
            let programs = self.programs.ok_or("programs of the site cannot be run here")?;
            let refused =
                |(_, what)| format!("is not run: commands for other records of the file {what}");
            let deadline =
                first.and_then(|first| Ok(first.min(budget.next()?))).map_err(refused)?;
            let words = ["/bin/sh", "-c", command].map(str::to_owned);
            let job = Job { words: &words, input, files: &[], read: self.read, variables: &[] };
            let outcome = programs.run(&job, RunDeadline { deadline, stopped });
            budget.count(&outcome, deadline);
            outcome.map_err(|it| {
                may_pass |= it.may_pass;
                it.why
            })
        });
        TuneOutcome { verdict, applied, may_pass }
    }
}

//! The whole chain for one object at a time, without a collection: what `harvest essence` shows is what a
//! gatherer with the same settings would publish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formats::FullText;
use formats::object::{Object, Summary};
use soif::Record;

use crate::annotations::{self, Annotations, sources::Wrong};
use crate::config::{Essence, SitePrograms};
use crate::error::Error;
use crate::extract::EssenceSettings;
use crate::rules::{Applied, Rules, Verdict};
use crate::select::{LeftOut, Selection};
use crate::worker::library::Library;
use crate::worker::pool::{Bounds, Pool};
use crate::worker::program::{Job, Programs, Until};
use crate::worker::spent::Spent;
use crate::worker::{Clock, Program};

/// How long one object may take to be unnested and summarized.
const SUMMARIZE_TIME_MAX: Duration = Duration::from_secs(8);

/// How long a command of the site's rules may take, and all of them for one record.
const RULES_TIME_MAX: Duration = Duration::from_secs(10);

/// What makes records of objects.
#[derive(Debug)]
pub struct Chain {
    settings: EssenceSettings,
    library: Library,
    rules: Arc<Rules>,
    /// What commands of rules may read.
    read: Vec<PathBuf>,
    annotations: Annotations,
    wrong: Vec<Wrong>,
    workers: Pool,
    programs: Option<Programs>,
    clock: Clock,
}

/// What a chain is run by.
#[derive(Debug)]
pub struct Host {
    /// How workers and programs are started; without it, no program is run, and all is read in this process.
    pub starter: Option<Program>,
    /// Programs work in folders below this one, which is emptied.
    pub scratch: PathBuf,
    /// Tells the time.
    pub clock: Clock,
    /// The present moment, in Unix milliseconds.
    pub now_ms: u64,
}

impl EssenceSettings {
    /// Returns what a gatherer's settings say of summarizing, with the programs of the site that do. Reads
    /// the folder of those; blocks.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, or the folder cannot be read.
    pub fn of(essence: &Essence, full_text: &FullText) -> Result<(Self, Library), Error> {
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
        settings.programs = library.types().clone();
        Ok((settings, library))
    }
}

fn library(essence: &Essence) -> Result<Library, Error> {
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
    library.allow(read);
    Ok(library)
}

/// Returns what lies among the programs of a gatherer with these settings, is called as one and not used,
/// each with the reason. Blocks.
///
/// # Errors
///
/// The folder of programs cannot be read, or what they may read is not there.
pub fn unused_programs(essence: &Essence) -> Result<Vec<(PathBuf, String)>, Error> {
    Ok(library(essence)?.unused().to_vec())
}

impl Chain {
    /// Returns the chain of a gatherer with these settings.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, or the folder of programs cannot be read.
    pub fn new(essence: &Essence, full_text: &FullText, host: Host) -> Result<Self, Error> {
        let Host { starter, scratch, clock, now_ms } = host;
        let programs =
            starter.clone().map(|starter| Programs::new(starter, scratch, clock, now_ms));
        let (settings, library) = EssenceSettings::of(essence, full_text)?;
        let (annotations, wrong) = annotations::sources::read_once(&essence.annotations, now_ms);
        Ok(Self {
            settings,
            library,
            annotations,
            wrong,
            rules: essence.rules.clone(),
            read: essence.programs_read.clone(),
            workers: Pool::new(starter, clock),
            programs,
            clock,
        })
    }

    /// Types, opens and summarizes an object, by programs of the site as well. Blocks, for some ten seconds
    /// at most, beside what programs take.
    pub fn extract(&self, object: Object, left_out: &mut dyn FnMut(LeftOut, u64)) -> Vec<Summary> {
        let means = Means {
            settings: &self.settings,
            print: 0,
            library: &self.library,
            workers: &self.workers,
            programs: self.programs.as_ref(),
        };
        means.extract(object, &|| false, left_out)
    }

    /// Changes a record by the site's rules, and says which held. Blocks, for some ten seconds at most.
    pub fn tune(&self, record: &mut Record) -> (Verdict, Vec<Applied>) {
        let means = Commands { programs: self.programs.as_ref(), read: &self.read };
        let tuned = means.tune(&self.rules, record, &mut rules_spent(self.clock), &|| false);
        (tuned.verdict, tuned.applied)
    }

    /// Lays over a record what people say of its object, and returns that, each with its place. After the
    /// rules: it is a person's word.
    pub fn annotate(&self, record: &mut Record) -> Vec<(String, Vec<annotations::Statement>)> {
        self.annotations.lay_over(record);
        let about = self.annotations.about(&record.url);
        about.map(|it| (it.to_string(), it.statements().to_vec())).collect()
    }

    /// Returns what is wrong with files of annotations.
    pub fn wrong_annotations(&self) -> &[Wrong] {
        &self.wrong
    }
}

/// What summarizes objects.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    /// How objects are opened and summarized.
    pub settings: &'a EssenceSettings,
    /// Fingerprint of the settings.
    pub print: u64,
    /// The site's programs that summarize.
    pub library: &'a Library,
    /// Where what is not safe is read.
    pub workers: &'a Pool,
    /// What runs programs; none: they cannot be run.
    pub programs: Option<&'a Programs>,
}

impl Means<'_> {
    /// Types, opens and summarizes an object; see [`Pool::extract`]. Programs of the site have the last
    /// word. Blocks.
    pub fn extract(
        self,
        object: Object,
        stopped: &(dyn Fn() -> bool + Sync),
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Vec<Summary> {
        let bounds = Bounds { time_max: SUMMARIZE_TIME_MAX, stopped };
        let mut found = self.workers.extract(object, (self.settings, self.print), bounds, left_out);
        self.library.summarize(self.programs, self.workers.clock(), &mut found, stopped);
        found
    }
}

/// What runs the commands of rules.
#[derive(Clone, Copy, Debug)]
pub struct Commands<'a> {
    /// What runs programs; none: they cannot be run.
    pub programs: Option<&'a Programs>,
    /// What they may read beside what the system is made of.
    pub read: &'a [PathBuf],
}

/// What rules have made of a record.
#[derive(Debug)]
pub struct Tuned {
    /// What becomes of the record.
    pub verdict: Verdict,
    /// Which rules held.
    pub applied: Vec<Applied>,
    /// Whether a command could not be run for a reason that may pass.
    pub may_pass: bool,
}

/// Returns what the rules' commands for one file have cost before the first is run.
pub fn rules_spent(clock: Clock) -> Spent {
    Spent::new(RULES_TIME_MAX, clock)
}

impl Commands<'_> {
    /// Changes a record by the site's rules; `spent` is what their commands have cost for other records of
    /// the same file.
    pub fn tune(
        self,
        rules: &Rules,
        record: &mut Record,
        spent: &mut Spent,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Tuned {
        let mut may_pass = false;
        // All commands for one record have the time of one.
        let first = spent.next();
        let (verdict, applied) = rules.apply(record, &mut |command, input| {
            let programs = self.programs.ok_or("programs of the site cannot be run here")?;
            let refused = |what| format!("is not run: those for other parts of the file {what}");
            let deadline = first.and_then(|first| Ok(first.min(spent.next()?))).map_err(refused)?;
            let words = ["/bin/sh", "-c", command].map(str::to_owned);
            let job = Job { words: &words, input, files: &[], read: self.read, variables: &[] };
            let outcome = programs.run(&job, Until { deadline, stopped });
            spent.count(&outcome, deadline);
            outcome.map_err(|it| {
                may_pass |= it.may_pass;
                it.why
            })
        });
        Tuned { verdict, applied, may_pass }
    }
}

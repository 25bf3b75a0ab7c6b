//! The whole chain for one object at a time, without a collection: what `harvest essence` shows is what a
//! gatherer with the same settings would publish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use soif::Record;

use crate::annotations::{self, Annotations, sources::Wrong};
use crate::config::{Config, SitePrograms};
use crate::error::Error;
use crate::essence::EssenceSettings;
use crate::object::{Object, Summary};
use crate::rules::{Applied, Rules, Verdict};
use crate::select::{LeftOut, Selection};
use crate::worker::library::Library;
use crate::worker::pool::{Bounds, Pool};
use crate::worker::program::{Job, Programs, Spent, Until};

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
}

impl EssenceSettings {
    /// Returns what a gatherer's settings say of summarizing, with the programs of the site that do. Reads
    /// the folder of those; blocks.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, or the folder cannot be read.
    pub(crate) fn of(config: &Config) -> Result<(Self, Library), Error> {
        let library = library(config)?;
        let mut settings = Self::default();
        settings.summary.full_text = config.full_text.clone();
        settings.summary.typing = config.essence.typing.clone();
        settings.summary.markup = config.essence.markup.clone();
        settings.summary.templates = config.essence.templates.clone();
        settings.summary.detail = config.essence.detail;
        settings.explode = config.essence.explode.clone();
        settings.summary.declared = config.essence.declared.clone();
        settings.select = Arc::new(Selection::new(&config.essence.select)?);
        settings.programs = library.types().clone();
        Ok((settings, library))
    }
}

fn library(config: &Config) -> Result<Library, Error> {
    let read = &config.essence.programs_read;
    for path in read {
        std::fs::metadata(path).map_err(|error| {
            let path = path.display();
            Error::Spec(format!("programs_read: {path}: {error}; correct the path, or take it out"))
        })?;
    }
    let Some(SitePrograms { folder, time_max }) = &config.essence.programs else {
        return Ok(Library::default());
    };
    let library = Library::read(folder, *time_max, &config.essence.typing);
    let mut library = library.map_err(|error| {
        let folder = folder.display();
        Error::Spec(format!("cannot read the folder of programs {folder}: {error}"))
    })?;
    library.allow(read);
    Ok(library)
}

/// Returns what lies among the programs of a gatherer with these settings, is called as one and not used,
/// each with the reason. Blocks.
///
/// # Errors
///
/// The folder of programs cannot be read, or what they may read is not there.
pub fn unused_programs(config: &Config) -> Result<Vec<(PathBuf, String)>, Error> {
    Ok(library(config)?.unused().to_vec())
}

impl Chain {
    /// Returns the chain of a gatherer with these settings, whose programs work in folders below `scratch`,
    /// which is emptied.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, or the folder of programs cannot be read.
    pub fn new(config: &Config, scratch: PathBuf) -> Result<Self, Error> {
        let programs = config.worker.clone().map(|starter| Programs::new(starter, scratch));
        let (settings, library) = EssenceSettings::of(config)?;
        let (annotations, wrong) = annotations::read_once(&config.essence.annotations);
        Ok(Self {
            settings,
            library,
            annotations,
            wrong,
            rules: config.essence.rules.clone(),
            read: config.essence.programs_read.clone(),
            workers: Pool::new(config.worker.clone()),
            programs,
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
        let tuned = means.tune(&self.rules, record, &mut rules_spent(), &|| false);
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
pub(crate) struct Means<'a> {
    pub(crate) settings: &'a EssenceSettings,
    /// Fingerprint of the settings.
    pub(crate) print: u64,
    pub(crate) library: &'a Library,
    pub(crate) workers: &'a Pool,
    pub(crate) programs: Option<&'a Programs>,
}

impl Means<'_> {
    /// Types, opens and summarizes an object; see [`Pool::extract`]. Programs of the site have the last
    /// word. Blocks.
    pub(crate) fn extract(
        self,
        object: Object,
        stopped: &(dyn Fn() -> bool + Sync),
        left_out: &mut dyn FnMut(LeftOut, u64),
    ) -> Vec<Summary> {
        let bounds = Bounds { time_max: SUMMARIZE_TIME_MAX, stopped };
        let mut found = self.workers.extract(object, (self.settings, self.print), bounds, left_out);
        self.library.summarize(self.programs, &mut found, stopped);
        found
    }
}

/// What runs the commands of rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commands<'a> {
    pub(crate) programs: Option<&'a Programs>,
    /// What they may read beside what the system is made of.
    pub(crate) read: &'a [PathBuf],
}

/// What rules have made of a record.
#[derive(Debug)]
pub(crate) struct Tuned {
    pub(crate) verdict: Verdict,
    pub(crate) applied: Vec<Applied>,
    /// Whether a command could not be run for a reason that may pass.
    pub(crate) may_pass: bool,
}

/// Returns what the rules' commands for one file have cost before the first is run.
pub(crate) fn rules_spent() -> Spent {
    Spent::new(RULES_TIME_MAX)
}

impl Commands<'_> {
    /// Changes a record by the site's rules; `spent` is what their commands have cost for other records of
    /// the same file.
    pub(crate) fn tune(
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

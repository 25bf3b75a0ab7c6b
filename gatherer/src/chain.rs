//! The whole chain for one object at a time, without a collection: what `harvest essence` shows is what a
//! gatherer with the same settings would publish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::clock;
use soif::Record;

use crate::config::Config;
use crate::error::Error;
use crate::essence::EssenceSettings;
use crate::object::{Object, Summary};
use crate::rules::{Applied, Rules, Verdict};
use crate::select::{LeftOut, Selection};
use crate::worker::pool::{Bounds, Pool};
use crate::worker::program::{Programs, Until};

/// How long one object may take to be unnested and summarized.
pub(crate) const SUMMARIZE_TIME_MAX: Duration = Duration::from_secs(8);

/// How long the rules of the site may take for one record.
const RULES_TIME_MAX: Duration = Duration::from_secs(10);

/// What makes records of objects.
#[derive(Debug)]
pub struct Chain {
    settings: EssenceSettings,
    rules: Arc<Rules>,
    workers: Pool,
    programs: Option<Programs>,
}

impl EssenceSettings {
    /// Returns what a gatherer's settings say of summarizing.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob.
    pub(crate) fn of(config: &Config) -> Result<Self, Error> {
        let mut settings = Self::default();
        settings.summary.full_text = config.full_text.clone();
        settings.summary.typing = config.essence.typing.clone();
        settings.summary.markup = config.essence.markup.clone();
        settings.summary.detail = config.essence.detail;
        settings.explode = config.essence.explode.clone();
        settings.select = Arc::new(Selection::new(&config.essence.select)?);
        Ok(settings)
    }
}

impl Chain {
    /// Returns the chain of a gatherer with these settings, whose programs work in folders below `scratch`,
    /// which is emptied.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob.
    pub fn new(config: &Config, scratch: PathBuf) -> Result<Self, Error> {
        let programs = config
            .worker
            .clone()
            .map(|starter| Programs::new(starter, scratch, config.essence.programs_read.clone()));
        Ok(Self {
            settings: EssenceSettings::of(config)?,
            rules: config.essence.rules.clone(),
            workers: Pool::new(config.worker.clone()),
            programs,
        })
    }

    /// Types, opens and summarizes an object. Blocks, for some ten seconds at most.
    pub fn extract(&self, object: Object, left_out: &mut dyn FnMut(LeftOut, u64)) -> Vec<Summary> {
        let bounds = Bounds { time_max: SUMMARIZE_TIME_MAX, stopped: &|| false };
        self.workers.extract(object, (&self.settings, 0), bounds, left_out)
    }

    /// Changes a record by the site's rules, and says which held. Blocks, for some ten seconds at most.
    pub fn tune(&self, record: &mut Record) -> (Verdict, Vec<Applied>) {
        tune(&self.rules, self.programs.as_ref(), record, &|| false)
    }
}

/// Changes a record by the site's rules.
pub(crate) fn tune(
    rules: &Rules,
    programs: Option<&Programs>,
    record: &mut Record,
    stopped: &(dyn Fn() -> bool + Sync),
) -> (Verdict, Vec<Applied>) {
    let until = Until { deadline: clock::monotonic() + RULES_TIME_MAX, stopped };
    rules.apply(record, &mut |command, input| {
        let programs = programs.ok_or("programs of the site cannot be run here")?;
        let words = ["/bin/sh", "-c", command].map(str::to_owned);
        programs.run(&words, input, &[], until)
    })
}

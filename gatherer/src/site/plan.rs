//! Plans: roots with their settings, checked and compiled.

use std::path::PathBuf;
use std::sync::Arc;

use essence::extract::EssenceSettings;
use essence::rules::Rules;
use essence::worker::library::Library;
use oai::crosswalk::SourceIdentity;

use super::fingerprint;
use crate::config::Config;
use crate::error::Error;
use crate::spec::{self, Map, Repository, Root, Tree};
use crate::tree::filter::Filter;

/// A root, ready to be gathered.
#[derive(Debug)]
pub(crate) enum Plan {
    Tree(TreePlan),
    Repository(RepositoryPlan),
}

/// A tree, ready to be walked.
#[derive(Debug)]
pub(crate) struct TreePlan {
    pub(crate) url: String,
    pub(crate) tree: Tree,
    pub(crate) filter: Filter,
    pub(crate) maps: Vec<Map>,
    pub(crate) data: PathBuf,
    /// Attributes that every record gets, in order.
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) summarizing: Arc<Summarizing>,
}

/// Settings and tools of summarizing, shared by all trees.
#[derive(Debug)]
pub(crate) struct Summarizing {
    pub(crate) essence: EssenceSettings,
    pub(crate) library: Library,
    pub(crate) rules: Arc<Rules>,
    /// Files and folders that the rules' commands may read.
    pub(crate) programs_read: Vec<PathBuf>,
    /// Fingerprint of the settings that records depend on.
    pub(crate) settings: u64,
    pub(crate) read_bytes_max: u64,
    pub(crate) workers: usize,
}

/// A repository, ready to be harvested.
#[derive(Clone, Debug)]
pub(crate) struct RepositoryPlan {
    pub(crate) repository: Repository,
    /// Identity of the repository's records: they remain the repository's own, and also get the
    /// attributes of this gatherer. Records with this gatherer's own id are refused.
    pub(crate) identity: SourceIdentity,
}

impl Plan {
    /// Returns the plans of all roots, in the order of the settings, for the gatherer `id`, which
    /// is known to the public by `host` and `port`.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob, the folder of programs or a path of `programs_read` cannot be read,
    /// or roots or maps are in conflict.
    pub(crate) fn of(config: &Config, id: &str, host: &str, port: u16) -> Result<Vec<Self>, Error> {
        if let Some(conflict) = spec::conflicts(&config.roots, &config.maps).pop() {
            return Err(Error::Failed(conflict));
        }
        let attributes = config.attributes(host, port);
        let summarizing = Arc::new(Summarizing::of(config)?);
        let plan = |root: &Root| match root {
            Root::Tree(tree) => {
                let summarizing = Arc::clone(&summarizing);
                TreePlan::of(tree, config, id, &attributes, summarizing).map(Self::Tree)
            }
            Root::Repository(repository) => {
                Ok(Self::Repository(RepositoryPlan::of(repository, id, &attributes)))
            }
        };
        config.roots.iter().map(plan).collect()
    }

    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Tree(plan) => &plan.url,
            Self::Repository(plan) => plan.repository.url(),
        }
    }
}

impl TreePlan {
    fn of(
        tree: &Tree,
        config: &Config,
        id: &str,
        attributes: &[(&'static str, String)],
        summarizing: Arc<Summarizing>,
    ) -> Result<Self, Error> {
        let url = tree.url();
        let own =
            [(collection::GATHERER_ID, id.to_owned()), (collection::GATHERER_ROOT, url.clone())];
        Ok(Self {
            filter: Filter::new(tree)?,
            maps: config.maps.clone(),
            data: std::path::absolute(&config.daemon.data)
                .unwrap_or_else(|_odd| config.daemon.data.clone()),
            tree: tree.clone(),
            attributes: [attributes, &own].concat(),
            summarizing,
            url,
        })
    }
}

impl Summarizing {
    fn of(config: &Config) -> Result<Self, Error> {
        let (essence, library) = EssenceSettings::of(&config.essence, &config.full_text)?;
        for (path, why) in &library.unused {
            tracing::warn!(program = %path.display(), "is not used: {why}");
        }
        Ok(Self {
            settings: fingerprint::of_files(config, &library.fingerprint_source),
            essence,
            library,
            rules: config.essence.rules.clone(),
            programs_read: config.essence.programs_read.clone(),
            read_bytes_max: config.read_bytes_max,
            workers: config.workers.max(1),
        })
    }

    /// Returns whether programs of the site are run, for their types or by rules.
    pub(super) fn runs_programs(&self) -> bool {
        self.rules.run_commands() || !self.library.types.is_empty()
    }
}

impl RepositoryPlan {
    fn of(repository: &Repository, id: &str, attributes: &[(&'static str, String)]) -> Self {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let identity = SourceIdentity {
            attributes: attributes.collect(),
            refused_gatherer_id: Some(id.to_owned()),
            ..SourceIdentity::new(repository.url())
        };
        Self { repository: repository.clone(), identity }
    }
}

pub(crate) fn trees(plans: &[Plan]) -> impl Iterator<Item = &TreePlan> {
    plans.iter().filter_map(|plan| match plan {
        Plan::Tree(plan) => Some(plan),
        Plan::Repository(_) => None,
    })
}

pub(crate) fn repositories(plans: &[Plan]) -> impl Iterator<Item = &RepositoryPlan> {
    plans.iter().filter_map(|plan| match plan {
        Plan::Repository(plan) => Some(plan),
        Plan::Tree(_) => None,
    })
}

//! Plans: roots with their settings, checked and compiled.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use essence::extract::EssenceSettings;
use essence::rules::Rules;
use essence::worker::library::Library;
use oai::crosswalk::SourceIdentity;

use super::fingerprint;
use crate::config::Config;
use crate::error::Error;
use crate::spec::{self, Map, Repository, Root, Tree, UrlFilter, Web};
use crate::tree::filter::Filter;

/// Maximum number of links of one page that a crawl follows.
const LEADS_MAX: usize = 10_000;

/// A root, ready to be gathered.
#[derive(Debug)]
pub(crate) enum Plan {
    Tree(Box<TreePlan>),
    Remote(RemotePlan),
}

/// A root that is not on this machine, and has its own schedule.
#[derive(Clone, Debug)]
pub(crate) enum RemotePlan {
    Repository(Box<RepositoryPlan>),
    Web(Box<WebPlan>),
}

/// A web site, ready to be crawled.
#[derive(Clone, Debug)]
pub(crate) struct WebPlan {
    pub(crate) root: RootPlan,
    pub(crate) web: Web,
    pub(crate) filter: UrlFilter,
    pub(crate) maps: Vec<Map>,
    /// Longest time for which a page is not asked for.
    pub(crate) interval_max: Duration,
}

/// What is the same for all roots whose objects are summarized here, however they are reached.
#[derive(Clone, Debug)]
pub(crate) struct RootPlan {
    pub(crate) url: String,
    /// Attributes that every record gets, in order.
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) summarizing: Arc<Summarizing>,
}

/// A tree, ready to be walked.
#[derive(Debug)]
pub(crate) struct TreePlan {
    pub(crate) root: RootPlan,
    pub(crate) tree: Tree,
    pub(crate) filter: Filter,
    pub(crate) maps: Vec<Map>,
    pub(crate) data: PathBuf,
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
                TreePlan::of(tree, config, id, &attributes, summarizing)
                    .map(|it| Self::Tree(Box::new(it)))
            }
            Root::Repository(repository) => {
                let plan = RepositoryPlan::of(repository, id, &attributes);
                Ok(Self::Remote(RemotePlan::Repository(Box::new(plan))))
            }
            Root::Web(web) => {
                let summarizing = Arc::clone(&summarizing);
                let root = RootPlan::of(web.url().to_owned(), id, &attributes, summarizing);
                let filter = UrlFilter::new(web)?;
                // So each record is refreshed before its time is over.
                let interval_max = config.ttl / 2;
                let (web, maps) = (web.clone(), config.maps.clone());
                let plan = WebPlan { root, web, filter, maps, interval_max };
                Ok(Self::Remote(RemotePlan::Web(Box::new(plan))))
            }
        };
        config.roots.iter().map(plan).collect()
    }

    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Tree(plan) => &plan.root.url,
            Self::Remote(plan) => plan.url(),
        }
    }
}

impl RemotePlan {
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Repository(plan) => plan.repository.url(),
            Self::Web(plan) => plan.web.url(),
        }
    }

    /// Returns the time from one harvest, or pass, to the next.
    pub(crate) fn interval(&self) -> Duration {
        match self {
            Self::Repository(plan) => plan.repository.interval,
            Self::Web(plan) => plan.web.interval,
        }
    }

    /// Returns whether the settings of both are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Repository(own), Self::Repository(other)) => own.repository == other.repository,
            (Self::Web(own), Self::Web(other)) => {
                let settings = |it: &WebPlan| it.root.summarizing.settings;
                own.web == other.web && settings(own) == settings(other)
            }
            (Self::Repository(_), Self::Web(_)) | (Self::Web(_), Self::Repository(_)) => false,
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
        Ok(Self {
            root: RootPlan::of(tree.url(), id, attributes, summarizing),
            filter: Filter::new(tree)?,
            maps: config.maps.clone(),
            data: std::path::absolute(&config.daemon.data)
                .unwrap_or_else(|_odd| config.daemon.data.clone()),
            tree: tree.clone(),
        })
    }
}

impl RootPlan {
    fn of(
        url: String,
        id: &str,
        attributes: &[(&'static str, String)],
        summarizing: Arc<Summarizing>,
    ) -> Self {
        let own =
            [(collection::GATHERER_ID, id.to_owned()), (collection::GATHERER_ROOT, url.clone())];
        Self { attributes: [attributes, &own].concat(), summarizing, url }
    }
}

impl Summarizing {
    fn of(config: &Config) -> Result<Self, Error> {
        let (mut essence, library) = EssenceSettings::of(&config.essence, &config.full_text)?;
        if config.roots.iter().any(|it| matches!(it, Root::Web(_))) {
            essence.summary.formats.leads_max = LEADS_MAX;
        }
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
        Plan::Tree(plan) => Some(plan.as_ref()),
        Plan::Remote(_) => None,
    })
}

pub(crate) fn remotes(plans: &[Plan]) -> impl Iterator<Item = &RemotePlan> {
    plans.iter().filter_map(|plan| match plan {
        Plan::Remote(plan) => Some(plan),
        Plan::Tree(_) => None,
    })
}

/// Returns the plans of the roots whose objects are summarized here.
pub(crate) fn summarized(plans: &[Plan]) -> impl Iterator<Item = &RootPlan> {
    plans.iter().filter_map(|plan| match plan {
        Plan::Tree(plan) => Some(&plan.root),
        Plan::Remote(plan) => match plan {
            RemotePlan::Web(plan) => Some(&plan.root),
            RemotePlan::Repository(_) => None,
        },
    })
}

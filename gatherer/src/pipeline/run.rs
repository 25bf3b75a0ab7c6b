//! An order under way, and the values between its stages.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use crawl::frontier::{Frontier, State};
use essence::annotations::Annotations;
use formats::object::Object;
use soif::Record;
use soif::digest::Md5;
use url::Url;

use super::room::Room;
use super::web::{Got, Kept, WebAccess};
use crate::known::{ObjectHasher, Top, Walk};
use crate::lock::lock;
use crate::note::ObjectNote;
use crate::progress::Hold;
use crate::site::plan::{RootPlan, TreePlan};
use crate::site::{RootState, Site};
use crate::spec::{self, upwards};
use crate::tree::file::OpenFile;
use crate::tree::watch::WatchSession;
use crate::validator::Validator;

/// Memory of an attribute's text, or of any other, in addition to its bytes, in bytes.
const TEXT_BYTES: usize = 64;

/// Order to gather a tree, or some of its paths.
#[derive(Debug)]
pub(crate) struct Order {
    /// The paths to walk, in order; none lies below another.
    pub(crate) scopes: Vec<PathBuf>,
    /// Whether the scope is the whole root, so that the root is confirmed at the end.
    pub(crate) whole: bool,
    /// Whether an administrator has released the held deletions.
    pub(crate) confirmed: bool,
    /// Watch session of a pass over the whole root.
    pub(crate) session: Option<WatchSession>,
}

#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) url: String,
    pub(crate) validator: Validator,
    /// What a crawl has got, which needs not be read any more.
    pub(crate) got: Option<Box<Got>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// The object under its public URL.
    pub(crate) object: Object,
    pub(crate) md5: Md5,
    /// The object's validator when it was read.
    pub(crate) validator: Validator,
    /// Whether the validator will show any later change.
    pub(crate) sure: bool,
    /// The open file if it is longer than what was read.
    pub(crate) file: Option<Arc<OpenFile>>,
}

#[derive(Debug)]
pub(crate) struct WalkResult {
    pub(crate) walk: Walk,
    pub(crate) top: Top,
    /// URLs that the walk has visited, with everything below them.
    pub(crate) scopes: BTreeSet<String>,
    /// URLs that could not be read: nothing at or below them is taken for vanished.
    pub(crate) unread: BTreeSet<String>,
    /// Of a crawl, what it has asked for.
    pub(crate) frontier: Option<Arc<Mutex<Frontier>>>,
    /// Of a crawl, the URLs of objects that are gone for certain: no other object has vanished.
    pub(crate) gone: Option<HashSet<String>>,
    /// Of a crawl, the hold if many pages have turned to one.
    pub(crate) alike: Option<Hold>,
    /// Of a crawl, the URLs whose notes are of no use any more; they have no records.
    pub(crate) empty: Vec<String>,
    /// Begin of the crawl, in Unix milliseconds, if not all live objects were answered in it.
    pub(crate) answered_from: Option<u64>,
    pub(crate) finished: bool,
}

impl WalkResult {
    /// Returns whether the walk has visited `url`.
    pub(crate) fn has_looked_at(&self, url: &str) -> bool {
        if let Some(frontier) = &self.frontier {
            let Ok(url) = Url::parse(url) else { return false };
            let frontier = lock(frontier);
            let state = frontier.explain(&url, 0);
            // What concerns a host as a whole is asked for with its robots.txt.
            let is_host = matches!(url.path(), "/" | "/robots.txt") && url.query().is_none();
            return is_host && frontier.robots(&url).is_some()
                || !matches!(state, State::Unknown | State::Out(_));
        }
        upwards(url).any(|above| self.scopes.contains(above))
    }

    /// Returns whether the object at `url` may exist although the walk has not seen it.
    pub(crate) fn spares(&self, url: &str) -> bool {
        upwards(url).any(|above| self.unread.contains(above))
    }
}

/// The way to the objects of a root.
pub(crate) enum Access<'a> {
    Tree(TreeAccess<'a>),
    Web(WebAccess<'a>),
}

pub(crate) struct TreeAccess<'a> {
    pub(crate) plan: &'a TreePlan,
    /// The root's path without links.
    pub(crate) real: PathBuf,
    /// The path of the gatherer's own folder without links.
    pub(crate) own: PathBuf,
}

pub(crate) struct Run<'a> {
    pub(crate) site: &'a Site,
    pub(crate) plan: &'a RootPlan,
    pub(crate) access: Access<'a>,
    pub(crate) root: &'a RootState,
    pub(crate) walk: Walk,
    /// Room for objects that wait to be summarized, with their content.
    pub(crate) got_room: Room,
    /// Room for files that wait to be committed.
    pub(crate) room: Room,
    /// Objects that are prepared and not yet committed, by their number.
    pub(crate) uncommitted: Room,
    /// Whether somebody waits for these, so that no more are awaited before the next commit.
    pub(crate) is_awaited: AtomicBool,
    /// Whether every object is published again, whatever its note.
    pub(crate) regather: bool,
    pub(crate) annotations: Arc<Annotations>,
    pub(crate) hasher: ObjectHasher,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
    pub(crate) failed: AtomicBool,
}

impl<'a> Access<'a> {
    /// Returns the way to the files of a tree. Blocks.
    pub(crate) fn tree(plan: &'a TreePlan) -> Self {
        let real = without_links(&plan.tree.directory);
        Self::Tree(TreeAccess { plan, real, own: without_links(&plan.data) })
    }
}

/// Returns the path without links; unchanged if it does not exist.
fn without_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_gone| path.to_path_buf())
}

impl Run<'_> {
    /// Waits until all that was prepared is committed, or the run is stopped. Blocks.
    pub(crate) fn wait_until_committed(&self) {
        self.is_awaited.store(true, Relaxed);
        self.uncommitted.wait_until_empty(&|| self.is_stopped());
        self.is_awaited.store(false, Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.failed.load(Relaxed) || (self.stop)()
    }

    /// Stage 1: finds objects, and passes on those that may have changed.
    pub(super) fn walk(&self, order: &Order, candidates: SyncSender<Candidate>) -> WalkResult {
        match &self.access {
            Access::Tree(tree) => self.walk_tree(tree, order, candidates),
            Access::Web(web) => self.crawl(web, order.confirmed, candidates),
        }
    }

    /// Stage 2: reads an object.
    pub(super) fn fetch(&self, candidate: &Candidate) -> Option<Fetched> {
        match &self.access {
            Access::Tree(tree) => self.read_file(tree, candidate),
            Access::Web(_) => candidate.got.as_ref()?.content.clone(),
        }
    }

    /// Returns the public URL of the object at `url`.
    pub(super) fn public_url(&self, url: &str) -> String {
        match &self.access {
            Access::Tree(tree) => spec::public_url(&tree.plan.maps, &spec::file_path(url)),
            Access::Web(_) => url.to_owned(),
        }
    }

    /// Returns whether new objects make up for vanished ones when losses are counted. Blocks.
    pub(super) fn counts_on_balance(&self, order: &Order) -> bool {
        match &self.access {
            Access::Tree(tree) => tree.counts_on_balance(order),
            Access::Web(_) => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) url: String,
    pub(crate) key: Vec<u8>,
    /// Walk that committed the note with which the records were compared, if there was one.
    pub(crate) against: Option<Walk>,
    pub(crate) note: ObjectNote,
    pub(crate) updated: Vec<Record>,
    /// URLs of records that no longer exist.
    pub(crate) deleted: Vec<String>,
    /// Of a crawl, keeps what was got in the spool.
    pub(crate) kept: Option<Kept>,
}

impl Prepared {
    /// Returns an estimate of the memory of these values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let text = |text: &str| TEXT_BYTES + text.len();
        let record = |record: &Record| {
            let values = record.attributes().iter().map(|it| 2 * TEXT_BYTES + it.value.len());
            text(&record.url) + values.sum::<usize>()
        };
        self.updated.iter().map(record).sum::<usize>()
            + self.deleted.iter().map(|url| text(url)).sum::<usize>()
            + self.note.records.iter().map(|it| 2 * text(&it.url)).sum::<usize>()
    }
}

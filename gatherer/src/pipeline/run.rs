//! One order under way, and what goes from stage to stage.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use essence::annotations::Annotations;
use formats::object::Object;
use soif::Record;
use soif::digest::Md5;

use super::room::Room;
use crate::known::{Prints, Top, Walk};
use crate::note::ObjectNote;
use crate::site::plan::TreePlan;
use crate::site::{Site, Tract};
use crate::spec::upwards;
use crate::tree::watch::Vigil;
use crate::validator::Validator;

/// What an attribute, or another text that is kept by itself, takes beside its bytes.
const TEXT_BYTES: usize = 64;

/// What to look at in a tree.
#[derive(Debug)]
pub(crate) struct Order {
    /// The paths to walk, in order; none lies below another.
    pub(crate) scopes: Vec<PathBuf>,
    /// Whether the scope is the whole root, so that the root is confirmed at the end.
    pub(crate) whole: bool,
    /// Whether an administrator has released what is held.
    pub(crate) confirmed: bool,
    /// The watch under which a pass over the whole root is made.
    pub(crate) vigil: Option<Vigil>,
}

/// An object to read.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) url: String,
    /// What it looks like now.
    pub(crate) validator: Validator,
}

/// An object that was read.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The object under its public URL.
    pub(crate) object: Object,
    /// MD5 of the bytes read.
    pub(crate) md5: Md5,
    /// What it looked like when it was read.
    pub(crate) validator: Validator,
    /// Whether the validator will tell of any change since.
    pub(crate) sure: bool,
}

/// What a walk has seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) walk: Walk,
    pub(crate) top: Top,
    /// Where it has looked: there and below.
    pub(crate) scopes: BTreeSet<String>,
    /// What could not be looked at: nothing at or below these URLs counts as vanished.
    pub(crate) unread: BTreeSet<String>,
    /// Whether the walk came to its end.
    pub(crate) finished: bool,
}

impl Seen {
    /// Whether the walk has looked at the place of `url`.
    pub(crate) fn has_looked_at(&self, url: &str) -> bool {
        upwards(url).any(|above| self.scopes.contains(above))
    }

    /// Whether what is at `url` may be there although the walk has not seen it.
    pub(crate) fn spares(&self, url: &str) -> bool {
        upwards(url).any(|above| self.unread.contains(above))
    }
}

/// One order under way.
pub(crate) struct Run<'a> {
    pub(crate) site: &'a Site,
    pub(crate) plan: &'a TreePlan,
    pub(crate) tract: &'a Tract,
    pub(crate) walk: Walk,
    /// The root without links.
    pub(crate) real: PathBuf,
    /// The gatherer's own folder without links.
    pub(crate) own: PathBuf,
    /// Room for what waits to be committed.
    pub(crate) room: Room,
    /// Whether every object is to be published again, whatever its note says.
    pub(crate) regather: bool,
    /// What people say of objects.
    pub(crate) annotations: Arc<Annotations>,
    pub(crate) prints: Prints,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
    pub(crate) failed: AtomicBool,
}

impl Run<'_> {
    /// Whether to give up.
    pub(crate) fn is_stopped(&self) -> bool {
        self.failed.load(Relaxed) || (self.stop)()
    }
}

/// An object ready to be committed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) url: String,
    pub(crate) key: Vec<u8>,
    /// The walk that had committed the note which the records were compared with, if there was one.
    pub(crate) against: Option<Walk>,
    pub(crate) note: ObjectNote,
    /// Records that are new or have changed.
    pub(crate) updated: Vec<Record>,
    /// URLs of records that are no more.
    pub(crate) deleted: Vec<String>,
}

impl Prepared {
    /// Returns about how much memory it takes, in bytes.
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

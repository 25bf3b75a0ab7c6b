//! A member of the damage model: a small gatherer or broker with a collection, its content, its
//! feed, and its healing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use disk::Disk;
use disk::faulty::{Faulty, restore};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use soif::Record;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::Tree;
use super::harm::{Harm, Random};
use crate::change::{Batch, Change, Epoch, GATHERER_ID, GATHERER_ROOT, Note, Oid, Stamp, Version};
use crate::collection::Collection;
use crate::error::{Damage, Error};
use crate::feed::{FeedOptions, FeedServer};
use crate::heal::Healing;
use crate::holders::{Cursor, Progress};
use crate::options::Options;
use crate::pull::intake::{Intake, Stream};
use crate::recover::Mode;
use crate::wire::client::Piece;

const GATHERER: &str = "00000000000000aa";
const ROOT: &str = "http://root/";
const SOURCE: &str = "source";
const NOW: Stamp = Stamp(1_000_000);
/// Maximum number of requests of one pull.
const REQUESTS_MAX: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gatherer,
    Broker,
}

pub(super) struct Member {
    kind: Kind,
    seed: u64,
    dir: TempDir,
    disk: Arc<Faulty>,
    collection: Option<Collection>,
    feed: Option<FeedServer>,
    /// The largest serial seen so far.
    seen: u64,
    /// The last serial before this member's data was damaged.
    harmed_at: u64,
    /// The version of the last loss after which everything has been published again.
    regathered: Option<Version>,
    /// The generation of the last snapshot.
    generation: u64,
    runtime: Runtime,
}

fn options() -> Options {
    Options {
        segment_bytes_max: 2 << 10,
        member_bytes_max: 256,
        keys_table_bytes_max: 2 << 10,
        ..Options::default()
    }
}

impl Member {
    pub(super) fn new(kind: Kind, seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = Faulty::new(dir.path(), seed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut member = Self {
            kind,
            seed,
            dir,
            disk,
            collection: None,
            feed: None,
            seen: 0,
            harmed_at: 0,
            regathered: None,
            generation: 0,
            runtime,
        };
        member.open();
        member
    }

    fn open(&mut self) {
        let disk = Disk::Faulty(self.disk.clone());
        let opened = Collection::open_on(&disk, self.dir.path(), options(), NOW, Mode::Write);
        let (collection, _) = opened.unwrap_or_else(|error| panic!("{error}"));
        self.feed = Some(FeedServer::new(collection.clone(), FeedOptions::default()));
        self.collection = Some(collection);
        self.regathered = None;
    }

    fn collection(&self) -> &Collection {
        self.collection.as_ref().unwrap()
    }

    /// Stops, in order or by a power cut, and starts again.
    pub(super) fn restart(&mut self, in_order: bool) {
        self.feed = None;
        if in_order {
            self.collection().close();
            self.collection = None;
        } else {
            let (_, left) = self.disk.cut();
            self.collection = None;
            self.dir = tempfile::tempdir().unwrap();
            restore(&left, self.dir.path()).unwrap();
        }
        self.seed += 1;
        self.disk = Faulty::new(self.dir.path(), self.seed);
        self.open();
    }

    /// Applies a harm to this member; returns a description of it.
    pub(super) fn harm(&mut self, harm: &Harm, random: &mut Random) -> String {
        if !harm.at_rest {
            return harm.apply(self.dir.path(), random);
        }
        self.feed = None;
        self.collection().close();
        self.collection = None;
        let done = harm.apply(self.dir.path(), random);
        self.disk = Faulty::new(self.dir.path(), self.seed);
        self.open();
        done
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.collection().version().epoch
    }

    /// Checks that serials only increase.
    pub(super) fn check_version(&mut self) {
        let serial = self.collection().committed().serial;
        assert!(self.seen <= serial, "{} after {}", serial, self.seen);
        self.seen = serial;
    }

    /// Records that this member was harmed; commits after that must stay.
    pub(super) fn note_harm(&mut self) {
        self.harmed_at = self.collection().committed().serial;
    }

    /// Returns whether an object was committed since the harm; `None` if the object is missing.
    pub(super) fn is_fresh(&self, url: &str) -> Result<Option<bool>, Error> {
        let serial = self.collection().serial(&Oid::new(GATHERER, url))?;
        Ok(serial.map(|it| self.harmed_at < it))
    }

    pub(super) fn is_well(&self) -> bool {
        let whole = !self.collection().inner.log.view().has_holes();
        // Without a key index this is unknown.
        whole && matches!(self.collection().aftermath(), Ok(None))
    }

    pub(super) fn describe(&self) -> String {
        let collection = self.collection();
        let (health, cursor) = (collection.health(), collection.cursor(SOURCE));
        format!("{health:?} {:?} {cursor:?} {:?}", collection.aftermath(), collection.version())
    }

    pub(super) fn content(&self) -> Tree {
        let collection = self.collection();
        let keys = collection.inner.read_keys(|keys| {
            keys.objects().map(|it| Ok(it?.0)).collect::<Result<Vec<_>, sled::Error>>()
        });
        let mut found = Tree::new();
        for oid in keys.unwrap_or_default().iter().filter_map(|it| Oid::from_key(it)) {
            if let Ok(Some(stored)) = collection.get(&oid) {
                found.insert(oid.url, stored.record.number("Content").unwrap());
            }
        }
        found
    }

    pub(super) fn verify(&self) {
        assert_eq!(self.collection().verify().unwrap().problems, []);
    }

    pub(super) fn compact(&self) {
        match self.collection().compact(NOW) {
            Ok(_) | Err(Error::Damaged { .. } | Error::Keys { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn note(&self, url: &str) -> Option<Vec<u8>> {
        self.collection().note(url.as_bytes()).unwrap_or(None)
    }

    /// Publishes the tree's changes since its notes; with `anew` the whole tree.
    fn publish(&self, tree: &Tree, anew: bool) -> Result<(), Error> {
        let collection = self.collection();
        let mut batch = Batch::default();
        for (url, content) in tree {
            let value = content.to_string().into_bytes();
            if anew || self.note(url).as_ref() != Some(&value) {
                let mut record = Record::new("FILE", url.clone());
                record.push(GATHERER_ID, GATHERER);
                record.push(GATHERER_ROOT, ROOT);
                record.push("Content", content.to_string());
                record.push("Noise", noise(*content));
                batch.changes.push(Change::Update(record));
                batch.notes.push(Note { key: url.clone().into_bytes(), value: Some(value) });
            }
        }
        let known: Vec<_> = collection.notes(b"http").collect::<Result<_, _>>()?;
        for (key, _) in known {
            let url = String::from_utf8(key.clone()).unwrap();
            if !tree.contains_key(&url) {
                batch.changes.push(Change::Delete(Oid::new(GATHERER, &url)));
                batch.notes.push(Note { key, value: None });
            }
        }
        let (gatherer, root) = (GATHERER.to_owned(), ROOT.to_owned());
        batch.changes.push(Change::Confirm { gatherer, root, at: NOW });
        collection.commit(batch, NOW).map(drop)
    }

    /// Makes a pass, as a gatherer does.
    pub(super) fn pass(&mut self, tree: &Tree) {
        match self.publish(tree, false) {
            Ok(()) => self.collection().handle_caught_up().unwrap(),
            Err(Error::Keys { .. } | Error::Damaged { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Heals damage, as gatherers and brokers do.
    pub(super) fn heal(&mut self, tree: &Tree) {
        self.collection().scrub(u64::MAX).unwrap();
        for healed in [self.handle_aftermath(tree), self.try_to_heal(tree)] {
            match healed {
                Ok(()) | Err(Error::Keys { .. } | Error::Damaged { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn handle_aftermath(&mut self, tree: &Tree) -> Result<(), Error> {
        let collection = self.collection().clone();
        if let Some(loss) = collection.aftermath()? {
            if self.kind == Kind::Broker {
                collection.release_unheld(&BTreeSet::from([SOURCE.to_owned()]), NOW)?;
            } else {
                if self.regathered != Some(loss) {
                    self.publish(tree, true)?;
                    self.regathered = Some(loss);
                }
                let given: BTreeMap<_, _> =
                    collection.notes(b"http").collect::<Result<_, Error>>()?;
                let is_given = |oid: &Oid| Ok(given.contains_key(oid.url.as_bytes()));
                collection.end_aftermath(|| Ok(is_given), NOW)?;
            }
        }
        Ok(())
    }

    fn try_to_heal(&mut self, tree: &Tree) -> Result<(), Error> {
        let collection = self.collection().clone();
        if let Some(Healing::Waiting { lost, .. }) = collection.heal(NOW)?
            && self.kind == Kind::Gatherer
        {
            let mut batch = Batch::default();
            for oid in lost {
                let key = oid.url.clone().into_bytes();
                batch.notes.push(Note { key, value: None });
                if !tree.contains_key(&oid.url) {
                    batch.changes.push(Change::Delete(oid));
                }
            }
            collection.commit(batch, NOW)?;
            self.publish(tree, false)?;
            collection.heal(NOW)?;
        }
        Ok(())
    }

    /// Loses the end of its log, because the disk drops synced bytes before a power cut.
    pub(super) fn lose_end(&mut self) {
        let mut files: Vec<_> = fs::read_dir(self.dir.path()).unwrap().flatten().collect();
        files.retain(|it| it.path().extension().is_some_and(|it| it == "gz"));
        let last = files.into_iter().map(|it| it.path()).max().unwrap();
        let file = OpenOptions::new().write(true).open(last).unwrap();
        let length = file.metadata().unwrap().len();
        let from = (length - 1) / 512 * 512;
        let zeros = vec![0; usize::try_from(length - from).unwrap()];
        file.write_all_at(&zeros, from).unwrap();
        self.restart(false);
    }

    pub(super) fn changes(&self) -> u64 {
        self.collection().committed().serial
    }

    pub(super) fn forget_cursor(&self) {
        let collection = self.collection();
        collection.inner.forget_cursors(&mut collection.inner.tail(), NOW).unwrap();
    }

    /// Serves a snapshot to a new consumer; requests within the hour get the same one.
    pub(super) fn serve_newcomer(&self) {
        let (status, ..) = self.ask("/feed", None);
        assert!(status.is_success(), "{status}");
    }

    /// Pulls, as [`Puller`](crate::pull::Puller) does.
    ///
    /// # Errors
    ///
    /// Those of a pull.
    pub(super) fn pull(&mut self, source: &Self) -> Result<(), Error> {
        for _ in 0..REQUESTS_MAX {
            let mut next = self.request(source, false)?;
            if next == Next::Anew {
                next = self.request(source, true)?;
            }
            if next == Next::Done {
                return self.collection().handle_caught_up();
            }
        }
        Ok(())
    }

    /// Requests once; if `anew`, not what is missing, but a snapshot from its beginning.
    fn request(&mut self, source: &Self, anew: bool) -> Result<Next, Error> {
        let in_part = |it: &Cursor| it.snapshot.as_ref().is_some_and(Progress::is_in_part);
        let cursor = self.collection().cursor(SOURCE)?;
        let known = cursor.clone().filter(|it| !anew && !in_part(it));
        let progress = known.as_ref().and_then(Cursor::fetching).cloned();
        let path = match (&known, &progress) {
            (_, Some(progress)) => format!("/snapshot/{}", progress.id),
            (Some(have), None) => format!("/feed?since={}&epoch={}", have.serial, have.epoch),
            (None, None) => "/feed".to_owned(),
        };
        let (status, headers, id, pieces) = source.ask(&path, progress.as_ref());
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let missing = text("harvest-missing").map(str::to_owned);
        let error = missing.clone().map(|missing| {
            let (name, url) = (SOURCE.to_owned(), path.clone());
            Error::Missing { name, url, missing, after: Duration::ZERO }
        });
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
            StatusCode::GONE if progress.is_some() => return Ok(Next::Anew),
            _ => return Err(error.unwrap_or(Error::Stream { offset: 0, what: Damage::Missing })),
        }
        let is_delta = text("harvest-kind") == Some("delta");
        let stream = match (is_delta, progress) {
            (true, _) => known.as_ref().map_or(Stream::Delta, Stream::after),
            (false, Some(it)) => {
                Stream::Snapshot { id: it.id, generation: it.generation, offset: it.offset }
            }
            (false, None) => {
                self.generation += 1;
                Stream::Snapshot { id, generation: self.generation, offset: 0 }
            }
        };
        let mut intake = Intake::new(self.collection().clone(), SOURCE.to_owned(), stream);
        intake.serial = known.as_ref().map_or(0, |it| it.serial);
        if !is_delta && known.as_ref().is_none_or(|it| it.fetching().is_none()) {
            intake.serial = 0;
            intake.begin_after(cursor.as_ref());
        }
        intake.epoch = text("harvest-epoch").unwrap().parse().unwrap();
        intake.to = text("harvest-to").unwrap().parse().unwrap();
        (intake.stored, intake.in_part) = (cursor, missing.is_some());
        let (sender, waiting) = mpsc::channel(pieces.len() + 1);
        for piece in pieces.into_iter().map(Piece::Bytes).chain([Piece::End]) {
            sender.try_send(piece).unwrap();
        }
        intake.run(waiting).1?;
        match error {
            Some(missing) => Err(missing),
            None => Ok(if is_delta { Next::Done } else { Next::Again }),
        }
    }

    /// Sends a request; returns status, headers, the snapshot's id, and the received body.
    fn ask(
        &self,
        path: &str,
        progress: Option<&Progress>,
    ) -> (StatusCode, HeaderMap, String, Vec<Bytes>) {
        let feed = self.feed.clone().unwrap();
        self.runtime.block_on(async move {
            let mut path = path.to_owned();
            loop {
                let mut request = Request::get(&path);
                if let Some(progress) = progress.filter(|it| it.offset != 0) {
                    let range = format!("bytes={}-", progress.offset);
                    request = request.header(header::RANGE, range);
                }
                let response = feed.respond(request.body(()).unwrap()).await;
                if let Some(to) = response.headers().get(header::LOCATION) {
                    path = format!("/{}", to.to_str().unwrap());
                    continue;
                }
                let (head, mut body) = response.into_parts();
                let mut pieces = Vec::new();
                // The part of a body before a break is used.
                while let Some(Ok(frame)) = body.frame().await {
                    pieces.extend(frame.into_data());
                }
                let id = path.rsplit('/').next().unwrap_or_default().to_owned();
                return (head.status, head.headers, id, pieces);
            }
        })
    }
}

/// The next step after a request.
#[derive(PartialEq, Eq)]
enum Next {
    Done,
    Again,
    Anew,
}

/// Returns bytes that give members different sizes and do not compress well.
fn noise(seed: u64) -> Vec<u8> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
    (0..random.below(200)).map(|_| random.byte()).collect()
}

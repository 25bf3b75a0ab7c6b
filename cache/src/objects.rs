//! The objects that are stored: in memory what is hot, and on disk, if there is a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use tokio::task::spawn_blocking;

use crate::content::Content;
use crate::memory::{Memory, Object, Variants};
use crate::parts::{as_object, is_complete, merged};
use crate::policy::freshness::Rules;
use crate::policy::storing::Head;
use crate::store::Store;
use crate::transfer::{MEMORY_BYTES_MAX, Quota};

/// Stored objects, by URL. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    memory: Arc<Memory>,
    disk: Option<Store>,
    /// Held by whoever changes what is stored, so that memory and disk change in the same order.
    changing: Arc<Mutex<()>>,
}

impl Objects {
    pub(crate) fn new(memory: Memory, disk: Option<Store>) -> Self {
        Self { memory: Arc::new(memory), disk, changing: Arc::default() }
    }

    /// Returns what is stored of a URL; what is on disk alone comes to memory. `rules` are those of
    /// the URL.
    pub(crate) async fn get(&self, url: &str, rules: Rules) -> Option<Variants> {
        let mut found = self.memory.get(url);
        let Some(disk) = &self.disk else { return found };
        let is_gone = |it: &Arc<Object>| matches!(&it.body, Content::Disk(it) if !it.is_there());
        // Its segment has made room; perhaps it was moved to another.
        if found.as_ref().is_some_and(|it| it.iter().any(is_gone)) {
            let _changing = self.changing();
            self.memory.remove(url, None);
            found = None;
        }
        if found.is_some() {
            // What is used stays on disk, too.
            disk.touch(url);
            return found;
        }
        if !disk.may_have(url) {
            return None;
        }
        let (this, store, named) = (self.clone(), disk.clone(), url.to_owned());
        let reading = spawn_blocking(move || {
            let read = store.read(&named, |_| rules);
            for it in &read {
                let _changing = this.changing();
                // What came meanwhile is newer.
                let may = store.still_has(&named, it) && !this.memory.has(&named, &it.object);
                this.memory.put_if(&named, &it.object, || may);
            }
            // Memory may be too small for it.
            let kept = read.into_iter().filter(|it| store.still_has(&named, it));
            let read: Vec<Arc<Object>> = kept.map(|it| it.object).collect();
            this.memory.get(&named).or_else(|| (!read.is_empty()).then(|| read.into()))
        });
        reading.await.unwrap_or_else(|error| {
            tracing::error!(%error, "stored objects were not read");
            None
        })
    }

    /// Stores an object with this head, in place of one that answers the same requests and was not requested
    /// later, if `may` says so; nothing else changes meanwhile.
    pub(crate) fn put(
        &self,
        url: &str,
        (object, head): (&Arc<Object>, &Head),
        may: impl FnOnce() -> bool,
    ) {
        let _changing = self.changing();
        let is_whole = head.extent().is_none();
        let is_newer = |it: &Arc<Object>| {
            let other = it.head();
            // A whole is worth more than a part of the same that was asked for meanwhile.
            let is_part_of_it =
                is_whole && other.extent().is_some() && other.strong_tag() == head.strong_tag();
            it.is_alike(object) && head.times.sent_ms < other.times.sent_ms && !is_part_of_it
        };
        let stored = self.memory.get(url);
        if stored.is_some_and(|it| it.iter().any(is_newer)) || !may() {
            return;
        }
        if is_whole {
            return self.put_now(url, object, head);
        }
        match as_object(object).map(Arc::new) {
            Some(all) => self.put_now(url, &all, &all.head()),
            None => self.put_part(url, object),
        }
    }

    /// Stores a part of an object, in memory alone, together with another part of it. A whole is worth more.
    fn put_part(&self, url: &str, object: &Arc<Object>) {
        let is_long = !matches!(object.body, Content::Memory(_));
        if is_long || !is_complete(object) || self.disk.as_ref().is_some_and(|it| it.may_have(url))
        {
            return;
        }
        let stored = self.memory.get(url);
        let alike = stored.as_ref().and_then(|it| it.iter().find(|it| it.is_alike(object)));
        match alike {
            Some(whole) if whole.head().extent().is_none() => {}
            Some(part) => match merged(part, object).map(Arc::new) {
                Some(all) => match all.head() {
                    head if head.extent().is_none() => self.put_now(url, &all, &head),
                    _ => self.memory.put_if(url, &all, || true),
                },
                None => self.memory.put_if(url, object, || true),
            },
            None => self.memory.put_if(url, object, || true),
        }
    }

    fn put_now(&self, url: &str, object: &Arc<Object>, head: &Head) {
        let is_long = matches!(object.body, Content::Transfer(_));
        // A long one is there until it is on disk.
        self.memory.put_if(url, object, || true);
        let Some(disk) = &self.disk else { return };
        let (this, named, old) = (self.clone(), url.to_owned(), Arc::clone(object));
        disk.put(url, (object, head), move |written| match written {
            Some(new) => this.memory.replace(&named, &old, &new),
            None if is_long => this.memory.forget(&named, &old),
            None => {}
        });
    }

    /// Returns the length of the longest body that is stored, in bytes.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        let on_disk = self.disk.as_ref().map_or(0, Store::body_bytes_max);
        on_disk.max(MEMORY_BYTES_MAX as u64)
    }

    /// Returns the room on disk that bodies on their way share; without a store, nothing of them goes there.
    pub(crate) fn quota(&self) -> Arc<Quota> {
        self.disk.as_ref().map_or_else(|| Arc::new(Quota::new(0)), Store::quota)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the head that validation of `old` has updated, if `old` is still what is stored and `may` says
    /// so. On disk it is worth it if the object is fresh now, and its body is not long.
    pub(crate) fn renew(
        &self,
        url: &str,
        (old, object): (&Arc<Object>, &Arc<Object>),
        may: impl FnOnce() -> bool,
    ) {
        let _changing = self.changing();
        let stored = self.memory.get(url);
        let is_there = |it: &Arc<Object>| {
            Arc::ptr_eq(it, old) || it.is_alike(old) && it.head().times == old.head().times
        };
        if !stored.is_some_and(|it| it.iter().any(is_there)) || !may() {
            return;
        }
        let head = object.head();
        match &object.body {
            Content::Memory(_) if head.terms.lifetime != 0 && head.extent().is_none() => {
                self.put_now(url, object, &head);
            }
            // Its file goes when it is on disk, which the old one waits for.
            Content::Transfer(_) => {}
            Content::Memory(_) | Content::Disk(_) => self.memory.put_if(url, object, || true),
        }
    }

    /// Removes the objects that answer such a request; all, if `request` is `None`. On disk all are
    /// removed. Returns how many there were in memory or on disk.
    pub(crate) fn remove(&self, url: &str, request: Option<&HeaderMap>) -> usize {
        let _changing = self.changing();
        let on_disk = self.disk.as_ref().map_or(0, |it| it.remove(url));
        let in_memory = self.memory.remove(url, request);
        on_disk.max(in_memory)
    }

    /// Shows `see` what is stored of URLs that `fit`: the URL, the head, the length of the body and whether
    /// that is in memory, until it returns false. What is in memory comes first, and may come again. Blocks.
    pub(crate) fn look_through(
        &self,
        fits: impl Fn(&str) -> bool,
        rules: impl Fn(&str) -> Rules,
        mut see: impl FnMut(&str, &Head, (u64, bool)) -> bool,
    ) {
        for (url, variants) in self.memory.all().filter(|it| fits(&it.0)) {
            for object in variants.iter() {
                let body = (object.body.len(), matches!(object.body, Content::Memory(_)));
                if !see(&url, &object.head(), body) {
                    return;
                }
            }
        }
        if let Some(disk) = &self.disk {
            disk.look_through(fits, rules, |url, head, bytes| see(url, &head, (bytes, false)));
        }
    }

    /// Removes what is stored of URLs that `fit`. Returns how many objects there were. Blocks.
    pub(crate) fn remove_all(&self, fits: impl Fn(&str) -> bool) -> usize {
        let mut count = 0;
        self.look_through(
            fits,
            |_| Rules::default(),
            |url, _, _| {
                count += self.remove(url, None);
                true
            },
        );
        count
    }

    /// Returns the lengths of the bodies in memory, and of the records on disk, in bytes. Blocks.
    pub(crate) fn lengths(&self) -> [Vec<u64>; 2] {
        let in_memory = self.memory.all().flat_map(|(_, variants)| {
            let bodies = variants.iter().map(|it| &it.body);
            bodies
                .filter(|it| matches!(it, Content::Memory(_)))
                .map(Content::len)
                .collect::<Vec<_>>()
        });
        [in_memory.collect(), self.disk.as_ref().map(Store::lengths).unwrap_or_default()]
    }

    /// Returns the number of URLs in memory, and the bytes that they take.
    pub(crate) fn in_memory(&self) -> (u64, u64) {
        self.memory.figures()
    }

    /// Returns the number of objects on disk, and the bytes that they take.
    pub(crate) fn on_disk(&self) -> (u64, u64) {
        self.disk.as_ref().map(Store::figures).unwrap_or_default()
    }

    /// Returns the store.
    pub(crate) fn disk(&self) -> Option<&Store> {
        self.disk.as_ref()
    }
}

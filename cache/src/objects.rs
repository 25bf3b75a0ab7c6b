//! The objects that are stored: in memory what is hot, and on disk, if there is a store.

use std::sync::Arc;

use http::HeaderMap;
use tokio::task::spawn_blocking;

use crate::content::Content;
use crate::memory::{Memory, Object, Variants};
use crate::policy::freshness::Rules;
use crate::store::Store;

/// Stored objects, by URL. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    memory: Arc<Memory>,
    disk: Option<Store>,
}

impl Objects {
    pub(crate) fn new(memory: Memory, disk: Option<Store>) -> Self {
        Self { memory: Arc::new(memory), disk }
    }

    /// Returns what is stored of a URL; what is on disk alone comes to memory. `rules` are those of
    /// the URL.
    pub(crate) async fn get(&self, url: &str, rules: Rules) -> Option<Variants> {
        let mut found = self.memory.get(url);
        let Some(disk) = &self.disk else { return found };
        let is_on_disk = |it: &Arc<Object>| matches!(it.body, Content::Disk(_));
        // What has made room on disk is not held there by an open file.
        if found.as_ref().is_some_and(|it| it.iter().any(is_on_disk)) && !disk.may_have(url) {
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
            // The oldest first: a newer one replaces it.
            for it in store.read(&named, |_| rules).iter().rev() {
                this.memory.put_if(&named, &it.object, || store.still_has(&named, it));
            }
        });
        if let Err(error) = reading.await {
            tracing::error!(%error, "stored objects were not read");
        }
        self.memory.get(url)
    }

    /// Stores an object, in place of one that answers the same requests.
    pub(crate) fn put(&self, url: &str, object: &Arc<Object>) {
        let is_long = matches!(object.body, Content::Transfer(_));
        if !is_long {
            self.memory.put_if(url, object, || true);
        }
        let Some(disk) = &self.disk else { return };
        if is_long && disk.body_bytes_max() < object.body.len() {
            return;
        }
        if is_long {
            // Until it is on disk.
            self.memory.put_if(url, object, || true);
        }
        let (this, named, old) = (self.clone(), url.to_owned(), Arc::clone(object));
        disk.put(url, object, move |written| match written {
            Some(new) => this.memory.replace(&named, &old, &new),
            None => this.memory.forget(&named, &old),
        });
    }

    /// Stores the head that validation has updated. On disk it is worth it if the object is fresh now.
    pub(crate) fn renew(&self, url: &str, object: &Arc<Object>) {
        if object.head.terms.lifetime == 0 {
            self.memory.put_if(url, object, || true);
        } else {
            self.put(url, object);
        }
    }

    /// Removes the objects that answer such a request; all, if `request` is `None`. Returns how many
    /// there were in memory or on disk.
    pub(crate) fn remove(&self, url: &str, request: Option<&HeaderMap>) -> usize {
        // From disk first: what is read from there is put in memory only while it is there.
        let on_disk = self.disk.as_ref().map_or(0, |it| it.remove(url));
        let in_memory = self.memory.remove(url, request);
        // The others come back.
        for it in self.memory.get(url).iter().flat_map(|it| it.iter()) {
            self.disk.iter().for_each(|disk| disk.put(url, it, |_| ()));
        }
        on_disk.max(in_memory)
    }

    /// Returns the number of URLs in memory, and the bytes that they take.
    pub(crate) fn in_memory(&self) -> (u64, u64) {
        self.memory.figures()
    }

    /// Returns the store.
    pub(crate) fn disk(&self) -> Option<&Store> {
        self.disk.as_ref()
    }
}

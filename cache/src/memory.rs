//! The memory: objects that are used again, by URL.

use std::ops::Deref;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::content::Content;
use crate::packed::Packed;
use crate::policy::storing::Head;
use crate::policy::vary::VARIANTS_MAX;

/// Bytes that an object takes beside its URL, its body and its packed head.
const OBJECT_BYTES: usize = 200;

/// Size of the objects from which the number of places is reckoned, in bytes.
const TYPICAL_BYTES: u64 = 16 << 10;

/// A stored object.
#[derive(Debug)]
pub struct Object {
    /// What is kept beside the body.
    head: Packed,
    /// The body.
    pub body: Content,
}

/// The objects of one URL, which answer different requests.
#[derive(Clone, Debug)]
pub enum Variants {
    /// One, as most URLs have.
    One(Arc<Object>),
    /// Several.
    Several(Arc<[Arc<Object>]>),
}

impl From<Vec<Arc<Object>>> for Variants {
    fn from(objects: Vec<Arc<Object>>) -> Self {
        match <[_; 1]>::try_from(objects) {
            Ok([one]) => Self::One(one),
            Err(several) => Self::Several(several.into()),
        }
    }
}

impl Deref for Variants {
    type Target = [Arc<Object>];

    fn deref(&self) -> &[Arc<Object>] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

/// Objects in memory. The least used ones make room for new ones.
#[derive(Debug)]
pub struct Memory {
    objects: Cache<Box<str>, Variants, Weight>,
    /// Held by whoever replaces what is stored of a URL.
    writing: Mutex<()>,
}

#[derive(Clone, Debug)]
struct Weight;

impl Weighter<Box<str>, Variants> for Weight {
    fn weight(&self, url: &Box<str>, variants: &Variants) -> u64 {
        let objects: usize = variants.iter().map(|it| it.weight()).sum();
        (url.len() + objects) as u64
    }
}

impl Object {
    /// Returns an object.
    pub fn new(head: &Head, body: Content) -> Self {
        Self { head: Packed::of(head), body }
    }

    /// Returns the object with another body.
    #[must_use]
    pub fn with_body(&self, body: Content) -> Self {
        Self { head: self.head.clone(), body }
    }

    /// Returns what is kept beside the body, which is unpacked each time.
    pub fn head(&self) -> Head {
        self.head.head()
    }

    /// Returns whether both answer the same requests.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.head().vary == other.head().vary
    }

    fn weight(&self) -> usize {
        self.body.weight() + self.head.len() + OBJECT_BYTES
    }
}

impl Memory {
    /// Returns a memory for about so many bytes.
    pub fn new(bytes: u64) -> Self {
        let places = usize::try_from(bytes / TYPICAL_BYTES).unwrap_or(usize::MAX).max(64);
        Self { objects: Cache::with_weighter(places, bytes, Weight), writing: Mutex::new(()) }
    }

    /// Returns what is stored of a URL.
    pub fn get(&self, url: &str) -> Option<Variants> {
        self.objects.get(url)
    }

    /// Stores an object, in place of one that answers the same requests, if `may` says so: no other
    /// change happens meanwhile.
    pub fn put_if(&self, url: &str, object: &Arc<Object>, may: impl FnOnce() -> bool) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !may() {
            return;
        }
        let mut variants = self.objects.get(url).map(|it| it.to_vec()).unwrap_or_default();
        variants.retain(|it| !it.is_alike(object));
        if VARIANTS_MAX <= variants.len() {
            variants.remove(0);
        }
        variants.push(Arc::clone(object));
        self.objects.insert(url.into(), variants.into());
    }

    /// Returns whether there is an object to the same requests.
    pub fn has(&self, url: &str, object: &Object) -> bool {
        let stored = self.get(url);
        stored.is_some_and(|it| it.iter().any(|it| it.is_alike(object)))
    }

    /// Puts `new` in place of `old`, if that is still there.
    pub fn replace(&self, url: &str, old: &Arc<Object>, new: &Arc<Object>) {
        let is_there = || self.get(url).is_some_and(|it| it.iter().any(|it| Arc::ptr_eq(it, old)));
        self.put_if(url, new, is_there);
    }

    /// Removes an object whose body could not be kept, if it is still there.
    pub fn forget(&self, url: &str, old: &Arc<Object>) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(variants) = self.objects.get(url) else { return };
        let kept: Vec<_> = variants.iter().filter(|it| !Arc::ptr_eq(it, old)).cloned().collect();
        if kept.is_empty() {
            self.objects.remove(url);
        } else {
            self.objects.insert(url.into(), kept.into());
        }
    }

    /// Removes the object that answers such a request; all, if `request` is `None`. Returns how many
    /// there were.
    pub fn remove(&self, url: &str, request: Option<&HeaderMap>) -> usize {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(variants) = self.objects.get(url) else { return 0 };
        let answers =
            |it: &&Arc<Object>| request.is_none_or(|request| it.head().vary.answers(request));
        let kept: Vec<_> = variants.iter().filter(|it| !answers(it)).cloned().collect();
        let count = variants.len() - kept.len();
        if kept.is_empty() {
            self.objects.remove(url);
        } else {
            self.objects.insert(url.into(), kept.into());
        }
        count
    }

    /// Returns what is stored, in any order. It is not used by that.
    pub fn all(&self) -> impl Iterator<Item = (Box<str>, Variants)> {
        self.objects.iter()
    }

    /// Returns the number of URLs, and the bytes that they take.
    pub fn figures(&self) -> (u64, u64) {
        (self.objects.len() as u64, self.objects.weight())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, Method, StatusCode};

    use super::*;
    use crate::policy::freshness::{Rules, Times};
    use crate::policy::storing::{Ask, keep};

    fn object(x: &str, body: &'static [u8]) -> Arc<Object> {
        let request =
            HeaderMap::from_iter([("x".parse().unwrap(), HeaderValue::from_str(x).unwrap())]);
        let answer = HeaderMap::from_iter([
            ("vary".parse().unwrap(), HeaderValue::from_static("x")),
            ("cache-control".parse().unwrap(), HeaderValue::from_static("max-age=9")),
        ]);
        let ask = Ask { method: &Method::GET, headers: &request };
        let head = keep(ask, StatusCode::OK, &answer, Times::default(), &Rules::default()).unwrap();
        Arc::new(Object::new(&head, Content::Memory(Bytes::from_static(body))))
    }

    fn bytes_of(object: &Arc<Object>) -> Bytes {
        let Content::Memory(bytes) = &object.body else { panic!("it is not in memory") };
        bytes.clone()
    }

    fn bodies(memory: &Memory) -> Vec<Bytes> {
        memory.get("u").iter().flat_map(|it| it.iter()).map(bytes_of).collect()
    }

    #[test]
    fn an_object_replaces_the_one_to_such_requests_alone() {
        let memory = Memory::new(1 << 20);
        assert!(memory.get("u").is_none());
        memory.put_if("u", &object("1", b"one"), || true);
        memory.put_if("u", &object("2", b"two"), || true);
        memory.put_if("u", &object("1", b"three"), || true);
        assert_eq!(bodies(&memory), ["two", "three"]);
        let request = HeaderMap::from_iter([("x".parse().unwrap(), HeaderValue::from_static("2"))]);
        assert_eq!(
            (memory.remove("u", Some(&request)), bodies(&memory)),
            (1, vec!["three".into()])
        );
        assert_eq!((memory.remove("u", None), memory.figures()), (1, (0, 0)));
    }

    #[test]
    fn variants_and_bytes_are_bounded() {
        let memory = Memory::new(1 << 20);
        for n in 0..2 * VARIANTS_MAX {
            memory.put_if("u", &object(&n.to_string(), b"x"), || true);
        }
        assert_eq!(memory.get("u").unwrap().len(), VARIANTS_MAX);
        for n in 0..1_000 {
            memory.put_if(&n.to_string(), &object("1", &[0; 10_000]), || true);
        }
        assert!(memory.figures().1 <= 1 << 20);
    }
}

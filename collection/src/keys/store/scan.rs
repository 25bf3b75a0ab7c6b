//! A scan: reads entries in order while other threads write.

use std::sync::{Arc, PoisonError, RwLock};
use std::vec;

use super::{CHUNK_ENTRIES, Entry, StoreState, is_many};
use crate::keys::Outcome;
use crate::keys::layers::{Layer, Layers};
use crate::keys::run::Cursor;

/// Iterator over entries in order, for kinds of keys that are many.
#[derive(Debug)]
pub(in crate::keys) struct Scan {
    pub(super) state: Arc<RwLock<StoreState>>,
    pub(super) prefix: Vec<u8>,
    /// The next key; `None` at the end.
    pub(super) from: Option<Vec<u8>>,
    pub(super) chunk: vec::IntoIter<Entry>,
}

impl Scan {
    /// Reads the next entries into `chunk`, which may stay empty: all of them may be removals.
    fn refill(&mut self, from: &[u8]) -> Outcome<()> {
        let mut chunk = Vec::new();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut layers =
            Layers(vec![Layer::table(&state.table, from), Layer::table(&state.frozen, from)]);
        for (_, run) in state.runs.iter() {
            layers.0.push(Layer::Run(Cursor::seek(run.clone(), from)?));
        }
        for looked_at in 0.. {
            let Some(at) = layers.least() else { break };
            let is_ours = |key: &&[u8]| key.starts_with(&self.prefix) && is_many(key);
            let Some(key) = layers.0[at].key().filter(is_ours) else { break };
            if looked_at == CHUNK_ENTRIES {
                self.from = Some(key.to_vec());
                break;
            }
            if let Some(value) = layers.0[at].value() {
                chunk.push((key.to_vec(), value.to_vec()));
            }
            layers.pass(at)?;
        }
        self.chunk = chunk.into_iter();
        Ok(())
    }
}

impl Iterator for Scan {
    type Item = Outcome<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.chunk.next() {
                return Some(Ok(entry));
            }
            let from = self.from.take()?;
            if let Err(error) = self.refill(&from) {
                return Some(Err(error));
            }
        }
    }
}

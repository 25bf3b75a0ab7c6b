//! What the collector remembers over a restart: notes of the collection.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use collection::{Batch, Note, Stamp};
use net::clock;

use super::{Collector, State};
use crate::blocking::blocking;
use crate::error::Error;
use crate::live::Live;
use crate::memory::{self, Memory};
use crate::source::Source;

impl Collector {
    /// Takes up sources with what the notes remember of them. Blocks.
    pub(super) fn add(&self, sources: &[Source], now_ms: u64) -> Result<(), Error> {
        let mut remembered = Vec::with_capacity(sources.len());
        for source in sources {
            let memory = self.inner.collection.note(&memory::key(&source.name))?;
            remembered.push(memory.map(|bytes| Memory::read(&bytes)).unwrap_or_default());
        }
        let mut known = Vec::with_capacity(sources.len());
        for (source, memory) in sources.iter().zip(&remembered) {
            known.push(memory.known_at(self.inner.collection.cursor(&source.name)?.as_ref()));
        }
        let mut state = self.state();
        state.schedule.handle_sources(sources.iter().cloned().zip(known), now_ms);
        for (source, memory) in sources.iter().zip(remembered) {
            let live = Live::new(source.clone(), memory);
            state.live.insert(source.name.clone(), live);
        }
        Ok(())
    }

    /// Writes down what the schedule knows of the sources that were pulled since the last time.
    pub(super) async fn remember(&self) {
        let collector = self.clone();
        if let Err(error) = blocking("schedule's notes", move || collector.write_notes()).await {
            tracing::warn!(%error, "the schedule's memory was not written down");
        }
    }

    /// Waits for notes that are being written: those of sources that have gone since would otherwise come
    /// after they were released, for the next source of that name to begin with. Blocks.
    pub(super) fn wait_for_notes(&self) {
        drop(self.notes_turn());
    }

    fn notes_turn(&self) -> MutexGuard<'_, ()> {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_notes(&self) -> Result<(), Error> {
        let _turn = self.notes_turn();
        let (mut notes, mut written) = (Vec::new(), BTreeSet::new());
        {
            let mut state = self.state();
            let State { schedule, live, .. } = &mut *state;
            for (name, it) in live.iter_mut().filter(|(_, it)| it.unwritten) {
                let Some(schedule) = schedule.remembered(name) else { continue };
                let (last_pull, origin) = (it.last_pull.clone(), it.origin.clone());
                let (history, reached) = (it.history, it.reached.clone());
                let memory = Memory { schedule, last_pull, history, origin, reached };
                notes.push(Note { key: memory::key(name), value: Some(memory.written()) });
                it.unwritten = false;
                written.insert(name.clone());
            }
        }
        if notes.is_empty() {
            return Ok(());
        }
        let batch = Batch { changes: Vec::new(), notes };
        let refused = self.inner.collection.commit(batch, Stamp(clock::now_ms()));
        if refused.is_err() {
            // The next time, with what is known by then.
            for (name, it) in &mut self.state().live {
                it.unwritten |= written.contains(name);
            }
        }
        refused.map(drop).map_err(Error::from)
    }
}

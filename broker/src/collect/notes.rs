//! The collector's notes in the collection: the state of its sources, kept over restarts.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use collection::{Batch, Note, Stamp};
use net::clock;

use super::{Collector, CollectorState};
use crate::blocking::blocking;
use crate::error::Error;
use crate::memory::{self, Memory};
use crate::source::Source;
use crate::source::state::SourceState;

impl Collector {
    /// Adds sources with the state from their notes. Blocks.
    pub(super) fn add(&self, sources: &[Source], now_ms: u64) -> Result<(), Error> {
        let mut remembered = Vec::with_capacity(sources.len());
        for source in sources {
            let memory = self.inner.collection.note(&memory::key(&source.name))?;
            remembered.push(memory.map(|bytes| Memory::read(&bytes)).unwrap_or_default());
        }
        let mut schedules = Vec::with_capacity(sources.len());
        for (source, memory) in sources.iter().zip(&remembered) {
            schedules
                .push(memory.schedule_at(self.inner.collection.cursor(&source.name)?.as_ref()));
        }
        let mut state = self.state();
        state.schedule.handle_sources(sources.iter().cloned().zip(schedules), now_ms);
        for (source, memory) in sources.iter().zip(remembered) {
            let entry = SourceState::new(source.clone(), memory);
            state.sources.insert(source.name.clone(), entry);
        }
        Ok(())
    }

    /// Writes the notes of the sources that were pulled since the last call.
    pub(super) async fn remember(&self) {
        let collector = self.clone();
        if let Err(error) = blocking("schedule's notes", move || collector.write_notes()).await {
            tracing::warn!(%error, "the schedule's notes were not written");
        }
    }

    pub(super) fn notes_turn(&self) -> MutexGuard<'_, ()> {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_notes(&self) -> Result<(), Error> {
        let _turn = self.notes_turn();
        let (mut notes, mut written) = (Vec::new(), BTreeSet::new());
        {
            let mut state = self.state();
            let CollectorState { schedule, sources, .. } = &mut *state;
            for (name, it) in sources.iter_mut().filter(|(_, it)| it.unwritten) {
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
            // Try again at the next call, with the state at that time.
            for (name, it) in &mut self.state().sources {
                it.unwritten |= written.contains(name);
            }
        }
        refused.map(drop).map_err(Error::from)
    }
}

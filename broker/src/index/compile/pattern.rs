//! Regular expressions over the words of the index.
//!
//! The engine has such queries too, but makes their automata without a bound on time: `\p{L}+x\p{L}+`
//! takes it a second. Here an automaton has a bounded size, is made once for all fields, and stops
//! at the deadline on its way through the words of a field.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use tantivy::query::{AutomatonWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy_fst::Automaton;

use crate::index::deadline::Deadline;

/// Largest automaton, and largest memory in which it is made, in bytes. It bounds the time of making
/// it to some 20 ms.
const AUTOMATON_BYTES_MAX: usize = 1 << 20;

/// Number of steps through the words of a field between two checks of the time.
const STEPS_BETWEEN: u32 = 4_096;

/// The automaton of a regular expression that matches whole words.
pub(super) struct Pattern {
    automaton: dense::DFA<Vec<u32>>,
    start: StateID,
    deadline: Deadline,
    steps: AtomicU32,
    is_over: AtomicBool,
}

impl Pattern {
    /// Makes the automaton of `pattern`.
    ///
    /// # Errors
    ///
    /// The automaton would be too large, or the pattern has syntax that it cannot have.
    pub(super) fn new(pattern: &str, deadline: Deadline) -> Result<Arc<Self>, String> {
        let size = dense::Config::new()
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .determinize_size_limit(Some(AUTOMATON_BYTES_MAX))
            .match_kind(regex_automata::MatchKind::All);
        let parts = thompson::Config::new().nfa_size_limit(Some(AUTOMATON_BYTES_MAX));
        let automaton = dense::Builder::new().configure(size).thompson(parts).build(pattern);
        let automaton = automaton.map_err(|error| {
            // The query parser has caught all other mistakes.
            let what = if error.is_size_limit_exceeded() { "too large" } else { "unknown here" };
            format!("the regular expression is {what}; write a simpler one")
        })?;
        let anchored = start::Config::new().anchored(Anchored::Yes);
        let start = automaton.start_state(&anchored).map_err(|error| error.to_string())?;
        let (steps, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(Arc::new(Self { automaton, start, deadline, steps, is_over }))
    }
}

impl Automaton for Pattern {
    type State = StateID;

    fn start(&self) -> StateID {
        self.start
    }

    fn is_match(&self, state: &StateID) -> bool {
        self.automaton.is_match_state(self.automaton.next_eoi_state(*state))
    }

    fn can_match(&self, state: &StateID) -> bool {
        // One thread counts. The search ends with an error at the next check of the deadline.
        let steps = self.steps.load(Ordering::Relaxed).wrapping_add(1);
        self.steps.store(steps, Ordering::Relaxed);
        if steps.is_multiple_of(STEPS_BETWEEN) && self.deadline.check().is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        !self.automaton.is_dead_state(*state) && !self.is_over.load(Ordering::Relaxed)
    }

    fn accept(&self, state: &StateID, byte: u8) -> StateID {
        self.automaton.next_state(*state, byte)
    }
}

/// The query for objects with a word of `field` that matches.
#[derive(Clone)]
pub(super) struct PatternQuery {
    pub(super) pattern: Arc<Pattern>,
    pub(super) field: Field,
}

impl fmt::Debug for PatternQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatternQuery").field("field", &self.field).finish_non_exhaustive()
    }
}

impl Query for PatternQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(AutomatonWeight::<Pattern>::new(self.field, Arc::clone(&self.pattern))))
    }
}

//! The resolution of a miss: which neighbor, or the object's home, is asked for it.
//!
//! All neighbors of the object's domain are asked by ICP whether they have it, while the home is being
//! reached. The first that says that it has it, or the home if it is reached before, is asked. If all
//! say that they have it not, the home is asked or the first parent that said so, whichever was
//! faster. Siblings are never asked for what they have not. A neighbor that leaves [`SILENT_MAX`]
//! queries in turn unanswered is *dead*: it is still asked, but nobody waits for it, until it answers.
//! A parent that speaks no ICP is asked for all that no neighbor says that it has, in place of the home.
//!
//! Source: TR §9; the codes are those of the original's log.
//!
//! # Differences from the original
//!
//! The home was timed by its UDP echo service, which hosts of today do not have; here it is timed by
//! connecting to it. A time holds for a minute, and a failure for ten seconds, so that a home does not have
//! a connection for each object that a neighbor gives.
//!
//! Sans-I/O.

use std::time::Duration;

use crate::icp::Opcode;

/// Time within which neighbors have to answer.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Number of queries in turn that a neighbor may leave unanswered before it counts as dead.
pub const SILENT_MAX: u32 = 10;

/// A neighbor's place in the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cache beside this one: it gives what it has.
    Sibling,
    /// A cache above this one: it fetches what it has not.
    Parent,
}

/// Why an object is requested from somebody: the codes of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A sibling has it.
    NeighborHit,
    /// A parent has it.
    ParentHit,
    /// Nobody has it, and this parent said so first, before the home was reached.
    FirstParentMiss,
    /// No neighbor says that it has it, and this parent cannot be asked whether it has.
    DefaultParent,
    /// The home was reached before any neighbor said that it has it.
    SourceFastest,
    /// Nobody has it, and the home was reached before a parent said so; or there is nobody to ask.
    Direct,
    /// No neighbor has answered in time.
    TimeoutDirect,
}

impl Code {
    /// Returns the code as the access log writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeighborHit => "NEIGHBOR_HIT",
            Self::ParentHit => "PARENT_HIT",
            Self::FirstParentMiss => "FIRST_PARENT_MISS",
            Self::DefaultParent => "DEFAULT_PARENT",
            Self::SourceFastest => "SOURCE_FASTEST",
            Self::Direct => "DIRECT",
            Self::TimeoutDirect => "TIMEOUT_DIRECT",
        }
    }
}

/// Who is asked for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The neighbor with this index.
    Neighbor(usize, Code),
    /// The object's home.
    Home(Code),
}

/// The state of a neighbor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    /// Number of its last queries, in turn, that it has not answered.
    silent: u32,
}

impl Liveness {
    /// Notes that a query was not answered as long as its answer was waited for. Those whose answers are
    /// still waited for say nothing: there may be many at once.
    pub fn was_silent(&mut self) {
        self.silent = self.silent.saturating_add(1);
    }

    /// Notes that an answer came. Returns whether it was dead.
    pub fn answered(&mut self) -> bool {
        std::mem::take(&mut self.silent) > SILENT_MAX
    }

    /// Returns whether nobody waits for its answers.
    pub fn is_dead(&self) -> bool {
        SILENT_MAX < self.silent
    }
}

/// The resolution of one miss.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The neighbors whose answers are waited for.
    waited: Vec<(usize, Kind)>,
    first_parent: Option<usize>,
    /// The parent that speaks no ICP.
    above: Option<usize>,
    is_home_reached: bool,
    choice: Option<Choice>,
}

impl Resolution {
    /// Begins the resolution; `asked` are the neighbors that are alive and were asked, `above` is the parent that
    /// cannot be asked.
    pub fn new(asked: Vec<(usize, Kind)>, above: Option<usize>) -> Self {
        let choice = asked.is_empty().then(|| without_answers(above));
        Self { waited: asked, first_parent: None, above, is_home_reached: false, choice }
    }

    /// Returns who is asked for the object, once that is known. It does not change then.
    pub fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// Returns the neighbors whose answers are waited for.
    pub fn unanswered(&self) -> impl Iterator<Item = usize> {
        self.waited.iter().map(|it| it.0)
    }

    /// Takes a neighbor's answer. One that is not waited for says nothing.
    pub fn answer(&mut self, neighbor: usize, opcode: Opcode) {
        let Some(at) = self.waited.iter().position(|(it, _)| *it == neighbor) else { return };
        let (_, kind) = self.waited.swap_remove(at);
        match (opcode, kind) {
            (Opcode::Hit, Kind::Sibling) => {
                self.choose(Choice::Neighbor(neighbor, Code::NeighborHit));
            }
            (Opcode::Hit, Kind::Parent) => {
                self.choose(Choice::Neighbor(neighbor, Code::ParentHit));
            }
            (Opcode::Miss, Kind::Parent) => {
                self.first_parent.get_or_insert(neighbor);
            }
            // Whoever does not want to fetch it, or cannot read the question, is not asked for it.
            _ => {}
        }
        if self.waited.is_empty() {
            self.choose_above(Code::Direct);
        }
    }

    /// Takes the news that the home was reached.
    pub fn home_reached(&mut self) {
        self.is_home_reached = true;
        // A parent that was faster is asked, if nobody has it.
        if self.first_parent.or(self.above).is_none() {
            self.choose(Choice::Home(Code::SourceFastest));
        }
    }

    /// Takes the news that the home cannot be reached: only a neighbor can help.
    pub fn home_failed(&mut self) {
        self.is_home_reached = false;
    }

    /// Ends the wait for neighbors.
    pub fn time_is_up(&mut self) {
        self.choose_above(Code::TimeoutDirect);
    }

    /// Chooses a parent, or with this code the home: nobody has it.
    fn choose_above(&mut self, direct: Code) {
        let first = self.first_parent.filter(|_| self.above.is_some() || !self.is_home_reached);
        self.choose(match (first, self.above) {
            (Some(parent), _) => Choice::Neighbor(parent, Code::FirstParentMiss),
            (None, Some(above)) => Choice::Neighbor(above, Code::DefaultParent),
            (None, None) => Choice::Home(direct),
        });
    }

    fn choose(&mut self, choice: Choice) {
        self.choice.get_or_insert(choice);
    }
}

/// Returns who is asked for an object where nobody can say that they have it.
pub fn without_answers(above: Option<usize>) -> Choice {
    above.map_or(Choice::Home(Code::Direct), |it| Choice::Neighbor(it, Code::DefaultParent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens, in order: an answer of a neighbor, the home is reached, or time is up.
    enum Event {
        Says(usize, Opcode),
        Home,
        Time,
    }
    use Event::{Home, Says, Time};
    use Opcode::{Hit, Miss, MissNoFetch};

    fn tell(resolution: &mut Resolution, event: &Event) {
        match event {
            Says(neighbor, opcode) => resolution.answer(*neighbor, *opcode),
            Home => resolution.home_reached(),
            Time => resolution.time_is_up(),
        }
    }

    /// Checks the choice among a sibling (0), and two parents (1, 2).
    fn check(events: &[Event], expected: Option<Choice>) {
        let asked = vec![(0, Kind::Sibling), (1, Kind::Parent), (2, Kind::Parent)];
        let mut resolution = Resolution::new(asked, None);
        events.iter().for_each(|it| tell(&mut resolution, it));
        assert_eq!(resolution.choice(), expected);
    }

    fn neighbor(index: usize, code: Code) -> Option<Choice> {
        Some(Choice::Neighbor(index, code))
    }

    #[test]
    fn the_first_that_has_it_is_asked() {
        check(&[Says(1, Miss), Says(0, Hit), Home], neighbor(0, Code::NeighborHit));
        check(&[Says(0, Miss), Says(2, Hit), Says(1, Hit)], neighbor(2, Code::ParentHit));
        check(&[Home, Says(0, Hit)], Some(Choice::Home(Code::SourceFastest)));
        check(&[Says(0, Miss), Says(1, Miss)], None);
    }

    #[test]
    fn where_nobody_has_it_the_faster_of_home_and_first_parent_is_asked() {
        let all = [Says(2, Miss), Says(0, Miss), Says(1, Miss)];
        check(&all, neighbor(2, Code::FirstParentMiss));
        check(&[Says(0, Miss), Home], Some(Choice::Home(Code::SourceFastest)));
        check(
            &[Says(2, Miss), Home, Says(0, Miss), Says(1, Miss)],
            Some(Choice::Home(Code::Direct)),
        );
        check(&[Says(2, Miss), Home, Says(0, Hit)], neighbor(0, Code::NeighborHit));
        let none = [Says(0, Miss), Says(1, MissNoFetch), Says(2, MissNoFetch)];
        check(&none, Some(Choice::Home(Code::Direct)));
    }

    #[test]
    fn silence_ends_after_a_while() {
        check(&[Says(0, Miss), Time], Some(Choice::Home(Code::TimeoutDirect)));
        check(&[Says(1, Miss), Time], neighbor(1, Code::FirstParentMiss));
        check(&[Says(9, Hit), Says(0, Miss), Says(0, Hit)], None);
        let alone = Resolution::new(Vec::new(), None);
        assert_eq!(alone.choice(), Some(Choice::Home(Code::Direct)));
    }

    #[test]
    fn a_parent_that_cannot_be_asked_takes_the_place_of_the_home() {
        let alone = Resolution::new(Vec::new(), Some(7));
        let above = neighbor(7, Code::DefaultParent);
        assert_eq!((alone.choice(), Some(without_answers(Some(7)))), (above, above));
        let asked = vec![(0, Kind::Sibling), (1, Kind::Parent)];
        let choice = |events: &[Event]| {
            let mut resolution = Resolution::new(asked.clone(), Some(7));
            events.iter().for_each(|it| tell(&mut resolution, it));
            resolution.choice()
        };
        assert_eq!(choice(&[Home, Says(0, Miss), Says(1, MissNoFetch)]), above);
        assert_eq!(choice(&[Says(0, Miss), Time]), above);
        assert_eq!(choice(&[Home, Says(0, Hit)]), neighbor(0, Code::NeighborHit));
        assert_eq!(
            choice(&[Home, Says(0, Miss), Says(1, Miss)]),
            neighbor(1, Code::FirstParentMiss)
        );
    }

    #[test]
    fn a_silent_neighbor_is_dead_until_it_answers() {
        let mut liveness = Liveness::default();
        (0..SILENT_MAX).for_each(|_| liveness.was_silent());
        assert!(!liveness.is_dead() && !liveness.answered());
        (0..=SILENT_MAX).for_each(|_| liveness.was_silent());
        assert!(liveness.is_dead());
        assert!(liveness.answered() && !liveness.is_dead());
    }
}

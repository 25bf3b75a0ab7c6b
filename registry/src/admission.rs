//! Admission: whose announcements are followed up now.
//!
//! To follow one up costs a request to a host that a stranger has named. So strangers have a budget, each address by
//! itself and all together, whatever they send; servers that are known, and are where they were, wait for nobody. A
//! server is asked once in some seconds at most, however often somebody announces it, and one that did not answer is
//! left alone for longer.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum number of addresses whose budgets are known.
const ADDRESSES_MAX: usize = 4_096;
/// Maximum number of servers of which it is known when they were asked.
const ASKED_MAX: usize = 200_000;
/// Shortest time between two requests to a server.
pub const AGAIN: Duration = Duration::from_secs(2);

/// A budget: so many at once, and again one after each pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) most: f64,
    pub(crate) per_second: f64,
}

/// What an address may spend.
const OF_ONE: Budget = Budget { most: 60.0, per_second: 0.2 };
/// What all strangers may spend.
const OF_ALL: Budget = Budget { most: 600.0, per_second: 20.0 };

/// What is left of a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purse {
    left: f64,
    at: Instant,
}

impl Purse {
    pub(crate) fn new(budget: Budget, now: Instant) -> Self {
        Self { left: budget.most, at: now }
    }

    /// Returns what is left at `now`.
    fn at(self, budget: Budget, now: Instant) -> Self {
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * budget.per_second;
        Self { left: (self.left + earned).min(budget.most), at: now }
    }

    /// Takes one, or returns after which time there is one.
    pub(crate) fn take(&mut self, budget: Budget, now: Instant) -> Result<(), Duration> {
        *self = self.at(budget, now);
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / budget.per_second));
        }
        self.left -= 1.0;
        Ok(())
    }
}

/// Why an announcement is not followed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The server was asked just now.
    Again,
    /// It did not answer just now.
    Silent(Duration),
    /// The address has announced too much.
    Own(Duration),
    /// Strangers have announced too much.
    Strangers(Duration),
}

/// The budgets.
#[derive(Debug)]
pub struct Admission {
    by_address: HashMap<IpAddr, Purse>,
    strangers: Purse,
    /// Until when each server is not asked again.
    asked: HashMap<String, Pause>,
}

/// A pause between two questions to a server.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    is_silent: bool,
}

impl Admission {
    /// Returns full budgets.
    pub fn new(now: Instant) -> Self {
        let strangers = Purse::new(OF_ALL, now);
        Self { by_address: HashMap::new(), strangers, asked: HashMap::new() }
    }

    /// Returns whether an announcement of the server `id` from an address is followed up. `is_known`: the server is
    /// known, and at the announced address.
    ///
    /// # Errors
    ///
    /// It is not; tell whoever announces to come again later.
    pub fn admit(
        &mut self,
        address: IpAddr,
        (id, is_known): (&str, bool),
        now: Instant,
    ) -> Result<(), Objection> {
        if !is_known {
            return self.spend(address, now);
        }
        if let Some(pause) = self.asked.get(id).filter(|it| now < it.until) {
            let wait = pause.until.saturating_duration_since(now);
            return Err(if pause.is_silent { Objection::Silent(wait) } else { Objection::Again });
        }
        self.pause(id, Pause { until: now + AGAIN, is_silent: false }, now);
        Ok(())
    }

    /// Leaves a server that is known alone for some time: it did not answer.
    pub fn leave_alone(&mut self, id: &str, pause: Duration, now: Instant) {
        self.pause(id, Pause { until: now + pause, is_silent: true }, now);
    }

    fn pause(&mut self, id: &str, pause: Pause, now: Instant) {
        if ASKED_MAX <= self.asked.len() {
            self.asked.retain(|_, it| now < it.until);
        }
        self.asked.insert(id.to_owned(), pause);
    }

    fn spend(&mut self, address: IpAddr, now: Instant) -> Result<(), Objection> {
        if ADDRESSES_MAX <= self.by_address.len() && !self.by_address.contains_key(&address) {
            // Whoever has a full budget again need not be known.
            self.by_address.retain(|_, it| it.at(OF_ONE, now).left < OF_ONE.most);
        }
        if self.by_address.len() < ADDRESSES_MAX || self.by_address.contains_key(&address) {
            let own = self.by_address.entry(address).or_insert_with(|| Purse::new(OF_ONE, now));
            own.take(OF_ONE, now).map_err(Objection::Own)?;
        }
        self.strangers.take(OF_ALL, now).map_err(Objection::Strangers)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(n))
    }

    #[test]
    fn strangers_are_limited_and_servers_are_not() {
        let start = net::clock::monotonic();
        let mut admission = Admission::new(start);
        let mut admitted = 0;
        for n in 0..1_000_000_u32 {
            let at = start + Duration::from_micros(u64::from(n));
            let id = n.to_string();
            admitted += u32::from(admission.admit(address(n % 10_000), (&id, false), at).is_ok());
        }
        assert!((600..=620).contains(&admitted), "{admitted} of many within a second");
        assert!(admission.by_address.len() <= ADDRESSES_MAX);
        let later = start + Duration::from_secs(1);
        for n in 0..10_000 {
            assert_eq!(admission.admit(address(1), (&format!("k{n}"), true), later), Ok(()));
        }
        assert_eq!(admission.admit(address(1), ("k1", true), later), Err(Objection::Again));
        assert_eq!(admission.admit(address(1), ("k1", true), later + AGAIN), Ok(()));
    }

    #[test]
    fn a_server_that_does_not_answer_is_left_alone() {
        let start = net::clock::monotonic();
        let mut admission = Admission::new(start);
        let pause = Duration::from_secs(60);
        assert_eq!(admission.admit(address(1), ("k", true), start), Ok(()));
        admission.leave_alone("k", pause, start);
        let later = start + Duration::from_secs(20);
        let wait = Duration::from_secs(40);
        assert_eq!(admission.admit(address(1), ("k", true), later), Err(Objection::Silent(wait)));
        // At another address it is a stranger.
        assert_eq!(admission.admit(address(1), ("k", false), later), Ok(()));
        assert_eq!(admission.admit(address(1), ("k", true), start + pause), Ok(()));
    }

    #[test]
    fn an_address_has_a_budget_that_comes_back() {
        let start = net::clock::monotonic();
        let mut admission = Admission::new(start);
        let mut admit = |from: u32, secs: u64| {
            admission.admit(address(from), ("x", false), start + Duration::from_secs(secs))
        };
        assert!((0..60).all(|_| admit(1, 0).is_ok()));
        let Err(Objection::Own(wait)) = admit(1, 0) else { panic!("the budget has no end") };
        assert_eq!(wait.as_secs(), 5);
        assert_eq!((admit(2, 0), admit(1, 5)), (Ok(()), Ok(())));
        assert!(admit(1, 5).is_err());
    }
}

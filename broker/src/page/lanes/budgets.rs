//! Budgets: what each client has spent on dear searches or on texts, and who may begin one.
//!
//! A client is a subscriber's address (`net::server::Peer::subscriber`). Its debt is the processor
//! time of its dear searches; a share of the passing time pays it back.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Debt up to which a client may begin a dear search.
pub(super) const DEBT_MAX: Duration = Duration::from_secs(5);
/// Time that pays back one unit of debt: a client may use a tenth of one processor in the long run.
const PAYBACK: u32 = 10;
/// Maximum number of dear searches that run or wait at the same time.
pub(super) const PLACES: usize = 6;
/// Maximum number of them that one client has.
pub(super) const CLIENT_PLACES: usize = 3;
/// Maximum number of clients with a debt; when there are more, no further client may begin.
const CLIENTS_MAX: usize = 16_384;
/// When to ask again if all places are taken: they are free after about this time.
const PLACE_WAIT: Duration = Duration::from_secs(2);

/// The debts of all clients.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    clients: HashMap<IpAddr, Client>,
    /// Number of taken places.
    places: usize,
    counts: DearSearches,
}

/// Numbers of dear searches since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DearSearches {
    /// How many were let in.
    pub begun: u64,
    /// How many were refused.
    pub refused: u64,
}

#[derive(Debug)]
struct Client {
    debt: Duration,
    /// The time at which the debt was `debt`.
    at: Instant,
    places: usize,
}

impl Client {
    fn debt(&self, now: Instant) -> Duration {
        self.debt.saturating_sub(now.saturating_duration_since(self.at) / PAYBACK)
    }
}

/// The reason why a client may not begin a dear search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has used too much processor time, or has too many searches under way.
    Own {
        /// The time after which it may ask again.
        retry_after: Duration,
    },
    /// All places are taken.
    Full {
        /// The time after which it may ask again.
        retry_after: Duration,
    },
}

impl Budgets {
    /// Takes a place for a search of `client`, to be given back by [`leave`](Self::leave).
    ///
    /// # Errors
    ///
    /// The client may not begin one now.
    pub(super) fn enter(&mut self, client: IpAddr, now: Instant) -> Result<(), Refusal> {
        let entered = self.take_place(client, now);
        let count = if entered.is_ok() { &mut self.counts.begun } else { &mut self.counts.refused };
        *count += 1;
        entered
    }

    fn take_place(&mut self, client: IpAddr, now: Instant) -> Result<(), Refusal> {
        if CLIENTS_MAX <= self.clients.len() {
            self.clients.retain(|_, it| it.places != 0 || !it.debt(now).is_zero());
        }
        let known = self.clients.get(&client);
        let debt = known.map_or(Duration::ZERO, |it| it.debt(now));
        if DEBT_MAX <= debt {
            return Err(Refusal::Own { retry_after: (debt - DEBT_MAX) * PAYBACK + PLACE_WAIT });
        }
        if known.is_some_and(|it| CLIENT_PLACES <= it.places) {
            return Err(Refusal::Own { retry_after: PLACE_WAIT });
        }
        if PLACES <= self.places || known.is_none() && CLIENTS_MAX <= self.clients.len() {
            return Err(Refusal::Full { retry_after: PLACE_WAIT });
        }
        self.places += 1;
        let places = known.map_or(0, |it| it.places) + 1;
        self.clients.insert(client, Client { debt, at: now, places });
        Ok(())
    }

    pub(super) fn counts(&self) -> DearSearches {
        self.counts
    }

    /// Returns whether a client has less than [`DEBT_MAX`] of debt.
    pub(super) fn may_spend(&self, client: IpAddr, now: Instant) -> bool {
        self.clients.get(&client).is_none_or(|it| it.debt(now) < DEBT_MAX)
    }

    /// Adds `used` to the debt of a client, if there is room to remember it.
    pub(super) fn spend(&mut self, client: IpAddr, used: Duration, now: Instant) {
        if used.is_zero()
            || CLIENTS_MAX <= self.clients.len() && !self.clients.contains_key(&client)
        {
            return;
        }
        let new = Client { debt: Duration::ZERO, at: now, places: 0 };
        let it = self.clients.entry(client).or_insert(new);
        (it.debt, it.at) = (it.debt(now) + used, now);
    }

    /// Gives back a place of `client`, whose search has used the processor for `used`.
    pub(super) fn leave(&mut self, client: IpAddr, used: Duration, now: Instant) {
        self.places = self.places.saturating_sub(1);
        if let Some(it) = self.clients.get_mut(&client) {
            (it.debt, it.at) = (it.debt(now) + used, now);
            it.places = it.places.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn a_client_spends_its_budget_and_earns_it_back() {
        let (mut budgets, start) = (Budgets::default(), net::clock::monotonic());
        for _ in 0..5 {
            budgets.enter(address(1), start).unwrap();
            budgets.leave(address(1), SECOND, start);
        }
        let refused = Refusal::Own { retry_after: PLACE_WAIT };
        assert_eq!(budgets.enter(address(1), start), Err(refused));
        assert_eq!(budgets.enter(address(2), start), Ok(()), "another client has its own");
        assert_eq!(budgets.enter(address(1), start + PLACE_WAIT), Ok(()));
        budgets.leave(address(1), 3 * SECOND, start + PLACE_WAIT);
        let Err(Refusal::Own { retry_after }) = budgets.enter(address(1), start + PLACE_WAIT)
        else {
            panic!("a debt of 7.8 s is too much");
        };
        assert_eq!(retry_after, 28 * SECOND + PLACE_WAIT);
        assert_eq!(budgets.enter(address(1), start + PLACE_WAIT + retry_after), Ok(()));
    }

    #[test]
    fn texts_that_take_long_are_paid_for_but_not_refused() {
        let (mut budgets, start) = (Budgets::default(), net::clock::monotonic());
        budgets.spend(address(1), Duration::ZERO, start);
        assert_eq!(budgets.clients.len(), 0);
        for _ in 0..5 {
            assert!(budgets.may_spend(address(1), start));
            budgets.spend(address(1), SECOND, start);
        }
        assert!(!budgets.may_spend(address(1), start) && budgets.may_spend(address(2), start));
        assert!(budgets.may_spend(address(1), start + SECOND));
    }

    #[test]
    fn no_client_takes_all_places_and_all_together_take_so_many() {
        let (mut budgets, now) = (Budgets::default(), net::clock::monotonic());
        for _ in 0..CLIENT_PLACES {
            budgets.enter(address(1), now).unwrap();
        }
        let own = Refusal::Own { retry_after: PLACE_WAIT };
        assert_eq!(budgets.enter(address(1), now), Err(own));
        for client in 2..2 + u32::try_from(PLACES - CLIENT_PLACES).unwrap() {
            budgets.enter(address(client), now).unwrap();
        }
        let full = Refusal::Full { retry_after: PLACE_WAIT };
        assert_eq!(budgets.enter(address(99), now), Err(full));
        assert_eq!(budgets.counts(), DearSearches { begun: PLACES as u64, refused: 2 });
        budgets.leave(address(1), Duration::ZERO, now);
        assert_eq!(budgets.enter(address(99), now), Ok(()));
    }

    #[test]
    fn a_crowd_of_clients_is_bounded_and_forgotten() {
        let (mut budgets, now) = (Budgets::default(), net::clock::monotonic());
        let last = u32::try_from(CLIENTS_MAX).unwrap();
        for client in 0..last {
            budgets.enter(address(client), now).unwrap();
            budgets.leave(address(client), SECOND, now);
        }
        let full = Refusal::Full { retry_after: PLACE_WAIT };
        assert_eq!(budgets.enter(address(last), now), Err(full));
        assert_eq!(budgets.enter(address(0), now), Ok(()), "known ones go on");
        assert_eq!(budgets.enter(address(last), now + PAYBACK * SECOND), Ok(()));
        assert_eq!(budgets.clients.len(), 2);
    }
}

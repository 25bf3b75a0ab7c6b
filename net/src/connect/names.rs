//! Names: the addresses of hosts, remembered for a short time; also that a name has none.
//!
//! The system's resolver does not tell how long its answers hold, so that all are remembered equally
//! long, and shorter than nearly all names' answers hold. An address is vetted each time when it is used.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which the addresses of a name are remembered.
const FOUND: Duration = Duration::from_secs(60);

/// Time for which it is remembered that a name has none.
const MISSING: Duration = Duration::from_secs(10);

/// Maximum number of names that are remembered.
const NAMES_MAX: usize = 4_096;

/// The addresses of a name, or why it has none.
type Answer = Result<Vec<IpAddr>, (io::ErrorKind, String)>;

/// What is known of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: Mutex<HashMap<String, (Instant, Answer)>>,
}

impl Names {
    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, Answer)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known of a name at this time.
    pub(crate) fn get(&self, name: &str, now: Instant) -> Option<io::Result<Vec<IpAddr>>> {
        let known = self.known();
        let (_, answer) = known.get(name).filter(|(until, _)| now < *until)?;
        Some(answer.clone().map_err(|(kind, message)| io::Error::new(kind, message)))
    }

    /// Remembers an answer that came at this time.
    pub(crate) fn put(&self, name: &str, answer: &io::Result<Vec<IpAddr>>, now: Instant) {
        let for_time = if answer.is_ok() { FOUND } else { MISSING };
        let answer = match answer {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err((error.kind(), error.to_string())),
        };
        let mut known = self.known();
        if NAMES_MAX <= known.len() {
            known.retain(|_, (until, _)| now < *until);
            if NAMES_MAX <= known.len() {
                known.clear();
            }
        }
        known.insert(name.to_owned(), (now + for_time, answer));
    }

    /// Forgets a name whose addresses have turned out to lead nowhere.
    pub(crate) fn forget(&self, name: &str) {
        self.known().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_remembered_for_their_time() {
        let (names, now) = (Names::default(), crate::clock::monotonic());
        let (address, missing) = (IpAddr::from([192, 0, 2, 1]), io::ErrorKind::NotFound);
        names.put("a", &Ok(vec![address]), now);
        names.put("b", &Err(io::Error::new(missing, "no such name")), now);
        let found = |name: &str, later: Duration| names.get(name, now + later);
        assert_eq!(found("a", FOUND / 2).unwrap().unwrap(), [address]);
        assert!(found("a", FOUND).is_none() && found("c", Duration::ZERO).is_none());
        let error = found("b", MISSING / 2).unwrap().unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (missing, "no such name"));
        assert!(found("b", MISSING).is_none());
        names.forget("a");
        assert!(found("a", Duration::ZERO).is_none());
    }

    #[test]
    fn their_number_is_bounded() {
        let (names, now) = (Names::default(), crate::clock::monotonic());
        for n in 0..3 * NAMES_MAX {
            names.put(&n.to_string(), &Ok(Vec::new()), now);
        }
        assert!(names.known().len() <= NAMES_MAX);
    }
}

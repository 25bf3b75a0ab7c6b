//! Locks that a fault elsewhere does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whatever became of the thread that held the lock before: what these locks guard is whole
/// between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

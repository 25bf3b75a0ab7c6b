//! Work that may block, off the runtime's threads.

use crate::error::Error;

/// Runs `work` on a thread that may block, and waits for it.
///
/// # Errors
///
/// Those of `work`; [`Error::Worker`] if it panicked or the runtime is stopping.
pub(crate) async fn blocking<T, E>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    E: Send + 'static,
    Error: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(Error::from),
        Err(error) => Err(Error::Worker { what: format!("{what}: {error}") }),
    }
}

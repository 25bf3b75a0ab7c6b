//! Work that may block, on threads that are not those of the async runtime.

use crate::error::Error;

/// Runs `work` on a thread that may block, and waits for it.
///
/// # Errors
///
/// The errors of `work`; [`Error::Worker`] if `work` panicked or the runtime is stopping.
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

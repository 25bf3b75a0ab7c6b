//! Clients and server glue shared by every daemon: HTTP with its limits, the guard against requests
//! to addresses that a stranger should not reach, keys and signatures, shutdown, and the one clock.
//!
//! Whatever goes over a socket passes here, so that limits, time-outs and the guard are in one
//! place. The crate knows nothing of SOIF, collections or daemons.

pub mod address;
pub mod body;
pub mod client;
pub mod clock;
pub mod connect;
pub mod error;
mod framing;
pub mod guard;
pub mod host;
pub mod identity;
pub mod pace;
pub mod peer;
mod pool;
mod response;
mod room;
pub mod sendfile;
pub mod server;
mod session;
pub mod shutdown;
mod stream;
pub mod tally;
pub mod tls;
mod wire;

pub use error::Error;

//! Tunnels: bytes between a client and a host, as they are (RFC 9110 §9.3.6).

use net::connect::Dialed;
use net::server::Tunnel;
use net::shutdown::Shutdown;

/// Carries the bytes of a tunnel in both directions, until one end closes or `stop` starts. Returns
/// how many bytes went to the host and came from it.
pub(crate) async fn carry(tunnel: Tunnel, to: Dialed, stop: Shutdown) -> (u64, u64) {
    let mut there = to.stream;
    let carrying = async {
        let mut here = tunnel.open().await?;
        tokio::io::copy_bidirectional(&mut here, &mut there).await
    };
    tokio::select! {
        () = stop.started() => (0, 0),
        carried = carrying => carried.unwrap_or_else(|error| {
            tracing::debug!(%error, "a tunnel ended");
            (0, 0)
        }),
    }
}

//! The user at the other end of a connection within this machine.
//!
//! Source: proc_net(5), the kernel's `net/ipv4/tcp_ipv4.c`: the table of all connections, with the
//! user of each end's socket. It cannot be forged, and holds while the connection lives. Other
//! systems have no such table, and some sandboxes hide it: there every user of the machine counts.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use http::StatusCode;
use net::server::Socket;

/// The tables of the system. A client's socket may be one of IPv6 that speaks IPv4.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Most that is read of a table, in bytes: about 400,000 connections.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// What a client of another user reads.
const REFUSAL: &str = "This is served for another user of this machine alone. If you should see it, ask \
                       that user to name an address: harvest up --listen 127.0.0.1:8501\n";

/// Lets only this process's user make requests at a listener within this machine.
pub(crate) fn for_user_alone(router: Router, own: SocketAddr) -> Router {
    let guard = move |request: Request, next: Next| async move {
        let peer = request.extensions().get::<Socket>().map(|it| it.0);
        match peer {
            Some(peer) if is_user(peer, own).await => next.run(request).await,
            _ => (StatusCode::FORBIDDEN, REFUSAL).into_response(),
        }
    };
    router.layer(middleware::from_fn(guard))
}

/// Returns whether the socket at `peer`, which is connected to `own` of this process, is of the user
/// of this process, or of root, who may do everything.
pub(super) async fn is_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let look = move || is_same_user(peer, own);
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

/// Does the same. Blocks.
fn is_same_user(peer: SocketAddr, own: SocketAddr) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let tables: Vec<File> = TABLES.into_iter().filter_map(|it| File::open(it).ok()).collect();
    is_in(tables, peer, own)
}

/// Returns whether the user of this process, or root, has the socket at `peer` by one of `tables`;
/// true if there are none.
fn is_in(tables: Vec<impl Read>, peer: SocketAddr, own: SocketAddr) -> bool {
    let user = rustix::process::geteuid().as_raw().to_string();
    let is_hidden = tables.is_empty();
    let found = tables.into_iter().find_map(|table| {
        let lines = BufReader::new(table.take(TABLE_BYTES_MAX)).lines().map_while(Result::ok);
        user_in(lines, peer, own)
    });
    found.map_or(is_hidden, |it| it == user || it == "0")
}

/// Returns the user in the line of a table about the socket at `peer`, connected to `own`.
fn user_in(
    lines: impl Iterator<Item = String>,
    peer: SocketAddr,
    own: SocketAddr,
) -> Option<String> {
    let (peer, own) = (entry(peer), entry(own));
    lines.into_iter().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, remote) = (words.nth(1)?, words.next()?);
        // Then come the state, the queues, the timer and its count.
        let user = words.nth(4)?;
        (is_at(local, &peer) && is_at(remote, &own)).then(|| user.to_owned())
    })
}

/// Returns whether an address of a table is `entry`, or that one as IPv6 (RFC 4291 §2.5.5.2).
fn is_at(address: &str, entry: &str) -> bool {
    let front = address.strip_suffix(entry);
    front.is_some_and(|it| it.is_empty() || it == "0000000000000000FFFF0000")
}

/// Returns an address as in the tables: groups of four bytes as the machine's integers.
fn entry(address: SocketAddr) -> String {
    let bytes = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let groups = bytes.chunks_exact(4).filter_map(|it| it.try_into().ok());
    let groups: String = groups.map(|it| format!("{:08X}", u32::from_ne_bytes(it))).collect();
    format!("{groups}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use tower::ServiceExt as _;

    use super::*;

    #[test]
    fn a_connection_of_this_user_is_known() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let own = listener.local_addr().unwrap();
            let client = TcpStream::connect(own).unwrap();
            let peer = client.local_addr().unwrap();
            assert!(is_same_user(peer, own), "{address}");
            // The listener is connected to nobody.
            assert_eq!(is_same_user(own, own), !cfg!(target_os = "linux"), "{address}");
        }
    }

    #[test]
    fn hidden_tables_refuse_nobody() {
        let at: SocketAddr = "127.0.0.1:9501".parse().unwrap();
        assert!(is_in(Vec::<&[u8]>::new(), at, at));
        assert!(!is_in(vec![&b"  sl  local_address\n"[..]], at, at));
    }

    #[tokio::test]
    async fn only_a_known_connection_of_this_user_is_served() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let client = TcpStream::connect(own).unwrap();
        let router = Router::new().route("/", axum::routing::get(async || "all"));
        let router = for_user_alone(router, own);
        for (peer, status) in [
            (Some(client.local_addr().unwrap()), StatusCode::OK),
            (cfg!(target_os = "linux").then_some(own), StatusCode::FORBIDDEN),
            (None, StatusCode::FORBIDDEN),
        ] {
            let mut request = Request::get("/").body(axum::body::Body::empty()).unwrap();
            request.extensions_mut().extend(
                peer.map(|it| {
                    let mut with = http::Extensions::new();
                    with.insert(Socket(it));
                    with
                })
                .unwrap_or_default(),
            );
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status, "{peer:?}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_line_of_the_peer_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:251D 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n\
            1: 0100007F:D431 0100007F:251D 01 00000000:00000000 00:00000000 00000000  1001        0 2 1\n\
            2: 0000000000000000FFFF00000100007F:D432 0000000000000000FFFF00000100007F:251D 01 0:0 00:0 0  1002 0 3 1\n";
        let user = |peer: &str, own: &str| {
            let lines = table.lines().map(str::to_owned);
            user_in(lines, peer.parse().unwrap(), own.parse().unwrap())
        };
        assert_eq!(user("127.0.0.1:54321", "127.0.0.1:9501").as_deref(), Some("1001"));
        assert_eq!(user("127.0.0.1:54322", "127.0.0.1:9501").as_deref(), Some("1002"));
        assert_eq!(user("127.0.0.1:54323", "127.0.0.1:9501"), None);
    }
}

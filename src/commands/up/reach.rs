//! The reach of `harvest up`: the addresses of its page, and the desktop's opener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Stdio;

/// Addresses for documentation (RFC 5737, RFC 3849): nothing is sent there. The system tells which
/// of its own addresses it would send from.
const ELSEWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Returns the URL of a listener for this machine.
pub(super) fn here(mut listen: SocketAddr) -> String {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{listen}/")
}

/// Returns the URLs at which other machines reach a listener, as far as the system knows them.
pub(super) fn elsewhere(listen: SocketAddr) -> Vec<String> {
    let ips = match listen.ip() {
        ip if ip.is_loopback() => Vec::new(),
        ip if ip.is_unspecified() => ELSEWHERE.into_iter().filter_map(own_address).collect(),
        ip => vec![ip],
    };
    // An IPv4 listener is not reached by IPv6.
    let ips = ips.into_iter().filter(|it| it.is_ipv4() || listen.is_ipv6());
    ips.map(|ip| format!("http://{}/", SocketAddr::new(ip, listen.port()))).collect()
}

/// Returns this machine's address on the way to `other`.
fn own_address(other: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if other.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Connecting a UDP socket sends nothing.
    socket.connect((other, 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

/// Returns the desktop's opener; `None` without a screen.
pub(super) fn opener() -> Option<&'static str> {
    let set = |name| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    match () {
        () if cfg!(target_os = "macos") => Some("open"),
        () if set("DISPLAY") || set("WAYLAND_DISPLAY") => Some("xdg-open"),
        () => None,
    }
}

/// Opens a page in the user's browser, if there is a screen.
pub(super) fn open(address: &str) {
    let Some(opener) = opener() else { return };
    let mut command = tokio::process::Command::new(opener);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C, and the end of the terminal, are not for the browser.
    command.process_group(0);
    if let Err(error) = command.spawn() {
        tracing::info!(opener, %error, "the page cannot be opened");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_reach_only_a_public_listener() {
        let check = |listen: &str, here_expected: &str, expected: &[&str]| {
            let listen = listen.parse().unwrap();
            assert_eq!(here(listen), here_expected);
            assert_eq!(elsewhere(listen), expected);
        };
        check("127.0.0.1:1", "http://127.0.0.1:1/", &[]);
        check("[::1]:1", "http://[::1]:1/", &[]);
        check("192.0.2.7:8501", "http://192.0.2.7:8501/", &["http://192.0.2.7:8501/"]);
        assert_eq!(here("0.0.0.0:2".parse().unwrap()), "http://127.0.0.1:2/");
        assert_eq!(here("[::]:2".parse().unwrap()), "http://[::1]:2/");
        let all = elsewhere("0.0.0.0:2".parse().unwrap());
        assert!(all.iter().all(|it| !it.contains("127.0.0.1") && !it.contains('[')), "{all:?}");
    }
}

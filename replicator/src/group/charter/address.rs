//! Addresses of members.
//!
//! Sans-I/O.

use std::fmt;
use std::net::IpAddr;

/// Longest address, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 255;

/// A member's host name or IP address, and port: `example.org:4000`, `[2001:db8::1]:4000`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Box<str>);

/// Text that is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: it has to be host:port, of at most {ADDRESS_BYTES_MAX} bytes")]
pub struct ParseAddressError(String);

impl Address {
    /// Takes the text if it is an address.
    pub fn new(text: &str) -> Result<Self, ParseAddressError> {
        let error = || ParseAddressError(text.chars().take(ADDRESS_BYTES_MAX).collect());
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let is_host = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_');
        let is_bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_known = match is_bracketed {
            Some(ip) => ip.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_host),
        };
        let is_port = !port.starts_with(['0', '+']) && port.parse::<u16>().is_ok();
        let is_address = is_known && is_port && text.len() <= ADDRESS_BYTES_MAX;
        if is_address { Ok(Self(text.into())) } else { Err(error()) }
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host if it is an IP address.
    pub fn ip(&self) -> Option<IpAddr> {
        let (host, _) = self.0.rsplit_once(':')?;
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

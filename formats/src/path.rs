//! Paths in URLs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Bytes that are escaped: all but unreserved characters (RFC 3986 §2.3), the slash, and a few that are
/// harmless in a path and common in names.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'+')
    .remove(b',')
    .remove(b'=')
    .remove(b'@')
    .remove(b':');

/// Percent-encodes a path (or a part of one) so that decoding gives the same bytes back.
pub fn encode(path: &OsStr) -> String {
    percent_encode(path.as_bytes(), ESCAPED).to_string()
}

//! Path patterns: `*` for any characters, and `$` for the end.
//!
//! Source: RFC 9309 §2.2.3.
//!
//! Sans-I/O.

use crate::percent;

/// Returns a pattern in normal form; a `$` that is not at its end means itself.
pub(super) fn normal(pattern: &[u8]) -> Box<str> {
    let (inner, end) = match pattern.strip_suffix(b"$") {
        Some(inner) => (inner, "$"),
        None => (pattern, ""),
    };
    let mut out = String::with_capacity(pattern.len());
    percent::normalize(inner, |byte| byte == b'$', &mut out);
    out.push_str(end);
    out.into()
}

/// Returns whether a pattern matches a path from its beginning. Both are in normal form. Takes time
/// in proportion to their lengths, since each part is looked for once, from left to right.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(inner) => (inner, true),
        None => (pattern, false),
    };
    let (first, parts) = match pattern.split_once('*') {
        Some((first, rest)) => (first, Some(rest)),
        None => (pattern, None),
    };
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let Some(parts) = parts else { return !is_whole || rest.is_empty() };
    let (parts, last) = match parts.rsplit_once('*') {
        Some((parts, last)) => (Some(parts), last),
        None => (None, parts),
    };
    for part in parts.into_iter().flat_map(|it| it.split('*')) {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    if is_whole { rest.ends_with(last) } else { rest.contains(last) }
}

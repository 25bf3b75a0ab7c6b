//! The status that a cache gives to an answer: `Cache-Status`, how it came about.
//!
//! Source: RFC 9211.
//!
//! Sans-I/O.

use std::fmt::Write as _;

use http::StatusCode;

use super::choice::Forward;
use super::storing::NotStored;

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From what is stored, with the seconds for which it is still fresh (negative: it is stale).
    Hit {
        /// The seconds.
        ttl: i64,
        /// Whether it is used because the origin fails.
        fails: bool,
    },
    /// From the origin, or another cache.
    Forwarded {
        /// Why.
        why: Forward,
        /// The status of its answer; `None`: it gave none.
        status: Option<StatusCode>,
        /// Whether the answer is stored; or else why not, if it could be.
        stored: Result<(), Option<NotStored>>,
        /// Whether the request waited for that of another client.
        collapsed: bool,
    },
}

/// Returns the value of `Cache-Status` of the cache `name`.
pub fn cache_status(name: &str, source: Source) -> String {
    let mut out = quoted(name);
    let detail = match source {
        Source::Hit { ttl, fails } => {
            // Writing to a string cannot fail.
            let _ = write!(out, "; hit; ttl={ttl}");
            fails.then(|| "the origin fails".to_owned())
        }
        Source::Forwarded { why, status, stored, collapsed } => {
            let _ = write!(out, "; fwd={}", why.name());
            if let Some(status) = status {
                let _ = write!(out, "; fwd-status={}", status.as_u16());
            }
            out += if stored.is_ok() { "; stored" } else { "" };
            out += if collapsed { "; collapsed" } else { "" };
            stored.err().flatten().map(|it| it.to_string())
        }
    };
    if let Some(detail) = detail {
        out += "; detail=";
        out += &quoted(&detail);
    }
    out
}

/// Returns a string of RFC 9651 §3.3.3; what it cannot hold is left out.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars().filter(|it| (' '..='~').contains(it)) {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_an_answer_came_about() {
        let check = |name, source, expected: &str| assert_eq!(cache_status(name, source), expected);
        check("a \"b\"é", Source::Hit { ttl: 3, fails: false }, r#""a \"b\""; hit; ttl=3"#);
        let stale = r#""c"; hit; ttl=-3; detail="the origin fails""#;
        check("c", Source::Hit { ttl: -3, fails: true }, stale);
        let why = Forward::UriMiss;
        let source =
            |status, stored, collapsed| Source::Forwarded { why, status, stored, collapsed };
        check("c", source(None, Err(None), false), r#""c"; fwd=uri-miss"#);
        let stored = r#""c"; fwd=uri-miss; fwd-status=200; stored; collapsed"#;
        check("c", source(Some(StatusCode::OK), Ok(()), true), stored);
        let not = r#""c"; fwd=uri-miss; detail="the answer says no-store""#;
        check("c", source(None, Err(Some(NotStored::NoStore)), false), not);
    }
}

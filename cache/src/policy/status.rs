//! What a cache says of itself on an answer: `Cache-Status`, `Age` and `Via`.
//!
//! Source: RFC 9211, RFC 9111 §5.1, RFC 9110 §7.6.3.
//!
//! Sans-I/O.

use std::fmt::Write as _;

use http::StatusCode;

use super::choice::Forward;

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From what is stored, with the seconds for which it is still fresh (negative: it is stale).
    Hit {
        /// The seconds.
        ttl: i64,
    },
    /// From the origin, or another cache.
    Forwarded {
        /// Why.
        why: Forward,
        /// The status of its answer; `None`: it gave none.
        status: Option<StatusCode>,
        /// Whether the answer is stored.
        stored: bool,
        /// Whether the request waited for that of another client.
        collapsed: bool,
    },
}

/// Returns the value of `Cache-Status` of the cache `name`.
pub fn cache_status(name: &str, source: Source, detail: Option<&str>) -> String {
    let mut out = quoted(name);
    match source {
        Source::Hit { ttl } => {
            // Writing to a string cannot fail.
            let _ = write!(out, "; hit; ttl={ttl}");
        }
        Source::Forwarded { why, status, stored, collapsed } => {
            let _ = write!(out, "; fwd={}", why.name());
            if let Some(status) = status {
                let _ = write!(out, "; fwd-status={}", status.as_u16());
            }
            out += if stored { "; stored" } else { "" };
            out += if collapsed { "; collapsed" } else { "" };
        }
    }
    if let Some(detail) = detail {
        out += "; detail=";
        out += &quoted(detail);
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
        assert_eq!(
            cache_status("a \"b\"", Source::Hit { ttl: -3 }, None),
            r#""a \"b\""; hit; ttl=-3"#
        );
        let mut source = Source::Forwarded {
            why: Forward::UriMiss,
            status: None,
            stored: false,
            collapsed: false,
        };
        assert_eq!(cache_status("c", source, Some("é!")), r#""c"; fwd=uri-miss; detail="!""#);
        if let Source::Forwarded { status, stored, collapsed, .. } = &mut source {
            (*status, *stored, *collapsed) = (Some(StatusCode::OK), true, true);
        }
        let seen = cache_status("c", source, None);
        assert_eq!(seen, r#""c"; fwd=uri-miss; fwd-status=200; stored; collapsed"#);
    }
}

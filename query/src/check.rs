//! Checks of values and regular expressions in queries, with messages for mistakes.
//!
//! Sans-I/O.

use super::{Bound, Kind, Value, kind, number, period};

/// Longest regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 256;
/// Largest compiled regular expression, in bytes; bounds the time in which an automaton is made.
const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Checks that `value` makes sense for `field`; an error describes the mistake.
pub(super) fn value(field: &str, value: &Value) -> Result<(), String> {
    let (what, reads): (&str, fn(&str) -> bool) = match kind(field) {
        Some(Kind::Text) => {
            return match value {
                Value::Range(..) => {
                    Err(format!("{field} has no order: ranges are for numbers and dates"))
                }
                _ => Ok(()),
            };
        }
        Some(Kind::Number) => ("a number such as 2024 or 10k", |text| number(text).is_some()),
        Some(Kind::Date) => {
            ("a date such as 2024, 2024-03 or 2024-03-09", |text| period(text).is_some())
        }
        None => ("a number or a date", |text| number(text).is_some() || period(text).is_some()),
    };
    let bound = |bound: &Bound| match bound {
        Bound::Open => true,
        Bound::Inclusive(text) | Bound::Exclusive(text) => reads(text),
    };
    let fits = match value {
        Value::Range(low, high) => bound(low) && bound(high),
        Value::Present => true,
        _ if kind(field).is_none() => true,
        Value::Word(text) | Value::Phrase(text) => reads(text),
        Value::Prefix(_) | Value::Fuzzy(..) | Value::Regex(_) => false,
    };
    if fits { Ok(()) } else { Err(format!("expected {what} for {field}")) }
}

/// Checks a regular expression; an error describes the mistake.
pub(super) fn regex(pattern: &str) -> Result<(), String> {
    if PATTERN_BYTES_MAX < pattern.len() {
        return Err(format!("the regular expression is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let compiled = regex::RegexBuilder::new(pattern)
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .nest_limit(32)
        .build();
    match compiled {
        Ok(_) => unsupported(pattern).map_or(Ok(()), |part| {
            Err(format!(
                "{part} is not known here: a regular expression is held against whole words, from beginning to end"
            ))
        }),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err("the regular expression is too large; write a simpler one".to_owned())
        }
        Err(error) => {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            Err(format!("not a regular expression: {reason}"))
        }
    }
}

/// Finds syntax that an automaton over whole words lacks: anchors, word borders, lazy repetition.
fn unsupported(pattern: &str) -> Option<String> {
    let mut chars = pattern.chars().peekable();
    let (mut in_class, mut repeated) = (false, false);
    while let Some(c) = chars.next() {
        let mut repeats = false;
        match c {
            '\\' => {
                let escaped = chars.next()?;
                if !in_class && matches!(escaped, 'b' | 'B' | 'A' | 'z' | '<' | '>') {
                    return Some(format!("\\{escaped}"));
                }
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '^' | '$' if !in_class => return Some(c.to_string()),
            '?' if !in_class && repeated => return Some("lazy repetition".to_owned()),
            '*' | '+' | '?' | '}' if !in_class => repeats = true,
            _ => {}
        }
        repeated = repeats;
    }
    None
}

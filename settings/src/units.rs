//! Values with units, and the nearest known name for a misspelled one.
//!
//! Sans-I/O.

use std::time::Duration;

/// Units of time: the names of each, and its length in seconds. There is no month: its length
/// varies.
const TIME_UNITS: &[(&[&str], f64)] = &[
    (&["ms", "millisecond", "milliseconds"], 0.001),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
    (&["w", "week", "weeks"], 604_800.0),
];

/// Units of size in lower case, each with its size in bytes. `Mb` is read as `MB`: no setting is in
/// bits.
const SIZE_UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("byte", 1),
    ("bytes", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Maximum time of a setting, in seconds: 1,000 years of 366 days, so that sums do not overflow.
const SECONDS_MAX: f64 = 1_000.0 * 366.0 * 86_400.0;

/// Reads a length of time: `30 days`, `5 min`, `1 h 30 min`, `250ms`, `1.5 hours`.
///
/// Returns `None` for anything else: no unit, an unknown unit, a sign, more than 1,000 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest)?;
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let (_, scale) = TIME_UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        seconds += number.parse::<f64>().ok()? * scale;
        rest = after.trim_start();
    }
    if SECONDS_MAX < seconds { None } else { Duration::try_from_secs_f64(seconds).ok() }
}

/// Reads a size in bytes: `64 MiB`, `10 MB`, `1.5 GiB`, `512 bytes`.
///
/// Returns `None` for anything else: no unit, an unknown unit, a sign, more than `u64` holds, a
/// fraction that is not a whole number of bytes.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    let unit = unit.to_ascii_lowercase();
    let (_, scale) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let Some((whole, fraction)) = number.split_once('.') else {
        return number.parse::<u64>().ok()?.checked_mul(*scale);
    };
    let digits = u32::try_from(fraction.len()).ok()?;
    let denominator = 10_u64.checked_pow(digits)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(*scale)?;
    if part % denominator != 0 {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(*scale)?.checked_add(part / denominator)
}

/// Splits `64 MiB` into `64` and `MiB`; the number has digits and at most one inner dot.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let len = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(len);
    let well_formed = match number.split_once('.') {
        Some((whole, fraction)) => {
            !whole.is_empty() && !fraction.is_empty() && !fraction.contains('.')
        }
        None => !number.is_empty(),
    };
    well_formed.then(|| (number, rest.trim_start()))
}

/// Returns the name in `known` that is nearest to `name`, or `None` if none is near.
///
/// Near means: at most one edit (a letter added, left out or changed, or two neighbors swapped) for
/// every three letters of `name`, but at least one edit. Case, `-` and `_` are ignored.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = folded(name);
    let edits_max = (plain.len() / 3).max(1);
    let ranked = known.into_iter().map(|it| (edits(&plain, &folded(it)), it));
    ranked.filter(|(count, _)| *count <= edits_max).min().map(|(_, it)| it)
}

fn folded(name: &str) -> Vec<char> {
    // Further letters are ignored: the time of a comparison is quadratic in the length.
    const CHARS_MAX: usize = 64;
    let letters = name.chars().filter(|c| *c != '-' && *c != '_').take(CHARS_MAX);
    letters.flat_map(char::to_lowercase).collect()
}

/// Number of edits between two words (Damerau–Levenshtein, restricted to adjacent swaps).
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if 0 < i && 0 < j && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_duration(text: &str, expected: Option<f64>) {
        assert_eq!(parse_duration(text).map(|it| it.as_secs_f64()), expected, "{text:?}");
    }

    #[test]
    fn durations() {
        check_duration("30 days", Some(30.0 * 86_400.0));
        check_duration("5 min", Some(300.0));
        check_duration("5min", Some(300.0));
        check_duration(" 1 h 30 min ", Some(5_400.0));
        check_duration("250 ms", Some(0.25));
        check_duration("1.5 hours", Some(5_400.0));
        check_duration("0 s", Some(0.0));
        for wrong in ["", "5", "min", "5 mim", "-5 min", "5 min x", "1..5 h", "1 month", "1e3 s"] {
            check_duration(wrong, None);
        }
        check_duration("9999999999 days", None);
    }

    fn check_bytes(text: &str, expected: Option<u64>) {
        assert_eq!(parse_bytes(text), expected, "{text:?}");
    }

    #[test]
    fn sizes() {
        check_bytes("64 MiB", Some(64 << 20));
        check_bytes("64mib", Some(64 << 20));
        check_bytes("10 MB", Some(10_000_000));
        check_bytes("1.5 KiB", Some(1_536));
        check_bytes("512 bytes", Some(512));
        check_bytes("0 B", Some(0));
        for wrong in ["", "64", "MiB", "64 MIBs", "-1 B", "0.5 B", "99999999999 TiB", "1.2.3 MB"] {
            check_bytes(wrong, None);
        }
    }

    fn check_nearest(name: &str, expected: Option<&str>) {
        let known = ["listen", "admin_listen", "name", "data", "base_url"];
        assert_eq!(nearest(name, known), expected, "{name:?}");
    }

    #[test]
    fn nearest_names() {
        check_nearest("lisen", Some("listen"));
        check_nearest("lsiten", Some("listen"));
        check_nearest("Admin-Listen", Some("admin_listen"));
        check_nearest("nmae", Some("name"));
        check_nearest("baseurl", Some("base_url"));
        check_nearest("colour", None);
        check_nearest("x", None);
    }
}

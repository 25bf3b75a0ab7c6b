//! Formatting of numbers for people, with no more digits than distinguish them.

use std::fmt;

use crate::templates::group;

/// Values from here on are written with an exponent, where that is shorter.
const LARGE: f64 = 1e6;

/// Values below this are written with an exponent, where that is shorter.
const SMALL: f64 = 1e-3;

/// A length in units, written with one decimal at most.
pub(super) struct Units(pub f64);

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// Formats `value`, a multiple of `step`, with the digits that distinguish such multiples; as per
/// cent if `percent`. `step` is above 0.
pub(super) fn show(value: f64, step: f64, percent: bool) -> String {
    let (value, step, unit) = match percent {
        // A no-break space.
        true => (value * 100.0, step * 100.0, "\u{a0}%"),
        false => (value, step, ""),
    };
    let mut shown = plain(value, step);
    let size = value.abs();
    if size >= LARGE || (size < SMALL && shown != "0") {
        let other = scientific(size, step);
        if other.chars().count() < shown.chars().count() {
            shown = other;
        }
    }
    let sign = if value < 0.0 && shown != "0" { "−" } else { "" };
    format!("{sign}{shown}{unit}")
}

/// Returns the size of `value`, with the decimals that `step` needs.
fn plain(value: f64, step: f64) -> String {
    let digits = trimmed(&format!("{:.*}", decimals(step), value.abs()));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    // Numbers of four digits may be years, and have no separator.
    if whole.len() < 5 {
        return digits;
    }
    group(whole) + rest
}

/// Returns `size`, which is above 0, as a mantissa and a power of ten.
fn scientific(size: f64, step: f64) -> String {
    let digits = decimals(step / 10f64.powf(size.log10().floor()));
    let shown = format!("{size:.digits$e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let power: String = exponent.chars().map(raised).collect();
    match trimmed(mantissa).as_str() {
        "1" => format!("10{power}"),
        mantissa => format!("{mantissa}×10{power}"),
    }
}

/// Returns the number of decimals that distinguish multiples of `step`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within 0 and 400 by the line itself"
)]
fn decimals(step: f64) -> usize {
    // The logarithm of 0.001 may be a little below -3.
    (-step.log10() - 1e-9).ceil().clamp(0.0, 400.0) as usize
}

fn trimmed(digits: &str) -> String {
    let kept = if digits.contains('.') { digits.trim_end_matches('0') } else { digits };
    kept.trim_end_matches('.').to_owned()
}

/// Returns a digit or a minus sign as a superscript.
fn raised(digit: char) -> char {
    let all = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    digit.to_digit(10).and_then(|it| all.chars().nth(it as usize)).unwrap_or('⁻')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_needless_digits() {
        let check = |value: f64, step: f64, expected: &str| {
            assert_eq!(show(value, step, false), expected, "{value} by {step}");
        };
        check(0.0, 0.2, "0");
        check(-0.0, 0.2, "0");
        check(0.1 + 0.2, 0.1, "0.3");
        check(1.0, 0.5, "1");
        check(0.001, 0.001, "0.001");
        check(-2.5, 0.5, "−2.5");
        check(2024.0, 1.0, "2024");
        check(10_000.0, 1000.0, "10,000");
        check(123_456.5, 0.5, "123,456.5");
        check(1e6, 1e6, "10⁶");
        check(2_500_000.0, 500_000.0, "2.5×10⁶");
        check(1_000_001.0, 1.0, "1,000,001");
        check(0.0005, 0.0001, "0.0005");
        check(0.0001, 0.0001, "10⁻⁴");
        check(0.00025, 0.00005, "0.00025");
        check(0.000_005, 0.000_001, "5×10⁻⁶");
        check(-3e120, 1e120, "−3×10¹²⁰");
        check(4.5e-149, 5e-150, "4.5×10⁻¹⁴⁹");
    }

    #[test]
    fn shares_are_per_cent() {
        let check = |value: f64, step: f64, expected: &str| {
            assert_eq!(show(value, step, true), expected, "{value} by {step}");
        };
        check(0.0, 0.2, "0\u{a0}%");
        check(0.95, 0.05, "95\u{a0}%");
        check(0.07, 0.01, "7\u{a0}%");
        check(0.995, 0.005, "99.5\u{a0}%");
        check(-0.16, 0.02, "−16\u{a0}%");
    }

    #[test]
    fn coordinates_have_one_decimal_at_most() {
        let check = |value: f64, expected: &str| assert_eq!(Units(value).to_string(), expected);
        check(0.0, "0");
        check(-0.04, "0");
        check(12.34, "12.3");
        check(12.98, "13");
        check(-3.5, "-3.5");
    }
}

//! Numbers of cells as they are shown: dates by their number formats, all others in decimal.
//!
//! Source: ECMA-376 part 1 §18.8.30 (`numFmt`: built-in formats, and codes of others), §18.17.4 (dates are
//! numbers); \[MS-XLS\] 2.5.217 (`RkNumber`).
//!
//! # Differences from the specification
//!
//! * Of a format only its class counts, by its first section. Dates are shown as in ISO 8601, with a space
//!   before the time, since words would join at a `T`; numbers have no separators of thousands, no currency,
//!   and all of their 15 digits.
//! * 29 February 1900, which never was, is shown as the day after it.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Span;
use jiff::civil::{Date, date};

/// Maximum number of number formats, and of formats of cells, that are remembered.
const FORMATS_MAX: usize = 64 * 1024;
const SECONDS_A_DAY: u64 = 24 * 60 * 60;
/// Numbers from here on, and their inverses, are shown with an exponent.
const DECIMAL_END: f64 = 1e21;
/// Integers below are exact, and have at most 15 digits.
const INTEGERS_END: f64 = 1e15;

/// The class of a number format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    #[default]
    Plain,
    Percent,
    /// With zeros in front, up to this number of digits: `00000`.
    Padded(usize),
    /// A date, a time of day, or both.
    Date,
    /// Hours, minutes and seconds beyond a day: `[h]:mm`.
    Elapsed,
}

impl NumberFormat {
    fn built_in(id: u32) -> Self {
        match id {
            9 | 10 => Self::Percent,
            // Those from 27 on are dates in the languages of East Asia.
            14..=22 | 27..=36 | 45 | 47 | 50..=58 => Self::Date,
            46 => Self::Elapsed,
            _ => Self::Plain,
        }
    }

    /// Reads the first section of a format's code.
    fn of_code(code: &str) -> Self {
        // "General" in German, where the letters of dates are others: it has been seen in files.
        if code.eq_ignore_ascii_case("standard") {
            return Self::Plain;
        }
        let (mut zeros, mut has_others, mut is_percent) = (0, false, false);
        let mut chars = code.chars();
        while let Some(char) = chars.next() {
            match char.to_ascii_lowercase() {
                ';' => break,
                '"' => {
                    chars.find(|it| *it == '"');
                    has_others = true;
                }
                // An escaped character, a space as wide as one, or one that fills the cell.
                '\\' | '_' | '*' => {
                    chars.next();
                    has_others = true;
                }
                '[' => {
                    let inside: String = chars.by_ref().take_while(|it| *it != ']').collect();
                    let units = inside.to_ascii_lowercase();
                    let is_unit = |unit: char| units.chars().all(|it| it == unit);
                    if !units.is_empty() && ['h', 'm', 's'].into_iter().any(is_unit) {
                        return Self::Elapsed;
                    }
                }
                'd' | 'm' | 'y' | 'h' | 's' => return Self::Date,
                '%' => is_percent = true,
                '0' => zeros += 1,
                _ => has_others = true,
            }
        }
        match zeros {
            _ if is_percent => Self::Percent,
            2..=20 if !has_others => Self::Padded(zeros),
            _ => Self::Plain,
        }
    }

    /// Returns the number as it is shown; empty for infinity and none.
    fn show(self, number: f64, is_1904: bool) -> String {
        let shown = match self {
            Self::Plain => None,
            Self::Percent => Some(decimal(number * 100.0) + "%"),
            Self::Padded(digits) => padded(number, digits),
            Self::Date => day_and_time(number, is_1904),
            Self::Elapsed => seconds(number).map(clock),
        };
        shown.unwrap_or_else(|| decimal(number))
    }
}

/// The number formats of a workbook, and which of them its cells have.
#[derive(Debug, Default)]
pub(crate) struct NumberFormats {
    defined: HashMap<u32, NumberFormat>,
    of_cells: Vec<NumberFormat>,
    /// Whether days are counted from 1904 on, as on the first Macintosh.
    pub(crate) is_1904: bool,
}

impl NumberFormats {
    pub(crate) fn define(&mut self, id: u32, code: &str) {
        if self.defined.len() < FORMATS_MAX {
            self.defined.insert(id, NumberFormat::of_code(code));
        }
    }

    /// Defines the format with the next number, for files that do not number them; returns the number.
    pub(crate) fn define_next(&mut self, code: &str) -> u32 {
        let id = u32::try_from(self.defined.len()).unwrap_or(u32::MAX);
        self.define(id, code);
        id
    }

    /// Adds the next format of cells, which has the number format `id`.
    pub(crate) fn add_cell_format(&mut self, id: u32) {
        if self.of_cells.len() < FORMATS_MAX {
            let defined = self.defined.get(&id).copied();
            self.of_cells.push(defined.unwrap_or_else(|| NumberFormat::built_in(id)));
        }
    }

    /// Returns the class of the number format of cells with this format.
    pub(crate) fn of_cell(&self, format: usize) -> NumberFormat {
        self.of_cells.get(format).copied().unwrap_or_default()
    }

    /// Returns the number in a cell with this format as it is shown.
    pub(crate) fn show(&self, format: usize, number: f64) -> String {
        self.of_cell(format).show(number, self.is_1904)
    }
}

/// Returns a number that is packed into 30 bits.
pub(crate) fn rk(packed: u32) -> f64 {
    let number = if packed & 2 != 0 {
        f64::from(packed.cast_signed() >> 2)
    } else {
        f64::from_bits(u64::from(packed & !3) << 32)
    };
    if packed & 1 != 0 { number / 100.0 } else { number }
}

/// Returns the shortest decimal form, up to 15 digits: the noise of binary fractions lies beyond.
fn decimal(number: f64) -> String {
    if !number.is_finite() {
        return String::new();
    }
    let is_exact = number.fract() == 0.0 && number.abs() < INTEGERS_END;
    let rounded = if is_exact { None } else { format!("{number:.14e}").parse().ok() };
    let rounded = rounded.filter(|it: &f64| it.is_finite());
    // The sum has no negative zero.
    let rounded = rounded.unwrap_or(number) + 0.0;
    if rounded == 0.0 || (DECIMAL_END.recip()..DECIMAL_END).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:E}")
    }
}

fn padded(number: f64, digits: usize) -> Option<String> {
    let is_exact = number.fract() == 0.0 && (0.0..INTEGERS_END).contains(&number);
    is_exact.then(|| format!("{number:0digits$}"))
}

/// Returns a number of days in seconds; `None` for negative ones.
fn seconds(days: f64) -> Option<u64> {
    let seconds = (days * SECONDS_A_DAY as f64).round();
    Duration::try_from_secs_f64(seconds).ok().map(|it| it.as_secs())
}

fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns a date, a time of day, or both; `None` if there is no such date.
fn day_and_time(number: f64, is_1904: bool) -> Option<String> {
    const FIRST_1904: Date = date(1904, 1, 1);
    const BEFORE_1900: Date = date(1899, 12, 31);
    let seconds = seconds(number)?;
    let (days, time) = (i32::try_from(seconds / SECONDS_A_DAY).ok()?, seconds % SECONDS_A_DAY);
    if days == 0 {
        return Some(clock(time));
    }
    // From March 1900 on, all days count one more, for a leap day that never was.
    let (first, days) = match days {
        _ if is_1904 => (FIRST_1904, days),
        0..=60 => (BEFORE_1900, days),
        _ => (BEFORE_1900, days - 1),
    };
    let day = first.checked_add(Span::new().try_days(days).ok()?).ok()?;
    Some(if time == 0 { day.to_string() } else { format!("{day} {}", clock(time)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_decimal_and_without_noise() {
        for (number, expected) in [
            (4711.0, "4711"),
            (20_241_103.0, "20241103"),
            (123_456_789_012_345.0, "123456789012345"),
            (12_345_678_901_234_567_890.0, "12345678901234600000"),
            (12_345.6, "12345.6"),
            (0.1 + 0.2, "0.3"),
            (-0.0, "0"),
            (-17.5, "-17.5"),
            (1e-9, "0.000000001"),
            (1e300, "1E300"),
            (-1.5e-30, "-1.5E-30"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, ""),
            (f64::NEG_INFINITY, ""),
        ] {
            assert_eq!(decimal(number), expected, "{number}");
        }
    }

    #[test]
    fn formats_have_classes() {
        use NumberFormat::{Date, Elapsed, Padded, Percent, Plain};
        for (code, expected) in [
            ("General", Plain),
            ("Standard", Plain),
            ("#,##0.00\\ \"days\"", Plain),
            ("0.00E+00", Plain),
            ("[Red]#,##0;[Blue]-#,##0", Plain),
            ("_-* #,##0.00\\ [$\u{20ac}-407]_-", Plain),
            ("0", Plain),
            ("0000", Padded(4)),
            ("\"INV\"0000", Plain),
            ("0.0%", Percent),
            ("dd/mm/yyyy", Date),
            ("[$-409]mmm\\-yy;@", Date),
            ("H:MM AM/PM", Date),
            ("[h]:mm:ss", Elapsed),
            ("[SS].00", Elapsed),
            ("\"d", Plain),
            ("[h", Elapsed),
            ("", Plain),
        ] {
            assert_eq!(NumberFormat::of_code(code), expected, "{code}");
        }
        assert_eq!(NumberFormat::built_in(14), Date);
        assert_eq!(NumberFormat::built_in(4), Plain);
    }

    #[test]
    fn dates_are_those_of_calendars() {
        for (number, is_1904, expected) in [
            (45_418.0, false, "2024-05-06"),
            (45_418.562_5, false, "2024-05-06 13:30:00"),
            (45_417.999_999, false, "2024-05-06"),
            (0.5, false, "12:00:00"),
            (1.0, false, "1900-01-01"),
            (59.0, false, "1900-02-28"),
            (61.0, false, "1900-03-01"),
            (43_956.0, true, "2024-05-06"),
            (2_958_465.0, false, "9999-12-31"),
            (2_958_466.0, false, "2958466"),
            (-3.5, false, "-3.5"),
            (1e300, false, "1E300"),
            (f64::NAN, false, ""),
        ] {
            assert_eq!(NumberFormat::Date.show(number, is_1904), expected, "{number}");
        }
        assert_eq!(NumberFormat::Elapsed.show(1.25, false), "30:00:00");
        assert_eq!(NumberFormat::Percent.show(0.07, false), "7%");
        assert_eq!(NumberFormat::Padded(5).show(2134.0, false), "02134");
        assert_eq!(NumberFormat::Padded(5).show(-2.5, false), "-2.5");
    }

    #[test]
    fn packed_numbers() {
        for (packed, expected) in [
            (4711 << 2 | 2, 4711.0),
            (1_234_567 << 2 | 3, 12_345.67),
            ((-5_i32).cast_unsigned() << 2 | 2, -5.0),
            (0x3ff0_0000, 1.0),
            (0x3ff0_0001, 0.01),
        ] {
            assert!((rk(packed) - expected).abs() < 1e-9, "{packed:x}");
        }
    }

    proptest! {
        #[test]
        fn decimal_forms_keep_15_digits(number in any::<f64>(), class in 0..5_usize) {
            use NumberFormat::{Date, Elapsed, Padded, Percent, Plain};
            if number.is_finite() {
                let shown: f64 = decimal(number).parse().unwrap();
                prop_assert!((shown - number).abs() <= number.abs() * 1e-14, "{number} {shown}");
            }
            let format = [Plain, Percent, Padded(20), Date, Elapsed][class];
            prop_assert!(format.show(number, class == 0).len() < 330);
        }

        #[test]
        fn any_code_has_a_class(code in "[dmyhs0#%;@\"\\\\\\[\\]_* \\PC]{0,20}") {
            NumberFormat::of_code(&code);
        }
    }
}

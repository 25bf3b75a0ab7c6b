//! Table of a figure's numbers: rows under named columns.
//!
//! Sans-I/O.

use std::fmt::Write as _;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

impl Cell {
    /// Returns the number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) => None,
        }
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Cell {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// A table whose rows have one cell for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows, in the order in which the paper varies its parameters.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns the table as CSV, with a header. Numbers have up to ten significant digits; a number
    /// that is not finite, such as the ratio of two costs of 0, is an empty field.
    pub fn to_csv(&self) -> String {
        let mut text = self.columns.join(",");
        text.push('\n');
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                if 0 < at {
                    text.push(',');
                }
                // Names are this crate's own and need no quotes; writing to a string cannot fail.
                let _ = match cell {
                    Cell::Number(number) if !number.is_finite() => Ok(()),
                    Cell::Number(number) => write!(text, "{}", rounded(*number)),
                    Cell::Name(name) => write!(text, "{name}"),
                };
            }
            text.push('\n');
        }
        text
    }
}

/// Rounds a number to ten significant digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_ten_digits_and_no_more() {
        let row = [0.1 + 0.2, 439_047.233_188_4, 1e7, 1.0 / 3.0, -0.0].map(Cell::from);
        let named = vec![Cell::from("even".to_owned())];
        let table = Table { columns: vec!["theta"], rows: vec![row.to_vec(), named] };
        assert_eq!(table.to_csv(), "theta\n0.3,439047.2332,10000000,0.3333333333,-0\neven\n");
    }
}

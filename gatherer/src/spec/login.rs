//! Names and passwords in the settings of a root.
//!
//! Sans-I/O.

use net::fetch::Login;
use settings::Table;

/// Reads a name and a password, of which neither is without the other, and reports their mistakes.
/// `expected` says what the name is.
pub(super) fn read(
    table: &Table<'_>,
    name_key: &str,
    password_key: &str,
    expected: &'static str,
) -> Option<Login> {
    let (name, password) = (table.string(name_key), table.string(password_key));
    if name.is_some() != password.is_some() {
        table.require(name_key, expected);
        table.require(password_key, "its password");
    }
    let (name, password) = name.zip(password)?;
    if name.is_empty() || name.contains(':') || name.contains(char::is_control) {
        table.mistake(name_key, format!("{name:?} cannot be sent"), "a name without a colon");
    }
    if password.contains(char::is_control) {
        table.mistake(password_key, "it has a control character", "a text in one line");
    }
    Some(Login { name, password })
}

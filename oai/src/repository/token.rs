//! Resumption tokens: the list and its position, inside the token itself.
//!
//! Source: OAI-PMH §3.5 (flow control; the repository chooses the form of a token).
//!
//! A token contains its list and the last listed serial, not a number of records to skip. So the
//! last part takes no longer than the first, and the repository needs no table: a token survives
//! restarts and compactions. It does not expire by the clock. It is refused when deletions after
//! the beginning of its list may have been forgotten (at the earliest after the collection's
//! horizon, 60 days), and after a new epoch of the collection, whose serials mean other changes.
//!
//! A token consists of letters, digits, `-`, `.` and `_`, for harvesters that do not encode their
//! queries.

use soif::digest::Md5;

use super::set::SetSpec;
use crate::escape;
use crate::request::Listed;

/// Version of the form of tokens: the first field of every token.
const FORM: &str = "1";

/// Digits of the checksum in a token.
const CHECK_DIGITS: usize = 16;

/// Longest token that is read, in bytes.
pub const TOKEN_BYTES_MAX: usize = 2048;

/// The position of the collection's log, by which tokens are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The epoch of its serials.
    pub epoch: u64,
    /// The serial of the last change.
    pub serial: u64,
    /// The serial up to which deletions may have been forgotten.
    pub horizon: u64,
}

/// The selection of a list, in the repository's own terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSelection {
    /// Headers or records.
    pub listed: Listed,
    /// Metadata prefix.
    pub prefix: String,
    /// First second of change, in Unix time.
    pub from_secs: Option<i64>,
    /// Last second of change, in Unix time.
    pub until_secs: Option<i64>,
    /// The set.
    pub set: Option<SetSpec>,
}

/// A position in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListPosition {
    /// The collection's last serial at the beginning of the list.
    pub began: u64,
    /// The last listed serial.
    pub serial: u64,
    /// Number of listed records.
    pub cursor: u64,
    /// Number of all records, if counted at the beginning of the list.
    pub size: Option<u64>,
}

/// Writes the token of a list's next part.
pub(super) fn write_list(epoch: u64, chosen: &ListSelection, reached: &ListPosition) -> String {
    let listed = match chosen.listed {
        Listed::Identifiers => 'i',
        Listed::Records => 'r',
    };
    let secs = |it: Option<i64>| it.map(|it| it.to_string()).unwrap_or_default();
    let size = reached.size.map(|it| it.to_string()).unwrap_or_default();
    let (from, until) = (secs(chosen.from_secs), secs(chosen.until_secs));
    let set = chosen.set.as_ref().map(|it| plain(&it.to_string())).unwrap_or_default();
    let prefix = plain(&chosen.prefix);
    let ListPosition { began, serial, cursor, .. } = reached;
    sealed(&format!(
        "{FORM}.{listed}.{epoch:x}.{began}.{serial}.{cursor}.{size}.{from}.{until}.{set}.{prefix}"
    ))
}

/// Reads the token of a list; `None` unless the list can be continued with the log at `state`.
pub(super) fn read_list(token: &str, state: &LogPosition) -> Option<(ListSelection, ListPosition)> {
    let fields: Vec<&str> = unsealed(token)?.split('.').collect();
    let [form, listed, epoch, began, serial, cursor, size, from, until, set, prefix] =
        <[&str; 11]>::try_from(fields).ok()?;
    let listed = match listed {
        "i" => Listed::Identifiers,
        "r" => Listed::Records,
        _ => return None,
    };
    let set = match set {
        "" => None,
        set => Some(SetSpec::read(&read_plain(set)?)?),
    };
    let chosen = ListSelection {
        listed,
        prefix: read_plain(prefix)?,
        from_secs: optional(from)?,
        until_secs: optional(until)?,
        set,
    };
    let reached = ListPosition {
        began: began.parse().ok()?,
        serial: serial.parse().ok()?,
        cursor: cursor.parse().ok()?,
        size: optional(size)?,
    };
    let is_ours = form == FORM && u64::from_str_radix(epoch, 16) == Ok(state.epoch);
    let is_known = state.horizon <= reached.began
        && reached.began <= state.serial
        && reached.serial <= state.serial;
    // The spelling of numbers is checked as well.
    let is_strict = write_list(state.epoch, &chosen, &reached) == token;
    (is_ours && is_known && is_strict).then_some((chosen, reached))
}

/// Writes the token of a list of sets that continues after `last`, the set number `cursor`.
pub(super) fn write_sets(cursor: u64, last: &SetSpec) -> String {
    sealed(&format!("{FORM}.s.{cursor}.{}", plain(&last.to_string())))
}

pub(super) fn read_sets(token: &str) -> Option<(u64, SetSpec)> {
    let fields: Vec<&str> = unsealed(token)?.split('.').collect();
    let [_form, _kind, cursor, last] = <[&str; 4]>::try_from(fields).ok()?;
    let found = (cursor.parse().ok()?, SetSpec::read(&read_plain(last)?)?);
    (write_sets(found.0, &found.1) == token).then_some(found)
}

fn optional<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

fn sealed(fields: &str) -> String {
    format!("{fields}.{}", check(fields))
}

fn unsealed(token: &str) -> Option<&str> {
    let short = Some(token).filter(|it| it.len() <= TOKEN_BYTES_MAX)?;
    let (fields, found) = short.rsplit_once('.')?;
    (check(fields) == found).then_some(fields)
}

/// Returns the checksum, which detects a cut or mistyped token. It protects no secret: a forged
/// token reveals nothing that the lists do not contain.
fn check(fields: &str) -> String {
    let mut digits = Md5::of(fields.as_bytes()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

/// Escapes all bytes but letters, digits and hyphens.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a string never fails.
    let _ = escape::write(&mut out, text, '_', |it| it.is_ascii_alphanumeric() || it == b'-');
    out
}

fn read_plain(text: &str) -> Option<String> {
    escape::read(text, '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STATE: LogPosition = LogPosition { epoch: 0xab, serial: 100, horizon: 40 };

    fn chosen() -> ListSelection {
        ListSelection {
            listed: Listed::Records,
            prefix: "oai_dc".to_owned(),
            from_secs: Some(-5),
            until_secs: None,
            set: Some(SetSpec::Type("PDF".to_owned())),
        }
    }

    fn at(began: u64, serial: u64) -> ListPosition {
        ListPosition { began, serial, cursor: 10, size: Some(70) }
    }

    #[test]
    fn a_token_is_good_until_deletions_are_forgotten() {
        for (reached, is_good) in [
            (at(40, 7), true),
            (at(100, 100), true),
            (at(39, 7), false),
            (at(101, 7), false),
            (at(50, 101), false),
        ] {
            let token = write_list(STATE.epoch, &chosen(), &reached);
            let expected = is_good.then(|| (chosen(), reached));
            assert_eq!(read_list(&token, &STATE), expected, "{reached:?}");
            assert_eq!(read_list(&token, &LogPosition { epoch: 0xac, ..STATE }), None);
        }
    }

    #[test]
    fn a_changed_token_is_refused() {
        let token = write_list(STATE.epoch, &chosen(), &at(50, 60));
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(read_list(&changed, &STATE), None, "{changed}");
            assert_eq!(read_list(&token[..at], &STATE), None);
        }
        assert_eq!(read_list(&sealed("1.r.ab.+50.60.10.70.-5..type_3APDF.oai_5Fdc"), &STATE), None);
        assert_eq!(read_list(&sealed(&"1.".repeat(2000)), &STATE), None);
        assert_eq!(read_list(&write_sets(1, &SetSpec::Types), &STATE), None);
        assert_eq!(read_sets(&token), None);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(records in any::<bool>(), prefix in "[a-z_]{1,9}",
                                   from_secs in any::<Option<i64>>(), until_secs in any::<Option<i64>>(),
                                   set in prop::option::of("\\PC{1,20}"), serial in any::<u64>(),
                                   cursor in any::<u64>(), size in any::<Option<u64>>()) {
            let listed = if records { Listed::Records } else { Listed::Identifiers };
            let set = set.map(SetSpec::Gatherer);
            let chosen = ListSelection { listed, prefix, from_secs, until_secs, set };
            let reached = ListPosition { began: serial, serial, cursor, size };
            let state = LogPosition { epoch: serial, serial, horizon: serial };
            let token = write_list(serial, &chosen, &reached);
            let safe = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
            prop_assert!(token.bytes().all(safe));
            prop_assert_eq!(read_list(&token, &state), Some((chosen, reached)));
        }

        #[test]
        fn a_token_of_sets_is_read_back(cursor in any::<u64>(), name in "\\PC{1,20}") {
            let last = SetSpec::Type(name);
            prop_assert_eq!(read_sets(&write_sets(cursor, &last)), Some((cursor, last)));
        }

        #[test]
        fn any_text_is_a_token_or_none(text in "\\PC{0,80}") {
            let _ = (read_list(&text, &STATE), read_sets(&text));
            let _ = (read_list(&sealed(&text), &STATE), read_sets(&sealed(&text)));
        }
    }
}

//! Resumption tokens: where a list goes on, in the token itself.
//!
//! Source: OAI-PMH §3.5 (flow control; a token is the repository's to shape).
//!
//! A token says which list it is of and the serial that was reached, not how many records to skip: the last
//! part takes no longer than the first, and the repository keeps no table, so that a token is as good after
//! a restart or a compaction as before. It does not expire by the clock. It is refused once deletions may have
//! been forgotten that came after its list began (at the earliest after the collection's horizon, 60
//! days), and when the collection has begun a new epoch, in which serials mean other changes.
//!
//! In it are only letters, digits, `-`, `.` and `_`, so that a harvester that does not encode what it sends
//! is understood.

use soif::digest::Md5;

use super::set::SetSpec;
use crate::escape;
use crate::request::Listed;

/// What the first field of every token is; the form may change with it.
const FORM: &str = "1";

/// How many digits of the checksum stand in a token.
const CHECK_DIGITS: usize = 16;

/// Longest token that is read, in bytes.
pub const TOKEN_BYTES_MAX: usize = 2048;

/// Where the collection is, by which tokens are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which life of the collection its serials belong to.
    pub epoch: u64,
    /// The serial of the last change.
    pub serial: u64,
    /// The serial up to which deletions may be forgotten.
    pub horizon: u64,
}

/// Which records a list has, in the repository's own terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Headers or records.
    pub listed: Listed,
    /// Metadata prefix.
    pub prefix: String,
    /// Changed in this second of Unix time or later.
    pub from_secs: Option<i64>,
    /// Changed in this second of Unix time or before.
    pub until_secs: Option<i64>,
    /// In this set.
    pub set: Option<SetSpec>,
}

/// How far a list has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The collection's last serial when the list began.
    pub began: u64,
    /// The last serial that was listed.
    pub serial: u64,
    /// How many records were.
    pub cursor: u64,
    /// How many there are in all, as was counted when the list began.
    pub size: Option<u64>,
}

/// Writes the token of a list that goes on.
pub(super) fn write_list(epoch: u64, chosen: &Chosen, reached: &Reached) -> String {
    let listed = match chosen.listed {
        Listed::Identifiers => 'i',
        Listed::Records => 'r',
    };
    let secs = |it: Option<i64>| it.map(|it| it.to_string()).unwrap_or_default();
    let size = reached.size.map(|it| it.to_string()).unwrap_or_default();
    let (from, until) = (secs(chosen.from_secs), secs(chosen.until_secs));
    let set = chosen.set.as_ref().map(|it| plain(&it.to_string())).unwrap_or_default();
    let prefix = plain(&chosen.prefix);
    let Reached { began, serial, cursor, .. } = reached;
    sealed(&format!(
        "{FORM}.{listed}.{epoch:x}.{began}.{serial}.{cursor}.{size}.{from}.{until}.{set}.{prefix}"
    ))
}

/// Reads the token of a list; `None` unless it is one that goes on as `state` is.
pub(super) fn read_list(token: &str, state: &State) -> Option<(Chosen, Reached)> {
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
    let chosen = Chosen {
        listed,
        prefix: read_plain(prefix)?,
        from_secs: optional(from)?,
        until_secs: optional(until)?,
        set,
    };
    let reached = Reached {
        began: began.parse().ok()?,
        serial: serial.parse().ok()?,
        cursor: cursor.parse().ok()?,
        size: optional(size)?,
    };
    let is_ours = form == FORM && u64::from_str_radix(epoch, 16) == Ok(state.epoch);
    let is_known = state.horizon <= reached.began
        && reached.began <= state.serial
        && reached.serial <= state.serial;
    // What a number is written like is checked as well.
    let is_strict = write_list(state.epoch, &chosen, &reached) == token;
    (is_ours && is_known && is_strict).then_some((chosen, reached))
}

/// Writes the token of a list of sets that goes on after `last`, the `cursor`th.
pub(super) fn write_sets(cursor: u64, last: &SetSpec) -> String {
    sealed(&format!("{FORM}.s.{cursor}.{}", plain(&last.to_string())))
}

/// Reads it.
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

/// Tells a token from one that was cut or mistyped. No secret: who makes up a token learns nothing that is not
/// on the list.
fn check(fields: &str) -> String {
    let mut digits = Md5::of(fields.as_bytes()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

/// `text` of letters, digits, hyphens and what stands for other bytes.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // A string takes all that is written to it.
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

    const STATE: State = State { epoch: 0xab, serial: 100, horizon: 40 };

    fn chosen() -> Chosen {
        Chosen {
            listed: Listed::Records,
            prefix: "oai_dc".to_owned(),
            from_secs: Some(-5),
            until_secs: None,
            set: Some(SetSpec::Type("PDF".to_owned())),
        }
    }

    fn at(began: u64, serial: u64) -> Reached {
        Reached { began, serial, cursor: 10, size: Some(70) }
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
            assert_eq!(read_list(&token, &State { epoch: 0xac, ..STATE }), None);
        }
    }

    #[test]
    fn what_was_changed_on_the_way_is_refused() {
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
        fn what_is_written_is_read(records in any::<bool>(), prefix in "[a-z_]{1,9}",
                                   from_secs in any::<Option<i64>>(), until_secs in any::<Option<i64>>(),
                                   set in prop::option::of("\\PC{1,20}"), serial in any::<u64>(),
                                   cursor in any::<u64>(), size in any::<Option<u64>>()) {
            let listed = if records { Listed::Records } else { Listed::Identifiers };
            let set = set.map(SetSpec::Gatherer);
            let chosen = Chosen { listed, prefix, from_secs, until_secs, set };
            let reached = Reached { began: serial, serial, cursor, size };
            let state = State { epoch: serial, serial, horizon: serial };
            let token = write_list(serial, &chosen, &reached);
            let safe = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
            prop_assert!(token.bytes().all(safe));
            prop_assert_eq!(read_list(&token, &state), Some((chosen, reached)));
        }

        #[test]
        fn a_list_of_sets_goes_on_where_it_was(cursor in any::<u64>(), name in "\\PC{1,20}") {
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

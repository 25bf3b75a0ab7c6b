//! Checkpoints: the progress of a harvest as bytes. A caller that stores them with the records can
//! continue from there after any stop.
//!
//! The bytes are a magic number, a version, the fields, and a checksum over all of it. Integers
//! have seven bits in each byte, the lowest first; signed ones have the sign in the lowest bit.
//! Strings and lists have their length before them. Any other encoding is refused.

use std::collections::BTreeMap;

use crate::datestamp::Granularity;
use crate::response::Quarantined;

use super::settings::short_sum;
use super::short::Short;

/// Magic number and version at the beginning.
const MAGIC: &[u8] = b"OAIH\x03";

/// The same of the version before, which has no unreadable records at its end.
const MAGIC_BEFORE: &[u8] = b"OAIH\x02";

/// Longest checkpoint that is read, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 1 << 20;

/// Longest token, and longest other string, in bytes.
pub(super) const STRING_BYTES_MAX: usize = 32 * 1024;

/// Maximum number of records of the overlap that are remembered; beyond that, duplicates may pass.
pub(super) const RECENT_MAX: usize = 4_096;

/// Maximum number of gaps that are remembered.
pub(super) const GAPS_MAX: usize = 16;

/// Maximum number of unreadable records that are remembered.
pub(super) const UNREAD_MAX: usize = 100;

/// Longest identifier of such a record, in bytes; one with a longer identifier is not remembered.
const IDENTIFIER_BYTES_MAX: usize = 1_024;

/// Longest problem of such a record, in bytes; the rest is left out.
const PROBLEM_BYTES_MAX: usize = 400;

/// Checksums of records by the checksum of their identifiers.
pub(super) type Recent = BTreeMap<u64, u64>;

/// The progress of a repository's harvest. The default means that it has not been harvested yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// [`Settings::selection`](super::Settings::selection) of the harvest.
    pub(super) selection: u64,
    /// The chosen format.
    pub(super) prefix: String,
    /// Time up to which all changes have been seen, in Unix seconds by the repository's clock.
    pub(super) reached: Option<i64>,
    /// Beginning of the last completed full harvest, by our clock, in milliseconds since 1970.
    pub(super) full_at_ms: u64,
    /// Number of the last full harvest that was begun; 0 for none.
    pub(super) generation: u64,
    /// Records of the overlap at the end of the last harvest.
    pub(super) recent: Recent,
    /// Windows that failed and will be tried again; at most [`GAPS_MAX`].
    pub(super) gaps: Vec<Gap>,
    /// Whether the repository has announced too large list sizes since the last full harvest.
    pub(super) miscounts: bool,
    /// The harvest in progress.
    pub(super) run: Option<Run>,
    /// Records that could not be read and have not come since, with their identifiers; at most
    /// [`UNREAD_MAX`].
    pub(super) unread: Vec<Quarantined>,
}

/// A window that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Index of its set.
    pub(super) set: u64,
    /// First datestamp, in Unix seconds; `None` if the window has no beginning.
    pub(super) from: Option<i64>,
    /// Last datestamp, in Unix seconds.
    pub(super) until: i64,
}

/// A harvest in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// Whether the harvest is full, so that records that it does not bring are taken to be gone.
    pub(super) full: bool,
    /// Its beginning, by our clock, in milliseconds since 1970.
    pub(super) began_ms: u64,
    pub(super) granularity: Granularity,
    /// Beginning of the windows, in Unix seconds, in a harvest without `from`.
    pub(super) earliest: i64,
    /// Beginning of the harvest of each set, in Unix seconds.
    pub(super) from: Option<i64>,
    /// End of the harvest, in Unix seconds. It is set from the settings, and not stored.
    pub(super) until: Option<i64>,
    /// Index of the present set.
    pub(super) set: u64,
    /// First and last datestamp of the window, in Unix seconds; the first window may have no
    /// beginning, and the last one has no end.
    pub(super) window: (Option<i64>, Option<i64>),
    /// Length of the next window, in seconds; 0 for no limit.
    pub(super) size_secs: i64,
    /// Whether a window had to be restarted: the next windows then grow with care.
    pub(super) careful: bool,
    /// Restarts since a window was completed or skipped.
    pub(super) restarts: u64,
    /// Windows that were skipped since one was completed.
    pub(super) skips: u64,
    /// At the end of the harvest: number of gaps left to try; the last of them is the present
    /// window.
    pub(super) retries: u64,
    /// The repository's last response date, in Unix seconds.
    pub(super) server_secs: Option<i64>,
    /// Token of the next part of the window's list.
    pub(super) token: Option<String>,
    /// Number of parts of the window's list so far.
    pub(super) pages: u64,
    /// Number of distinct records in them.
    pub(super) distinct: u64,
    /// Number of these records that are live.
    pub(super) list_live: u64,
    /// Number of unreadable records.
    pub(super) unread: u64,
    /// Size of the list as the repository announced it.
    pub(super) announced: Option<u64>,
    /// Checksum of one token of the window's list, that of the last part whose number is a power of
    /// two; 0 for none. A list that loops hands out this token again, however often the harvest is
    /// interrupted.
    pub(super) mark: u64,
    /// Whether the list's first part was of the requested set.
    pub(super) of_set: bool,
    /// Whether a later part was not.
    pub(super) set_lost: bool,
    /// The window whose list was too short, and which is now harvested in shorter windows.
    pub(super) short: Option<Short>,
    /// Beginning of the set's first window with an empty list, if no record has come since;
    /// `i64::MIN` if the window has no beginning.
    pub(super) hollow: Option<i64>,
    /// Beginning of the window's list, by the repository's clock.
    pub(super) window_reached: Option<i64>,
    /// The least `window_reached` of the last windows of completed sets.
    pub(super) reached: Option<i64>,
    /// Whether one of these windows had no date.
    pub(super) undated: bool,
    /// Whether records may be missing, so that the absence of a record proves nothing.
    pub(super) doubtful: bool,
    /// Live records of the completed lists.
    pub(super) live: u64,
    pub(super) recent: Recent,
}

impl Checkpoint {
    /// Returns the time up to which all changes have been seen, in Unix seconds by the repository's
    /// clock. `None` before the end of the first harvest.
    pub fn reached(&self) -> Option<i64> {
        self.reached
    }

    /// Returns the prefix of the harvested format; empty before it is chosen.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the number of the full harvest in progress; 0 if there is none.
    pub fn generation_in_progress(&self) -> u64 {
        self.run.as_ref().filter(|it| it.full).map_or(0, |_| self.generation)
    }

    /// Makes the next harvest a full one.
    pub fn forget_progress(&mut self) {
        (self.reached, self.run) = (None, None);
        self.gaps.clear();
        self.unread.clear();
    }

    /// Remembers a record that cannot be read.
    pub(super) fn remember_unread(&mut self, found: &Quarantined) {
        let Some(identifier) = found.identifier.as_deref() else { return };
        self.unread.retain(|it| it.identifier.as_deref() != Some(identifier));
        if self.unread.len() < UNREAD_MAX && identifier.len() <= IDENTIFIER_BYTES_MAX {
            let mut found = found.clone();
            found.problem.truncate(found.problem.floor_char_boundary(PROBLEM_BYTES_MAX));
            self.unread.push(found);
        }
    }

    /// Forgets that a record could not be read; returns whether it could not.
    pub(super) fn forget_unread(&mut self, identifier: &str) -> bool {
        let before = self.unread.len();
        self.unread.retain(|it| it.identifier.as_deref() != Some(identifier));
        self.unread.len() < before
    }

    /// Returns the checkpoint as bytes, at most [`CHECKPOINT_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, self.selection);
        put_string(&mut out, &self.prefix);
        put_option(&mut out, self.reached);
        put(&mut out, self.full_at_ms);
        put(&mut out, self.generation);
        put_recent(&mut out, &self.recent);
        put(&mut out, u64::try_from(self.gaps.len()).unwrap_or(u64::MAX));
        for gap in &self.gaps {
            put(&mut out, gap.set);
            put_option(&mut out, gap.from);
            put_signed(&mut out, gap.until);
        }
        put(&mut out, u64::from(self.miscounts));
        put_some(&mut out, self.run.as_ref(), |out, run| run.write(out));
        put(&mut out, u64::try_from(self.unread.len()).unwrap_or(u64::MAX));
        for unread in &self.unread {
            put_string(&mut out, unread.identifier.as_deref().unwrap_or_default());
            put(&mut out, unread.offset);
            put_string(&mut out, &unread.problem);
        }
        let sum = short_sum(&out);
        out.extend_from_slice(&sum.to_be_bytes());
        out
    }

    /// Reads a checkpoint that [`to_bytes`](Self::to_bytes) wrote, in this release or in the ones
    /// before. Returns `None` for anything else: harvest anew.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fields, sum) = bytes.split_last_chunk::<8>()?;
        if CHECKPOINT_BYTES_MAX < bytes.len() || short_sum(fields).to_be_bytes() != *sum {
            return None;
        }
        let now = fields.strip_prefix(MAGIC);
        let mut rest = Fields(now.or_else(|| fields.strip_prefix(MAGIC_BEFORE))?);
        let found = Self {
            selection: rest.number()?,
            prefix: rest.string()?,
            reached: rest.option()?,
            full_at_ms: rest.number()?,
            generation: rest.number()?,
            recent: rest.recent()?,
            gaps: rest.gaps()?,
            miscounts: rest.flag()?,
            run: rest.some(Run::read)?,
            unread: if now.is_some() { rest.unread()? } else { Vec::new() },
        };
        rest.0.is_empty().then_some(found)
    }
}

impl Run {
    fn write(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.full));
        put(out, self.began_ms);
        put(out, u64::from(self.granularity == Granularity::Second));
        put_signed(out, self.earliest);
        put_option(out, self.from);
        put(out, self.set);
        put_option(out, self.window.0);
        put_option(out, self.window.1);
        put_signed(out, self.size_secs);
        put(out, u64::from(self.careful));
        for number in [self.restarts, self.skips, self.retries] {
            put(out, number);
        }
        put_option(out, self.server_secs);
        put_some(out, self.token.as_deref(), put_string);
        for number in [self.pages, self.distinct, self.list_live, self.unread] {
            put(out, number);
        }
        put_some(out, self.announced, put);
        put(out, self.mark);
        put(out, u64::from(self.of_set));
        put(out, u64::from(self.set_lost));
        put_some(out, self.short, |out, short| {
            put_option(out, short.until);
            for number in [short.found, short.since, short.restarts] {
                put(out, number);
            }
        });
        put_option(out, self.hollow);
        put_option(out, self.window_reached);
        put_option(out, self.reached);
        put(out, u64::from(self.undated));
        put(out, u64::from(self.doubtful));
        put(out, self.live);
        put_recent(out, &self.recent);
    }

    fn read(rest: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            full: rest.flag()?,
            began_ms: rest.number()?,
            granularity: if rest.flag()? { Granularity::Second } else { Granularity::Day },
            earliest: rest.signed()?,
            from: rest.option()?,
            until: None,
            set: rest.number()?,
            window: (rest.option()?, rest.option()?),
            size_secs: rest.signed().filter(|it| 0 <= *it)?,
            careful: rest.flag()?,
            restarts: rest.number()?,
            skips: rest.number()?,
            retries: rest.number()?,
            server_secs: rest.option()?,
            token: rest.some(Fields::string)?,
            pages: rest.number()?,
            distinct: rest.number()?,
            list_live: rest.number()?,
            unread: rest.number()?,
            announced: rest.some(Fields::number)?,
            mark: rest.number()?,
            of_set: rest.flag()?,
            set_lost: rest.flag()?,
            short: rest.some(Fields::short)?,
            hollow: rest.option()?,
            window_reached: rest.option()?,
            reached: rest.option()?,
            undated: rest.flag()?,
            doubtful: rest.flag()?,
            live: rest.number()?,
            recent: rest.recent()?,
        })
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

fn put_option(out: &mut Vec<u8>, number: Option<i64>) {
    put_some(out, number, put_signed);
}

fn put_some<T>(out: &mut Vec<u8>, value: Option<T>, put_value: impl FnOnce(&mut Vec<u8>, T)) {
    put(out, u64::from(value.is_some()));
    if let Some(value) = value {
        put_value(out, value);
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put(out, u64::try_from(text.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(text.as_bytes());
}

fn put_recent(out: &mut Vec<u8>, recent: &Recent) {
    put(out, u64::try_from(recent.len()).unwrap_or(u64::MAX));
    for (identifier, content) in recent {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&content.to_be_bytes());
    }
}

/// The bytes that are left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|it| it >> shift == bits)?;
            if byte & 0x80 == 0 {
                // Only the shortest form is valid.
                return (bits != 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn option(&mut self) -> Option<Option<i64>> {
        self.some(Self::signed)
    }

    fn some<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    fn length(&mut self, max: usize) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|it| *it <= max)
    }

    fn string(&mut self) -> Option<String> {
        let length = self.length(STRING_BYTES_MAX)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn gaps(&mut self) -> Option<Vec<Gap>> {
        let count = self.length(GAPS_MAX)?;
        let gap = |rest: &mut Self| {
            Some(Gap { set: rest.number()?, from: rest.option()?, until: rest.signed()? })
        };
        (0..count).map(|_| gap(self)).collect()
    }

    fn unread(&mut self) -> Option<Vec<Quarantined>> {
        let count = self.length(UNREAD_MAX)?;
        let unread = |rest: &mut Self| {
            let identifier = Some(rest.string()?);
            Some(Quarantined { identifier, offset: rest.number()?, problem: rest.string()? })
        };
        (0..count).map(|_| unread(self)).collect()
    }

    fn short(&mut self) -> Option<Short> {
        Some(Short {
            until: self.option()?,
            found: self.number()?,
            since: self.number()?,
            restarts: self.number()?,
        })
    }

    fn recent(&mut self) -> Option<Recent> {
        let mut recent = Recent::new();
        for _ in 0..self.length(RECENT_MAX)? {
            let (identifier, rest) = self.0.split_first_chunk::<8>()?;
            let (content, rest) = rest.split_first_chunk::<8>()?;
            self.0 = rest;
            let identifier = u64::from_be_bytes(*identifier);
            if recent.last_key_value().is_some_and(|(last, _)| identifier <= *last) {
                return None;
            }
            recent.insert(identifier, u64::from_be_bytes(*content));
        }
        Some(recent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recents() -> impl Strategy<Value = Recent> {
        prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..4)
    }

    fn runs() -> impl Strategy<Value = Run> {
        let numbers = (any::<[u64; 14]>(), any::<i64>(), 0..=i64::MAX, any::<[bool; 8]>());
        let dates = prop::array::uniform8(prop::option::of(any::<i64>()));
        let token = prop::option::of("\\PC{0,40}");
        (numbers, dates, token, prop::option::of(any::<u64>()), recents()).prop_map(
            |((n, earliest, size_secs, flags), dates, token, announced, recent)| Run {
                full: flags[0],
                began_ms: n[6],
                granularity: if flags[1] { Granularity::Second } else { Granularity::Day },
                earliest,
                from: dates[0],
                until: None,
                set: n[0],
                window: (dates[1], dates[2]),
                size_secs,
                careful: flags[2],
                restarts: n[1],
                skips: n[8],
                retries: n[9],
                server_secs: dates[3],
                token,
                pages: n[2],
                distinct: n[3],
                list_live: n[7],
                unread: n[4],
                announced,
                mark: n[10],
                of_set: flags[5],
                set_lost: flags[6],
                short: flags[7].then_some(Short {
                    until: dates[6],
                    found: n[11],
                    since: n[12],
                    restarts: n[13],
                }),
                hollow: dates[7],
                window_reached: dates[4],
                reached: dates[5],
                undated: flags[3],
                doubtful: flags[4],
                live: n[5],
                recent,
            },
        )
    }

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        let numbers = any::<[u64; 3]>();
        let reached = prop::option::of(any::<i64>());
        let gap = (any::<u64>(), prop::option::of(any::<i64>()), any::<i64>())
            .prop_map(|(set, from, until)| Gap { set, from, until });
        let gaps = prop::collection::vec(gap, 0..4);
        (numbers, "[a-z_]{0,9}", reached, recents(), gaps, prop::option::of(runs())).prop_map(
            |([selection, full_at_ms, generation], prefix, reached, recent, gaps, run)| {
                Checkpoint {
                    selection,
                    prefix,
                    reached,
                    full_at_ms,
                    generation,
                    recent,
                    miscounts: gaps.len() == 1,
                    gaps,
                    run,
                    unread: Vec::new(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(checkpoint in checkpoints()) {
            prop_assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Some(checkpoint));
        }

        #[test]
        fn damaged_bytes_are_refused(checkpoint in checkpoints(), at in any::<prop::sample::Index>(),
                                      bit in 0..8_u8, longer in any::<bool>()) {
            let mut bytes = checkpoint.to_bytes();
            if longer {
                bytes.push(0);
                prop_assert_eq!(Checkpoint::from_bytes(&bytes), None);
                bytes.pop();
            }
            let at = at.index(bytes.len());
            prop_assert_eq!(Checkpoint::from_bytes(&bytes[..at]), None);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Checkpoint::from_bytes(&bytes), None);
        }

        /// Checks that bytes of another writer with a valid checksum are read only if we would
        /// write the same.
        #[test]
        fn only_the_canonical_form_is_read(fields in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut bytes = [MAGIC, &fields[..]].concat();
            bytes.extend(short_sum(&bytes).to_be_bytes());
            if let Some(found) = Checkpoint::from_bytes(&bytes) {
                prop_assert_eq!(found.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn unreadable_records_are_kept_within_bounds() {
        let mut checkpoint = Checkpoint::default();
        for number in 0..UNREAD_MAX + 5 {
            let identifier = Some(number.to_string());
            let problem = "\u{e9}".repeat(PROBLEM_BYTES_MAX);
            checkpoint.remember_unread(&Quarantined { identifier, offset: 7, problem });
        }
        let long = Some("x".repeat(IDENTIFIER_BYTES_MAX + 1));
        for identifier in [None, long, Some("7".to_owned())] {
            checkpoint.remember_unread(&Quarantined { identifier, ..Quarantined::default() });
        }
        assert_eq!(checkpoint.unread.len(), UNREAD_MAX);
        assert!(checkpoint.forget_unread("8") && !checkpoint.forget_unread("8"));
        assert_eq!(checkpoint.unread.len(), UNREAD_MAX - 1);
        assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes()), Some(checkpoint));
    }

    #[test]
    fn a_checkpoint_of_the_version_before_is_read() {
        let checkpoint = Checkpoint { generation: 77, ..Checkpoint::default() };
        let bytes = checkpoint.to_bytes();
        let (fields, _) = bytes.split_last_chunk::<8>().unwrap();
        // The last field is the empty list of unreadable records.
        let fields = fields.strip_prefix(MAGIC).unwrap().strip_suffix(&[0]).unwrap();
        let mut bytes = [MAGIC_BEFORE, fields].concat();
        bytes.extend(short_sum(&bytes).to_be_bytes());
        assert_eq!(Checkpoint::from_bytes(&bytes), Some(checkpoint));
    }

    #[test]
    fn the_largest_checkpoint_is_within_the_limit() {
        let recent: Recent = (0..4_096).map(|it| (it, it)).collect();
        let unread = UNREAD_MAX * (IDENTIFIER_BYTES_MAX + PROBLEM_BYTES_MAX + 20);
        let most = 2 * recent.len() * 16 + 2 * STRING_BYTES_MAX + unread + 1_000;
        assert_eq!(recent.len(), RECENT_MAX);
        assert!(most < CHECKPOINT_BYTES_MAX);
    }
}

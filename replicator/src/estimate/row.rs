//! Rows of estimates that a member floods to the others, 14 bytes for each link.
//!
//! Sans-I/O.

use std::time::Duration;

use super::Estimate;
use crate::topology::MEMBERS_MAX;

const ENTRY_BYTES: usize = 14;
const HEAD_BYTES: usize = 8 + 8 + 2;
/// Bits of a code below its exponent.
const MANTISSA_BITS: u32 = 11;
/// The code of an unknown value.
const UNKNOWN: u16 = u16::MAX;

/// One member's estimates of all its links at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The member's id.
    pub from: u64,
    /// Number of the row; newer rows of a member have greater ones.
    pub sequence: u64,
    /// One for each other member to which the link is measured, or that does not answer.
    pub entries: Vec<LinkEstimate>,
}

/// The estimate of a link in a row, its numbers exact to 0.05 % (four significant digits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEstimate {
    /// The other member's id.
    pub to: u64,
    round_trip: u16,
    bandwidth: u16,
    /// In minutes.
    age: u16,
}

impl LinkEstimate {
    /// Makes the entry for the link to `to` at the time `now`.
    pub fn new(to: u64, estimate: &Estimate, now: Duration) -> Self {
        let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
        let minutes = estimate.age(now).map_or(u64::MAX, |it| it.as_secs() / 60);
        Self {
            to,
            round_trip: estimate.round_trip().map_or(UNKNOWN, |it| encode(micros(it))),
            bandwidth: estimate.bandwidth().map_or(UNKNOWN, encode),
            age: u16::try_from(minutes).unwrap_or(u16::MAX),
        }
    }

    /// Returns the round trip; `None` if it is not known, or the other member does not answer.
    pub fn round_trip(self) -> Option<Duration> {
        (self.round_trip != UNKNOWN).then(|| Duration::from_micros(decode(self.round_trip)))
    }

    /// Returns the bandwidth, in bytes a second; `None` as for the round trip.
    pub fn bandwidth(self) -> Option<u64> {
        (self.bandwidth != UNKNOWN).then(|| decode(self.bandwidth))
    }

    /// Returns the entry with another bandwidth, in bytes a second.
    pub fn with_bandwidth(self, bandwidth: u64) -> Self {
        Self { bandwidth: encode(bandwidth), ..self }
    }

    /// Returns the age of the measurement when the entry was made, in whole minutes.
    pub fn age(self) -> Duration {
        Duration::from_mins(u64::from(self.age))
    }
}

/// The greatest number that has a code other than [`UNKNOWN`].
const VALUE_MAX: u64 = ((1 << (MANTISSA_BITS + 1)) - 2) << 30;

/// Returns the floating-point code of a number: five bits of exponent, eleven of mantissa.
fn encode(value: u64) -> u16 {
    let value = value.min(VALUE_MAX);
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(MANTISSA_BITS + 1);
    let rounded = if shift == 0 { value } else { (value + (1 << (shift - 1))) >> shift };
    // Rounding may carry into the next power of two.
    let (shift, mantissa) = if rounded >> (MANTISSA_BITS + 1) == 0 {
        (shift, rounded)
    } else {
        (shift + 1, rounded >> 1)
    };
    let is_normal = mantissa >> MANTISSA_BITS == 1;
    let exponent = if is_normal { u64::from(shift) + 1 } else { 0 };
    let code = (exponent << MANTISSA_BITS) | (mantissa & ((1 << MANTISSA_BITS) - 1));
    u16::try_from(code).unwrap_or(UNKNOWN)
}

fn decode(code: u16) -> u64 {
    let (exponent, mantissa) =
        (code >> MANTISSA_BITS, u64::from(code) & ((1 << MANTISSA_BITS) - 1));
    if exponent == 0 { mantissa } else { ((1 << MANTISSA_BITS) | mantissa) << (exponent - 1) }
}

impl Row {
    /// Writes the row: member, sequence and count, then the entries, all numbers little-endian.
    /// Entries beyond [`MEMBERS_MAX`] are left out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries = self.entries.get(..MEMBERS_MAX).unwrap_or(&self.entries);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(u16::try_from(entries.len()).unwrap_or(u16::MAX).to_le_bytes());
        for entry in entries {
            bytes.extend(entry.to.to_le_bytes());
            for it in [entry.round_trip, entry.bandwidth, entry.age] {
                bytes.extend(it.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads the bytes that [`Row::to_bytes`] has written; `None` if there are more or fewer
    /// entries than the count says, or the count is above [`MEMBERS_MAX`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (from, rest) = bytes.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (entries, left) = rest.as_chunks::<ENTRY_BYTES>();
        let count = usize::from(u16::from_le_bytes(*count));
        if count != entries.len() || !left.is_empty() || MEMBERS_MAX < count {
            return None;
        }
        let (from, sequence) = (u64::from_le_bytes(*from), u64::from_le_bytes(*sequence));
        let entries = entries.iter().map(|it| {
            let [a, b, c, d, e, f, g, h, code @ ..] = *it;
            let [r0, r1, b0, b1, a0, a1] = code;
            LinkEstimate {
                to: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                round_trip: u16::from_le_bytes([r0, r1]),
                bandwidth: u16::from_le_bytes([b0, b1]),
                age: u16::from_le_bytes([a0, a1]),
            }
        });
        Some(Self { from, sequence, entries: entries.collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_coded_exactly_and_large_ones_closely() {
        for value in
            (0..4_096).chain([5_000, 1 << 20, 123_456_789, VALUE_MAX - 1, VALUE_MAX, u64::MAX])
        {
            let found = decode(encode(value));
            let value = value.min(VALUE_MAX);
            assert!(found.abs_diff(value) <= value >> (MANTISSA_BITS + 1), "{value} is {found}");
        }
    }

    proptest! {
        #[test]
        fn codes_keep_the_order(a: u64, b: u64, shift in 0..64_u32) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assert_eq!(encode(a.min(b)).min(encode(a.max(b))), encode(a.min(b)));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(row) = Row::from_bytes(&bytes) {
                prop_assert_eq!(row.to_bytes(), bytes);
            }
        }

        #[test]
        fn rows_are_read_as_they_were_written(
            from: u64, sequence: u64, codes in prop::collection::vec(any::<(u64, u16, u16, u16)>(), 0..40),
        ) {
            let entries = codes.iter().map(|it| LinkEstimate { to: it.0, round_trip: it.1, bandwidth: it.2, age: it.3 });
            let row = Row { from, sequence, entries: entries.collect() };
            prop_assert_eq!(Row::from_bytes(&row.to_bytes()), Some(row));
        }
    }
}

//! Tunes in MIDI: the texts of their tracks, and their duration.
//!
//! Source: Standard MIDI File Format 1.0 (RP-001), "Chunks" and "Meta-Events".

use crate::cancellable::TimeLimit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, len32, slice_up_to};
use crate::text::{Body, decode};

/// Default duration of a quarter note, in microseconds.
const QUARTER_US: u64 = 500_000;

/// The state of reading one tune.
struct Tune<'a> {
    about: &'a mut Metadata,
    lyrics: Body,
    /// Changes of tempo: the tick, and the microseconds per quarter note from there.
    tempos: Vec<(u64, u64)>,
    ticks: u64,
    time: TimeLimit<'a>,
}

/// Reads a tune; returns false if a track is cut off or broken, or the time ends the reading.
pub(super) fn read(bytes: &[u8], about: &mut Metadata, cancelled: &dyn Fn() -> bool) -> bool {
    let division = be16(bytes, 12).unwrap_or_default();
    let lyrics = Body::new(usize::MAX);
    let time = TimeLimit::new(cancelled);
    let mut tune = Tune { about, lyrics, tempos: Vec::new(), ticks: 0, time };
    let mut at = len32(bytes, 4).unwrap_or_default().saturating_add(8);
    let mut whole = true;
    for number in 0_usize.. {
        let (Some(name), Some(len)) = (bytes.get(at..at.saturating_add(4)), len32(bytes, at + 4))
        else {
            break;
        };
        let track = slice_up_to(bytes, at + 8, len);
        if name == b"MTrk" {
            whole &= tune.track(track, number == 0).is_some() && track.len() == len;
        }
        at = at.saturating_add(8).saturating_add(len);
    }
    let milliseconds = tune.milliseconds(division);
    let Tune { about, lyrics, .. } = tune;
    about.duration(milliseconds);
    about.add(Field::Text, lyrics.as_str());
    whole
}

impl Tune<'_> {
    fn track(&mut self, track: &[u8], first: bool) -> Option<()> {
        let (mut at, mut ticks, mut running) = (0, 0_u64, 0);
        while at < track.len() {
            if !self.time.goes_on() {
                return None;
            }
            let (delta, next) = variable(track, at)?;
            ticks += delta;
            self.ticks = self.ticks.max(ticks);
            at = next;
            let status = *track.get(at)?;
            if 0x80 <= status {
                running = status;
                at += 1;
            }
            at = match running {
                0xff => {
                    let kind = *track.get(at)?;
                    let (len, start) = variable(track, at + 1)?;
                    let len = usize::try_from(len).ok()?;
                    self.meta(kind, slice_up_to(track, start, len), ticks, first);
                    start + len
                }
                0xf0 | 0xf7 => {
                    let (len, start) = variable(track, at)?;
                    start + usize::try_from(len).ok()?
                }
                0xc0..=0xdf => at + 1,
                0x80..=0xef => at + 2,
                _ => return None,
            };
        }
        Some(())
    }

    fn meta(&mut self, kind: u8, data: &[u8], ticks: u64, first: bool) {
        if let (0x51, [a, b, c]) = (kind, data) {
            self.tempos.push((ticks, u64::from(u32::from_be_bytes([0, *a, *b, *c]))));
        }
        let field = match kind {
            // The first track's name is the tune's.
            3 if first => Field::Title,
            2 => Field::Copyright,
            1 | 3 | 4 | 6 | 7 => Field::Text,
            5 => {
                let text = decode(data, None);
                // In karaoke files, `/` and `\` start lines.
                if text.starts_with(['/', '\\', '\r', '\n']) {
                    self.lyrics.line();
                }
                self.lyrics.push(text.trim_start_matches(['/', '\\', '\r', '\n']));
                return;
            }
            _ => return,
        };
        self.about.add(field, &decode(data, None));
    }

    /// Returns the duration of the longest track, in milliseconds.
    fn milliseconds(&mut self, division: u16) -> u64 {
        if division & 0x8000 != 0 {
            // Frames per second, and ticks per frame.
            let [frames, ticks] = division.to_be_bytes();
            let rate = u64::from(frames.wrapping_neg()) * u64::from(ticks);
            return (self.ticks * 1_000).checked_div(rate).unwrap_or_default();
        }
        self.tempos.sort_by_key(|it| it.0);
        let (mut at, mut quarter, mut sum) = (0, QUARTER_US, 0_u128);
        for (tick, next) in self.tempos.iter().copied().chain([(self.ticks, 0)]) {
            sum += u128::from(tick.saturating_sub(at)) * u128::from(quarter);
            (at, quarter) = (tick.max(at), next);
        }
        let milliseconds = (sum / 1_000).checked_div(u128::from(division)).unwrap_or_default();
        u64::try_from(milliseconds).unwrap_or_default()
    }
}

/// Reads a number of one to four bytes, seven bits each; returns it and its end.
fn variable(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for at in at..at.checked_add(4)? {
        let byte = *bytes.get(at)?;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number, at + 1));
        }
    }
    None
}

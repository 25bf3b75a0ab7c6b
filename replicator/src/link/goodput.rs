//! Goodput: the rate of a link, measured by its ordinary traffic.
//!
//! The sender marks frames that were ready as soon as the frames before had been sent (*pressed*
//! frames). While such frames come, only the link limits the rate, so their rate is that of the
//! link. The receiver measures, because bytes that the sender has sent may still be in buffers, and
//! reports to the sender.
//!
//! # Differences from the paper
//!
//! * TR §8 measures by sending a block of 64 KB. Here no extra data is sent.
//!
//! Sans-I/O.

use std::time::Duration;

/// Time at the beginning of a transfer that is not measured, because TCP's window is still opening.
pub const OPENING: Duration = Duration::from_millis(250);
/// The shortest sample, in bytes.
pub const SAMPLE_BYTES_MIN: u64 = 128 << 10;
/// Shortest duration of a sample that ends while more data comes. A reader that was late finds many
/// bytes at once, which must not make the link look much faster.
pub const SAMPLE_MIN: Duration = Duration::from_secs(2);

/// Bytes and time of a transfer that only the link limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes, including frame headers, but not the overhead of TLS.
    pub bytes: u64,
    /// Duration of the transfer.
    pub took: Duration,
}

/// Measures the received frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goodput {
    /// Beginning of the transfer: the last time at which a frame that was not pressed ended. `None`
    /// before the first such frame, and after an interruption until the next.
    busy: Option<Duration>,
    /// Start of the sample, once [`OPENING`] is over, and the bytes since then.
    begun: Option<(Duration, u64)>,
    /// The sample up to the last read in which a frame ended.
    whole: Option<Sample>,
}

impl Goodput {
    /// Counts the bytes of one read, and returns a sample that has ended. `pressed` says whether
    /// all frames that ended in the read were pressed; it is `None` if no frame ended.
    pub fn handle_read(
        &mut self,
        bytes: u64,
        pressed: Option<bool>,
        now: Duration,
    ) -> Option<Sample> {
        if pressed == Some(false) {
            let sample = self.interrupt();
            self.busy = Some(now);
            return sample;
        }
        let busy = self.busy?;
        let Some((begun, counted)) = self.begun else {
            if busy + OPENING <= now {
                self.begun = Some((now, 0));
            }
            return None;
        };
        let sample = Sample { bytes: counted + bytes, took: now.saturating_sub(begun) };
        self.begun = Some((begun, sample.bytes));
        pressed?;
        if SAMPLE_BYTES_MIN <= sample.bytes && SAMPLE_MIN <= sample.took {
            self.begun = Some((now, 0));
            self.whole = None;
            return Some(sample);
        }
        self.whole = Some(sample);
        None
    }

    /// Ends the sample and returns it if it is long enough, because something other than the link
    /// held back bytes.
    pub fn interrupt(&mut self) -> Option<Sample> {
        let sample = self.whole.filter(|it| SAMPLE_BYTES_MIN <= it.bytes);
        *self = Self::default();
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Checks the samples of reads of 16 KiB every 10 ms, which is a rate of 1.6 MiB a second.
    fn check(reads: &[Option<bool>], expected: &[(u64, u64)]) {
        let mut goodput = Goodput::default();
        let samples: Vec<_> = reads
            .iter()
            .zip(1..)
            .filter_map(|(pressed, turn)| goodput.handle_read(16 * KIB, *pressed, ms(10 * turn)))
            .map(|it| (it.bytes / KIB, u64::try_from(it.took.as_millis()).unwrap()))
            .collect();
        assert_eq!(samples, expected);
    }

    #[test]
    fn only_transfers_limited_by_the_link_count() {
        let reads = |pressed: usize| {
            let mut reads = vec![Some(false)];
            reads.extend(vec![Some(true); pressed]);
            reads.push(Some(false));
            reads
        };
        check(&reads(0), &[]);
        check(&[vec![None; 99], vec![Some(true); 99]].concat(), &[]);
        // 25 reads while the window opens, and too few after.
        check(&reads(25 + 7), &[]);
        check(&reads(25 + 8), &[(128, 80)]);
        check(&reads(25 + 250), &[(3_200, 2_000), (800, 500)]);
        check(&vec![Some(false); 500], &[]);
    }

    #[test]
    fn a_frame_after_a_pause_ends_the_sample_before_it() {
        let mut goodput = Goodput::default();
        goodput.handle_read(KIB, Some(false), ms(0));
        goodput.handle_read(KIB, Some(true), ms(250));
        goodput.handle_read(300 * KIB, Some(true), ms(350));
        // After a pause a frame comes that was not pressed: first its header, then its end.
        assert_eq!(goodput.handle_read(KIB, None, ms(5_000)), None);
        let sample = Sample { bytes: 300 * KIB, took: ms(100) };
        assert_eq!(goodput.handle_read(KIB, Some(false), ms(5_001)), Some(sample));
        assert_eq!(goodput.interrupt(), None);
    }
}

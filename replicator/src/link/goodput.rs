//! How fast a link is, from what comes over it anyway.
//!
//! Who sends marks the frames that were ready as soon as the ones before had gone. As long as such frames come,
//! the link alone holds them back, and how fast they come is how fast it is. The one who receives measures,
//! since what is sent may still lie about in buffers, and tells the other.
//!
//! # Differences from the paper
//!
//! * TR §8 sends a block of 64 KB to measure. Here nothing is sent for it.
//!
//! Sans-I/O.

use std::time::Duration;

/// What comes before is left out: the window was still opening.
pub const OPENING: Duration = Duration::from_millis(250);
/// The shortest sample, in bytes.
pub const SAMPLE_BYTES_MIN: u64 = 128 << 10;
/// The shortest sample that ends while more comes: so long that a reader which was late for a while, and then finds
/// much at once, does not make the link look much faster.
pub const SAMPLE_MIN: Duration = Duration::from_secs(2);

/// So many bytes came in so long, while the link alone held them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// With what frames them, without what TLS adds.
    pub bytes: u64,
    /// How long.
    pub took: Duration,
}

/// Watches what comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goodput {
    /// Since when the link has not been idle.
    busy: Option<Duration>,
    /// Since when bytes are counted, and how many have come.
    begun: Option<(Duration, u64)>,
    /// The sample as it was when the last frame came to its end.
    whole: Option<Sample>,
}

impl Goodput {
    /// Takes in what one read has brought, and of the frames that it has finished, whether all were pressed;
    /// `None` if there were none.
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

    /// Takes note that for a while something else held back what comes.
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

    /// What reads of 16 KiB each 10 ms, 1.6 MiB a second, make of these.
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
    fn only_what_the_link_holds_back_counts() {
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
    fn what_comes_after_a_pause_ends_the_sample_before_it() {
        let mut goodput = Goodput::default();
        goodput.handle_read(KIB, Some(false), ms(0));
        goodput.handle_read(KIB, Some(true), ms(250));
        goodput.handle_read(300 * KIB, Some(true), ms(350));
        // The head of a frame that was not pressed comes long before its end.
        assert_eq!(goodput.handle_read(KIB, None, ms(5_000)), None);
        let sample = Sample { bytes: 300 * KIB, took: ms(100) };
        assert_eq!(goodput.handle_read(KIB, Some(false), ms(5_001)), Some(sample));
        assert_eq!(goodput.interrupt(), None);
    }
}

//! The pulse of a link: regular pings, whose answers show that the link lives, and limits on its
//! slowness.
//!
//! The other end may be far away on a slow line, but not endlessly slow. A frame that has begun, in
//! either direction, may take [`SLOW`] for each [`SLOW_BYTES`].
//!
//! Sans-I/O.

use std::time::Duration;

/// Interval of pings.
pub const PING: Duration = Duration::from_secs(5);
/// Time without any received bytes after which a link is dead.
pub const DEAD: Duration = Duration::from_secs(15);
/// Time allowed for [`SLOW_BYTES`].
pub const SLOW: Duration = Duration::from_secs(60);
/// See [`SLOW`].
pub const SLOW_BYTES: usize = 16 << 10;

/// The action that a link needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send a ping with this number.
    Ping(u64),
    /// Nothing came for [`DEAD`]: close the link.
    Dead,
    /// The other end sends or reads too slowly: close the link.
    Slow,
    /// Wait until this time.
    Wait(Duration),
}

/// Times of events on a link, as times since this member's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    received: Duration,
    pinged: Duration,
    pings: u64,
    /// Deadline for the end of the frame that has begun to come.
    reading: Option<Duration>,
    /// Deadline for the bytes that are being sent.
    writing: Option<Duration>,
    /// Whether an event waits for the receiver. Meanwhile nothing more is read.
    is_delivering: bool,
}

impl Pulse {
    /// Returns the pulse of a link that has just come up.
    pub fn new(now: Duration) -> Self {
        Self {
            received: now,
            pinged: now,
            pings: 0,
            reading: None,
            writing: None,
            is_delivering: false,
        }
    }

    /// Records that bytes came. `finished` says whether a frame ended with them; `begun` is the
    /// length of the frame that has begun to come, if any.
    pub fn handle_received(&mut self, finished: bool, begun: Option<usize>, now: Duration) {
        self.received = now;
        self.reading = match begun {
            None => None,
            Some(bytes) if finished || self.reading.is_none() => Some(now + allowance(bytes)),
            Some(_) => self.reading,
        };
    }

    /// Records that an event begins or ceases to wait for the receiver.
    pub fn handle_delivering(&mut self, is_delivering: bool, now: Duration) {
        if self.is_delivering && !is_delivering {
            let took = now.saturating_sub(self.received);
            self.received = now;
            self.reading = self.reading.map(|it| it + took);
        }
        self.is_delivering = is_delivering;
    }

    /// Records that `bytes` bytes are being sent.
    pub fn handle_writing(&mut self, bytes: usize, now: Duration) {
        self.writing = Some(now + allowance(bytes));
    }

    /// Records that the bytes have been sent.
    pub fn handle_written(&mut self) {
        self.writing = None;
    }

    /// Returns the action that is due now, or the time until which to wait.
    pub fn poll(&mut self, now: Duration) -> Verdict {
        let reading = self.reading.filter(|_| !self.is_delivering);
        let slow = [reading, self.writing].into_iter().flatten().min();
        let dead = (!self.is_delivering).then_some(self.received + DEAD);
        if dead.is_some_and(|it| it <= now) {
            return Verdict::Dead;
        }
        if slow.is_some_and(|it| it <= now) {
            return Verdict::Slow;
        }
        let ping = self.pinged + PING;
        if ping <= now {
            self.pinged = now;
            self.pings += 1;
            return Verdict::Ping(self.pings);
        }
        Verdict::Wait([dead, slow].into_iter().flatten().fold(ping, Duration::min))
    }
}

fn allowance(bytes: usize) -> Duration {
    SLOW * u32::try_from(bytes.div_ceil(SLOW_BYTES).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn at(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    /// Polls a pulse until a final verdict; returns it and its time.
    fn last(pulse: &mut Pulse, mut each: impl FnMut(&mut Pulse, Duration)) -> (Verdict, Duration) {
        let mut now = START;
        loop {
            match pulse.poll(now) {
                Verdict::Wait(until) => now = until,
                Verdict::Ping(_) => each(pulse, now),
                verdict => return (verdict, now),
            }
        }
    }

    #[test]
    fn an_idle_link_is_pinged() {
        let mut pulse = Pulse::new(START);
        assert_eq!(pulse.poll(at(0)), Verdict::Wait(at(5)));
        assert_eq!(pulse.poll(at(5)), Verdict::Ping(1));
        assert_eq!(pulse.poll(at(5)), Verdict::Wait(at(10)));
        pulse.handle_received(true, None, at(6));
        assert_eq!(pulse.poll(at(10)), Verdict::Ping(2));
        assert_eq!(pulse.poll(at(15)), Verdict::Ping(3));
        assert_eq!(pulse.poll(at(20)), Verdict::Ping(4));
        assert_eq!(pulse.poll(at(20)), Verdict::Wait(at(21)));
        assert_eq!(pulse.poll(at(21)), Verdict::Dead);
    }

    #[test]
    fn a_member_that_sends_a_byte_now_and_then_is_given_up() {
        for (bytes, seconds) in [(8, 60), (16 << 10, 60), (64 << 10, 240)] {
            let mut pulse = Pulse::new(START);
            pulse.handle_received(false, Some(bytes), START);
            let drip = |it: &mut Pulse, now| it.handle_received(false, Some(bytes), now);
            assert_eq!(last(&mut pulse, drip), (Verdict::Slow, at(seconds)), "{bytes}");
        }
    }

    #[test]
    fn a_member_that_finishes_frames_in_time_may_go_on() {
        let mut pulse = Pulse::new(START);
        pulse.handle_received(false, Some(100), START);
        let mut turns = 0;
        let verdict = last(&mut pulse, |it, now| {
            turns += 1;
            // Every 50 s one frame ends and the next begins; the last one never ends.
            it.handle_received(turns % 10 == 0 && turns < 100, Some(100), now);
        });
        assert_eq!(verdict, (Verdict::Slow, at(90 * 5 + 60)));
    }

    #[test]
    fn a_member_that_reads_nothing_is_given_up() {
        let mut pulse = Pulse::new(START);
        pulse.handle_writing(64 << 10, START);
        let received = |it: &mut Pulse, now| it.handle_received(true, None, now);
        assert_eq!(last(&mut pulse, received), (Verdict::Slow, at(240)));
        pulse.handle_written();
        assert_eq!(pulse.poll(at(241)), Verdict::Ping(48));
    }

    #[test]
    fn delays_at_this_end_do_not_count() {
        let mut pulse = Pulse::new(START);
        pulse.handle_received(false, Some(100), START);
        pulse.handle_delivering(true, START);
        assert_eq!(pulse.poll(at(1_000)), Verdict::Ping(1));
        pulse.handle_delivering(false, at(1_000));
        assert_eq!(pulse.poll(at(1_004)), Verdict::Wait(at(1_005)));
        pulse.handle_received(false, Some(100), at(1_010));
        pulse.handle_received(false, Some(100), at(1_020));
        pulse.handle_received(false, Some(100), at(1_059));
        pulse.poll(at(1_059));
        assert_eq!(pulse.poll(at(1_059)), Verdict::Wait(at(1_060)));
        assert_eq!(pulse.poll(at(1_060)), Verdict::Slow);
    }
}

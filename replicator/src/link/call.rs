//! The null call: the round trip to a member over UDP, on the port of the links.
//!
//! A call and its answer are 64 bytes each, so that nobody can make a member send more than it
//! receives. Both are authenticated by a key that the two members have derived from a link between
//! them. Callers without a key are neither answered nor remembered. The key outlives the link.
//!
//! docs/links.md has the bytes.
//!
//! Source: TR §8 (round trips by null UDP calls).
//!
//! # Differences from the paper
//!
//! Calls are authenticated, and an answer counts only once.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::time::Duration;

use crate::id::MemberId;
use crate::limit::Bucket;

/// Bytes of a call, and of an answer.
pub const PACKET_BYTES: usize = 64;
/// Time after which an unanswered call is lost.
pub const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Maximum number of members that can be called; above it, the oldest key is forgotten.
pub const MEMBERS_MAX: usize = 1_024;
/// Calls of one member that are answered in a second, on average.
pub const ANSWERS_PER_SECOND: u64 = 8;

const MAGIC: [u8; 4] = *b"hvc\x01";
const SIGNED_BYTES: usize = 48;

/// A call or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether the packet is an answer.
    pub is_answer: bool,
    /// Whether the caller has dialed the link that the key is from.
    pub by_dialer: bool,
    /// Id of the key.
    pub key_id: [u8; 8],
    /// The number of the call.
    pub number: u64,
}

impl Packet {
    /// Writes the packet.
    pub fn encode(&self, key: &[u8; 32]) -> [u8; PACKET_BYTES] {
        let mut out = [0; PACKET_BYTES];
        let kind = if self.is_answer { 2 } else { 1 };
        let [a, b, c, d] = MAGIC;
        let head = [a, b, c, d, kind, u8::from(self.by_dialer), 0, 0];
        let number = self.number.to_le_bytes();
        let parts = head.into_iter().chain(self.key_id).chain(number);
        out.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        let (signed, mac) = out.split_at_mut(SIGNED_BYTES);
        let made = blake3::keyed_hash(key, signed);
        mac.iter_mut().zip(made.as_bytes()).for_each(|(to, from)| *to = *from);
        out
    }

    /// Reads a packet without checking whether it is genuine. `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PACKET_BYTES] = bytes.try_into().ok()?;
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (key_id, rest) = rest.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let [a, b, c, d, kind, by_dialer, 0, 0] = *head else { return None };
        let padding = rest.first_chunk::<24>()?;
        if [a, b, c, d] != MAGIC || !matches!(kind, 1 | 2) || 1 < by_dialer || *padding != [0; 24] {
            return None;
        }
        Some(Self {
            is_answer: kind == 2,
            by_dialer: by_dialer == 1,
            key_id: *key_id,
            number: u64::from_le_bytes(*number),
        })
    }
}

/// Returns whether the writer of the packet has the key. The check takes the same time for every
/// wrong packet.
fn is_genuine(bytes: &[u8], key: &[u8; 32]) -> bool {
    let Some((signed, mac)) = bytes.split_at_checked(SIGNED_BYTES) else { return false };
    let Ok(mac) = <[u8; 16]>::try_from(mac) else { return false };
    let made = blake3::keyed_hash(key, signed);
    let wrong = made.as_bytes().iter().zip(mac).fold(0, |wrong, (a, b)| wrong | (a ^ b));
    wrong == 0
}

/// Returns the public id of a key.
fn key_id(key: &[u8; 32]) -> [u8; 8] {
    let digest = blake3::derive_key("harvest replicator null call key id", key);
    digest.first_chunk::<8>().copied().unwrap_or_default()
}

#[derive(Debug)]
struct Peer {
    key: [u8; 32],
    is_dialer: bool,
    since: Duration,
    /// Number of the last call to the member.
    calls: u64,
    /// The last call to the member with its time, while it is unanswered.
    asked: Option<(u64, Duration)>,
    /// Greatest number of a genuine call by the member. Only greater numbers are answered.
    answered: u64,
    answers: Bucket,
}

/// Action of the socket's owner after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Send this back to its sender.
    Answer([u8; PACKET_BYTES]),
    /// Report the round trip of this member.
    RoundTrip(MemberId, Duration),
    /// Do nothing.
    Ignore,
}

/// All members that can be called.
#[derive(Debug, Default)]
pub struct Calls {
    peers: HashMap<MemberId, Peer>,
    by_key: HashMap<[u8; 8], MemberId>,
}

impl Calls {
    /// Stores the key from a link to this member, and whether this end has dialed that link. The
    /// key replaces an earlier one.
    pub fn handle_key(&mut self, member: MemberId, key: [u8; 32], is_dialer: bool, now: Duration) {
        self.forget(member);
        if MEMBERS_MAX <= self.peers.len() {
            let oldest = self.peers.iter().min_by_key(|(_, it)| it.since).map(|(id, _)| *id);
            oldest.into_iter().for_each(|it| self.forget(it));
        }
        let answers = Bucket::new(ANSWERS_PER_SECOND * PACKET_BYTES as u64, 512);
        let peer = Peer { key, is_dialer, since: now, calls: 0, asked: None, answered: 0, answers };
        self.by_key.insert(key_id(&key), member);
        self.peers.insert(member, peer);
    }

    /// Forgets a member's key.
    pub fn forget(&mut self, member: MemberId) {
        if let Some(peer) = self.peers.remove(&member) {
            self.by_key.remove(&key_id(&peer.key));
        }
    }

    /// Returns the packet that calls a member, to be sent at once; `None` if there is no key. An
    /// earlier unanswered call is given up.
    pub fn call(&mut self, member: MemberId, now: Duration) -> Option<[u8; PACKET_BYTES]> {
        let peer = self.peers.get_mut(&member)?;
        peer.calls += 1;
        peer.asked = Some((peer.calls, now));
        let packet = Packet {
            is_answer: false,
            by_dialer: peer.is_dialer,
            key_id: key_id(&peer.key),
            number: peer.calls,
        };
        Some(packet.encode(&peer.key))
    }

    /// Handles a packet from any sender.
    pub fn handle_packet(&mut self, bytes: &[u8], now: Duration) -> Outcome {
        let Some(packet) = Packet::parse(bytes) else { return Outcome::Ignore };
        let Some(&member) = self.by_key.get(&packet.key_id) else { return Outcome::Ignore };
        let Some(peer) = self.peers.get_mut(&member) else { return Outcome::Ignore };
        // A packet of this member that somebody sends back is not a call of the other member.
        let is_ours = packet.by_dialer == peer.is_dialer;
        if packet.is_answer != is_ours || !is_genuine(bytes, &peer.key) {
            return Outcome::Ignore;
        }
        if !packet.is_answer {
            return peer.answer(packet, now);
        }
        match peer.asked {
            Some((number, at)) if number == packet.number => {
                peer.asked = None;
                let took = now.saturating_sub(at);
                if took <= ANSWER_MAX { Outcome::RoundTrip(member, took) } else { Outcome::Ignore }
            }
            _ => Outcome::Ignore,
        }
    }
}

impl Peer {
    fn answer(&mut self, call: Packet, now: Duration) -> Outcome {
        // The packet has been answered before: somebody repeats it.
        if call.number <= self.answered {
            return Outcome::Ignore;
        }
        self.answered = call.number;
        if !self.answers.clone().take(now, PACKET_BYTES as u64).is_zero() {
            return Outcome::Ignore;
        }
        self.answers.take(now, PACKET_BYTES as u64);
        Outcome::Answer(Packet { is_answer: true, ..call }.encode(&self.key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: MemberId = MemberId(1);
    const B: MemberId = MemberId(2);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn two() -> (Calls, Calls) {
        let (mut a, mut b) = (Calls::default(), Calls::default());
        a.handle_key(B, [7; 32], true, ms(0));
        b.handle_key(A, [7; 32], false, ms(0));
        (a, b)
    }

    fn answer(outcome: Outcome) -> [u8; PACKET_BYTES] {
        let Outcome::Answer(packet) = outcome else { panic!("{outcome:?}") };
        packet
    }

    #[test]
    fn a_call_is_answered_and_measured_either_way() {
        let (mut a, mut b) = two();
        for turn in 1..4 {
            let now = ms(1_000 * turn);
            let call = a.call(B, now).unwrap();
            let back = answer(b.handle_packet(&call, ms(9_000_000)));
            assert_eq!(a.handle_packet(&back, now + ms(40)), Outcome::RoundTrip(B, ms(40)));
            // Repeated packets do not count, and are not answered.
            assert_eq!(a.handle_packet(&back, now + ms(41)), Outcome::Ignore);
            assert_eq!(b.handle_packet(&call, ms(9_000_000)), Outcome::Ignore);
            let call = b.call(A, now).unwrap();
            let back = answer(a.handle_packet(&call, now));
            assert_eq!(b.handle_packet(&back, now + ms(5)), Outcome::RoundTrip(A, ms(5)));
        }
        assert_eq!(a.call(MemberId(3), ms(0)), None);
    }

    #[test]
    fn reflected_and_late_packets_do_not_count() {
        let (mut a, mut b) = two();
        let call = a.call(B, ms(0)).unwrap();
        assert_eq!(a.handle_packet(&call, ms(1)), Outcome::Ignore);
        let back = answer(b.handle_packet(&call, ms(1)));
        assert_eq!(b.handle_packet(&back, ms(1)), Outcome::Ignore);
        let late = ANSWER_MAX + ms(1);
        assert_eq!(a.handle_packet(&back, late), Outcome::Ignore);
        // The answer to a call that was given up does not count either.
        let first = a.call(B, late).unwrap();
        a.call(B, late).unwrap();
        let back = answer(b.handle_packet(&first, late));
        assert_eq!(a.handle_packet(&back, late), Outcome::Ignore);
    }

    #[test]
    fn strangers_and_forgers_are_not_answered() {
        let (mut a, mut b) = two();
        let call = a.call(B, ms(0)).unwrap();
        for at in 0..PACKET_BYTES {
            let mut forged = call;
            forged[at] ^= 1;
            assert_eq!(b.handle_packet(&forged, ms(0)), Outcome::Ignore, "byte {at}");
        }
        assert_eq!(b.handle_packet(&call[..63], ms(0)), Outcome::Ignore);
        let mut stranger = Calls::default();
        stranger.handle_key(B, [8; 32], true, ms(0));
        let call = stranger.call(B, ms(0)).unwrap();
        assert_eq!(b.handle_packet(&call, ms(0)), Outcome::Ignore);
        b.forget(A);
        let call = a.call(B, ms(0)).unwrap();
        assert!(!b.peers.contains_key(&A) && b.handle_packet(&call, ms(0)) == Outcome::Ignore);
    }

    #[test]
    fn answers_and_remembered_members_are_bounded() {
        let (mut a, mut b) = two();
        let mut answered = 0;
        for turn in 0..1_000 {
            let call = a.call(B, ms(turn)).unwrap();
            answered += u64::from(b.handle_packet(&call, ms(turn)) != Outcome::Ignore);
        }
        assert!((ANSWERS_PER_SECOND..=2 * ANSWERS_PER_SECOND).contains(&answered), "{answered}");
        for number in 0..2_000u64 {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            b.handle_key(MemberId(number), key, true, ms(number));
        }
        assert_eq!((b.peers.len(), b.by_key.len()), (MEMBERS_MAX, MEMBERS_MAX));
        let has = |it: u64| b.peers.contains_key(&MemberId(it));
        assert!(has(1_999) && !has(900));
    }

    proptest! {
        #[test]
        fn packets_are_read_as_they_were_written(
            flags in any::<(bool, bool)>(),
            key_id in any::<[u8; 8]>(),
            number in any::<u64>(),
            key in any::<[u8; 32]>(),
        ) {
            let packet = Packet { is_answer: flags.0, by_dialer: flags.1, key_id, number };
            let bytes = packet.encode(&key);
            prop_assert_eq!(Packet::parse(&bytes), Some(packet));
            prop_assert!(is_genuine(&bytes, &key));
        }

        #[test]
        fn random_bytes_are_ignored(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let (mut a, _) = two();
            prop_assert_eq!(a.handle_packet(&bytes, ms(0)), Outcome::Ignore);
        }
    }
}

//! Counts of the messages that members send, and their bounds.

use replicator::group::Message;

use super::member::Conduct;
use super::world::World;

/// A null call, or its answer (docs/links.md).
const CALL_BYTES: usize = 64;

/// Maximum number of messages of a member in a minute, whatever happens: over each link, a row or
/// beat of each member every 5 s and its holdings every 15 s, by clocks that run a quarter faster,
/// and 60 charters, digests and requests.
fn burst_max(members: usize) -> usize {
    (members - 1) * (22 * members + 60)
}

/// Returns a message's kind and its bytes.
fn kind(message: &Message) -> (&'static str, usize) {
    match message {
        Message::Charter(bytes) => ("charters", bytes.len()),
        Message::Row(bytes) => match bytes.first() {
            Some(1) => ("rows", bytes.len()),
            Some(2) => ("beats", bytes.len()),
            Some(4) => ("holdings", bytes.len()),
            _ => ("digests", bytes.len()),
        },
        Message::Join(bytes) | Message::Refused(bytes) => ("joins", bytes.len()),
    }
}

impl World {
    fn tally(&mut self, kind: &'static str, bytes: usize) {
        let sent = self.traffic.entry(kind).or_default();
        *sent = (sent.0 + 1, sent.1 + bytes as u64);
    }

    /// Counts a null call with its answer.
    pub(crate) fn count_call(&mut self) {
        self.tally("null calls", 2 * CALL_BYTES);
    }

    /// Counts a message, and checks that honest members do not send too many.
    pub(crate) fn count_message(&mut self, from: usize, message: &Message) {
        let (kind, bytes) = kind(message);
        self.tally(kind, bytes);
        if self.members[from].conduct == Conduct::Liar {
            return;
        }
        let minute = self.now.as_secs() / 60;
        let it = &mut self.members[from];
        if it.sent.0 != minute {
            it.sent = (minute, 0);
        }
        it.sent.1 += 1;
        it.sent_max = it.sent_max.max(it.sent.1);
        let bound = burst_max(self.members.len());
        assert!(
            self.members[from].sent.1 <= bound,
            "member {from} sends more than {bound} a minute"
        );
    }
}

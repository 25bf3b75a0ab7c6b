//! Conduct of dishonest members toward others.

use fastrand::Rng;
use replicator::id::MemberId;
use replicator::message::Message;
use replicator::replica::Replica;
use replicator::version::{Hash, Version};

/// Maximum number of messages that a member remembers, to repeat them.
const PAST_MAX: usize = 64;

/// A member's conduct toward others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// It keeps the rules.
    Honest,
    /// It receives everything, and never sends a chunk.
    Silent,
    /// Its chunks come at one byte a second.
    Slow,
    /// It claims to hold each announced version, and then to have no chunk of it.
    Boaster,
    /// It repeats old messages.
    Parrot,
    /// It changes every chunk that it sends.
    Forger,
    /// It drops and changes messages, repeats old ones, and claims to have no chunks.
    Liar,
}

/// Messages that a member has sent.
#[derive(Default)]
pub(crate) struct Past(Vec<Message>);

impl Past {
    fn keep(&mut self, message: Message, dice: &mut Rng) {
        if self.0.len() < PAST_MAX {
            self.0.push(message);
        } else {
            self.0[dice.usize(..PAST_MAX)] = message;
        }
    }

    fn any(&self, dice: &mut Rng) -> Option<Message> {
        (!self.0.is_empty()).then(|| self.0[dice.usize(..self.0.len())].clone())
    }
}

impl Conduct {
    /// Returns the messages that a member sends instead of a message.
    pub(crate) fn spoil(
        self,
        (me, replica): (MemberId, &Replica),
        message: Message,
        past: &mut Past,
        dice: &mut Rng,
    ) -> Vec<Message> {
        match (self, message) {
            (Self::Silent, Message::Chunk(_)) => Vec::new(),
            (Self::Boaster, Message::Chunk(bytes)) => vec![Message::Gone(vec![Hash::of(&bytes)])],
            (Self::Boaster, Message::Announce(announcement)) => {
                let namespace = Version::namespace_of(&announcement.version).unwrap();
                let number = replica.flood().newest(&namespace).unwrap().number;
                vec![Message::Announce(announcement), Message::Held { namespace, number }]
            }
            (Self::Forger, Message::Chunk(mut bytes)) => {
                bytes[0] ^= 1;
                vec![Message::Chunk(bytes)]
            }
            (Self::Parrot, message) => {
                past.keep(message.clone(), dice);
                let again = (dice.u8(..4) == 0).then(|| past.any(dice)).flatten();
                [message].into_iter().chain(again).collect()
            }
            (Self::Liar, message) => lie(me, message, past, dice),
            (_, message) => vec![message],
        }
    }
}

fn lie(me: MemberId, message: Message, past: &mut Past, dice: &mut Rng) -> Vec<Message> {
    match message {
        Message::Chunk(mut bytes) => match dice.u8(..4) {
            0 => Vec::new(),
            1 => vec![Message::Gone(vec![Hash::of(&bytes)])],
            2 => vec![Message::Chunk(bytes)],
            _ => {
                bytes[0] ^= 1;
                vec![Message::Chunk(bytes)]
            }
        },
        Message::Announce(mut announcement) => {
            let old = past.any(dice);
            past.keep(Message::Announce(announcement.clone()), dice);
            match dice.u8(..4) {
                0 => return old.into_iter().collect(),
                1 => {
                    let at = dice.usize(..announcement.version.len());
                    announcement.version[at] ^= 1 << dice.u8(..8);
                }
                2 => announcement.route.entry = me,
                _ => {}
            }
            vec![Message::Announce(announcement)]
        }
        message => vec![message],
    }
}

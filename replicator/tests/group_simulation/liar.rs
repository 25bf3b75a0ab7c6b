//! A lying neighbor: it drops, changes, forges and repeats messages.

use std::time::Duration;

use fastrand::Rng;
use net::identity::Identity;
use replicator::estimate::{Estimate, LinkEstimate, Row};
use replicator::group::Message;
use replicator::id::GroupId;

use super::member::Member;

/// Maximum number of messages that a liar remembers, to repeat them.
const MEMORY: usize = 64;

/// Remembers a message, to repeat it some time.
pub(crate) fn remember(member: &mut Member, message: &Message, dice: &mut Rng) {
    if member.memory.len() < MEMORY {
        member.memory.push(message.clone());
    } else if dice.u8(..4) == 0 {
        member.memory[dice.usize(..MEMORY)] = message.clone();
    }
}

/// Returns the messages that a liar sends instead of a message.
pub(crate) fn spoil(member: &mut Member, message: &Message, dice: &mut Rng) -> Vec<Message> {
    remember(member, message, dice);
    let old = member.memory[dice.usize(..member.memory.len())].clone();
    match dice.u8(..25) {
        0 => Vec::new(),
        1..=4 => vec![message.clone(), old],
        5 => vec![changed(message, dice)],
        6 => vec![changed(&old, dice), message.clone()],
        7 => vec![disguised(&old, dice)],
        8 => vec![exaggerated(member, dice), message.clone()],
        9 => (1..20).map(|it| own(member, it, dice)).collect(),
        10 => vec![held(member, dice), message.clone()],
        _ => vec![message.clone()],
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    let (Message::Charter(bytes)
    | Message::Row(bytes)
    | Message::Join(bytes)
    | Message::Refused(bytes)) = message;
    bytes.to_vec()
}

/// Changes one bit of a message.
fn changed(message: &Message, dice: &mut Rng) -> Message {
    let mut bytes = bytes(message);
    let at = dice.usize(..bytes.len());
    bytes[at] ^= 1 << dice.u8(..8);
    match message {
        Message::Charter(_) => Message::Charter(bytes.into()),
        Message::Row(_) => Message::Row(bytes.into()),
        Message::Join(_) => Message::Join(bytes.into()),
        Message::Refused(_) => Message::Refused(bytes.into()),
    }
}

/// Sends the bytes as a message of another kind.
fn disguised(message: &Message, dice: &mut Rng) -> Message {
    let bytes = bytes(message).into();
    match dice.u8(..4) {
        0 => Message::Charter(bytes),
        1 => Message::Row(bytes),
        2 => Message::Join(bytes),
        _ => Message::Refused(bytes),
    }
}

/// Claims to know newer rows of all members than there are.
fn exaggerated(member: &Member, dice: &mut Rng) -> Message {
    let mut bytes = vec![3, u8::from(dice.bool())];
    let charter = member.group.as_ref().and_then(|it| it.charter());
    bytes.extend(charter.map_or(0, |it| it.epoch()).to_be_bytes());
    bytes.extend(charter.map_or(0, |it| it.revision() + 9).to_be_bytes());
    bytes.extend([9; 32]);
    for other in charter.iter().flat_map(|it| &it.body().members) {
        bytes.extend(other.id().0.to_be_bytes());
        bytes.extend((u64::MAX - dice.u64(..9)).to_be_bytes());
        bytes.extend([0, 9]);
        bytes.extend((u64::MAX - dice.u64(..9)).to_be_bytes());
    }
    Message::Row(bytes.into())
}

/// Makes a row of its own with a sequence that rises too fast, and links that are too good.
fn own(member: &Member, step: u64, dice: &mut Rng) -> Message {
    let group = member.group.as_ref().map_or(GroupId(0), |it| it.id());
    let identity: &Identity = &member.identity;
    let mut estimate = Estimate::default();
    estimate.handle_round_trip(Duration::from_micros(1), Duration::ZERO);
    estimate.handle_probe(u64::MAX, false, Duration::ZERO);
    let entry = LinkEstimate::new(dice.u64(..), &estimate, Duration::ZERO);
    let sequence = (u64::from(u16::MAX) << 32) + dice.u64(..9) + step;
    let row = Row { from: member.id.0, sequence, entries: vec![entry] };
    let mut bytes = vec![1];
    bytes.extend([3; 32]);
    bytes.extend(row.to_bytes());
    let text = [b"harvest replicator row\0", group.0.to_be_bytes().as_slice(), &bytes].concat();
    bytes.extend(identity.sign_raw(&text));
    Message::Row(bytes.into())
}

/// Claims holdings that do not exist, for itself or for another member.
fn held(member: &Member, dice: &mut Rng) -> Message {
    let group = member.group.as_ref().map_or(GroupId(0), |it| it.id());
    let charter = member.group.as_ref().and_then(|it| it.charter());
    let others: Vec<u64> =
        charter.iter().flat_map(|it| &it.body().members).map(|it| it.id().0).collect();
    let from = if others.is_empty() { member.id.0 } else { others[dice.usize(..others.len())] };
    let mut bytes = vec![4];
    bytes.extend(from.to_be_bytes());
    bytes.extend(((u64::from(u16::MAX) << 32) + dice.u64(..99)).to_be_bytes());
    bytes.extend([0, 0]);
    for _ in 0..dice.usize(..3) {
        bytes.extend((0..24).map(|_| dice.u8(..)).collect::<Vec<u8>>());
    }
    let text = [b"harvest replicator held\0", group.0.to_be_bytes().as_slice(), &bytes].concat();
    bytes.extend(member.identity.sign_raw(&text));
    Message::Row(bytes.into())
}

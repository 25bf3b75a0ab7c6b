//! Fuzzing of NNTP: any bytes as a dialog, in pieces and in one; as overviews; and as the numbers
//! of a group. Blocks are within bounds, and overviews are of the range.

#![no_main]

use libfuzzer_sys::fuzz_target;
use net::nntp::{Codec, Event, Flaw, Group, Overviews};

const BLOCK_BYTES_MAX: usize = 1_024;

fn read(bytes: &[u8], piece: usize) -> (Vec<Event>, Option<Flaw>) {
    let mut codec = Codec::new(BLOCK_BYTES_MAX);
    let mut events = Vec::new();
    for piece in bytes.chunks(piece) {
        codec.feed(piece);
        loop {
            match codec.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(flaw) => return (events, Some(flaw)),
            }
        }
    }
    (events, None)
}

fuzz_target!(|bytes: &[u8]| {
    let (events, flaw) = read(bytes, 7);
    assert_eq!((&events, flaw), (&read(bytes, usize::MAX).0, read(bytes, usize::MAX).1));
    for event in events {
        let (Event::Reply(reply) | Event::Block(reply, _)) = &event;
        if let Some(group) = Group::parse(&reply.text, "a") {
            assert!(group.ranges(0).take(3).all(|it| it.start() <= it.end()));
        }
        let Event::Block(_, block) = &event else { continue };
        assert!(block.bytes.len() <= BLOCK_BYTES_MAX);
        let overviews = Overviews::parse(&block.bytes, 1, 1_000).articles;
        assert!(overviews.iter().all(|it| (1..=1_000).contains(&it.number)));
    }
});

//! Fuzzing of manifests: any bytes as a manifest, and as lists of chunks that lead to one. Cut in
//! any way, they are read the same; parsed items are written as the same bytes; bounds hold.

#![no_main]

use libfuzzer_sys::fuzz_target;
use replicator::tree::levels::{LEVELS_MAX, LOOK_AHEAD_CHUNKS, NODE_RECORDS_MAX, Walk};
use replicator::tree::manifest::{Decoder, Encoder, Format, Item, ParseError};
use replicator::version::{Hash, Kind};

fn decode(parts: &[&[u8]]) -> Result<(Format, Vec<Item>), ParseError> {
    let (mut decoder, mut items) = (Decoder::default(), Vec::new());
    for part in parts {
        decoder.feed(part);
        while let Some(item) = decoder.next_item()? {
            items.push(item);
        }
    }
    let format = decoder.format();
    decoder.finish()?;
    Ok((format, items))
}

/// Walks the lists: the first chunk is the root; each other one is given for the first wanted one.
fn walk(bytes: &[u8]) {
    let mut pieces = bytes.split(|it| *it == 0xfe);
    let root = pieces.next().unwrap_or_default();
    let Ok(mut walk) = Walk::new(Kind::Tree, &Hash::of(root), root) else { return };
    for piece in pieces {
        let wanted: Vec<_> = walk.wanted().collect();
        assert!(wanted.len() <= LOOK_AHEAD_CHUNKS);
        let Some(first) = wanted.first() else { break };
        if walk.take(&first.hash, piece).is_err() {
            return;
        }
        while walk.next_bytes().is_some() {}
        let lists = 1 + usize::from(LEVELS_MAX);
        assert!(walk.wanted().count() <= lists * NODE_RECORDS_MAX);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let whole = decode(&[bytes]);
    let (a, b) = bytes.split_at(bytes.len() / 2);
    assert_eq!(whole, decode(&[a, b]));
    if let Ok((format, items)) = whole {
        let (mut encoder, mut again) = (Encoder::new(format), Vec::new());
        for item in &items {
            match item {
                Item::Entry(entry) => encoder.entry(entry, &mut again).expect("it was read"),
                Item::Extent(extent) => encoder.extent(*extent, &mut again).expect("it was read"),
            }
        }
        encoder.finish(&mut again).expect("it was read");
        assert_eq!(again, bytes);
    }
    walk(bytes);
});

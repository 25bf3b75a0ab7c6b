//! Any bytes as a feed or a segment: the same members whatever the pieces, and no panic in what they
//! hold. To get past the checksums, what is fuzzed may also be put behind a good member.

#![no_main]

use collection::member::{Decoder, end_mark};
use collection::{Epoch, Version};
use libfuzzer_sys::fuzz_target;

/// Largest member, in bytes.
const MEMBER_BYTES_MAX: usize = 64 * 1024;

/// What a stream holds, in short, and how it ends.
fn read(stream: &[u8], piece: usize) -> (Vec<String>, Option<String>) {
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    let mut seen = Vec::new();
    let mut run = || {
        for bytes in stream.chunks(piece) {
            decoder.feed(bytes);
            while let Some(member) = decoder.next_member()? {
                seen.push(format!("{:?} {:?}", member.changes(), member.notes()));
            }
        }
        decoder.finish()
    };
    let error = run().err().map(|error| error.to_string());
    (seen, error)
}

fuzz_target!(|input: (u8, u64, &[u8])| {
    let (piece, serial, bytes) = input;
    let mut stream = end_mark(Version { epoch: Epoch(serial), serial });
    if piece % 2 == 0 {
        stream.clear();
    }
    stream.extend_from_slice(bytes);
    let whole = read(&stream, stream.len().max(1));
    assert_eq!(whole, read(&stream, usize::from(piece).max(1)));
});

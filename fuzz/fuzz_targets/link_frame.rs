//! Fuzzing of link frames: bytes cut in any way give the same frames, or the same error.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use replicator::link::frame::{Decoder, Error, Frame};

fn decode(parts: &[&[u8]]) -> (Vec<(Frame, bool)>, Option<Error>) {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for part in parts {
        decoder.space().extend_from_slice(part);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fuzz_target!(|bytes: &[u8]| {
    let whole = decode(&[bytes]);
    let (a, b) = bytes.split_at(bytes.len() / 2);
    assert_eq!(whole, decode(&[a, b]));
    let mut again = BytesMut::new();
    for (frame, pressed) in &whole.0 {
        frame.encode(*pressed, &mut again);
    }
    assert_eq!(decode(&[&again]).0, whole.0);
});

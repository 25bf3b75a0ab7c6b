//! Fuzzing of Gopher answers: any bytes as an object of the type that the first byte names, in
//! pieces. Objects are within bounds, the same in one piece, and the URLs of a menu name what its
//! items name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use net::gopher::{Codec, Fetched, Kind, Menu, Selector};

const BYTES_MAX: usize = 4_096;

fn read(kind: Kind, bytes: &[u8], piece: usize) -> Result<Fetched, String> {
    let mut codec = Codec::new(kind, BYTES_MAX);
    let _ = bytes.chunks(piece).any(|it| codec.feed(it));
    codec.finish()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let kind = Kind::of(*first);
    let read = [read(kind, bytes, 7), read(kind, bytes, usize::MAX)];
    assert_eq!(read[0], read[1]);
    let content = read[0].as_ref().map_or(bytes, |it| &it.bytes);
    assert!(read[0].is_err() || content.len() <= BYTES_MAX);
    for item in Menu::parse(content).items {
        if let Some(url) = item.url().filter(|it| it.scheme() == "gopher") {
            let url = url.as_str().parse().expect("a URL that was written is read");
            let selector = Selector { kind: item.kind, text: item.selector };
            assert_eq!(Selector::of(&url), Ok(selector));
        }
    }
});

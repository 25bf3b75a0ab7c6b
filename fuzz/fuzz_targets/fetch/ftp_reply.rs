//! Fuzzing of FTP replies: any bytes, in pieces and in one. What a reply says of ports and paths is
//! read without failing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use net::ftp::{Flaw, Replies, Reply};

fn read(bytes: &[u8], piece: usize) -> (Vec<Reply>, Option<Flaw>) {
    let mut replies = Replies::default();
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        replies.feed(piece);
        loop {
            match replies.next_reply() {
                Ok(Some(reply)) => found.push(reply),
                Ok(None) => break,
                Err(flaw) => return (found, Some(flaw)),
            }
        }
    }
    (found, None)
}

fuzz_target!(|bytes: &[u8]| {
    let read = [read(bytes, 7), read(bytes, usize::MAX)];
    assert_eq!(read[0], read[1]);
    for reply in &read[0].0 {
        assert!(reply.code < 1_000 && !reply.lines.is_empty());
        assert!(reply.shown().chars().all(|it| !it.is_control()));
        let ports = [reply.extended_port(), reply.passive_port()];
        assert!(!ports.contains(&Some(0)));
        let _ = (reply.path(), reply.size(), reply.moment(), reply.facts());
    }
});

//! Fuzzing of ICP datagrams: what is read is written alike, and no answer is longer than its query.

#![no_main]

use cache::icp::{Datagram, Opcode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(datagram) = Datagram::read(bytes) else { return };
    let written = datagram.write().expect("what fits in a datagram fits in one again");
    assert!(written.len() <= bytes.len());
    assert_eq!(Datagram::read(&written), Ok(datagram.clone()));
    let answer = datagram.answer(Opcode::Miss).write().expect("it is no longer than the query");
    assert!(answer.len() <= bytes.len());
});

//! Fuzzing of null calls: any bytes get no answer without the key, and a parsed packet is encoded to the same bytes.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use replicator::id::MemberId;
use replicator::link::call::{Calls, Outcome, Packet};

fuzz_target!(|bytes: &[u8]| {
    let mut calls = Calls::default();
    calls.handle_key(MemberId(1), [7; 32], true, Duration::ZERO);
    assert_eq!(calls.handle_packet(bytes, Duration::ZERO), Outcome::Ignore);
    if let Some(packet) = Packet::parse(bytes) {
        let again = packet.encode(&[7; 32]);
        assert_eq!(Packet::parse(&again), Some(packet));
        assert_eq!(again[..48], bytes[..48]);
    }
});

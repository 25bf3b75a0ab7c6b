//! Fuzzing of null calls: bytes without the key get no answer; parsed packets are encoded alike.

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

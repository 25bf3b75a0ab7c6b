//! Any bytes as what a worker says, or is told: refused, or read within its bounds and the same when
//! written again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| essence::worker::fuzzing::frames(bytes));

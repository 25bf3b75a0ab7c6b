//! Fuzzing of the worker protocol: any bytes as a frame to or from a worker are refused, or read
//! within bounds and written back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| essence::worker::fuzzing::frames(bytes));

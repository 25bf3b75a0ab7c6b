//! Any name (up to the first NUL) and any content: a type, and the same one when asked again.

#![no_main]

use gatherer::typing::recognize;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (name, head) = bytes.split_at(split);
    let name = String::from_utf8_lossy(name);
    assert_eq!(recognize(&name, head), recognize(&name, head));
});

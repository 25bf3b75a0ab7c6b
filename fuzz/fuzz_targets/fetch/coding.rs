//! Fuzzing of content codings: any bytes under any list of codings give at most as many bytes as are
//! asked for, and more of them give no others in front.

#![no_main]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use net::coding::decode;

const BYTES_MAX: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, body)) = bytes.split_first() else { return };
    let name = |it: u8| ["gzip", "br", "zstd", "identity"][usize::from(it & 3)];
    let codings = format!("{}, {}", name(*which), name(which >> 2));
    let value = HeaderValue::try_from(codings).unwrap();
    let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, value)]);
    let Ok(all) = decode(&headers, Bytes::copy_from_slice(body), false, BYTES_MAX) else { return };
    assert!(all.bytes.len() <= BYTES_MAX);
    let half = all.bytes.len() / 2;
    let front = decode(&headers, Bytes::copy_from_slice(body), true, half).unwrap();
    assert!(front.is_cut && front.bytes.len() <= half && all.bytes.starts_with(&front.bytes));
});

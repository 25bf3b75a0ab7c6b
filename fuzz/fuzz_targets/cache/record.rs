//! Fuzzing of the heads of the cache's records: what is read is written and read alike.

#![no_main]

use cache::policy::freshness::Rules;
use cache::store::record::{read_head, write_head};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((url, head, sums)) = read_head(bytes, |_| Rules::default()) else { return };
    let written = write_head(&url, &head, &sums);
    let (other_url, other, other_sums) =
        read_head(&written, |_| Rules::default()).expect("what was written is read");
    assert_eq!((&url, &sums), (&other_url, &other_sums));
    assert_eq!((head.status, &head.headers, &head.vary), (other.status, &other.headers, &other.vary));
});

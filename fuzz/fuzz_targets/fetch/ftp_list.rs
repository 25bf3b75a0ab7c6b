//! Fuzzing of lists of files: any bytes as facts and as what LIST gives, at a time that the first
//! bytes name. No name leads out of its folder or is another command, and no path of a folder does.

#![no_main]

use libfuzzer_sys::fuzz_target;
use net::ftp::{Form, Listing};

fuzz_target!(|bytes: &[u8]| {
    let Some((now, text)) = bytes.split_at_checked(4) else { return };
    let now = now.iter().fold(0_i64, |sum, it| sum << 8 | i64::from(*it));
    for form in [Form::Free, Form::Facts] {
        let listing = Listing::parse(text, form, now);
        assert!(!listing.folders.is_empty());
        let lines = text.split(|it| *it == b'\n').count();
        let entries: usize = listing.folders.iter().map(|it| it.entries.len()).sum();
        assert!(entries + listing.left_out <= lines);
        for folder in &listing.folders {
            let mut names = folder.path.split(|it| *it == b'/');
            assert!(names.all(|it| it != b".." && !it.iter().any(u8::is_ascii_control)));
            for entry in &folder.entries {
                let name = entry.name.as_slice();
                assert!(!matches!(name, b"" | b"." | b".."));
                assert!(!name.iter().any(|it| *it == b'/' || it.is_ascii_control()));
            }
        }
    }
});

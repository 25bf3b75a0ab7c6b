//! The body of a notification: the new version.
//!
//! Source: WebSub §7.
//!
//! # Differences from the standard
//!
//! * The body is not the content of the topic, which is too much for a collection, but a line with
//!   its version, `EPOCH-SERIAL`. It is empty if the version is unknown. The subscriber then pulls.
//!
//! Sans-I/O.

use collection::Version;

/// Media type of the body.
pub const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// Maximum length of a line that is read, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// Returns the body that announces a version.
pub fn body(version: Option<Version>) -> String {
    version.map_or_else(String::new, |it| format!("{it}\n"))
}

/// Reads the version in a body; `None` if it has none, such as the content of a foreign topic.
pub fn read(body: &[u8]) -> Option<Version> {
    let head = body.get(..LINE_BYTES_MAX.min(body.len()))?;
    let line = head.split(|it| *it == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use collection::Epoch;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_foreign_body_names_no_version() {
        // The last one is of a hub that sends the changes themselves.
        for body in ["", "<feed/>", "\n1", "harvest-changes 1 00000000000000ff 1 2 3\n\x1f"] {
            assert_eq!(read(body.as_bytes()), None, "{body}");
        }
        let version = Version { epoch: Epoch(255), serial: 7 };
        assert_eq!(body(Some(version)), "00000000000000ff-7\n");
        assert_eq!(read(b"00000000000000ff-7"), Some(version));
    }

    proptest! {
        #[test]
        fn a_written_body_is_read(epoch in any::<u64>(), serial in any::<u64>()) {
            for version in [None, Some(Version { epoch: Epoch(epoch), serial })] {
                prop_assert_eq!(read(body(version).as_bytes()), version);
            }
        }

        #[test]
        fn any_body_is_read(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&body);
        }
    }
}

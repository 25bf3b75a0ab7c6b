//! The content of notifications.
//!
//! Source: WebSub §7 (the body is the content of the topic).
//!
//! # Differences from the standard
//!
//! * A thin notification has a line with the version, `EPOCH-SERIAL`, or is empty if the version is
//!   unknown: the subscriber then pulls.
//! * A fat notification, which only Harvest subscribers request, has the feed's answer to a
//!   consumer at the acknowledged version. One line before it says which part of the feed it is.
//!   This line is not a header, because the signature covers only the body.
//!
//! Sans-I/O.

use bytes::Bytes;
use collection::pull::Pushed;
use collection::{Epoch, Version, member};

/// Largest body of a fat notification, in bytes; larger changes become a thin one, and are pulled.
pub const FAT_BYTES_MAX: u64 = 256 * 1024;

/// Media type of a thin notification.
pub const THIN_TYPE: &str = "text/plain; charset=utf-8";

/// Media type of a fat notification.
pub const FAT_TYPE: &str = "application/x-harvest-changes";

/// First word of a fat notification.
const MARK: &str = "harvest-changes";

/// Longest first line, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// A notification from a source's hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There is a new version, with its number if known.
    Thin(Option<Version>),
    /// The changes themselves.
    Fat(Pushed),
}

impl Notice {
    /// Returns the body.
    pub fn body(&self) -> Bytes {
        match self {
            Self::Thin(None) => Bytes::new(),
            Self::Thin(Some(version)) => format!("{version}\n").into(),
            Self::Fat(Pushed { from, to, objects, members }) => {
                let (format, Version { epoch, serial }) = (member::FORMAT, to);
                let mut body =
                    format!("{MARK} {format} {epoch} {from} {serial} {objects}\n").into_bytes();
                body.extend_from_slice(members);
                body.into()
            }
        }
    }

    /// Returns its media type.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Thin(_) => THIN_TYPE,
            Self::Fat(_) => FAT_TYPE,
        }
    }

    /// Reads a body from any hub; a foreign body is a thin notification.
    pub fn read(body: &Bytes) -> Self {
        let head = body.get(..LINE_BYTES_MAX.min(body.len())).unwrap_or_default();
        let line = head.split(|it| *it == b'\n').next().unwrap_or_default();
        let text = std::str::from_utf8(line).unwrap_or_default();
        match text.strip_prefix(MARK) {
            Some(rest) => fat(rest, body.slice((line.len() + 1).min(body.len())..)),
            None => Self::Thin(text.parse().ok()),
        }
    }
}

/// Reads a fat notification; an unreadable one counts as thin.
fn fat(line: &str, members: Bytes) -> Notice {
    let read = || {
        let mut words = line.split_ascii_whitespace();
        let format: u8 = words.next()?.parse().ok()?;
        let epoch: Epoch = words.next()?.parse().ok()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (from, serial, objects) = (number()?, number()?, number()?);
        let to = Version { epoch, serial };
        (format == member::FORMAT).then_some(Pushed { from, to, objects, members })
    };
    read().map_or(Notice::Thin(None), Notice::Fat)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_foreign_body_is_a_thin_notification() {
        for body in ["", "<feed/>", "\n1", "harvest-changes", "harvest-changes 9 00 1 2 3\nx"] {
            assert_eq!(Notice::read(&Bytes::from(body)), Notice::Thin(None), "{body}");
        }
        let version = Version { epoch: Epoch(255), serial: 7 };
        let thin = Notice::Thin(Some(version));
        assert_eq!(thin.body(), "00000000000000ff-7\n");
        assert_eq!(Notice::read(&Bytes::from("00000000000000ff-7")), thin);
    }

    proptest! {
        #[test]
        fn a_written_notice_is_read(epoch in any::<u64>(), from in any::<u64>(), serial in any::<u64>(),
                                 objects in any::<u64>(),
                                 members in prop::collection::vec(any::<u8>(), 0..300)) {
            let to = Version { epoch: Epoch(epoch), serial };
            let fat = Notice::Fat(Pushed { from, to, objects, members: members.into() });
            for notice in [fat, Notice::Thin(Some(to)), Notice::Thin(None)] {
                prop_assert_eq!(Notice::read(&notice.body()), notice);
            }
        }

        #[test]
        fn any_body_is_read(body in prop::collection::vec(any::<u8>(), 0..300), ours in any::<bool>()) {
            let head = if ours { MARK.as_bytes().to_vec() } else { Vec::new() };
            let _ = Notice::read(&Bytes::from([head, body].concat()));
        }
    }
}

//! The protocol between a gatherer and its worker: frames, each a head in JSON and a body of bytes.
//!
//! A frame is the length of the head (4 bytes, little-endian), the length of the body (8 bytes),
//! the head and the body. The gatherer sends an [`Order`] first. A worker that serves then gets a
//! [`Request`] for each object, whose body is the object's bytes. It answers the order with a
//! [`Ready`], and each request with several [`Reply`] frames: one for each summary, and an end. The
//! body of a summary is its record in SOIF, followed by the object for a program of the site, if
//! there is one.
//!
//! Both ends are the same build of the same program, so the protocol has no versions.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use formats::object::{Object, Problem, ProgramInput, Summary};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use soif::digest::Md5;
use soif::reader::parse;
use soif::writer::write_record;

use super::fence::ProgramFence;
use crate::extract::EssenceSettings;
use crate::select::LeftOut;

/// Maximum length of a head, in bytes; it may hold problems or settings.
const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum length of a body, in bytes: an object, or a record and an object for a program.
const BODY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The first frame to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Summarize objects.
    Serve {
        settings: Box<EssenceSettings>,
        /// Maximum memory of the worker, in bytes.
        memory_bytes_max: u64,
    },
    /// Become a program of the site, which gets the bytes after this frame as its standard input.
    Become {
        fence: ProgramFence,
        /// Its working directory.
        folder: PathBuf,
        /// The program and its arguments.
        words: Vec<String>,
        /// Additional environment variables.
        variables: Vec<(String, PathBuf)>,
    },
}

/// A worker's answer to the order, sent before it reads the first object.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Fences that the system lacks, each described with its purpose.
    pub(super) missing: Vec<String>,
}

/// An object to summarize; its bytes are the frame's body.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    url: String,
    name: String,
    modified: Option<u64>,
    size: u64,
    truncated: bool,
    md5: Option<String>,
    /// Time limit for the object, in milliseconds; the answer has the summaries made until then.
    pub(super) time_ms_max: u64,
}

impl Request {
    pub(super) fn of(object: &Object, time_ms_max: u64) -> Self {
        Self {
            url: object.url.clone(),
            name: object.name.clone(),
            modified: object.modified,
            size: object.size,
            truncated: object.truncated,
            md5: object.md5.map(|it| it.to_string()),
            time_ms_max,
        }
    }

    pub(super) fn object(self, body: Vec<u8>) -> Object {
        Object {
            url: self.url,
            name: self.name,
            bytes: Bytes::from(body),
            modified: self.modified,
            size: self.size,
            truncated: self.truncated,
            md5: self.md5.and_then(|it| Md5::from_hex(it.as_bytes())),
        }
    }
}

/// One frame of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// A summary; its record is the front of the frame's body.
    Summary {
        problems: Vec<Problem>,
        /// Head of the object that is in the rest of the body.
        given: Option<GivenHead>,
    },
    /// End of the answer.
    End {
        /// Number of objects that were left out, by reason.
        left_out: Vec<(LeftOut, u64)>,
    },
}

/// An object for a program of the site; its bytes are the end of the frame's body.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GivenHead {
    name: String,
    bytes: usize,
}

pub(super) fn write_summary(to: &mut impl Write, summary: Summary) -> io::Result<()> {
    let mut record = Vec::new();
    write_record(&mut record, &summary.record);
    let Some(ProgramInput { name, bytes }) = summary.given else {
        let reply = Reply::Summary { problems: summary.problems, given: None };
        return write(to, &reply, &[&record]);
    };
    let given = Some(GivenHead { name, bytes: bytes.len() });
    write(to, &Reply::Summary { problems: summary.problems, given }, &[&record, &bytes])
}

/// Returns the summary in a frame; `None` if it is not valid.
pub(super) fn summary(
    problems: Vec<Problem>,
    given: Option<GivenHead>,
    body: Vec<u8>,
) -> Option<Summary> {
    let mut front = Bytes::from(body);
    let given = match given {
        Some(GivenHead { name, bytes }) => {
            let bytes = front.split_off(front.len().checked_sub(bytes)?);
            Some(ProgramInput { name, bytes })
        }
        None => None,
    };
    let record = parse(&front).ok()?.into_iter().next()?;
    Some(Summary { record, problems, given })
}

/// Writes a frame whose body is in parts.
///
/// # Errors
///
/// The other end is gone or does not read in time, or the frame is too long.
pub(super) fn write(to: &mut impl Write, head: &impl Serialize, body: &[&[u8]]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    let body_bytes = body.iter().map(|it| it.len()).sum::<usize>();
    let lengths = (u32::try_from(head.len()), u64::try_from(body_bytes));
    let (Ok(head_bytes), Ok(body_bytes)) = lengths else { return Err(too_long()) };
    let mut front = Vec::with_capacity(12 + head.len());
    front.extend_from_slice(&head_bytes.to_le_bytes());
    front.extend_from_slice(&body_bytes.to_le_bytes());
    front.extend_from_slice(&head);
    to.write_all(&front)?;
    body.iter().try_for_each(|part| to.write_all(part))?;
    to.flush()
}

/// Reads a frame whose body has at most `body_bytes_max` bytes.
///
/// # Errors
///
/// The other end is gone (`UnexpectedEof`), does not write in time, or writes no valid frame or a
/// too long one (`InvalidData`).
pub(super) fn read<T: DeserializeOwned>(
    from: &mut impl Read,
    body_bytes_max: u64,
) -> io::Result<(T, Vec<u8>)> {
    let (mut head_bytes, mut body_bytes) = ([0; 4], [0; 8]);
    from.read_exact(&mut head_bytes)?;
    from.read_exact(&mut body_bytes)?;
    let head_bytes = usize::try_from(u32::from_le_bytes(head_bytes)).unwrap_or(usize::MAX);
    let body_bytes = u64::from_le_bytes(body_bytes);
    if HEAD_BYTES_MAX < head_bytes || body_bytes_max.min(BODY_BYTES_MAX) < body_bytes {
        return Err(too_long());
    }
    let mut head = vec![0; head_bytes];
    from.read_exact(&mut head)?;
    let mut body = Vec::new();
    // The buffer grows with the bytes that arrive, not with the announced length.
    if from.take(body_bytes).read_to_end(&mut body)? as u64 != body_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((serde_json::from_slice(&head)?, body))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is too long")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn objects_arrive_as_sent(
            url in "\\PC{0,20}",
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            modified in any::<Option<u64>>(),
            truncated in any::<bool>(),
        ) {
            let md5 = Some(Md5::of(&bytes));
            let object = Object { modified, truncated, md5, ..Object::whole(url, bytes) };
            let mut wire = Vec::new();
            write(&mut wire, &Request::of(&object, 7), &[&object.bytes]).unwrap();
            let (request, body): (Request, _) = read(&mut wire.as_slice(), 1000).unwrap();
            prop_assert_eq!(request.time_ms_max, 7);
            let received = request.object(body);
            prop_assert_eq!((received.url, received.name, received.bytes), (object.url, object.name, object.bytes));
            prop_assert_eq!((received.modified, received.size, received.truncated, received.md5), (modified, object.size, truncated, md5));
        }

        #[test]
        fn summaries_arrive_as_sent(
            value in proptest::collection::vec(any::<u8>(), 0..100),
            given in proptest::option::of((".{0,9}", proptest::collection::vec(any::<u8>(), 0..300))),
        ) {
            let mut record = soif::Record::new("FILE", "http://h.example/a");
            record.push("Title", value);
            let given = given.map(|(name, bytes)| ProgramInput { name, bytes: bytes.into() });
            let problem = Problem::new("http://h.example/a", formats::object::ProblemKind::Limit, "x");
            let sent = Summary { record, problems: vec![problem], given };
            let mut wire = Vec::new();
            write_summary(&mut wire, sent.clone()).unwrap();
            let (Reply::Summary { problems, given }, body) = read(&mut wire.as_slice(), 1000).unwrap()
            else { panic!() };
            prop_assert_eq!(summary(problems, given, body), Some(sent));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read::<Reply>(&mut bytes.as_slice(), 1000);
        }
    }

    #[test]
    fn long_and_truncated_frames_are_refused() {
        let mut wire = Vec::new();
        write(&mut wire, &Reply::End { left_out: Vec::new() }, &[&[1; 60], &[2; 40]]).unwrap();
        assert!(read::<Reply>(&mut wire.as_slice(), 100).is_ok());
        let kind = |bytes: &[u8], most| read::<Reply>(&mut &*bytes, most).unwrap_err().kind();
        assert_eq!(kind(&wire, 99), io::ErrorKind::InvalidData);
        assert_eq!(kind(&wire[..wire.len() - 1], 100), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 100), io::ErrorKind::InvalidData);
    }
}

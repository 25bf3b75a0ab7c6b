//! What goes between a gatherer and its worker: frames, each a head in JSON and a body of bytes.
//!
//! A frame is the head's length (4 bytes, little-endian), the body's (8 bytes), the head and the body.
//! The gatherer sends an [`Order`] first, then, of a worker that is to serve, an [`Ask`] for each object, whose body is the object's
//! bytes. The worker answers the order with a [`Ready`], and each ask with [`Told`]s, one a summary
//! (the body is its record in SOIF, and then what a program of the site is to be given, if anything), up
//! to one that says it is the last.
//!
//! Both ends are the same build of the same program, so that there are no versions.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use formats::object::{Given, Object, Problem, Summary};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use soif::digest::Md5;
use soif::reader::parse;
use soif::writer::write_record;

use super::fence;
use crate::extract::EssenceSettings;
use crate::select::LeftOut;

/// Longest head, in bytes; problems and settings are in it.
const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest body, in bytes: an object, or the record of one.
const BODY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The first thing that a worker is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// To summarize objects.
    Serve {
        /// How objects are summarized.
        settings: Box<EssenceSettings>,
        /// Most memory that the worker may take, in bytes.
        memory_bytes_max: u64,
    },
    /// To become a program of the site, which reads what comes behind this.
    Become {
        /// What is left to it.
        fence: fence::Program,
        /// Where it begins.
        folder: PathBuf,
        /// The program and its arguments.
        words: Vec<String>,
        /// What its environment has besides.
        variables: Vec<(String, PathBuf)>,
    },
}

/// What a worker says before it takes the first object.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// The fences that the system does not have, each with what it would have kept off.
    pub(super) missing: Vec<String>,
}

/// An object to summarize; its bytes are the frame's body.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask {
    url: String,
    name: String,
    modified: Option<u64>,
    size: u64,
    truncated: bool,
    md5: Option<String>,
    /// How long it may take, in milliseconds; what has been found by then is the answer.
    pub(super) time_ms_max: u64,
}

impl Ask {
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

/// A part of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// A summary; its record is the front of the frame's body.
    Summary {
        /// What went wrong with it.
        problems: Vec<Problem>,
        /// What the rest of the body is.
        given: Option<GivenHead>,
    },
    /// There are no more.
    End {
        /// How often objects were left out, by reason.
        left_out: Vec<(LeftOut, u64)>,
    },
}

/// An object for a program of the site; its bytes are the end of the frame's body.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GivenHead {
    name: String,
    bytes: usize,
}

/// Writes a summary.
///
/// # Errors
///
/// As [`write`].
pub(super) fn write_summary(to: &mut impl Write, summary: Summary) -> io::Result<()> {
    let mut record = Vec::new();
    write_record(&mut record, &summary.record);
    let Some(Given { name, bytes }) = summary.given else {
        let told = Told::Summary { problems: summary.problems, given: None };
        return write(to, &told, &[&record]);
    };
    let given = Some(GivenHead { name, bytes: bytes.len() });
    write(to, &Told::Summary { problems: summary.problems, given }, &[&record, &bytes])
}

/// Returns the summary that a frame holds; `None` if it is none.
pub(super) fn summary(
    problems: Vec<Problem>,
    given: Option<GivenHead>,
    body: Vec<u8>,
) -> Option<Summary> {
    let mut front = Bytes::from(body);
    let given = match given {
        Some(GivenHead { name, bytes }) => {
            let bytes = front.split_off(front.len().checked_sub(bytes)?);
            Some(Given { name, bytes })
        }
        None => None,
    };
    let record = parse(&front).ok()?.into_iter().next()?;
    Some(Summary { record, problems, given })
}

/// Writes a frame, whose body is in parts.
///
/// # Errors
///
/// The other end is gone, or does not read in time.
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
/// The other end is gone (`UnexpectedEof`), does not write in time, or what it writes is no frame or
/// too long (`InvalidData`).
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
    // Room is made as bytes come, whatever the length says.
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
        fn objects_come_as_they_were_sent(
            url in "\\PC{0,20}",
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            modified in any::<Option<u64>>(),
            truncated in any::<bool>(),
        ) {
            let md5 = Some(Md5::of(&bytes));
            let object = Object { modified, truncated, md5, ..Object::whole(url, bytes) };
            let mut wire = Vec::new();
            write(&mut wire, &Ask::of(&object, 7), &[&object.bytes]).unwrap();
            let (ask, body): (Ask, _) = read(&mut wire.as_slice(), 1000).unwrap();
            prop_assert_eq!(ask.time_ms_max, 7);
            let came = ask.object(body);
            prop_assert_eq!((came.url, came.name, came.bytes), (object.url, object.name, object.bytes));
            prop_assert_eq!((came.modified, came.size, came.truncated, came.md5), (modified, object.size, truncated, md5));
        }

        #[test]
        fn summaries_come_as_they_were_sent(
            value in proptest::collection::vec(any::<u8>(), 0..100),
            given in proptest::option::of((".{0,9}", proptest::collection::vec(any::<u8>(), 0..300))),
        ) {
            let mut record = soif::Record::new("FILE", "http://h.example/a");
            record.push("Title", value);
            let given = given.map(|(name, bytes)| Given { name, bytes: bytes.into() });
            let problem = Problem::new("http://h.example/a", formats::object::ProblemKind::Limit, "x");
            let sent = Summary { record, problems: vec![problem], given };
            let mut wire = Vec::new();
            write_summary(&mut wire, sent.clone()).unwrap();
            let (Told::Summary { problems, given }, body) = read(&mut wire.as_slice(), 1000).unwrap()
            else { panic!() };
            prop_assert_eq!(summary(problems, given, body), Some(sent));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read::<Told>(&mut bytes.as_slice(), 1000);
        }
    }

    #[test]
    fn what_is_too_long_or_breaks_off_is_refused() {
        let mut wire = Vec::new();
        write(&mut wire, &Told::End { left_out: Vec::new() }, &[&[1; 60], &[2; 40]]).unwrap();
        assert!(read::<Told>(&mut wire.as_slice(), 100).is_ok());
        let kind = |bytes: &[u8], most| read::<Told>(&mut &*bytes, most).unwrap_err().kind();
        assert_eq!(kind(&wire, 99), io::ErrorKind::InvalidData);
        assert_eq!(kind(&wire[..wire.len() - 1], 100), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 100), io::ErrorKind::InvalidData);
    }
}

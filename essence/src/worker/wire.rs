//! The protocol between a gatherer and its worker: frames, each a head in JSON and a body of bytes.
//!
//! A frame is the length of the head (4 bytes, little-endian), the length of the body (8 bytes),
//! the head and the body. The gatherer sends an [`Order`] first. A worker that serves then gets a
//! [`Request`] for each object, whose body is the object's bytes. It answers the order with a
//! [`Ready`], and each request with several [`Reply`] frames: one for each summary, and an end. The
//! body of a summary is its record in SOIF, followed by the object for a program of the site, if
//! there is one. Before them, a worker may ask for parts of the object that the request has not: the
//! gatherer answers each question with a [`Part`], whose body is the bytes.
//!
//! Both ends are the same build of the same program, so the protocol has no versions.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use formats::object::{Leads, Object, PIECE_BYTES, Problem, ProgramInput, ReadAt, Rest, Summary};
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
    /// Whether the worker may ask for the object's rest.
    pub(super) has_rest: bool,
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
            has_rest: object.rest.is_some(),
            md5: object.md5.map(|it| it.to_string()),
            time_ms_max,
        }
    }

    /// Returns the object, whose rest is `rest` if it may be asked for.
    pub(super) fn object(self, body: Vec<u8>, rest: Option<Rest>) -> Object {
        Object {
            url: self.url,
            name: self.name,
            bytes: Bytes::from(body),
            modified: self.modified,
            size: self.size,
            truncated: self.truncated,
            rest: rest.filter(|_| self.has_rest),
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
        leads: Option<Box<Leads>>,
    },
    /// Question for a part of the object, of at most [`PIECE_BYTES`].
    Ask { offset: u64, bytes: usize },
    /// End of the answer.
    End {
        /// Number of objects that were left out, by reason.
        left_out: Vec<(LeftOut, u64)>,
    },
}

/// Answer to a question for a part of the object; the part is the frame's body.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    /// Why there is none.
    error: Option<String>,
}

/// The rest of the object that a worker summarizes, which it has to ask for.
#[derive(Debug)]
pub(super) struct Asker<S>(pub(super) Mutex<S>);

impl<S: fmt::Debug + Read + Write + Send> ReadAt for Asker<S> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut *socket, &Reply::Ask { offset, bytes: into.len() }, &[])?;
        let (part, bytes): (Part, Vec<u8>) = read(&mut *socket, into.len() as u64)?;
        match part.error {
            Some(why) => Err(io::Error::other(why)),
            None => bytes.as_slice().read(into),
        }
    }
}

/// Answers the question for a part of `object`.
///
/// # Errors
///
/// The same as for [`write`].
pub(super) fn write_part(
    to: &mut impl Write,
    object: &Object,
    (offset, bytes): (u64, usize),
) -> io::Result<()> {
    let mut body = vec![0; bytes.min(PIECE_BYTES)];
    let read = match &object.rest {
        Some(rest) if bytes <= PIECE_BYTES => rest.read_at(offset, &mut body),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    match read {
        Ok(count) => write(to, &Part::default(), &[body.get(..count).unwrap_or_default()]),
        Err(error) => write(to, &Part { error: Some(error.to_string()) }, &[]),
    }
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
    let Summary { problems, given, leads, .. } = summary;
    let Some(ProgramInput { name, bytes }) = given else {
        return write(to, &Reply::Summary { problems, given: None, leads }, &[&record]);
    };
    let given = Some(GivenHead { name, bytes: bytes.len() });
    write(to, &Reply::Summary { problems, given, leads }, &[&record, &bytes])
}

/// Returns the summary in a frame; `None` if it is not valid.
pub(super) fn summary(
    problems: Vec<Problem>,
    given: Option<GivenHead>,
    leads: Option<Box<Leads>>,
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
    Some(Summary { record, problems, given, leads })
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
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

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
            let received = request.object(body, None);
            prop_assert_eq!((received.url, received.name, received.bytes), (object.url, object.name, object.bytes));
            prop_assert_eq!((received.modified, received.size, received.truncated, received.md5), (modified, object.size, truncated, md5));
        }

        #[test]
        fn summaries_arrive_as_sent(
            value in proptest::collection::vec(any::<u8>(), 0..100),
            given in proptest::option::of((".{0,9}", proptest::collection::vec(any::<u8>(), 0..300))),
            links in proptest::option::of(proptest::collection::vec(".{0,9}", 0..9)),
        ) {
            let mut record = soif::Record::new("FILE", "http://h.example/a");
            record.push("Title", value);
            let given = given.map(|(name, bytes)| ProgramInput { name, bytes: bytes.into() });
            use formats::limit::Limit;
            let problem = Problem::new("http://h.example/a", Limit::Text.kind_at(5), "x");
            let leads = links.map(|links| Box::new(Leads { links, ..Leads::default() }));
            let sent = Summary { record, problems: vec![problem], given, leads };
            let mut wire = Vec::new();
            write_summary(&mut wire, sent.clone()).unwrap();
            let (Reply::Summary { problems, given, leads }, body) = read(&mut wire.as_slice(), 1000).unwrap()
            else { panic!() };
            prop_assert_eq!(summary(problems, given, leads, body), Some(sent));
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

    #[derive(Debug)]
    struct Letters;

    impl ReadAt for Letters {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            if offset == 13 {
                return Err(io::Error::other("bad disk"));
            }
            let letters =
                &b"abcdefghijklmnopqrstuvwxyz"[usize::try_from(offset).unwrap().min(26)..];
            (&*letters).read(into)
        }
    }

    #[test]
    fn parts_are_asked_for_and_given_within_bounds() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let rest = Some(Rest::new(Arc::new(Letters)));
        let object = Object { truncated: true, rest, ..Object::whole("http://h.example/a", "ab") };
        let gatherer = std::thread::spawn(move || {
            let mut ours = ours;
            for _ in 0..5 {
                let (Reply::Ask { offset, bytes }, _) = read(&mut ours, 0).unwrap() else {
                    panic!()
                };
                write_part(&mut ours, &object, (offset, bytes)).unwrap();
            }
        });
        let asker = Asker(Mutex::new(theirs));
        let ask = |offset, count: usize| {
            let mut into = vec![b'.'; count];
            let read = asker.read_at(offset, &mut into).map_err(|it| it.to_string())?;
            Ok::<_, String>(String::from_utf8_lossy(&into[..read]).into_owned())
        };
        assert_eq!(ask(2, 3), Ok("cde".to_owned()));
        assert_eq!(ask(24, 9), Ok("yz".to_owned()));
        assert_eq!(ask(99, 9), Ok(String::new()));
        assert_eq!(ask(13, 9), Err("bad disk".to_owned()));
        assert!(ask(0, PIECE_BYTES + 1).is_err());
        gatherer.join().unwrap();
        assert!(ask(0, 1).is_err(), "the gatherer has gone");
        let mut wire = Vec::new();
        write_part(&mut wire, &Object::whole("http://h.example/a", "ab"), (0, 1)).unwrap();
        let (part, _) = read::<Part>(&mut wire.as_slice(), 1).unwrap();
        assert!(part.error.is_some(), "there is no rest");
    }
}

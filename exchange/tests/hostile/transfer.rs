//! Transfer of a document's bytes: whole, cut, compressed, too few, too many.

use std::io::Write as _;

use flate2::{Compress, Compression, FlushCompress, write::GzEncoder};

use super::wire::{Answer, Manner, Request};
use super::{Mode, ServerState, pages};

impl ServerState {
    /// Returns the answer that sends the bytes of a document.
    pub(super) fn sent(
        &mut self,
        mode: Mode,
        asked: &Request,
        bad: bool,
        bytes: Vec<u8>,
    ) -> Answer {
        let within = |what: &str, from: usize| {
            let found = bytes.windows(what.len()).skip(from).position(|it| it == what.as_bytes());
            found.map_or(bytes.len() / 2, |at| from + at)
        };
        let half = bytes.len() / 2;
        let record = within("<dc:title>", half) + 12;
        let unit = Answer::xml(Vec::new());
        let cut = |at: usize| Answer::xml(bytes[..at].to_vec());
        match mode {
            Mode::ClosesKept => return Answer::xml(bytes).manner(Manner::Closes),
            Mode::ContinueFirst => return Answer::xml(bytes).manner(Manner::Continued),
            Mode::Chunked => return Answer::xml(bytes).manner(Manner::Chunked),
            Mode::Unframed => return Answer::xml(bytes).manner(Manner::Unframed),
            Mode::Gzip if asked.gzip => return gzip(packed(&bytes)),
            _ if !bad => return Answer::xml(bytes),
            _ => {}
        }
        match mode {
            Mode::CutMidRecordOnce | Mode::ResetOnce | Mode::ChunkedEarly if !self.shows(1) => {
                Answer::xml(bytes)
            }
            Mode::CutMidRecordOnce | Mode::CutMidRecord => {
                Answer::xml(bytes).manner(Manner::Cut(record))
            }
            Mode::ResetOnce | Mode::ResetForEver => {
                Answer::xml(bytes).manner(Manner::Reset(record))
            }
            Mode::ChunkedEarly => Answer::xml(bytes).manner(Manner::ChunkedEarly),
            Mode::ChunkedBad => Answer::xml(bytes).manner(Manner::ChunkedBad),
            Mode::TruncatedMidRecord => cut(record),
            Mode::TruncatedMidHeader => cut(within("<datestamp>", half) + 15),
            Mode::TruncatedAtEnd => cut(within("</OAI-PMH>", 0)),
            Mode::TruncatedAfterRecord => cut(within("</record>", half) + "</record>".len()),
            Mode::TruncatedUnframed => cut(record).manner(Manner::Unframed),
            Mode::TruncatedInCharacter => cut(within("é", 0) + 1),
            Mode::LengthTooLong => Answer::xml(bytes).manner(Manner::LengthOff(1_000)),
            Mode::LengthTooShort => Answer::xml(bytes).manner(Manner::LengthOff(-500)),
            Mode::RecordHuge => cut(record).manner(Manner::Endless(b"y".repeat(1 << 16))),
            Mode::PageEndless => {
                let records: String = self
                    .world
                    .items
                    .iter()
                    .filter(|it| !it.deleted)
                    .map(|it| pages::record(Mode::Honest, it))
                    .collect();
                cut(within("<record>", half)).manner(Manner::Endless(records.into_bytes()))
            }
            Mode::BodyDrips => cut(record).manner(Manner::BodyDrips),
            Mode::GzipBomb => gzip(gzip_bomb(&bytes[..record])),
            Mode::GzipTruncated => {
                let packed = packed(&bytes);
                gzip(packed[..packed.len() * 2 / 3].to_vec())
            }
            Mode::GzipCorrupt => {
                let mut packed = packed(&bytes);
                let at = packed.len() - 6;
                packed[at] ^= 0xff;
                gzip(packed)
            }
            Mode::GzipUnsaid => Answer::xml(packed(&bytes)),
            Mode::GzipSaid => gzip(bytes),
            Mode::EncodingUnknown => {
                Answer { body: bytes, ..unit }.header("Content-Encoding", "compress")
            }
            _ => Answer::xml(bytes),
        }
    }
}

fn gzip(body: Vec<u8>) -> Answer {
    Answer::xml(body).header("Content-Encoding", "gzip")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a gzip stream of `begin` and a quarter of a gigabyte of letters.
fn gzip_bomb(begin: &[u8]) -> Vec<u8> {
    const PIECE: usize = 1 << 20;
    let mut compress = Compress::new(Compression::best(), false);
    let mut pack = |bytes: &[u8]| {
        // A full flush forgets earlier bytes, so that the compressed piece can be repeated.
        let mut out = Vec::with_capacity(bytes.len() + 1_024);
        compress.compress_vec(bytes, &mut out, FlushCompress::Full).unwrap();
        out
    };
    let mut stream = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    stream.extend(pack(begin));
    let _first = pack(&b"y".repeat(PIECE));
    stream.extend(pack(&b"y".repeat(PIECE)).repeat(256));
    stream
}

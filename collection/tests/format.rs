//! The byte format: gzip that any reader can unpack, compressed by the backend that we measured.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::io::Read as _;
use std::process::Command;

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{Batch, Change, Collection, Error, Note, Oid, Options, Stamp};
use proptest::prelude::*;
use soif::Record;

fn sample() -> Batch {
    let mut record = Record::new("FILE", "http://a/");
    record.push("Gatherer-Id", "0123456789abcdef");
    record.push("Title", "Hello");
    let root = "http://root/".to_owned();
    let changes = vec![
        Change::Update(record),
        Change::Refresh(Oid::new("g", "http://b/"), None),
        Change::Confirm { gatherer: "g".to_owned(), root, at: Stamp(7) },
        Change::Delete(Oid::new("g", "http://c/")),
    ];
    Batch { changes, notes: vec![Note { key: b"k".to_vec(), value: Some(b"v\n}".to_vec()) }] }
}

const READABLE: &str = "@UPDATE {\n@NOTE { -\nKey{2}:\tuk\nValue{3}:\tv\n}\n}\n}\n\
    @UPDATE {\n@FILE { http://a/\nGatherer-Id{16}:\t0123456789abcdef\nTitle{5}:\tHello\n}\n}\n\
    @REFRESH {\n@FILE { http://b/\nGatherer-Id{1}:\tg\n}\n\
    @ROOT { http://root/\nGatherer-Id{1}:\tg\nConfirmed{1}:\t7\n}\n}\n\
    @DELETE {\n@FILE { http://c/\nGatherer-Id{1}:\tg\n}\n}\n";

/// Commits the sample and returns the segment's path and bytes.
fn segment(dir: &tempfile::TempDir) -> (std::path::PathBuf, Vec<u8>) {
    let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
    collection.commit(sample(), Stamp(9)).unwrap();
    let path = dir.path().join("segment-00000001.gz");
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

#[test]
fn a_segment_unzips_to_a_readable_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = segment(&dir);
    let mut plain = String::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut plain).unwrap();
    assert_eq!(plain, READABLE);
    match Command::new("gunzip").arg("-c").arg(&path).output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), READABLE),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

#[test]
fn a_commit_reads_back_from_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = segment(&dir);
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let local = decoder.next_member().unwrap().unwrap();
    assert!(local.header.local && !local.header.end_of_commit);
    let member = decoder.next_member().unwrap().unwrap();
    assert!(member.header.end_of_commit);
    assert_eq!(member.header.entries.last(), Some(&(4, Stamp(9))));
    let changes: Vec<_> = member.changes().unwrap().into_iter().map(|it| it.change).collect();
    assert_eq!(changes, sample().changes);
    assert_eq!(decoder.offset(), bytes.len() as u64);
    decoder.finish().unwrap();
}

#[test]
fn a_stream_in_any_pieces_gives_the_same_members_and_a_cut_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = segment(&dir);
    for piece in 1..bytes.len() {
        let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
        let mut members = 0;
        for part in bytes.chunks(piece) {
            decoder.feed(part);
            while decoder.next_member().unwrap().is_some() {
                members += 1;
            }
        }
        assert_eq!(members, 2, "in pieces of {piece}");
        decoder.finish().unwrap();
    }
    for length in 1..bytes.len() {
        let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
        decoder.feed(&bytes[..length]);
        let members = std::iter::from_fn(|| decoder.next_member().unwrap()).count();
        assert!(members < 2);
        let cut = decoder.finish();
        assert_eq!(cut.is_err(), decoder.offset() < length as u64, "{length}");
    }
}

#[test]
fn a_member_above_the_limit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = segment(&dir);
    let mut decoder = Decoder::new(50);
    decoder.feed(&bytes);
    assert!(matches!(decoder.next_member(), Err(Error::Stream { offset: 0, .. })));
}

proptest! {
    /// Foreign bytes cause an error, or a wait for more bytes, but never a panic.
    #[test]
    fn noise_is_refused(mut noise: Vec<u8>, at in 0..200_usize, keep: bool) {
        let good = GOOD.get_or_init(|| segment(&tempfile::tempdir().unwrap()).1);
        if keep {
            noise = [&good[..at.min(good.len())], &noise].concat();
        }
        let mut decoder = Decoder::new(1 << 20);
        decoder.feed(&noise);
        while let Ok(Some(member)) = decoder.next_member() {
            let _ = (member.changes(), member.notes());
        }
    }
}

static GOOD: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();

/// Cargo unites features over the whole build, so a dependency can switch flate2's backend. Each
/// backend compresses in its own way, so equal bytes show that the backend is the right one.
#[test]
fn deflate_is_packed_by_zlib_rs() {
    let words = ["segment", "member", "change", "stamp", "serial", "epoch", "cursor", "holder"];
    let text: String =
        (0..20_000_usize).map(|n| words[(n * n / 7 + n / 3) % words.len()]).collect();
    for level in [1, 6, 9_u8] {
        let mut ours = Vec::with_capacity(text.len() + 1024);
        flate2::Compress::new(flate2::Compression::new(level.into()), false)
            .compress_vec(text.as_bytes(), &mut ours, flate2::FlushCompress::Finish)
            .unwrap();
        let config =
            zlib_rs::DeflateConfig { level: level.into(), window_bits: -15, ..Default::default() };
        let mut theirs = vec![0; text.len() + 1024];
        let (theirs, _) = zlib_rs::compress_slice(&mut theirs, text.as_bytes(), config);
        assert!(ours == theirs, "flate2 does not use zlib-rs at level {level}");
    }
}

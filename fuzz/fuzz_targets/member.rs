//! Fuzzing of gzip members: any bytes as a feed or a segment, and any plain bytes in a sound
//! member. Pieces of any size give the same members, with the packed bytes and as many changes as
//! the header says, without a panic. The members are packed here, as docs/collection.md describes,
//! so their checksums are correct.

#![no_main]

use collection::member::{Decoder, Member};
use collection::{Epoch, Stamp};
use flate2::{Compress, Compression, Crc, FlushCompress};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

/// Largest member, in bytes.
const MEMBER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of changes in a member.
const CHANGES_MAX: usize = 4096;
/// Flags that a header may have.
const FLAGS: u8 = 15;

/// Feeds a stream piece by piece. Returns its members, and the error that ended it.
fn decode_all(stream: &[u8], piece_bytes: usize) -> (Vec<Member>, Option<String>) {
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    let mut seen = Vec::new();
    let mut run = || {
        for bytes in stream.chunks(piece_bytes) {
            decoder.feed(bytes);
            while let Some(member) = decoder.next_member()? {
                seen.push(member);
            }
        }
        decoder.finish()
    };
    let error = run().err().map(|error| error.to_string());
    (seen, error)
}

/// Appends a number in seven bits a byte, the lowest first (LEB128).
fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Packs `plain` as a member with these changes; serials and stamps are given as differences.
fn pack(flags: u8, epoch: u64, base: u64, changes: &[(u8, u8)], plain: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(plain.len() + 1024);
    let mut deflate = Compress::new(Compression::fast(), false);
    deflate.compress_vec(plain, &mut body, FlushCompress::Finish).expect("there is room");
    let deflate_bytes = body.len() as u32;
    let mut crc = Crc::new();
    crc.update(plain);
    body.extend_from_slice(&crc.sum().to_le_bytes());
    body.extend_from_slice(&crc.amount().to_le_bytes());

    let mut fields = vec![1, flags];
    fields.extend_from_slice(&epoch.to_le_bytes());
    fields.extend_from_slice(&deflate_bytes.to_le_bytes());
    fields.extend_from_slice(&xxh3_64(&body).to_le_bytes());
    push_varint(&mut fields, 7);
    push_varint(&mut fields, base);
    push_varint(&mut fields, changes.len() as u64);
    for (serial, stamp) in changes {
        push_varint(&mut fields, u64::from(*serial) + 1);
        push_varint(&mut fields, u64::from(*stamp));
    }
    let subfield_bytes = fields.len() as u16 + 4;
    let mut member = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
    member.extend_from_slice(&(subfield_bytes + 4).to_le_bytes());
    member.extend_from_slice(b"HV");
    member.extend_from_slice(&subfield_bytes.to_le_bytes());
    member.extend_from_slice(&fields);
    let seal = xxh3_64(&member).to_le_bytes();
    member.extend_from_slice(&seal[..4]);
    member.extend_from_slice(&body);
    member
}

/// Checks that a member keeps its limits, and that its changes are those of its header.
fn check_member(member: &Member) {
    assert!(member.plain.len() <= MEMBER_BYTES_MAX && member.length <= MEMBER_BYTES_MAX as u64);
    let entries = &member.header.entries;
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    if let Ok(changes) = member.changes() {
        let decoded: Vec<(u64, Stamp)> = changes.iter().map(|it| (it.serial, it.stamp)).collect();
        assert!(member.header.local || decoded == *entries);
        for (one, (serial, _)) in changes.iter().zip(entries) {
            assert_eq!(member.change(*serial).as_ref(), Ok(&Some(one.clone())));
        }
    }
    assert!(member.header.local || member.notes() == Ok(Vec::new()));
}

fuzz_target!(|input: (u8, u8, u32, Vec<(u8, u8)>, &[u8], &[u8])| {
    let (piece_bytes, flags, number, mut changes, plain, noise) = input;
    changes.truncate(CHANGES_MAX);
    let (flags, number) = (flags & FLAGS, u64::from(number));
    let packed = pack(flags, number, number, &changes, plain);
    let stream = [packed.as_slice(), noise].concat();
    let (members, error) = decode_all(&stream, stream.len());
    let (from_pieces, error_of_pieces) = decode_all(&stream, usize::from(piece_bytes).max(1));
    assert_eq!((format!("{members:?}"), &error), (format!("{from_pieces:?}"), &error_of_pieces));
    members.iter().for_each(check_member);
    if plain.len() <= MEMBER_BYTES_MAX && packed.len() <= MEMBER_BYTES_MAX {
        let first = members.first().expect("it is sound");
        assert_eq!(first.plain, plain);
        assert_eq!((first.header.epoch, first.header.base), (Epoch(number), number));
        assert_eq!(first.header.entries.len(), changes.len());
    }
});

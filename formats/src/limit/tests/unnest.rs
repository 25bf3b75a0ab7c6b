//! Samples for the limits of packed objects, and what these tests do with a packed object.

use super::Sample;
use crate::Type;
use crate::limit::Limit;
use crate::numbers::le32;
use crate::object::{Object, Problem, Summary};
use crate::testing::cut;
use crate::unnest::tests::formats::{cpio, packed};
use crate::unnest::tests::{tarball, zipped};
use crate::unnest::{Budget, Format, Limits, Packing, members};

/// Returns the object as its sample is read: of some, only the front is in memory.
pub(super) fn as_read(limit: Limit, object: Object) -> Object {
    if matches!(limit, Limit::Rest | Limit::Directory) { cut(&object, 512) } else { object }
}

/// Opens a packed object, and adds all problems of it and its members, one of each limit.
pub(super) fn open(object: &Object, r#type: Type, summary: &mut Summary) {
    let Some(format) = Format::of(object, r#type) else { return };
    let budget = Budget::new(Limits::default(), &|| false);
    let mut problems = Vec::new();
    let report = members(object, format, &budget, &mut |it| problems.extend(it.problems));
    problems.extend(report.problems);
    let about = report.about.into_iter().flat_map(|it| it.problems);
    problems.extend(about.map(|(kind, it)| Problem::new("", kind, it)));
    for problem in problems {
        if !summary.problems.iter().any(|it| it.kind.is_same_limit(problem.kind)) {
            summary.add_problems(vec![Problem { object: object.url.clone(), ..problem }]);
        }
    }
}

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let names: Vec<String> = (0..count).map(|it| format!("{it}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &b"word"[..])).collect();
    let (r#type, bytes, holds) = match limit {
        Limit::Rest => {
            let tar = tarball(&files);
            let holds = tar.len();
            (Type::Tar, tar, holds)
        }
        Limit::Directory => {
            let zip = zipped(&files);
            let holds = usize::try_from(le32(&zip, zip.len() - 22 + 12).unwrap()).unwrap();
            (Type::Zip, zip, holds)
        }
        Limit::Entries => (Type::Zip, zipped(&files), count),
        Limit::SevenZipDirectory => {
            let size = 20 * count;
            let head = [&b"7z\xbc\xaf\x27\x1c\0\x04\x01\x02\x03\x04"[..], &[0; 8]].concat();
            let size_field = (size as u64).to_le_bytes();
            (Type::Archive, [&head, &size_field[..], &[0; 4], &vec![1; size]].concat(), size)
        }
        Limit::Dictionary => {
            let mut lzip = packed(Packing::Lzip, &tarball(&files));
            lzip[5] = u8::try_from(12 + count).unwrap();
            (Type::GzipTar, lzip, 1 << (12 + count))
        }
        Limit::Path => {
            let path = format!("{}/a.txt", "d".repeat(40 * count));
            (Type::Tar, tarball(&[(&path, b"word")]), path.len())
        }
        Limit::Extended => {
            let mut builder = ::tar::Builder::new(Vec::new());
            let comment = "c".repeat(100 * count);
            builder.append_pax_extensions([("comment", comment.as_bytes())]).unwrap();
            let pax = builder.into_inner().unwrap();
            // The builder ends the archive with two empty blocks.
            let size = std::str::from_utf8(&pax[124..135]).unwrap();
            let holds = usize::from_str_radix(size, 8).unwrap();
            (Type::Tar, [&pax[..pax.len() - 1024], &tarball(&files)].concat(), holds)
        }
        Limit::LinkedFiles => (Type::Archive, linked(count), count),
        Limit::Metadata => {
            let info = format!("Name: p\nSummary: {}\n", "word ".repeat(10 * count));
            (Type::Zip, zipped(&[("p-1/PKG-INFO", info.as_bytes())]), info.len())
        }
        Limit::Attached => {
            let parts = "--B\nContent-Type: image/png; name=a.png\n\nAAAA\n".repeat(count);
            let head = "From: a@a.example\nSubject: x\nMIME-Version: 1.0\n\
                        Content-Type: multipart/mixed; boundary=B\n";
            let message = format!("{head}\n{parts}--B--\n");
            let holds = message.len();
            (Type::Mail, message.into_bytes(), holds)
        }
        _ => return None,
    };
    Some(Sample { r#type, name: "a", bytes, holds, slack: 0 })
}

/// Returns a cpio archive of files that each have a second name elsewhere.
fn linked(count: usize) -> Vec<u8> {
    let mut out = String::new();
    for inode in 0..count {
        let name = format!("{inode:010}");
        let front = format!("070701{inode:08x}{:08x}{:08x}{:08x}{:08x}", 0o100_644, 0, 0, 2);
        let rest = format!("{:08x}{:08x}{:032x}{:08x}{:08x}", 0, 0, 0, name.len() + 1, 0);
        // The header of 110 bytes and the name with its end are a multiple of four.
        out += &format!("{front}{rest}{name}\0\0\0\0");
    }
    let mut out = out.into_bytes();
    out.extend(cpio('n', &[]));
    out
}

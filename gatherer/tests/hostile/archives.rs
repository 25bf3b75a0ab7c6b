//! Hostile containers with wrong sizes, checksums and names, and mail.

use crate::made::{ar, binhex, cpio, crc, deb, gzip, rpm, tar, tar_header, tar_size, tar_sum, zip};
use crate::{Case, case};

/// Names that lead out of the container if they are taken for paths.
const NAMES: &[&str] = &[
    "../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "C:\\boot.ini",
    "a/../../b",
    "./../c",
    "%2e%2e/%2e%2e/d",
    "#e?f",
    "g\nh",
    "//host/share",
    "!/i",
    "\u{202e}fdp.exe",
];

pub(crate) const CASES: &[Case] = &[
    case("names.tar", "", || tar(&named())),
    case("names.zip", "", || zip(&named())),
    case("names.cpio", "", || cpio(&named())),
    case("names.deb", "", || deb("Package: x\n", &named())),
    case("names.rpm", "", || rpm(&[(1000, "../x")], &cpio(&named()))),
    case("names.a", "", || ar(&[("../../x/", b"one"), ("//", b"/etc/y/\n"), ("/0", b"two")])),
    case("names.shar", "", || {
        let file = |name: &&str| format!("cat > '{}' << EOF\nwords\nEOF\n", name.replace('\n', ""));
        let files: String = NAMES.iter().map(file).collect();
        format!("# This is a shell archive\n{files}").into_bytes()
    }),
    case("names.uu", "", || {
        let file = |name: &&str| format!("begin 644 {}\n#0V%T\n`\nend\n", name.replace('\n', ""));
        NAMES.iter().map(file).collect::<String>().into_bytes()
    }),
    case("names.hqx", "broken", || binhex("../../x", 3, b"Cat")),
    case("names.eml", "", || {
        let part = |name: &&str| {
            let name = name.replace('\n', "").replace('\\', "\\\\");
            format!(
                "--B\nContent-Type: text/plain; name=\"{name}\"\nContent-Disposition: attachment; filename=\"{name}\"\n\nwords\n"
            )
        };
        mail(&format!(
            "multipart/mixed; boundary=B\n\n{}--B--\n",
            NAMES.iter().map(part).collect::<String>()
        ))
    }),
    case("nul.tar", "", || {
        tar(&[("a\0../../b", b"one"), ("", b"two"), (".", b"three"), ("..", b"four")])
    }),
    case("size.tar", "broken", || {
        let huge = [0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        [tar_header(b"x", &huge, b'0'), vec![b'x'; 512]].concat()
    }),
    case("below-zero.tar", "broken", || {
        [tar_header(b"x", &[0xff; 12], b'0'), vec![b'x'; 512]].concat()
    }),
    case("sparse.tar", "limit", sparse),
    case("pax.tar", "", || {
        let size = b"29 size=9223372036854775807\n \n";
        let head = tar_header(b"pax", &tar_size(size.len()), b'x');
        let mut bytes = [head, size.to_vec()].concat();
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        [bytes, tar(&[("x", b"words")])].concat()
    }),
    case("links.tar", "", || {
        let link = |kind| {
            let mut header = tar_header(b"link", &tar_size(0), kind);
            header[157..168].copy_from_slice(b"/etc/passwd");
            tar_sum(&mut header);
            header
        };
        [link(b'1'), link(b'2'), link(b'3'), link(b'6'), tar(&[("link/x", b"words")])].concat()
    }),
    case("size.cpio", "broken", || {
        let mut bytes = cpio(&[("name", b"one")]);
        bytes[54..62].copy_from_slice(b"ffffffff");
        bytes
    }),
    case("name.cpio", "broken", || {
        let mut bytes = cpio(&[("name", b"one")]);
        bytes[94..102].copy_from_slice(b"ffffffff");
        bytes
    }),
    case("odc.cpio", "broken", || b"070707".repeat(200_000)),
    case("size.a", "broken", || {
        let mut bytes = ar(&[("a/", b"one"), ("b/", b"two")]);
        bytes[56..66].copy_from_slice(b"9999999999");
        bytes
    }),
    case("empty.a", "limit", || ar(&vec![("a/", &b""[..]); 200_000])),
    case("size.deb", "broken", || {
        let mut bytes = deb("Package: x\n", &[("a", b"one")]);
        bytes[56..66].copy_from_slice(b"9999999999");
        bytes
    }),
    case("control.deb", "", || deb(&"Depends: a, b\n c\n".repeat(300_000), &[("a", b"one")])),
    case("header.rpm", "broken", || {
        let mut bytes = rpm(&[(1000, "x")], b"");
        bytes[104..112].fill(0xff);
        bytes
    }),
    case("tags.rpm", "", || {
        let tags: Vec<(u32, &str)> = (0..100_000).map(|it| (1000 + it % 64, "value")).collect();
        rpm(&tags, &cpio(&[("a", b"one")]))
    }),
    case("sums.zip", "broken", || {
        let mut bytes = zip(&[("a.txt", b"some words"), ("b.txt", b"more words")]);
        bytes[14..18].fill(0xff);
        let at = bytes.len() - 22 - 2 * 51 + 16;
        bytes[at..at + 4].fill(0xff);
        bytes
    }),
    case("count.zip", "", || {
        let mut bytes = zip(&[("a.txt", b"some words")]);
        let at = bytes.len() - 14;
        bytes[at..at + 4].fill(0xff);
        bytes
    }),
    case("directory.zip", "broken", || {
        let mut bytes = zip(&[("a.txt", b"some words")]);
        let at = bytes.len() - 10;
        bytes[at..at + 8].fill(0xff);
        bytes
    }),
    case("entries.zip", "limit", || {
        let names: Vec<String> = (0..60_000).map(|it| format!("{it}.txt")).collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().map(|it| (it.as_str(), &b"words"[..])).collect();
        zip(&files)
    }),
    // These are longer than what is read of a file at first.
    case("long.zip", "", || zip(&[("filler", &[0x90; 33 << 20]), ("a.txt", b"some words")])),
    case("claims.zip", "limit", || {
        let mut bytes = zip(&[("filler", &[0x90; 33 << 20])]);
        let at = bytes.len() as u64;
        bytes.extend([&b"PK\x06\x06\x2c\0\0\0\0\0\0\0"[..], &[0; 12]].concat());
        // Entries on this disk, in all, bytes of the directory, and its position.
        bytes.extend([1 << 40, 1 << 40, 46 << 40, 0_u64].map(u64::to_le_bytes).concat());
        bytes.extend([b"PK\x06\x07\0\0\0\0", &at.to_le_bytes()[..], &[1, 0, 0, 0]].concat());
        bytes.extend([&b"PK\x05\x06\0\0\0\0"[..], &[0xff; 12], &[0, 0]].concat());
        bytes
    }),
    case("entries-behind.zip", "broken", || {
        let mut bytes = zip(&[("a.txt", &[0x90; 40 << 20])]);
        let at = bytes.len() - 22 + 8;
        bytes[at..at + 4].fill(0x7f);
        bytes
    }),
    case("locked.zip", "locked|broken", || {
        let mut bytes = zip(&[("a.txt", b"some words, at least twelve")]);
        bytes[6] |= 1;
        let at = bytes.len() - 22 - 51 + 8;
        bytes[at] |= 1;
        bytes
    }),
    case("directory.7z", "broken|limit", || sevenz_directory(u64::MAX, &[1; 40])),
    case("header.7z", "broken|limit", || {
        let files = [&[1, 5, 0xf0, 0xff, 0xff, 0xff, 0x7f][..], &[0; 60]].concat();
        sevenz_directory(files.len() as u64, &files)
    }),
    case("codes.Z", "broken", || [b"\x1f\x9d\x90".to_vec(), vec![0xff; 1 << 20]].concat()),
    case("width.Z", "broken", || [b"\x1f\x9d\xff".to_vec(), vec![0x55; 1 << 20]].concat()),
    case("clears.Z", "", || [b"\x1f\x9d\x90".to_vec(), vec![0; 8 << 20]].concat()),
    case("dictionary.lzma", "limit|broken", || {
        [&[0x5d, 0xff, 0xff, 0xff, 0xff][..], &[0xff; 8], &[0; 64]].concat()
    }),
    case("window.zst", "limit", || vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 1, 0, 0]),
    case("cut.gz", "broken", || gzip(&vec![b'x'; 1 << 20])[..600].to_vec()),
    case("lines.uu", "broken", || [b"begin 644 x\n".to_vec(), b"~".repeat(20 << 20)].concat()),
    case("begins.uu", "", || b"begin 644 x\n".repeat(500_000)),
    case("members.uu", "limit", || b"begin 644 x\n#0V%T\n`\nend\n".repeat(100_000)),
    case("runs.hqx", "broken|limit", || {
        binhex("run", u32::MAX, &[b"a".as_slice(), &b"\x90\xff".repeat(4 << 20)].concat())
    }),
    case("documents.shar", "limit|broken", || {
        [b"# This is a shell archive\n".to_vec(), b"cat << ''\ncat > x << 'EOF'\n".repeat(400_000)]
            .concat()
    }),
    case("members.shar", "limit", || {
        [b"# This is a shell archive\n".to_vec(), b"cat <<E >x\nE\n".repeat(400_000)].concat()
    }),
    case("deep-message.eml", "limit", || {
        mail(&format!("message/rfc822\n\n{}", "Content-Type: message/rfc822\n\n".repeat(500_000)))
    }),
    case("deep-parts.eml", "", || {
        let part =
            |it: usize| format!("multipart/mixed; boundary=b{it}\n\n--b{it}\nContent-Type: ");
        mail(&format!("{}text/plain\n\nwords\n", (0..20_000).map(part).collect::<String>()))
    }),
    case("parts.eml", "limit", || {
        let part = "--B\nContent-Type: image/png; name=\"a.png\"\n\nx\n".repeat(300_000);
        mail(&format!("multipart/mixed; boundary=B\n\n{part}--B--\n"))
    }),
    case("boundaries.eml", "", || {
        mail(&format!(
            "multipart/mixed; boundary=\"{}\"\n\n{}",
            "-".repeat(70),
            "-".repeat(20 << 20)
        ))
    }),
    case("header.eml", "", || {
        format!(
            "From: a@a.example\nTo: {}\nSubject: {}\nDate: x\n\nwords\n",
            "a@b.example, ".repeat(1 << 20),
            "=?utf-8?Q?=41?= ".repeat(500_000)
        )
        .into_bytes()
    }),
    case("base64.eml", "", || {
        mail(&format!(
            "text/html; charset=utf-16\nContent-Transfer-Encoding: base64\n\n{}",
            "PABhAD4A\n".repeat(3 << 20)
        ))
    }),
    case("million.mbox", "limit", || {
        b"From a@b.example Mon Jan  1 00:00:00 2024\nSubject: x\n\n".repeat(500_000)
    }),
    case("lines.mbox", "", || b"From \n".repeat(5 << 20)),
    case("dates.news", "", || {
        [
            &b"Path: x\nFrom: a@a.example\nNewsgroups: "[..],
            &b"a.b,".repeat(6 << 20),
            b"\nSubject: x\n\nwords\n",
        ]
        .concat()
    }),
];

fn named() -> Vec<(&'static str, &'static [u8])> {
    NAMES.iter().map(|it| (*it, &b"some words"[..])).collect()
}

/// Returns a message whose content type and body are `rest`.
fn mail(rest: &str) -> Vec<u8> {
    let fields = "From: a@a.example\nTo: b@b.example\nSubject: s\nMIME-Version: 1.0\n";
    format!("{fields}Content-Type: {rest}").into_bytes()
}

/// Returns a tar with a sparse GNU member: one piece at the end of 2⁶³ − 1 bytes.
fn sparse() -> Vec<u8> {
    let mut header = tar_header(b"sparse", &tar_size(512), b'S');
    let huge = [0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd, 0xff];
    let whole = [0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    header[386..398].copy_from_slice(&huge);
    header[398..410].copy_from_slice(&tar_size(512));
    header[483..495].copy_from_slice(&whole);
    tar_sum(&mut header);
    [header, vec![b'x'; 512], vec![0; 1024]].concat()
}

/// Returns a 7-Zip archive with only a directory, and correct checksums.
fn sevenz_directory(size: u64, directory: &[u8]) -> Vec<u8> {
    let start = [&[0; 8][..], &size.to_le_bytes(), &crc(directory).to_le_bytes()].concat();
    [b"7z\xbc\xaf\x27\x1c\0\x04", &crc(&start).to_le_bytes()[..], &start, directory].concat()
}

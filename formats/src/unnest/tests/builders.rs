//! Builders of containers for tests, mostly by other crates.

use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn tarball(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mtime(86_400);
        header.set_mode(0o644);
        // Straight into the header: the builder refuses `..` and absolute names.
        if path.len() <= 100 {
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        } else {
            builder.append_data(&mut header, path, *bytes).unwrap();
        }
    }
    builder.into_inner().unwrap()
}

pub(crate) fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = ::zip::write::SimpleFileOptions::default();
    for (path, bytes) in files {
        writer.start_file(*path, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns gzip of `mebibytes` MiB, with one member for each.
pub(crate) fn bomb(mebibytes: usize) -> Vec<u8> {
    gzip(&vec![b' '; 1 << 20]).repeat(mebibytes)
}

/// Returns an ar archive; names are written to the headers unchanged.
pub(crate) fn ar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in files {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 86_400, 0, 0, 644, bytes.len());
        out.extend(header.into_bytes());
        out.extend(*bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// Returns a Debian package.
pub(crate) fn deb(control: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let control = tarball(&[("./control", control.as_bytes())]);
    ar(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &gzip(&control)),
        ("data.tar.xz", &xz(&tarball(files))),
    ])
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

//! Tests of the limits that settings and the budget give: whatever is left out is said, in the record as in the
//! list of problems.

use std::collections::BTreeSet;

use formats::FullText;
use formats::limit::Limit;
use formats::object::{Object, ProblemKind, Summary};
use proptest::prelude::*;
use soif::digest::Md5;

use super::{EssenceSettings, extract};
use crate::builders::{gzip, tarball, zipped};

/// Returns a 7-Zip archive of short files, not packed.
fn seven_zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        sum.sum().to_le_bytes()
    };
    let byte = |it: usize| u8::try_from(it).ok().filter(u8::is_ascii).unwrap();
    let content: Vec<u8> = files.iter().flat_map(|it| it.1).copied().collect();
    let names = files.iter().flat_map(|it| it.0.encode_utf16().chain([0]));
    let names: Vec<u8> = names.flat_map(u16::to_le_bytes).collect();
    let (size, count) = (byte(content.len()), byte(files.len()));
    // One packed stream; one folder that copies; its files.
    let mut directory = vec![1, 4, 6, 0, 1, 9, size, 0, 7, 0x0b, 1, 0, 1, 1, 0, 0x0c, size, 0];
    directory.extend([8, 0x0d, count, 9]);
    directory.extend(files.iter().take(files.len() - 1).map(|it| byte(it.1.len())));
    directory.extend([0x0a, 1]);
    directory.extend(files.iter().flat_map(|it| sum(it.1)));
    directory.extend([0, 0, 5, count, 0x11, byte(names.len() + 1), 0]);
    directory.extend(names);
    directory.extend([0, 0]);
    let lengths = [content.len() as u64, directory.len() as u64].map(u64::to_le_bytes);
    let start = [&lengths.concat()[..], &sum(&directory)].concat();
    [b"7z\xbc\xaf\x27\x1c\0\x04", &sum(&start)[..], &start, &content, &directory].concat()
}

/// Returns containers of all kinds, each with three texts or more.
fn containers() -> Vec<(&'static str, Vec<u8>)> {
    let files: &[(&str, &[u8])] = &[
        ("a.txt", b"First words\n\nof the first text."),
        ("b.html", b"<title>Second</title><p>Second words."),
        ("c.txt", b"Third words."),
    ];
    let mail = |number: usize| {
        format!(
            "From a@a.example Mon Jan  1 00:00:00 2024\nFrom: a@a.example\nTo: b@b.example\n\
             Subject: Letter {number}\nMessage-ID: <{number}@a.example>\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nHi {number}\n\
             --B\nContent-Type: text/plain; name=\"x.txt\"\nContent-Disposition: attachment\n\n\
             Attached words {number}\n--B--\n\n"
        )
    };
    let list = |number: usize| {
        format!(
            "@book{{key{number}, title = {{Title {number}}}, url = {{http://x.example/{number}}}}}\n"
        )
    };
    let many = |make: &dyn Fn(usize) -> String| (1..4).map(make).collect::<String>().into_bytes();
    let inner = gzip(&tarball(&[("in.zip", &zipped(files)), ("d.txt", b"Deep words")]));
    vec![
        ("a.zip", zipped(files)),
        ("a.tar.gz", gzip(&tarball(files))),
        ("a.7z", seven_zip(files)),
        ("a.mbox", many(&mail)),
        ("a.bib", many(&list)),
        ("a.txt.gz", gzip(files[0].1)),
        ("n.zip", zipped(&[("in.tar.gz", &inner), ("e.txt", b"Last words")])),
    ]
}

fn settings() -> EssenceSettings {
    let mut settings = EssenceSettings::default();
    settings.summary.formats.full_text = FullText::All;
    settings
}

/// Returns settings with a lower bound; `None` if settings do not give it.
fn lowered(limit: Limit, bound: u64) -> Option<EssenceSettings> {
    let mut settings = settings();
    let (unnest, formats) = (&mut settings.unnest, &mut settings.summary.formats);
    let count = usize::try_from(bound).unwrap();
    match limit {
        Limit::Opened => unnest.bytes_max = bound,
        Limit::Ratio => (unnest.ratio_max, unnest.ratio_from_bytes) = (bound, 0),
        Limit::Depth => unnest.depth_max = u32::try_from(bound).unwrap(),
        Limit::Members => unnest.members_max = bound,
        Limit::Names => unnest.names_bytes_max = bound,
        Limit::Records => unnest.records_bytes_max = bound,
        Limit::Member => unnest.member_bytes_max = count,
        Limit::Memory => unnest.held_bytes_max = bound,
        Limit::Text => formats.full_text_bytes_max = count,
        Limit::Keywords => formats.keywords_bytes_max = count,
        Limit::References => formats.references_max = count,
        // As much as is fetched: see `read`.
        Limit::Read => {}
        _ => return None,
    }
    Some(settings)
}

/// Extracts what is fetched of a container: all, or the front if that is what is bounded.
fn read(name: &str, bytes: &[u8], limit: Limit, bound: u64) -> Vec<Summary> {
    let mut object = Object::whole(format!("http://h.example/{name}"), bytes.to_vec());
    let front = usize::try_from(bound).unwrap();
    if limit == Limit::Read && front < bytes.len() {
        object.md5 = Some(Md5::of(bytes));
        object.bytes.truncate(front);
        object.truncated = true;
    }
    extract(object, &lowered(limit, bound).unwrap(), &|| false)
}

/// Checks that each record says what its problems say, and returns the limits that are said.
fn reported(summaries: &[Summary], case: &str) -> BTreeSet<String> {
    let mut limits = BTreeSet::new();
    for Summary { record, .. } in summaries {
        let problems = summaries.iter().flat_map(|it| &it.problems);
        let own: Vec<_> = problems.filter(|it| it.object == record.url).collect();
        let text = record.text("Truncated").unwrap_or_default();
        let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let all = own.iter().map(|it| it.truncated()).collect();
        assert!(lines.is_subset(&all), "{case}: {lines:?} are not {all:?}");
        let cuts = own.iter().filter(|it| matches!(it.kind, ProblemKind::Limit(_)));
        let cuts = cuts.map(|it| it.truncated()).collect();
        assert!(lines.is_superset(&cuts), "{case}: {lines:?} lack some of {cuts:?}");
    }
    for problem in summaries.iter().flat_map(|it| &it.problems) {
        if let ProblemKind::Limit(cut) = problem.kind {
            limits.insert(cut.limit.name().to_owned());
        }
    }
    limits
}

/// The largest bound that is tried; more than any of the containers needs.
const BOUND_MAX: u64 = 1 << 20;

fn check(limit: Limit, bound: u64) -> BTreeSet<String> {
    let mut limits = BTreeSet::new();
    for (name, bytes) in containers() {
        let case = format!("{name} with {limit} {bound}");
        let (whole, cut) = (read(name, &bytes, limit, BOUND_MAX), read(name, &bytes, limit, bound));
        assert_eq!(reported(&whole, &case), BTreeSet::new(), "{case}");
        limits.extend(reported(&cut, &case));
        let is_silent = cut.iter().all(|it| it.problems.is_empty());
        assert!(!is_silent || whole == cut, "{case}: something is missing in silence");
    }
    limits
}

#[test]
fn each_limit_that_settings_give_is_said() {
    for limit in Limit::ALL.iter().copied().filter(|it| it.standard() == 0) {
        // Tested where it is: with databases and PDFs in formats, with programs and expressions here.
        let is_tested =
            matches!(limit, Limit::Beside | Limit::PdfStreams | Limit::Output | Limit::Matches);
        if !is_tested {
            assert!(lowered(limit, 0).is_some(), "{limit} needs a test");
            let bound = if matches!(limit, Limit::Read | Limit::Memory) { 64 } else { 0 };
            assert!(check(limit, bound).contains(limit.name()), "{limit}");
        }
    }
}

#[test]
fn a_text_that_just_fits_is_whole() {
    let (name, bytes) = containers().into_iter().find(|it| it.0 == "a.mbox").unwrap();
    // It has 42 bytes with the end of the last line, which is not kept.
    assert_eq!(read(name, &bytes, Limit::Text, 41), read(name, &bytes, Limit::Text, BOUND_MAX));
    assert_ne!(read(name, &bytes, Limit::Text, 40), read(name, &bytes, Limit::Text, BOUND_MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn nothing_is_left_out_in_silence(share in 0.0..1.0_f64, most in 1..1_500_u32) {
        let bound = f64::from(most) * share;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
        let bound = bound as u64;
        for limit in Limit::ALL.iter().copied().filter(|it| lowered(*it, 0).is_some()) {
            // Less than that shows no type.
            check(limit, if limit == Limit::Read { bound.max(64) } else { bound });
        }
    }
}

#[test]
fn what_stands_behind_the_content_of_a_packed_sound_is_read() {
    let head = b"RIFF\xff\xff\x0f\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data";
    let size = 200_000_u32;
    let title = b"LIST\x12\0\0\0INFOINAM\x06\0\0\0Needle";
    let content = vec![0; size as usize];
    let sound = [&head[..], &size.to_le_bytes(), &content, title].concat();
    let object = Object::whole("http://h.example/a.wav.gz", gzip(&sound));
    let found = extract(object, &settings(), &|| false);
    assert_eq!(found[0].record.text("Title").as_deref(), Some("Needle"));
}

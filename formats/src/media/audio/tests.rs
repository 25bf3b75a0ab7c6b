//! Tests of sounds, built byte by byte.

use proptest::prelude::*;

use crate::Type;
use crate::testing::render;

fn check(name: &str, bytes: &[u8], expected: &str) {
    assert_eq!(render(name, Type::Audio, bytes), expected);
}

/// Returns one second of silence at 8,000 bytes a second, with a list of information.
fn wave(list: &[u8]) -> Vec<u8> {
    let chunk = |name: &[u8], data: &[u8]| {
        [name, &u32::try_from(data.len()).unwrap().to_le_bytes(), data].concat()
    };
    let format = chunk(b"fmt ", b"\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0");
    let parts = [b"WAVE".as_slice(), &format, list, &chunk(b"data", &[128; 8000])].concat();
    chunk(b"RIFF", &parts)
}

#[test]
fn a_wave_with_information() {
    let list = b"LIST\x24\0\0\0INFOINAM\x06\0\0\0Waves\0IART\x04\0\0\0Ann\0ICRD\x04\0\0\x002020";
    let mut list = list.to_vec();
    let len = u32::try_from(list.len() - 8).unwrap().to_le_bytes();
    list[4..8].copy_from_slice(&len);
    check(
        "w.wav",
        &wave(&list),
        "Title: Waves\nAuthor: Ann\nDate: 2020\nDate-Source: media metadata\nDuration: 1",
    );
}

#[test]
fn a_sound_of_sun() {
    let numbers = |start: u32, size: u32, encoding: u32| -> Vec<u8> {
        let all = [start, size, encoding, 8_000, 2];
        [b".snd".to_vec(), all.iter().flat_map(|it| it.to_be_bytes()).collect()].concat()
    };
    let sized = [numbers(32, 32_000, 3), b"Bell\0\0\0\0".to_vec(), vec![0; 64_000]].concat();
    check("bell.au", &sized, "Title: bell.au\nDescription: Bell\nDuration: 1\nPartial-Text: Bell");
    let endless = [numbers(24, u32::MAX, 1), vec![0xff; 48_000]].concat();
    check("bell.au", &endless, "Title: bell.au\nDuration: 3");
    let unknown = [numbers(24, u32::MAX, 23), vec![0xff; 48_000]].concat();
    check("bell.au", &unknown, "Title: bell.au");
    check(
        "bell.au",
        &sized[..20],
        "Title: bell.au\n! broken: cannot be read to the end of its tags",
    );
}

#[test]
fn a_song_with_tags() {
    let frame = |name: &[u8], data: &[u8]| {
        [name, &u32::try_from(data.len()).unwrap().to_be_bytes(), b"\0\0", data].concat()
    };
    let frames = [
        frame(b"TIT2", b"\x03Sea song"),
        frame(b"TPE1", b"\x03Ann"),
        frame(b"TALB", b"\x03Songs"),
        frame(b"COMM", b"\x03eng\0Sung at home"),
        frame(b"TCON", b"\x03Folk"),
        frame(b"USLT", b"\x03eng\0la la"),
    ]
    .concat();
    let size = u32::try_from(frames.len()).unwrap();
    let size = [0, 0, u8::try_from(size >> 7).unwrap(), u8::try_from(size & 0x7f).unwrap()];
    // Frames of MPEG-1 layer III, 128 kbit/s at 44.1 kHz: 417 bytes and 26.1 ms each.
    let frame = [&[0xff, 0xfb, 0x90, 0x00], vec![0; 413].as_slice()].concat();
    let bytes = [b"ID3\x03\0\0".as_slice(), &size, &frames, &frame.repeat(40)].concat();
    let rendered = render("s.mp3", Type::Audio, &bytes);
    let expected = "Title: Sea song\nAuthor: Ann\nDescription: Sung at home\nGenre: Folk";
    for line in expected.lines().chain(["Album: Songs", "Partial-Text: Sung at home | la la"]) {
        assert!(rendered.lines().any(|it| it == line), "{line} in {rendered}");
    }
    assert!(rendered.contains("Duration: 1.04"), "{rendered}");
}

#[test]
fn a_tune() {
    let mut track = b"\0\xff\x03\x05Dance\0\xff\x02\x07(c) Ann\0\xff\x51\x03\x0f\x42\x40".to_vec();
    track.extend(b"\0\xff\x05\x02la\x10\xff\x05\x03 la\0\xff\x05\x03/lo\0\x90\x40\x40");
    // A running status, then four quarters of rest.
    track.extend(b"\x10\x40\0\x83\x00\xff\x2f\0");
    let len = u32::try_from(track.len()).unwrap().to_be_bytes();
    let bytes = [b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk".as_slice(), &len, &track].concat();
    // 32 + 384 ticks of 1/96 quarter note, a second each.
    check(
        "d.mid",
        &bytes,
        "Title: Dance\nDescription: la la lo\nCopyright: (c) Ann\nDuration: 4.333\n\
         Partial-Text: la la | lo",
    );
}

#[test]
fn a_module() {
    let mut bytes = vec![0; 1084];
    bytes[..5].copy_from_slice(b"Space");
    bytes[20..31].copy_from_slice(b"made by Ann");
    bytes[1080..].copy_from_slice(b"M.K.");
    check("s.mod", &bytes, "Title: Space\nDescription: made by Ann\nPartial-Text: made by Ann");
}

#[test]
fn play_lists() {
    check(
        "l.m3u",
        b"#EXTM3U\n#EXTINF:10,Ann - Song\nsong 1.mp3\nhttp://o.example/2.mp3\n",
        "Title: l.m3u\nDescription: Ann - Song\nEntries: 2\n\
         URL-References: http://h.example/d/song%201.mp3 | http://o.example/2.mp3\n\
         Partial-Text: Ann - Song",
    );
    check(
        "l.pls",
        b"[playlist]\nFile1=http://o.example/radio\nTitle1=Radio\nLength1=-1\n",
        "Title: l.pls\nDescription: Radio\nEntries: 1\n\
         URL-References: http://o.example/radio\nPartial-Text: Radio",
    );
}

#[test]
fn hostile_sounds_end() {
    // A chunk of 4 GB, an ID3 tag of 256 MB, a track of 4 GB.
    for bytes in [
        b"RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff".as_slice(),
        b"ID3\x04\0\0\x7f\x7f\x7f\x7fTIT2\x7f\x7f\x7f\x7f\0\0",
        b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\xff\xff\xff\xff\0\x90",
        b"fLaC\0\xff\xff\xff",
        b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff",
    ] {
        render("x.snd", Type::Audio, bytes);
    }
    let nested = b"\0\0\0\x08moov".repeat(100_000);
    render("x.m4a", Type::Audio, &[b"\0\0\0\x0cftypM4A ".as_slice(), &nested].concat());
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        magic in proptest::sample::select(vec![
            b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\xff\xff".to_vec(), b"ID3\x03\0\0\0\0\x02\x01".to_vec(),
            b"fLaC".to_vec(), b"OggS".to_vec(), b"RIFF\0\x01\0\0WAVE".to_vec(), b"IMPM".to_vec(),
            b"\0\0\0\x0cftypM4A \0\0\x01\0moov".to_vec(), b"#EXTM3U\n".to_vec(), b"FORM\0\0\x01\0AIFF".to_vec(),
        ]),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        render("x.snd", Type::Audio, &[magic, rest].concat());
    }
}

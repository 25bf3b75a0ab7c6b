//! Tests of object files, built byte by byte.

use proptest::prelude::*;

use crate::Type;
use crate::testing::render;

fn check(name: &str, bytes: &[u8], expected: &str) {
    assert_eq!(render(name, Type::Object, bytes), expected);
}

/// Returns a 64-bit ELF file of x86-64 with sections: name, type, content, link and entry size.
fn elf(kind: u8, sections: &[(&str, u32, Vec<u8>, u32, u64)]) -> Vec<u8> {
    let mut names = vec![0_u8];
    let mut data = vec![0; 64];
    let mut headers = vec![0; 64];
    let own = (".shstrtab", 3, Vec::new(), 0, 0);
    for (name, section, content, link, entry) in sections.iter().chain([&own]) {
        let name_at = u32::try_from(names.len()).unwrap();
        names.extend(name.bytes().chain([0]));
        let content = if *name == ".shstrtab" { &names } else { content };
        let (at, len) = (data.len() as u64, content.len() as u64);
        headers.extend(name_at.to_le_bytes());
        headers.extend(section.to_le_bytes());
        headers.extend([0; 16]);
        headers.extend(at.to_le_bytes());
        headers.extend(len.to_le_bytes());
        headers.extend(link.to_le_bytes());
        headers.extend([1, 0, 0, 0]);
        headers.extend(1_u64.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        data.extend(content);
        data.resize(data.len().next_multiple_of(8), 0);
    }
    let count = u16::try_from(sections.len() + 2).unwrap();
    let at = data.len() as u64;
    data[..20].copy_from_slice(
        &[b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".as_slice(), &[kind, 0, 62, 0]].concat(),
    );
    data[20] = 1;
    data[40..48].copy_from_slice(&at.to_le_bytes());
    data[52..54].copy_from_slice(&64_u16.to_le_bytes());
    data[58..60].copy_from_slice(&64_u16.to_le_bytes());
    data[60..62].copy_from_slice(&count.to_le_bytes());
    data[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    [data, headers].concat()
}

/// Returns a symbol: position of its name, its binding and type, and its section.
fn symbol(name: u32, info: u8, section: u16) -> Vec<u8> {
    [name.to_le_bytes().as_slice(), &[info, 0], &section.to_le_bytes(), &[0; 16]].concat()
}

fn library() -> Vec<u8> {
    let strings = b"\0libsea.so.1\0libc.so.6\0sail\0rudder\0printf\0".to_vec();
    let dynamic = |entries: &[(u64, u64)]| {
        entries.iter().flat_map(|it| [it.0.to_le_bytes(), it.1.to_le_bytes()].concat()).collect()
    };
    let symbols =
        [vec![0; 24], symbol(23, 0x12, 5), symbol(28, 0x12, 5), symbol(35, 0x12, 0)].concat();
    let id = [4_u32, 4, 3].map(u32::to_le_bytes).concat();
    elf(
        3,
        &[
            (".dynstr", 3, strings, 0, 0),
            (".dynsym", 11, symbols, 1, 24),
            (".dynamic", 6, dynamic(&[(1, 13), (14, 1), (0, 0)]), 1, 16),
            (".comment", 1, b"\0GCC: (Debian 12.2.0-14) 12.2.0\0".to_vec(), 0, 0),
            (".rodata", 1, b"sea version 1.2\0no wind to sail with\0".to_vec(), 0, 0),
            (".note.gnu.build-id", 7, [id.as_slice(), b"GNU\0\xde\xad\xbe\xef"].concat(), 0, 0),
        ],
    )
}

#[test]
fn a_shared_library() {
    check(
        "libsea.so.1",
        &library(),
        "Title: libsea.so.1\nArchitecture: x86-64\nKind: shared library\n\
         Library-Name: libsea.so.1\nNeeded-Libraries: libc.so.6\nIdentifier: build-id:deadbeef\n\
         Generator: GCC: (Debian 12.2.0-14) 12.2.0\nSymbols: sail | rudder\nVersion: 1.2\n\
         Partial-Text: no wind to sail with",
    );
}

#[test]
fn a_kernel_module() {
    let info = b"license=GPL\0description=Sea level driver\0author=Ann Example\0".to_vec();
    check(
        "sea.ko",
        &elf(1, &[(".modinfo", 1, info, 0, 0)]),
        "Title: sea.ko\nAuthor: Ann Example\nDescription: Sea level driver\nArchitecture: x86-64\n\
         Kind: relocatable object\nLicense: GPL",
    );
}

#[test]
fn a_java_class() {
    let text = |text: &str| {
        [&[1], u16::try_from(text.len()).unwrap().to_be_bytes().as_slice(), text.as_bytes()]
            .concat()
    };
    let constants = [
        text("sea/Ship"),
        vec![7, 0, 1],
        text("sea/Thing"),
        vec![7, 0, 3],
        text("sail"),
        text("()V"),
        text("hidden"),
        text("SourceFile"),
        text("Ship.java"),
        // A long number takes two constants.
        vec![5, 0, 0, 0, 0, 0, 0, 0, 1],
    ];
    let bytes = [
        b"\xca\xfe\xba\xbe\0\0\0\x34\0\x0c".as_slice(),
        &constants.concat(),
        // Flags, this, super, interfaces.
        &[0, 0x21, 0, 2, 0, 4, 0, 1, 0, 2],
        // A field, and two methods.
        &[0, 1, 0, 1, 0, 7, 0, 6, 0, 0],
        &[0, 2, 0, 1, 0, 5, 0, 6, 0, 0, 0, 2, 0, 7, 0, 6, 0, 0],
        &[0, 1, 0, 8, 0, 0, 0, 2, 0, 9],
    ];
    check(
        "Ship.class",
        &bytes.concat(),
        "Title: sea.Ship\nArchitecture: java\nSuperclass: sea.Thing\nInterfaces: sea.Ship\n\
         Symbols: sail\nSource-File: Ship.java",
    );
    check(
        "Ship.class",
        b"\xca\xfe\xba\xbe\0\0\0\x34\xff\xff\x01\xff\xff",
        "Title: Ship.class\nArchitecture: java\n\
         ! broken: is cut off or damaged: the class is incomplete",
    );
}

#[test]
fn a_module_for_the_web() {
    let imports = b"\x02\x03env\x05abort\0\0\x03env\x03mem\x02\0\x01";
    let exports = b"\x01\x04sail\0\0";
    let section =
        |id: u8, content: &[u8]| [&[id, u8::try_from(content.len()).unwrap()], content].concat();
    check(
        "sea.wasm",
        &[b"\0asm\x01\0\0\0".as_slice(), &section(2, imports), &section(7, exports)].concat(),
        "Title: sea.wasm\nArchitecture: wasm32\nNeeded-Libraries: env\nSymbols: sail",
    );
}

#[test]
fn a_windows_program_has_a_version_resource() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let bytes = [
        b"MZ\x90\0".to_vec(),
        vec![0; 60],
        wide("VS_VERSION_INFO\0\0"),
        wide("FileDescription\0\0Sails ships\0"),
        wide("LegalCopyright\0(c) Ann\0"),
        wide("ProductName\0\0Sea\0"),
        wide("FileVersion\x001.2.3.4\0"),
    ];
    check(
        "sea.exe",
        &bytes.concat(),
        "Title: Sea\nDescription: Sails ships\nVersion: 1.2.3.4\nCopyright: (c) Ann",
    );
}

#[test]
fn hostile_objects_end() {
    // Many symbols, each with the whole rest of the file as its name.
    let symbols = [vec![0; 24], symbol(1, 0x12, 1).repeat(100_000)].concat();
    let bytes =
        elf(3, &[(".dynstr", 3, vec![b'a'; 4 << 20], 0, 0), (".dynsym", 11, symbols, 1, 24)]);
    render("x.so", Type::Object, &bytes);
    let mut wrong = library();
    for at in [40, 58, 60, 62] {
        wrong[at] = 0xff;
    }
    render("x.so", Type::Object, &wrong);
    render("x.wasm", Type::Object, b"\0asm\x01\0\0\0\x07\x08\xff\xff\xff\xff\x0f\0\0\0");
}

proptest! {
    #[test]
    fn damaged_libraries_give_a_record(
        damage in proptest::collection::vec((0..1200_usize, any::<u8>()), 1..8),
    ) {
        let mut bytes = library();
        for (at, byte) in damage {
            if let Some(it) = bytes.get_mut(at) {
                *it = byte;
            }
        }
        render("x.so", Type::Object, &bytes);
    }

    #[test]
    fn any_bytes_give_a_record(
        magic in proptest::sample::select(vec![
            b"\x7fELF\x02\x01\x01".to_vec(), b"MZ\x90\0".to_vec(), b"\xca\xfe\xba\xbe\0\0\0\x34".to_vec(),
            b"\xca\xfe\xba\xbe\0\0\0\x01".to_vec(), b"\xcf\xfa\xed\xfe".to_vec(), b"\0asm\x01\0\0\0".to_vec(),
            b"\x4c\x01".to_vec(), b"\x64\x86".to_vec(), b"\x7fELF\x01\x02\x01".to_vec(),
        ]),
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        render("x.o", Type::Object, &[magic, rest].concat());
    }
}

//! Tests of the reader of lists.

use proptest::prelude::*;

use super::*;

/// 2026-11-27 22:13.
const NOW: i64 = 1_795_817_587;

/// Returns each folder in one line: its path, and its entries with kind, size and age in days.
fn shown(text: &[u8], form: Form) -> (Vec<String>, usize) {
    let listing = Listing::parse(text, form, NOW);
    let entry = |it: &Entry| {
        let name = String::from_utf8_lossy(&it.name);
        let kind = match &it.kind {
            EntryKind::File => String::new(),
            EntryKind::Folder => "/".to_owned(),
            EntryKind::Link(target) => format!("@{}", String::from_utf8_lossy(target)),
            EntryKind::Other => "?".to_owned(),
        };
        let size = it.size.map(|it| format!(" {it}")).unwrap_or_default();
        let age = it.modified.map(|it| format!(" -{}d", (NOW - it.seconds) / 86_400));
        format!("{name}{kind}{size}{}", age.unwrap_or_default())
    };
    let folder = |it: &Folder| {
        let entries: Vec<String> = it.entries.iter().map(entry).collect();
        format!("{}: {}", String::from_utf8_lossy(&it.path), entries.join(", "))
    };
    (listing.folders.iter().map(folder).collect(), listing.left_out)
}

#[track_caller]
fn check(text: &[u8], form: Form, expected: &[&str], left_out: usize) {
    let expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(shown(text, form), (expected, left_out));
}

#[test]
fn lists_of_unix_are_read() {
    let text = b"total 12\r\n\
        drwxr-xr-x    2 ftp      ftp          4096 Nov 26 22:13 a dir\r\n\
        -rw-r--r--    1 1000     1000         1234 Nov 27  2025 caf\xe9.txt\r\n\
        -rw-r--r--+ 1 ftp 99 Dec 31 22:13  two  blanks\n\
        lrwxrwxrwx 1 root root 7 Nov 26 22:13 link -> a -> b\r\n\
        brw-rw---- 1 root disk 8, 0 Nov 26 22:13 sda\r\n\
        drwxr-xr-x 2 a b 1 Nov 26 22:13 .\r\ndrwxr-xr-x 2 a b 1 Nov 26 22:13 ..\r\n\
        -rw-r--r-- 1 a b 1 Nov 26 22:13 ../up\r\n-rw-r--r-- 1 a b 1 Nov 26 22:13 bell\x07\r\n\
        -rw-r--r-- 1 a b 1 Foo 26 22:13 odd\r\nnonsense\r\n";
    let expected = ": a dir/ -1d, caf\u{fffd}.txt 1234 -365d,  two  blanks 99 -331d, \
        link@a -> b -1d, sda? -1d";
    check(text, Form::Free, &[expected], 4);
}

#[test]
fn lists_of_dos_are_read() {
    let text = b"11-26-26  10:13PM       <DIR>          a dir\r\n\
        11-26-2026  12:13AM            1,234 b.txt\r\n11-26-26  22:13  5 c\r\n\
        11-26-26  10:13PM       <DIR>          ..\r\n13-26-26  10:13PM  1 d\r\n";
    check(text, Form::Free, &[": a dir/ -1d, b.txt 1234 -1d, c 5 -1d"], 1);
}

#[test]
fn facts_are_read() {
    let text = b"type=cdir;perm=el; .\r\nType=dir;Modify=20261126221307; sub\r\n\
        type=file;size=7;modify=20251127221307.5;UNIX.mode=0644; a b;c\r\n\
        type=OS.unix=slink:/x/y;size=3; l\r\ntype=OS.unix=blkdev-8/0; d\r\n none\r\n\
        type=file;size=x; ../y\r\nnofacts\r\n";
    check(text, Form::Facts, &[": sub/ -1d, a b;c 7 -365d, l@/x/y, d?, none"], 2);
}

#[test]
fn trees_are_read() {
    let text = b".:\ntotal 8\ndrwxr-xr-x 2 a b 4096 Nov 26 22:13 sub\n-rw-r--r-- 1 a b 1 Nov 26 22:13 f:\n\n\
        ./sub:\ntotal 4\n-rw-r--r-- 1 a b 2 Nov 26 22:13 g\n\n./sub/../..:\n-rw-r--r-- 1 a b 2 Nov 26 22:13 h\n\n\
        sub/empty:\n";
    check(text, Form::Free, &[": sub/ -1d, f: 1 -1d", "sub: g 2 -1d", "sub/empty: "], 2);
    // vsftpd has no heading for the first folder.
    let text = b"drwxr-xr-x 2 a b 4096 Nov 26 22:13 sub\r\n\r\n/sub:\r\n-rw-r--r-- 1 a b 2 Nov 26 22:13 g\r\n";
    check(text, Form::Free, &[": sub/ -1d", "/sub: g 2 -1d"], 0);
    check(b"", Form::Free, &[": "], 0);
}

fn name() -> impl Strategy<Value = String> {
    "[a-z;.=:-]( ?[a-zä;:]){0,6}".prop_filter("refused", |it| is_name(it.as_bytes()))
}

proptest! {
    #[test]
    fn lists_are_read_as_they_were_written(
        names in prop::collection::vec((name(), any::<u32>(), any::<bool>()), 0..6),
    ) {
        let (mut unix, mut facts, mut dos) = (String::new(), String::new(), String::new());
        let mut expected = Vec::new();
        for (name, size, is_folder) in names {
            let (mark, kind) = if is_folder { ('d', "dir") } else { ('-', "file") };
            let at = if is_folder { "<DIR>".to_owned() } else { size.to_string() };
            unix.push_str(&format!("{mark}rw-r--r-- 1 u g {size:>9} Nov 26 22:13 {name}\r\n"));
            facts.push_str(&format!("type={kind};size={size};modify=20261126221300; {name}\r\n"));
            dos.push_str(&format!("11-26-26  10:13PM {at:>20} {name}\r\n"));
            expected.push(Entry {
                name: name.into_bytes(),
                kind: if is_folder { EntryKind::Folder } else { EntryKind::File },
                size: (!is_folder).then_some(u64::from(size)),
                modified: Moment::of_digits(b"20261126221300"),
            });
        }
        for (text, form, precision) in
            [(unix, Form::Free, 60), (facts, Form::Facts, 1), (dos, Form::Free, 60)]
        {
            let mut listing = Listing::parse(text.as_bytes(), form, NOW);
            prop_assert_eq!((listing.folders.len(), listing.left_out), (1, 0));
            for entry in &mut listing.folders[0].entries {
                let modified = entry.modified.as_mut().unwrap();
                prop_assert_eq!(std::mem::replace(&mut modified.precision_seconds, 1), precision);
            }
            prop_assert_eq!(&listing.folders[0].entries, &expected, "{}", text);
        }
    }

    #[test]
    fn no_list_has_refused_names(
        text in prop::collection::vec(prop::sample::select(b"-d./:1 \r\n\x07Nov;=".to_vec()), 0..200),
    ) {
        for form in [Form::Free, Form::Facts] {
            for folder in Listing::parse(&text, form, NOW).folders {
                prop_assert!(folder.entries.iter().all(|it| is_name(&it.name)));
            }
        }
    }
}

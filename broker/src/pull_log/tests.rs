//! Tests of the log of pulls: restarts, cuts, other files, packing, errors.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::read::Lines;
use super::*;

fn pull(nth: u64) -> Pull {
    Pull {
        ended_ms: 1_700_000_000_000 + nth,
        source: format!("source {}", nth % 3),
        outcome: Outcome::Delta,
        changes: nth,
        elements: nth.is_multiple_of(2).then_some(nth),
        bytes: 10 * nth,
        took_ms: 7,
    }
}

fn append(folder: &Path, pulls: impl IntoIterator<Item = u64>) {
    let mut log = PullLog::open(folder).unwrap();
    for nth in pulls {
        log.append(&pull(nth)).unwrap();
    }
}

/// Reads the log and compares the numbers of its pulls, and its malformed places as text without
/// the folder.
#[track_caller]
fn check(folder: &Path, expected: &[u64], malformed: &[&str]) {
    let (mut pulls, mut errors) = (Vec::new(), Vec::new());
    for item in read(folder).unwrap() {
        match item {
            Ok(it) => pulls.push(it),
            Err(it) => errors.push(it.to_string().replace(&format!("{}/", folder.display()), "")),
        }
    }
    let expected: Vec<Pull> = expected.iter().copied().map(pull).collect();
    assert_eq!((pulls, errors), (expected, malformed.iter().map(ToString::to_string).collect()));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn appended_pulls_are_read_after_a_restart_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("broker").join(FOLDER);
    assert_eq!(read(&folder).unwrap_err().kind(), io::ErrorKind::NotFound);
    PullLog::open(&folder).unwrap();
    assert!(!folder.exists(), "the first line creates it");
    append(&folder, 0..3);
    append(&folder, 3..5);
    check(&folder, &[0, 1, 2, 3, 4], &[]);
    let text = fs::read_to_string(folder.join("pulls-0000000001.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    assert_eq!(lines.next(), Some("1700000000000\tsource 0\tdelta\t0\t0\t0\t7"));
    assert_eq!(lines.next(), Some("1700000000001\tsource 1\tdelta\t1\t\t10\t7"));
}

#[test]
fn an_incomplete_line_is_removed_and_the_next_one_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), 0..3);
    let file = path(dir.path(), 1);
    let whole = fs::read(&file).unwrap();
    let last = whole.len() - pull(2).to_string().len() - 1;
    for length in last..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        check(dir.path(), &[0, 1], &[]);
        append(dir.path(), [7]);
        check(dir.path(), &[0, 1, 7], &[]);
    }
}

#[test]
fn after_a_file_with_an_incomplete_header_a_new_file_begins() {
    let dir = tempfile::tempdir().unwrap();
    for length in 0..=HEADER.len() {
        fs::write(path(dir.path(), 1), &HEADER[..length]).unwrap();
        append(dir.path(), [7]);
        check(dir.path(), &[7], &[]);
        fs::remove_file(path(dir.path(), 2)).unwrap();
    }
}

#[test]
fn a_long_tail_without_a_line_end_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), 0..2);
    let file = path(dir.path(), 1);
    let mut bytes = fs::read(&file).unwrap();
    bytes.resize(bytes.len() + 20_000, 0);
    fs::write(&file, &bytes).unwrap();
    check(dir.path(), &[0, 1], &[]);
    append(dir.path(), [2]);
    check(dir.path(), &[0, 1, 2], &[]);
}

/// Opens a log of at most four files of three lines each, if lines are as long as those of the
/// pulls 10 to 99.
fn short(folder: &Path) -> PullLog {
    let line = pull(10).to_string().len() as u64 + 1;
    let max = HEADER.len() as u64 + 1 + 3 * line;
    PullLog::with_limits(folder.to_owned(), max, 4).unwrap()
}

#[test]
fn full_files_are_packed_and_the_oldest_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = short(dir.path());
    for nth in 10..26 {
        // All these lines have the same length.
        log.append(&pull(2 * nth)).unwrap();
        if nth == 20 {
            log = short(dir.path());
        }
    }
    let files = names(dir.path());
    let expected = ["3.tsv.gz", "4.tsv.gz", "5.tsv.gz", "6.tsv"];
    assert_eq!(files, expected.map(|it| format!("pulls-000000000{it}")));
    let reader = read(dir.path()).unwrap();
    let lengths = files.iter().map(|it| fs::metadata(dir.path().join(it)).unwrap().len());
    assert_eq!(reader.bytes(), lengths.sum::<u64>());
    let expected: Vec<u64> = (16..26).map(|nth| 2 * nth).collect();
    check(dir.path(), &expected, &[]);
    let mut reader = read(dir.path()).unwrap();
    assert!(reader.by_ref().all(|it| it.is_ok()));
    assert_eq!(reader.bytes_read(), reader.bytes());
}

#[test]
fn packing_may_be_cut_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = short(dir.path());
    for nth in 10..17 {
        log.append(&pull(2 * nth)).unwrap();
    }
    drop(log);
    let plain: Vec<u8> = {
        let mut text = format!("{HEADER}\n");
        (10..13).for_each(|nth| text += &format!("{}\n", pull(2 * nth)));
        text.into()
    };
    // First the packed file is half written; then it is whole, but the plain file is not yet
    // deleted.
    let whole = fs::read(packed(dir.path(), 1)).unwrap();
    for (name, bytes) in
        [("pulls-0000000001.tsv.new", &whole[..20]), ("pulls-0000000001.tsv", &plain)]
    {
        fs::write(dir.path().join(name), bytes).unwrap();
        check(dir.path(), &[20, 22, 24, 26, 28, 30, 32], &[]);
    }
    let mut log = short(dir.path());
    for nth in 17..20 {
        log.append(&pull(2 * nth)).unwrap();
    }
    let expected = ["1.tsv.gz", "2.tsv.gz", "3.tsv.gz", "4.tsv"];
    assert_eq!(names(dir.path()), expected.map(|it| format!("pulls-000000000{it}")));
    // The newest file is deleted, and a packed file is damaged.
    fs::remove_file(path(dir.path(), 4)).unwrap();
    fs::write(packed(dir.path(), 2), &whole[..30]).unwrap();
    short(dir.path()).append(&pull(40)).unwrap();
    let found: Vec<_> = read(dir.path()).unwrap().collect();
    let problems = found.iter().filter(|it| it.is_err()).count();
    assert_eq!((found.len() - problems, problems), (7, 1), "{found:?}");
}

#[test]
fn other_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), 0..2);
    for name in ["pulls-1.tsv", "pulls-0000000001.tsv~", "notes", "pulls-00000000x2.tsv"] {
        fs::write(dir.path().join(name), "x\n").unwrap();
    }
    append(dir.path(), [2]);
    check(dir.path(), &[0, 1, 2], &[]);
    assert_eq!(names(dir.path()).len(), 5);
}

#[test]
fn a_bad_line_is_named_and_left_out() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), 0..2);
    let file = path(dir.path(), 1);
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"1\ta\n# noted by hand\n\xff\t\n\0\0\n");
    bytes.extend([b"x".repeat(20_000), format!("\n{}\r\n", pull(2)).into_bytes()].concat());
    fs::write(&file, bytes).unwrap();
    append(dir.path(), [3]);
    let expected = [
        "pulls-0000000001.tsv:4: not seven fields between tabs",
        "pulls-0000000001.tsv:6: not UTF-8",
        "pulls-0000000001.tsv:7: not seven fields between tabs",
        "pulls-0000000001.tsv:8: longer than 512 bytes",
    ];
    check(dir.path(), &[0, 1, 2, 3], &expected);
}

#[test]
fn a_file_of_another_version_is_left_out_and_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), 0..1);
    let other = HEADER.replace("pulls-1", "pulls-2") + "\n1\n";
    fs::write(path(dir.path(), 2), &other).unwrap();
    append(dir.path(), [1]);
    assert_eq!(fs::read_to_string(path(dir.path(), 2)).unwrap(), other);
    let said =
        "pulls-0000000002.tsv:1: the first line is not that of a log of pulls of this version";
    check(dir.path(), &[0, 1], &[said]);
}

#[test]
fn a_clock_jump_is_counted_before_the_next_pull() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = PullLog::open(dir.path()).unwrap();
    log.append(&pull(0)).unwrap();
    log.append_clock_set(-60_000).unwrap();
    log.append(&pull(1)).unwrap();
    check(dir.path(), &[0, 1], &[]);
    let mut reader = read(dir.path()).unwrap();
    let mut sets = || reader.next().map(|it| (it.unwrap().changes, reader.clock_sets()));
    assert_eq!([sets(), sets(), sets()], [Some((0, 0)), Some((1, 1)), None]);
}

#[test]
fn after_its_folder_is_deleted_the_log_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(FOLDER);
    let mut log = PullLog::open(&folder).unwrap();
    log.append(&pull(0)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    log.append(&pull(1)).unwrap();
    check(&folder, &[1], &[]);
}

#[test]
fn an_error_names_the_file_and_does_not_last() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(FOLDER);
    fs::write(&folder, "in the way").unwrap();
    assert!(PullLog::open(&folder).unwrap_err().to_string().contains(folder.to_str().unwrap()));
    fs::remove_file(&folder).unwrap();
    let mut log = PullLog::open(&folder).unwrap();
    fs::write(&folder, "in the way again").unwrap();
    let error = log.append(&pull(0)).unwrap_err();
    assert!(error.to_string().contains(folder.to_str().unwrap()), "{error}");
    fs::remove_file(&folder).unwrap();
    log.append(&pull(1)).unwrap();
    let nameless = Pull { source: "a\tb".to_owned(), ..pull(2) };
    assert_eq!(log.append(&nameless).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    log.append(&pull(3)).unwrap();
    check(&folder, &[1, 3], &[]);
}

proptest! {
    /// Whatever the bytes, there are no more items than lines, and each whole line is found.
    #[test]
    fn any_bytes_are_read(
        before in prop::collection::vec(any::<u8>(), 0..700), nth in 0..99_u64,
        after in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let line = pull(nth).to_string();
        let bytes = [HEADER.as_bytes(), b"\n", &before, b"\n", line.as_bytes(), b"\n", &after].concat();
        let lines = bytes.iter().filter(|it| **it == b'\n').count();
        let found: Vec<_> = Lines::new(&bytes[..], PathBuf::new()).collect();
        prop_assert!(found.len() < lines);
        prop_assert!(found.iter().flatten().any(|it| *it == pull(nth)));
    }
}

/// Checks pipes, folders and dangling links that have the names of files of the log.
#[test]
fn special_files_are_neither_read_nor_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = path(dir.path(), 3);
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    fs::create_dir(path(dir.path(), 1)).unwrap();
    std::os::unix::fs::symlink("nowhere", path(dir.path(), 2)).unwrap();
    let mut log = PullLog::open(dir.path()).unwrap();
    log.append(&pull(7)).unwrap();
    assert!(path(dir.path(), 4).is_file());
    let found: Vec<Pull> = read(dir.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [pull(7)]);
}

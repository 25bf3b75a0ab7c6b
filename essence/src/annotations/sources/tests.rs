use ::soif::{Record, write_record};

use super::*;

/// A folder of annotations. All its files are old enough to be read.
struct Bench {
    folder: tempfile::TempDir,
    sources: Sources,
    now_ms: u64,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Later than the time of any file written here.
        Self { folder, sources: Sources::default(), now_ms: u64::MAX / 4 }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A new inode each time: the change is noticed even if the clock is coarse.
        let beside = self.folder.path().join(".new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, path).unwrap();
    }

    fn look(&mut self) -> LookOutcome {
        self.sources.look(&[self.folder.path().to_path_buf()], self.now_ms)
    }

    /// Looks, and compares the titles in order, and the problems by file name.
    fn check(&mut self, expected: Option<&[&str]>, wrong: &[&str]) {
        let look = self.look();
        let titles = look.annotations.as_ref().map(|all| {
            let title = |it: &super::super::Entry| {
                String::from_utf8_lossy(&it.statements()[0].value).into_owned()
            };
            all.entries.iter().map(title).collect::<Vec<_>>()
        });
        let expected = expected.map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(titles, expected);
        let folder = self.folder.path();
        let shown = |it: &FileProblem| {
            let name = it.path.strip_prefix(folder).unwrap_or(&it.path);
            format!("{}: {}", name.display(), it.message)
        };
        let shown: Vec<String> = look.problems.iter().map(shown).collect();
        assert_eq!(shown.len(), wrong.len(), "{shown:?}");
        for (shown, wrong) in shown.iter().zip(wrong) {
            let (name, part) = wrong.split_once(' ').unwrap();
            assert!(shown.starts_with(name) && shown.contains(part), "{shown}");
        }
    }
}

fn soif(title: &str) -> String {
    let mut record = Record::new("FILE", "http://h/a");
    record.push("Title", title);
    let mut text = Vec::new();
    write_record(&mut text, &record);
    String::from_utf8(text).unwrap()
}

#[test]
fn files_are_read_when_they_change_and_count_in_order() {
    let mut bench = Bench::new();
    bench.check(Some(&[]), &[]);
    bench.write("b.soif", &soif("B"));
    bench.write("a/z.soif", &soif("A"));
    bench.write("a/.hidden.soif", &soif("no"));
    bench.write("a/z.soif~", "no");
    bench.check(Some(&["A", "B"]), &[]);
    bench.check(None, &[]);
    bench.write("b.soif", &soif("C"));
    bench.check(Some(&["A", "C"]), &[]);
    fs::remove_file(bench.folder.path().join("a/z.soif")).unwrap();
    bench.check(Some(&["C"]), &[]);
}

#[test]
fn a_new_order_in_the_settings_is_a_change() {
    let mut bench = Bench::new();
    bench.write("a.soif", &soif("A"));
    bench.write("b.soif", &soif("B"));
    let [a, b] = ["a.soif", "b.soif"].map(|it| bench.folder.path().join(it));
    let mut last = |paths: &[PathBuf]| {
        let shown = bench.sources.look(paths, bench.now_ms).annotations?;
        Some(String::from_utf8_lossy(&shown.entries[1].statements()[0].value).into_owned())
    };
    assert_eq!(last(&[a.clone(), b.clone()]).as_deref(), Some("B"));
    assert_eq!(last(&[a.clone(), b.clone()]), None);
    assert_eq!(last(&[b, a]).as_deref(), Some("A"));
}

#[test]
fn a_file_with_mistakes_keeps_its_last_valid_content() {
    let mut bench = Bench::new();
    bench.write("a.soif", &soif("Good"));
    bench.write("new.soif", "@FILE {");
    let new = "new.soif: nothing of it counts";
    bench.check(Some(&["Good"]), &[new]);
    let half = &soif("Better")[..20];
    bench.write("a.soif", half);
    bench.check(None, &["a.soif: line 1:1:", new]);
    bench.check(None, &["a.soif: its earlier annotations count", new]);
    bench.write("a.soif", "");
    bench.check(None, &["a.soif: is empty", new]);
    bench.write("a.soif", &soif("Better"));
    bench.write("new.soif", &soif("New"));
    bench.check(Some(&["Better", "New"]), &[]);
}

#[test]
fn an_unreadable_folder_removes_no_annotations() {
    let mut bench = Bench::new();
    bench.write("d/a.soif", &soif("A"));
    let path = bench.folder.path().join("d");
    let paths = [path.clone()];
    assert_eq!(bench.sources.look(&paths, bench.now_ms).annotations.unwrap().len(), 1);
    fs::rename(&path, bench.folder.path().join("e")).unwrap();
    let look = bench.sources.look(&paths, bench.now_ms);
    assert!(look.annotations.is_none());
    assert!(
        look.problems.iter().any(|it| it.path == path && it.message.contains("cannot be read"))
    );
    fs::rename(bench.folder.path().join("e"), &path).unwrap();
    let look = bench.sources.look(&paths, bench.now_ms);
    assert_eq!((look.problems, look.files), (vec![], 1));
    // A folder that is taken out of the settings removes its annotations.
    assert!(bench.sources.look(&[], bench.now_ms).annotations.unwrap().is_empty());
}

#[test]
fn an_unmounted_folder_removes_no_annotations() {
    let mut bench = Bench::new();
    let folder = bench.folder.path().to_path_buf();
    bench.write("a.soif", &soif("A"));
    bench.check(Some(&["A"]), &[]);
    // As if the file had been on another device mounted here.
    bench.sources.files.values_mut().for_each(|it| it.device = it.device.map(|it| it + 1));
    fs::remove_file(folder.join("a.soif")).unwrap();
    for _ in 0..2 {
        let look = bench.look();
        assert!(look.annotations.is_none());
        assert!(look.problems.iter().any(|it| it.path == folder && it.message.contains("mounted")));
    }
    bench.write("a.soif", &soif("B"));
    bench.check(Some(&["B"]), &[]);
    // A deleted file removes its annotations.
    fs::remove_file(folder.join("a.soif")).unwrap();
    bench.check(Some(&[]), &[]);
}

#[test]
fn a_file_that_is_still_changing_is_read_later() {
    let mut bench = Bench::new();
    let file = bench.folder.path().join("a.soif");
    bench.write("a.soif", &soif("Old"));
    bench.check(Some(&["Old"]), &[]);
    bench.write("a.soif", &soif("New"));
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    let modified_ms = u64::try_from(modified.as_millis()).unwrap();
    for after_ms in [0, 999] {
        bench.now_ms = modified_ms + after_ms;
        let look = bench.look();
        assert!(look.again && look.annotations.is_none(), "{after_ms}");
    }
    bench.now_ms = modified_ms + 1_000;
    bench.check(Some(&["New"]), &[]);
    // A file with a time in the future is not waited for.
    bench.write("a.soif", &soif("Newest"));
    bench.now_ms = modified_ms - 5_000;
    bench.check(Some(&["Newest"]), &[]);
}

#[test]
fn patterns_of_all_files_together_are_bounded() {
    let mut bench = Bench::new();
    let term = |label: &str, count: usize| {
        let objects: Vec<String> = (0..count).map(|it| format!("'http://h/{it}/*'")).collect();
        format!("[[term]]\nlabel = '{label}'\nobjects = [{}]\n", objects.join(", "))
    };
    bench.write("a.toml", &term("A", PATTERNS_MAX));
    bench.write("b.toml", &term("B", 1));
    let look = bench.look();
    assert_eq!(look.annotations.unwrap().len(), PATTERNS_MAX);
    assert!(look.problems[0].message.contains("more than 1000 patterns"), "{:?}", look.problems);
    bench.write("a.toml", &term("A", PATTERNS_MAX - 1));
    let look = bench.look();
    assert_eq!((look.annotations.unwrap().len(), look.problems), (PATTERNS_MAX, vec![]));
}

#[test]
fn pipes_and_sockets_are_not_read() {
    let bench = Bench::new();
    let path = bench.folder.path().join("x.soif");
    std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (sent, received) = std::sync::mpsc::channel();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.with_file_name("y.soif"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let folder = bench.folder.path().to_path_buf();
    std::thread::spawn(move || sent.send(Sources::default().look(&[folder], 0)).unwrap());
    let look = received.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(look.problems.len(), 2);
    assert!(look.problems.iter().all(|it| it.message.contains("no regular file")));
}

#[test]
fn a_file_of_no_known_sort_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "x").unwrap();
    let look = Sources::default().look(&[path], 0);
    assert!(look.problems[0].message.contains("name one that ends in .soif"));
}

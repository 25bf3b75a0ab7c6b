//! Tests of `harvest` in a terminal, as a new user meets it: from the first command to an opened
//! document.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use net::clock;
use tempfile::TempDir;

use crate::harness::{
    PATIENCE, Running, ask, long_text, post, run_ok, small_tree, wait_for_total, write,
};

const SENTENCE: &str = "here the marzipan inspector resigned at last";
/// What the user types, in a terminal or into the search page.
const WORDS: [&str; 4] = ["when", "marzipan", "inspector", "resigned"];

/// A user with a folder of documents, a data directory, and a desktop whose opener writes down what it
/// gets.
struct User {
    dir: TempDir,
}

impl User {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // After the address it writes its process and the group of this one.
        let script = format!(
            "#!/bin/sh\nread -r id _ _ _ group _ </proc/self/stat\n\
             printf '%s\\n' \"$id $group $1\" >>'{}'\n",
            dir.path().join("opened").display()
        );
        let opener = write(dir.path(), "bin/xdg-open", script);
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
        small_tree(&dir.path().join("my documents"));
        write(dir.path(), "my documents/books/a long one.txt", long_text(SENTENCE));
        Self { dir }
    }

    fn folder(&self) -> PathBuf {
        fs::canonicalize(self.dir.path().join("my documents")).unwrap()
    }

    /// Returns a command of the binary for a terminal, in the folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harvest"));
        let bin = self.dir.path().join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        command.args(args).env("PATH", path).env("DISPLAY", ":99").env("TERM", "xterm");
        command.env("XDG_DATA_HOME", self.dir.path().join("share"));
        command.env_remove("NO_COLOR").env_remove("HARVEST_BROKER").current_dir(self.folder());
        command
    }

    /// Runs the binary in a terminal to its end; returns what it wrote there.
    fn run(&self, args: &[&str]) -> String {
        Running::start_in_terminal(&self.command(args)).printed()
    }

    /// Waits until the opener has been started `count` times, each time out of reach of the terminal's
    /// signals; returns what it got the last time.
    fn opened(&self, count: usize) -> String {
        let start = clock::monotonic();
        loop {
            let text = fs::read_to_string(self.dir.path().join("opened")).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            if lines.len() == count && text.ends_with('\n') {
                let mut parts = lines[count - 1].splitn(3, ' ');
                assert_eq!(parts.next(), parts.next(), "it leads a group of its own");
                return parts.next().unwrap().to_owned();
            }
            assert!(lines.len() < count && start.elapsed() < PATIENCE, "{lines:?}");
            std::thread::yield_now();
        }
    }
}

/// Follows a one-time link as a browser does; returns where it leads, and the cookie.
fn follow(link: &str) -> (String, String) {
    let (status, head, _) = ask("GET", link, &[]);
    assert_eq!(status, 303, "{link}: {head}");
    let of = |name: &str| head.lines().find_map(|it| it.strip_prefix(name)).unwrap().trim();
    let (cookie, _) = of("set-cookie:").split_once(';').unwrap();
    (of("location:").to_owned(), cookie.to_owned())
}

/// Returns what stands between `from` and the next `to`.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = html.split_once(from).unwrap_or_else(|| panic!("no {from} in {html}"));
    rest.split_once(to).unwrap().0
}

#[test]
fn a_sentence_deep_in_a_long_document_is_found_and_opened() {
    let user = User::new();
    let document = user.folder().join("books/a long one.txt");
    let mut up = Running::start_in_terminal(&user.command(&["up"]));
    let page = up.gathered_url();

    // The browser gets a link that is good once, and has the page by it.
    let link = user.opened(1);
    assert!(link.starts_with("http://127.0.0.1:") && link.contains("/session/"), "{link}");
    let (location, cookie) = follow(&link);
    assert_eq!(location, page);
    let get = |path: &str| {
        let (status, head, body) = ask("GET", &format!("{page}{path}"), &[("Cookie", &cookie)]);
        assert_eq!(status, 200, "{path}: {head}");
        String::from_utf8(body).unwrap()
    };
    assert!(get("").contains("9 objects"), "{}", get(""));

    // The words are shown where they stand, however far into the text.
    let results = get(&format!("?q={}", WORDS.join("+")));
    let marked = "the <mark>marzipan</mark> <mark>inspector</mark> <mark>resigned</mark> at last";
    let first = between(&results, "<ol class=\"hits\"", "</li>\n</ol>");
    assert!(
        first.contains(marked) && !first.contains("<h3 dir=\"auto\"><a href=\"http"),
        "{results}"
    );
    assert!(first.contains("Excerpt from </span><bdi>line 60002</bdi>"), "{first}");
    assert!(first.contains(&format!("{}</bdi>", document.display())), "{first}");

    // The page of the document begins with the part that has them.
    let summary = between(first, "<h3 dir=\"auto\"><a href=\"/", "\"").replace("&amp;", "&");
    let object = get(&summary);
    assert!(object.contains("<mark id=\"found\">"), "{object}");
    let text = between(&object, "<div class=\"text\"", "</div>").replace(" id=\"found\"", "");
    assert!(text.contains(marked) && !text.contains("line 0 tells"), "{text}");
    let line = between(&object, "from <bdi>line ", "</bdi>").parse::<u32>().unwrap();
    assert!((59_000..=60_002).contains(&line), "the part begins with line {line}");
    assert!(object.contains("Back to the results"), "{object}");

    // It is opened by the button on it.
    let form = between(&object, "<form class=\"open\" action=\"", "</form>");
    let (action, url) = (form.split('"').next().unwrap(), between(form, "value=\"", "\""));
    let origin = page.trim_end_matches('/');
    let (status, head) = post(action, ("url", url), &[("Cookie", &cookie), ("Origin", origin)]);
    assert_eq!(status, 204, "{head}");
    assert_eq!(user.opened(2), document.display().to_string());

    // The same from the shell, which finds the page by itself.
    let mut search = vec!["search"];
    search.extend(WORDS);
    let out = user.run(&search);
    let shown = format!("\u{1b}]8;;{url}\u{1b}\\{}\u{1b}]8;;\u{1b}\\", document.display());
    assert!(out.contains(&shown), "{out}");
    assert!(out.contains("line 60002: ") && out.contains("resigned\u{1b}[0m at last"), "{out}");

    // A second time, the page that is there is opened in the same way.
    let out = user.run(&["up"]);
    assert!(out.contains(&page) && out.contains("runs already"), "{out}");
    let again = user.opened(3);
    assert_ne!(again, link);
    assert_eq!(follow(&again).0, page);
    let out = user.run(&["up", "--no-open"]);
    assert!(out.contains(&page) && user.opened(3) == again, "{out}");

    up.press("\u{3}");
    up.printed();
}

#[test]
fn only_a_terminal_gets_links_and_colors() {
    let user = User::new();
    let mut command = user.command(&["up", "--no-open", "--listen", "127.0.0.1:0"]);
    let mut up = Running::start_in_terminal(command.env("DISPLAY", ""));
    let page = up.gathered_url();
    wait_for_total(&page, "harvester", 1);
    let search = |name: &str, value: &str| {
        let mut command = user.command(&["search", "harvester"]);
        Running::start_in_terminal(command.env(name, value)).printed()
    };
    let (link, bold) = ("\u{1b}]8;;file:///", "\u{1b}[1mharvester\u{1b}[0m");
    let check = |out: &str, has_links: bool, has_colors: bool| {
        assert!(out.contains("1 object in") && out.contains("notes.txt"), "{out:?}");
        assert_eq!(out.contains(link), has_links, "{out:?}");
        assert_eq!(out.contains(bold), has_colors, "{out:?}");
        assert_eq!(out.contains("\u{1b}["), has_colors, "{out:?}");
    };
    check(&search("TERM", "xterm-256color"), true, true);
    check(&search("NO_COLOR", "1"), true, false);
    check(&search("NO_COLOR", ""), true, true);
    check(&search("TERM", "dumb"), false, false);
    check(&run_ok(["search", "harvester", "--broker", &page]), false, false);
    up.press("\u{3}");
    up.printed();
}

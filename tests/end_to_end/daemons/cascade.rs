//! Tests of brokers of brokers as processes, each with a settings file and commands.

use std::fs;
use std::path::{Path, PathBuf};

use net::clock;

use super::{broker_settings, gatherer_site};
use crate::harness::{
    PATIENCE, Running, harvest, run, run_ok, texts, total, wait_for_total, write,
};

/// A broker with its settings file.
struct Broker {
    file: PathBuf,
    page: String,
    running: Running,
}

impl Broker {
    /// Starts a broker in a folder of its own, with these lines in its settings.
    fn start(folder: &Path, name: &str, lines: &str) -> Self {
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        let file = write(&folder, "broker.toml", broker_settings(&folder, &[]) + lines);
        let mut running = Running::start(harvest(["broker", "run", "-c", file.to_str().unwrap()]));
        let page = running.search_url();
        Self { file, page, running }
    }

    /// Runs `harvest broker ARGS… -c FILE`.
    fn command(&self, args: &[&str]) -> String {
        let file = self.file.to_str().unwrap();
        run_ok(["broker"].iter().chain(args).copied().chain(["-c", file]))
    }

    /// Pulls until a query finds so many objects; returns the bytes of the last pull.
    fn pulls_until(&self, query: &str, wanted: u64) -> u64 {
        let began = clock::monotonic();
        while total(&self.page, query) != wanted {
            assert!(began.elapsed() < PATIENCE, "{query}: {}", self.command(&["status"]));
            self.command(&["pull"]);
        }
        let status: serde_json::Value =
            serde_json::from_str(&self.command(&["status", "--json"])).unwrap();
        status["sources"][0]["last_pull"]["bytes"].as_u64().unwrap()
    }
}

fn source(page: &str, part: &str) -> String {
    format!("\n[[source]]\nname = \"above\"\nkind = \"broker\"\nurl = \"{page}\"\n{part}\n")
}

/// Checks that a taxonomy comes in one piece, and again after a change; removes all views.
fn check_taxonomy(folder: &Path, a: &Broker) {
    let taxonomy = write(folder, "taxonomy.tsv", "Fruit\t*\nFruit/Medlars\tmedlars\n");
    let taxonomy = taxonomy.to_str().unwrap();
    a.command(&["view", "import", taxonomy]);
    let listed = a.command(&["view", "list"]);
    assert!(listed.contains("fruit-medlars"), "{listed}");
    fs::write(taxonomy, "Fruit\t*\nFruit/Medlars\tcherries\n").unwrap();
    a.command(&["view", "import", taxonomy]);
    let shown = a.command(&["view", "show", "fruit-medlars"]);
    assert!(shown.contains("query  cherries"), "{shown}");
    for name in ["fruit-medlars", "fruit", "medlars"] {
        a.command(&["view", "remove", name]);
    }
    assert!(a.command(&["view", "list"]).starts_with("no views"));
}

#[test]
fn three_brokers_in_a_row_have_what_each_asks_for() {
    let site = gatherer_site();
    let folder = site.folder.path();
    let gatherer = format!("\n[[source]]\nurl = \"{}\"\nfollow = true\n", site.gatherer_url);
    let a = Broker::start(folder, "a", &gatherer);
    wait_for_total(&a.page, "orchard", 1);
    let all = total(&a.page, "*");
    write(folder, "tree/late.txt", "Medlars and damsons keep until spring");
    wait_for_total(&a.page, "damsons", 1);

    // A view is tried, added and listed by commands.
    let tried = a.command(&["view", "try", "medlars"]);
    assert!(tried.contains("1 object match") && tried.contains("late.txt"), "{tried}");
    a.command(&["view", "add", "medlars", "medlars", "--title", "Medlars"]);
    let listed = a.command(&["view", "list"]);
    assert!(listed.contains("medlars") && listed.contains('1'), "{listed}");
    assert_eq!(total(&a.page, "view:medlars"), 1);

    let exported = a.command(&["export", "--view", "medlars"]);
    assert!(exported.contains("late.txt") && exported.matches("@FILE").count() == 1, "{exported}");
    for (query, count) in [("medlars AND damsons", 1), ("type:PDF", 0)] {
        let exported = run_ok(["broker", "export", "--url", &a.page, "--query", query]);
        assert_eq!(exported.matches("@FILE").count(), count, "{query}: {exported}");
        assert_eq!(exported.matches("late.txt").count().min(1), count, "{query}: {exported}");
    }

    let b = Broker::start(folder, "b", &source(&a.page, "view = \"medlars\""));
    let c = Broker::start(folder, "c", &source(&b.page, "query = \"damsons\""));
    b.pulls_until("*", 1);
    c.pulls_until("*", 1);
    assert!(c.command(&["status"]).contains("of above is pulled what damsons selects"));

    // What is edited out of C's query goes from it, and stays in B's.
    write(folder, "tree/late.txt", "Medlars keep until spring");
    b.pulls_until("damsons", 0);
    let bytes = c.pulls_until("*", 0);
    assert!(bytes <= 2 << 10, "{bytes} bytes");
    assert_eq!(total(&b.page, "*"), 1);
    // So it goes from B's view.
    write(folder, "tree/late.txt", "Cherries keep until spring");
    wait_for_total(&a.page, "view:medlars", 0);
    b.pulls_until("*", 0);
    assert_eq!(total(&a.page, "*"), all + 1);

    // Another query says what it costs before it counts.
    let text = fs::read_to_string(&b.file).unwrap();
    let edited = |part: &str| text.replace("view = \"medlars\"", part);
    fs::write(&b.file, edited("query = \"*\"")).unwrap();
    let checked = b.command(&["check"]);
    assert!(checked.contains("source above: another query: 0 of its 0 objects"), "{checked}");
    b.running.signal("HUP");
    b.pulls_until("*", all + 1);
    fs::write(&b.file, edited("query = \"cherries\"")).unwrap();
    let checked = b.command(&["check"]);
    let expected = format!("another query: {all} of its {} objects here will go", all + 1);
    assert!(checked.contains(&expected), "{checked}");
    b.running.signal("HUP");
    b.pulls_until("*", 1);
    fs::write(&b.file, edited("view = \"fruits\"")).unwrap();
    let checked = b.command(&["check"]);
    let expected = "source above: its view fruits from now on: of its 1 object here those will go";
    assert!(checked.contains(expected), "{checked}");

    // Mistakes are named, and nothing is written.
    let file = a.file.to_str().unwrap();
    let before = fs::read_to_string(&a.file).unwrap();
    let wrong = run(["broker", "view", "add", "medlars", "medlars~1", "-c", file]);
    let (_, said) = texts(&wrong);
    assert!(!wrong.status.success() && said.contains("medlars~1"), "{said}");
    assert_eq!(fs::read_to_string(&a.file).unwrap(), before);
    check_taxonomy(folder, &a);
    for mut broker in [a, b, c] {
        assert!(broker.running.stop("TERM").success());
    }
}

#[test]
fn mistakes_in_what_is_pulled_are_named_with_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [
        ("query = \"(medlars\"", "is never closed"),
        ("query = \"medlars~1\"", "medlars~1 finds other words"),
        ("query = \"+medlars ripe\"", "ripe only ranks"),
        ("query = \"updated:>today\"", "expected a date such as"),
        ("query = \"medlars\"\nview = \"fruits\"", "there is a query, too"),
    ];
    let mut text = broker_settings(folder.path(), &[]);
    let mut expected = Vec::new();
    for (number, (part, problem)) in parts.into_iter().enumerate() {
        text += &source("http://above.example/", part).replace("above\"", &format!("a{number}\""));
        // The mistake is in the last line.
        expected.push((format!("broker.toml:{}:", text.lines().count()), problem));
    }
    let file = write(folder.path(), "broker.toml", text);
    let output = run(["broker", "check", "-c", file.to_str().unwrap()]);
    let (out, err) = texts(&output);
    let all = format!("{out}{err}");
    assert!(!output.status.success(), "{all}");
    let lines: Vec<&str> = all.lines().filter(|it| it.contains("broker.toml:")).collect();
    assert_eq!(lines.len(), expected.len(), "{all}");
    for (line, (place, problem)) in lines.iter().zip(expected) {
        assert!(line.contains(&place) && line.contains(problem), "{place} {problem}:\n{all}");
    }
}

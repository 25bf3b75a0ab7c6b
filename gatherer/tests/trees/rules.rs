//! Tests of a site's rules, which change published records, also by commands; of failing workers.

use std::sync::Arc;

use crate::support::{Bench, Tree};
use essence::rules::Rules;
use essence::worker::{Program, serve};
use gatherer::config::Watch;
use gatherer::{Config, Server, spec};
use net::shutdown::Shutdown;

const RULES: &str = "\
Title ~ /secret/
\tdelete()
Type == 'Text'
\tTime-to-Live = '60'
\tPartial-Text | tr a-z A-Z; pwd >&2
\tTitle | sed 's/note/NOTE/'
\tTitle | exit 7
";

/// Is the gatherer's child process if standard input is its file or socket; else does nothing.
#[test]
fn started_by_a_gatherer() {
    let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
    let input = input.to_string_lossy();
    if input.starts_with("socket:") || input.ends_with("/input") {
        serve::serve(net::clock::monotonic).unwrap();
        std::process::exit(0);
    }
}

fn worker() -> Program {
    Program {
        path: std::fs::read_link("/proc/self/exe").unwrap(),
        arguments: ["rules::started_by_a_gatherer", "--exact", "-q"].map(str::to_owned).to_vec(),
    }
}

fn ruled(tree: &Tree, rules: &str) -> Config {
    let mut config = Config { worker: Some(worker()), ..tree.config() };
    config.essence.rules = Arc::new(Rules::parse(rules).unwrap());
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_a_rule_s_command_runs_publishes_nothing() {
    let tree = Tree::new();
    tree.write("a.txt", "A name\n\nof somebody\n");
    let config = ruled(&tree, "Type == 'Text'\n\tTitle | touch runs; sleep 1000\n");
    let server = Server::bind(config.clone()).await.unwrap();
    let shutdown = Shutdown::new();
    let task = tokio::spawn(server.run(shutdown.clone()));
    let scratch = tree.data().join("scratch");
    let runs = || {
        let folders = std::fs::read_dir(&scratch).into_iter().flatten().flatten();
        folders.into_iter().any(|it| it.path().join("work/runs").exists())
    };
    while !runs() {
        tokio::task::yield_now().await;
    }
    shutdown.start();
    task.await.unwrap().unwrap();
    let server = Server::bind(config).await.unwrap();
    assert_eq!(server.handle().status().objects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_fences_are_reported_if_only_commands_run() {
    // The command acts as a worker that only reports its missing fences: 17 bytes of JSON.
    let says = r#"printf '\021\0\0\0\0\0\0\0\0\0\0\0{"missing":["x"]}' >&0; cat >/dev/null"#;
    let arguments = ["-c", says].map(str::to_owned).to_vec();
    for (rules, expected) in [
        ("Type == 'Text'\n\tTitle = 'a'\n", &[][..]),
        ("Type == 'Text'\n\tTitle | cat\n", &["x".to_owned()]),
        ("Type == 'Text'\n\tTitle,Type ! cat\n", &["x".to_owned()]),
    ] {
        let tree = Tree::new();
        let worker = Program { path: "/bin/sh".into(), arguments: arguments.clone() };
        let config = Config { worker: Some(worker), ..ruled(&tree, rules) };
        let plain = Config { worker: config.worker.clone(), ..tree.config() };
        let server = Server::bind(config.clone()).await.unwrap();
        assert_eq!(server.handle().status().fences_missing, expected, "{rules}");
        drop(server);
        let server = Server::bind(plain).await.unwrap();
        assert_eq!(server.handle().status().fences_missing, [""; 0]);
        server.handle().reload(config).unwrap();
        assert_eq!(server.handle().status().fences_missing, expected, "{rules}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_for_commands_may_change_while_it_runs() {
    let tree = Tree::new();
    tree.write("a.txt", "A name\n\nof somebody\n");
    let list = tree.folder.path().join("names");
    std::fs::write(&list, "other").unwrap();
    let mut config = ruled(&tree, &format!("Type == 'Text'\n\tTitle | cat {}\n", list.display()));
    let bench = Bench::start_with(tree, config.clone()).await;
    config.essence.programs_read = vec![list];
    bench.handle.reload(config.clone()).unwrap();
    bench.passes(2).await;
    assert!(bench.file("a.txt").await.text("Title").unwrap().ends_with("other"));
    config.essence.programs_read = vec!["/nowhere".into()];
    let refused = bench.handle.reload(config).unwrap_err().to_string();
    assert!(refused.contains("programs_read: /nowhere: "), "{refused}");
    bench.stop().await;
}

/// Returns a frame of a worker's answer.
fn frame(head: &str, body: &str) -> Vec<u8> {
    let lengths = u32::try_from(head.len()).unwrap().to_le_bytes().into_iter();
    let lengths = lengths.chain((body.len() as u64).to_le_bytes()).collect();
    [lengths, head.as_bytes().to_vec(), body.as_bytes().to_vec()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn late_objects_are_tried_once_more_and_keep_their_records_until_then() {
    let tree = Tree::new();
    let shar = |word: &str| {
        format!("#!/bin/sh\n# This is a shell archive.\nsed 's/^X//' >b.txt <<'E'\nX{word}\nE\n")
    };
    tree.write("a.shar", &shar("first"));
    tree.date("a.shar", 1);
    // While this file with an answer exists, the worker sends that answer and is late.
    let late = tree.folder.path().join("late");
    let url = spec::file_url(&tree.path("a.shar"));
    let problem = format!(r#"{{"object":"{url}","kind":"Time","message":"late"}}"#);
    let summary = format!(r#"{{"Summary":{{"problems":[{problem}],"given":null}}}}"#);
    let answer = [
        frame(r#"{"missing":[]}"#, ""),
        frame(&summary, &format!("@FILE {{ {url}\nTitle{{4}}:\tLate\n}}\n")),
        frame(r#"{"End":{"left_out":[]}}"#, ""),
    ];
    let usual = worker();
    let script = format!(
        "if [ -e {late} ]; then cat {late} >&0; cat >/dev/null; else exec {} {}; fi",
        usual.path.display(),
        usual.arguments.join(" "),
        late = late.display(),
    );
    let late = |is_late| {
        if is_late { std::fs::write(&late, answer.concat()) } else { std::fs::remove_file(&late) }
            .unwrap();
    };
    let worker = Program { path: "/bin/sh".into(), arguments: vec!["-c".into(), script] };
    // A watch would read the file in between, perhaps by a worker that is not late.
    let config = Config { worker: Some(worker), watch: Watch::Off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    let titles = async || {
        let title = async |url: &str| {
            let record = bench.object(url).await;
            record.map(|it| it.text("Title").unwrap_or_default().into_owned())
        };
        (title(&url).await.unwrap_or_default(), title(&format!("{url}#b.txt")).await)
    };
    let is = |file: &str, member: &str| (file.to_owned(), Some(member.to_owned()));
    assert_eq!(titles().await, is("a.shar", "first"));
    let change = |word: &str, seconds| {
        bench.tree.write("a.shar", &shar(word));
        bench.tree.date("a.shar", seconds);
    };
    change("second", 2);
    late(true);
    bench.gather().await;
    assert_eq!(titles().await, is("a.shar", "first"), "better than none");
    late(false);
    bench.gather().await;
    assert_eq!(titles().await, is("a.shar", "second"));
    change("third", 3);
    late(true);
    bench.gather().await;
    assert_eq!(titles().await, is("a.shar", "second"));
    bench.gather().await;
    assert_eq!(titles().await, is("Late", "second"), "no member goes because time was short");
    bench.gather().await;
    assert_eq!(titles().await, is("Late", "second"));
    late(false);
    bench.gather().await;
    assert_eq!(titles().await, is("a.shar", "third"), "until there is time");
    bench.tree.write("a.shar", "#!/bin/sh\n# This is a shell archive.\nexit 0\n");
    bench.tree.date("a.shar", 4);
    bench.gather().await;
    assert_eq!(titles().await, ("a.shar".to_owned(), None));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_cannot_start_are_tried_again_and_keep_records() {
    let tree = Tree::new();
    tree.write("a.txt", "A name\n\nof somebody\n");
    let mut config = ruled(&tree, "Type == 'Text'\n\tTitle | echo other\n");
    let title = async |bench: &Bench| {
        bench.file("a.txt").await.text("Title").unwrap().lines().next_back().unwrap().to_owned()
    };
    // A file in the place of the folder for commands: they cannot start.
    let scratch = tree.data().join("scratch");
    std::fs::create_dir_all(tree.data()).unwrap();
    std::fs::write(&scratch, "").unwrap();
    let bench = Bench::start_with(tree, config.clone()).await;
    assert_eq!(title(&bench).await, "A name");
    std::fs::remove_file(&scratch).unwrap();
    bench.gather().await;
    assert_eq!(title(&bench).await, "other");
    std::fs::remove_dir_all(&scratch).unwrap();
    std::fs::write(&scratch, "").unwrap();
    config.essence.rules =
        Arc::new(Rules::parse("Type == 'Text'\n\tTitle | echo third\n").unwrap());
    bench.handle.reload(config).unwrap();
    bench.passes(3).await;
    assert_eq!(title(&bench).await, "other", "better than none");
    std::fs::remove_file(&scratch).unwrap();
    bench.gather().await;
    assert_eq!(title(&bench).await, "third");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_site_change_published_records() {
    let tree = Tree::new();
    tree.write("a.txt", "A note\n\nabout this\n");
    tree.write("b.txt", "A secret\n\nabout that\n");
    let config = ruled(&tree, RULES);
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.handle.status().objects, 1);
    let record = bench.file("a.txt").await;
    let value = |name: &str| record.text(name).unwrap().into_owned();
    assert_eq!(value("Time-to-Live"), "60");
    assert!(value("Partial-Text").contains("A NOTE"), "{record:?}");
    // A test program prints a header before it becomes another program.
    assert!(value("Title").ends_with("A NOTE"), "{record:?}");
    let problems = bench.handle.problems();
    let messages: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("rule of line 3: `Title | exit 7`: /bin/sh fails (exit status: 7)")
    );
    bench.stop().await;
}

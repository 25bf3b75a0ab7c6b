//! Tests of `harvest essence`, and of the rules and selection in a gatherer's settings.

#[path = "../../essence/tests/made/mod.rs"]
mod made;

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{run, run_ok, small_tree, texts, write};

const RULES: &str = "[[type]]\nname = \"Recipe\"\nby_name = '\\.recipe$'\n\n\
                     [[type]]\nname = \"Minutes\"\nby_url = '/minutes/'\nby_content = '^Minutes'\n";

#[test]
fn the_rule_that_decides_is_named() {
    let folder = tempfile::tempdir().unwrap();
    small_tree(folder.path());
    let rules = write(folder.path(), "types.toml", RULES);
    let cake = write(folder.path(), "cake.recipe", "Apple cake\n");
    let may = write(folder.path(), "minutes/may.txt", "Minutes of May\n");
    let page = folder.path().join("site/index.html");
    let [rules, cake, may, page] = [&rules, &cake, &may, &page].map(|it| it.to_str().unwrap());

    let out = run_ok(["essence", "type", cake, page]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines[0].contains("Text") && lines[0].ends_with("nothing says what of"), "{out}");
    assert!(lines[1].contains("  HTML  built in: its name"), "{out}");

    let out = run_ok(["essence", "type", "--rules", rules, cake, may, page]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].ends_with(&format!("  Recipe   {rules}:1")), "{out}");
    assert!(lines[1].ends_with(&format!("  Minutes  {rules}:5")), "{out}");

    let json = run_ok(["essence", "type", "--json", "--rules", rules, may]);
    let line: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&line["file"], &line["type"]), (&may.into(), &"Minutes".into()));
    assert_eq!((&line["rule"], &line["built_in"]), (&format!("{rules}:5").into(), &false.into()));

    let output = run(["essence", "type", "/no/such/file", cake]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("cake.recipe") && err.contains("/no/such/file"), "{out}{err}");
}

#[test]
fn folders_are_walked_and_pipes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cake = write(folder.path(), "recipes/cake.txt", "Apple cake\n");
    let page = write(folder.path(), "recipes/old/page.html", "<title>Cake</title>");
    let settings = "name = \"a\"\ndata = \"data\"\n[[root]]\nurl = \"file:///srv\"\n";
    let settings = write(folder.path(), "gatherer.toml", settings);
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let recipes = folder.path().join("recipes");
    let [cake, page, settings, pipe, recipes] =
        [&cake, &page, &settings, &pipe, &recipes].map(|it| it.to_str().unwrap());
    for command in ["type", "summarize", "explain"] {
        let output = run(["essence", command, "-c", settings, recipes, pipe]);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(out.find(cake).unwrap() < out.find(page).unwrap(), "{out}");
        let expected =
            format!("harvest: cannot read {pipe}: it is neither a regular file nor a folder\n");
        assert_eq!(err, expected, "{command}");
    }
}

#[test]
fn mistakes_of_rules_are_named_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let rules = write(folder.path(), "types.toml", RULES.replace("by_name", "by_nam"));
    let rules = rules.to_str().unwrap();
    let (_, err) = texts(&run(["essence", "type", "--rules", rules, rules]));
    assert!(err.contains(&format!("{rules}:3:1: unknown key \"by_nam\"")), "{err}");

    let settings = "name = \"a\"\ndata = \"data\"\n[essence]\ntypes = [\"types.toml\"]\n\
                    [[root]]\nurl = \"file:///srv\"\n";
    let settings = write(folder.path(), "gatherer.toml", settings);
    let output = run(["gatherer", "check", "-c", settings.to_str().unwrap()]);
    let (_, err) = texts(&output);
    assert!(!output.status.success());
    assert!(err.contains("\ntypes.toml:3:1: unknown key"), "{err}");

    write(folder.path(), "types.toml", RULES);
    run_ok(["gatherer", "check", "-c", settings.to_str().unwrap()]);
    let cake = write(folder.path(), "cake.recipe", "Apple cake\n");
    let (cake, settings) = (cake.to_str().unwrap(), settings.to_str().unwrap());
    let out = run_ok(["essence", "type", "-c", settings, cake]);
    assert!(out.ends_with("  Recipe  types.toml:1\n"), "{out}");
}

#[test]
fn records_that_would_be_published_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    small_tree(folder.path());
    let (site, page) = (folder.path().join("site"), folder.path().join("site/index.html"));
    let [site, page] = [&site, &page].map(|it| it.to_str().unwrap());
    let soif = run_ok(["essence", "summarize", page]);
    let records = soif::reader::parse(soif.as_bytes()).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].url, format!("file://{page}"));
    assert_eq!(records[0].text("Type").as_deref(), Some("HTML"));
    let lines = run_ok(["essence", "summarize", "--to", "json", site]);
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert!(first["url"].as_str().unwrap().starts_with(&format!("file://{site}/")), "{lines}");
    let output = run(["essence", "summarize", "/no/such/file", page]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("index.html") && err.contains("/no/such/file"), "{out}{err}");
}

#[test]
fn summarizers_of_the_site_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "name = \"a\"\ndata = \"data\"\n[essence]\ntypes = [\"types.toml\"]\n\
                    summarizers = [\"quick.toml\"]\nprograms = \"lib\"\n[[root]]\nurl = \"file:///srv\"\n";
    let settings = write(folder.path(), "gatherer.toml", settings);
    write(folder.path(), "types.toml", RULES);
    let quick = "[[summarizer]]\ntype = \"Recipe\"\n[[summarizer.attribute]]\nname = \"Serves\"\n\
                 match = '^Serves (\\d+)'\n";
    write(folder.path(), "quick.toml", quick);
    let cake = write(folder.path(), "cake.recipe", "Apple cake\nServes 12\n");
    let [settings, cake] = [&settings, &cake].map(|it| it.to_str().unwrap());
    let (_, err) = texts(&run(["gatherer", "check", "-c", settings]));
    assert!(err.contains("gatherer.toml:6:12: cannot read lib"), "{err}");

    let program = "#!/bin/sh\nprintf 'Title{4}:\\t%s\\n' `wc -l <\"$1\"`-$1\n";
    let program = write(folder.path(), "lib/Recipe.sum", program);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    write(folder.path(), "lib/Recip.sum", "#!/bin/sh\n");
    let (_, err) = texts(&run(["gatherer", "check", "-c", settings]));
    assert!(err.contains("lib/Recip.sum is not used: no type is called \"Recip\""), "{err}");
    run_ok(["gatherer", "check", "-c", settings]);
    let soif = run_ok(["essence", "summarize", "-c", settings, cake]);
    let records = soif::reader::parse(soif.as_bytes()).unwrap();
    let text = |name: &str| records[0].text(name).unwrap_or_default().into_owned();
    assert_eq!([text("Title"), text("Serves")], ["2-cake.recipe", "12"]);
    assert_eq!(records[0].get("Partial-Text"), None, "in place of the built-in summarizer");
}

#[test]
fn rules_of_the_site_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "Type == 'Text'\n\tTitle | tr a-z A-Z\n\tTitle,Type ! sed s/CAKE/TART/\n\
                 \tType | exit 3\nURL ~ /secret/\n    delete()\n";
    write(folder.path(), "rules", rules);
    let settings = "name = \"a\"\ndata = \"data\"\n[essence]\nrules = \"rules\"\n\
                    [[root]]\nurl = \"file:///srv\"\n";
    let settings = write(folder.path(), "gatherer.toml", settings);
    let cake = write(folder.path(), "cake.txt", "Apple cake\n");
    let secret = write(folder.path(), "secret.txt", "Apple cake\n");
    let page = write(folder.path(), "page.html", "<title>Cake</title>");
    let [settings, cake, secret, page] =
        [&settings, &cake, &secret, &page].map(|it| it.to_str().unwrap());
    let output = run(["essence", "explain", "-c", settings, cake, secret, page]);
    let (out, _) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "an instruction failed");
    let done = "  line 1: Type == 'Text'\n    Title | tr a-z A-Z\n    Title,Type ! sed s/CAKE/TART/\n    \
                Type | exit 3   FAILED: /bin/sh fails (exit status: 3)\n";
    let expected = format!(
        "file://{cake} (Text)\n{done}file://{secret} (Text)\n{done}  line 5: URL ~ /secret/\n    \
         delete()\n  it is left out\nfile://{page} (HTML)\n  no rule holds for it\n"
    );
    assert_eq!(out, expected);
    let (out, err) = texts(&run(["essence", "summarize", "-c", settings, cake, secret]));
    let records = soif::reader::parse(out.as_bytes()).unwrap();
    assert_eq!(records.len(), 1);
    let why = "rule of line 1: `Type | exit 3`: /bin/sh fails (exit status: 3)";
    assert_eq!(err, format!("harvest: file://{cake}: {why}\nharvest: file://{secret}: {why}\n"));
    assert_eq!(records[0].text("Title").as_deref(), Some("APPLE TART"));
}

#[test]
fn the_command_takes_the_same_files_as_a_gatherer_with_these_settings() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let settings = format!(
        "name = \"a\"\ndata = \"data\"\nread_max = \"10 B\"\n\
         [essence]\ntypes = [\"types.toml\"]\nannotations = [\"notes.soif\"]\n\
         [essence.select]\nstop_names = [\"*.bak\"]\n\
         [[root]]\nurl = \"file://{0}\"\nexclude = [\"drafts/\"]\n\
         [[map]]\nurl_prefix = \"https://docs.example.org/minutes/\"\ndirectory = \"{0}\"\n",
        root.display()
    );
    let settings = write(folder.path(), "gatherer.toml", settings);
    let by_url = "[[type]]\nname = \"Minutes\"\nby_url = '^https://docs.example.org/minutes/'\n";
    write(folder.path(), "types.toml", by_url);
    let notes = write(folder.path(), "notes.soif", "@FILE { https://docs.example.org/minutes/a\n");
    let may = write(&root, "may.txt", "Minutes of May\n");
    let copy = write(&root, "may.bak", "Minutes of May\n");
    let draft = write(&root, "drafts/june.txt", "Minutes of June\n");
    let paths = [&settings, &notes, &may, &copy, &draft];
    let [settings, notes, may, copy, draft] = paths.map(|it| it.to_str().unwrap());

    let output = run(["gatherer", "check", "-c", settings]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains(&format!("{notes}: line 1:1: ")), "{output:?}");
    std::fs::write(notes, "@FILE { https://docs.example.org/minutes/a\n}\n").unwrap();
    run_ok(["gatherer", "check", "-c", settings]);

    let out = run_ok(["essence", "type", "-c", settings, may]);
    assert!(out.contains("  Minutes  "), "{out}");
    let output = run(["essence", "summarize", "-c", settings, may, copy, draft]);
    let (out, err) = texts(&output);
    let records = soif::reader::parse(out.as_bytes()).unwrap();
    assert_eq!(records.len(), 1, "{out}{err}");
    assert_eq!(records[0].text("Partial-Text").as_deref(), Some("Minutes of"));
    assert!(err.contains(&format!("{copy} is left out: stopped-name")), "{err}");
    assert!(err.contains(&format!("{draft} is left out: excluded")), "{err}");
    let out = run_ok(["essence", "explain", "-c", settings, copy]);
    assert_eq!(out, format!("{copy}\n  it is left out: stopped-name\n"));
}

#[test]
fn the_end_of_a_file_longer_than_read_max_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "name = \"a\"\ndata = \"data\"\nread_max = \"4 KiB\"\n\
                    [[root]]\nurl = \"file:///srv\"\n";
    let settings = write(folder.path(), "gatherer.toml", settings);
    let path = folder.path().join("words.zip");
    let zip = made::zip(&[("filler", &[0x90; 300_000]), ("a.txt", b"one two three")]);
    std::fs::write(&path, zip).unwrap();
    let [settings, path] = [&settings, &path].map(|it| it.to_str().unwrap());
    let output = run(["essence", "summarize", "-c", settings, path]);
    let (out, err) = texts(&output);
    let records = soif::reader::parse(out.as_bytes()).unwrap();
    let last = records.last().unwrap();
    assert_eq!(last.text("Partial-Text").as_deref(), Some("one two three"));
    assert_eq!((records.len(), &*err), (3, ""));
}

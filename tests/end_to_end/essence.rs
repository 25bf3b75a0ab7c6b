//! `harvest essence`, and the rules and selection of a gatherer's settings.

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
fn mistakes_of_rules_are_named_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let rules = write(folder.path(), "types.toml", RULES.replace("by_name", "by_nam"));
    let rules = rules.to_str().unwrap();
    let (_, err) = texts(&run(["essence", "type", "--rules", rules, rules]));
    assert!(err.contains(&format!("{rules}:3:1: unknown key \"by_nam\"")), "{err}");

    let settings = "name = \"a\"\ndata = \"data\"\n[essence]\ntypes = [\"types.toml\"]\n\
                    [[root]]\nurl = \"file:///tmp\"\n";
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

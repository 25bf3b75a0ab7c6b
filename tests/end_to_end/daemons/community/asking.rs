//! Asking who gathers a site already: for each site that is gathered for the first time, and never of oneself.

use serde_json::Value;

use super::{answering, json, start, text, until};
use crate::harness::{ask, run, run_ok, texts, write};

#[test]
fn each_site_is_asked_about_before_it_is_gathered_for_the_first_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let registry = start(folder, "registry", "registry", "[announcements]\nevery = \"1 s\"\n");
    let page = |path| (path, "<title>Leaves</title>".to_owned());
    let site = answering(vec![page("/ferns/"), page("/mosses/")], (404, String::new()));
    let [ferns, mosses] = ["ferns", "mosses"].map(|it| format!("{site}{it}/"));
    write(folder, "tree/a.txt", "a");
    let tree = folder.join("tree");
    let gathering = |prefix: &str| {
        format!(
            "[registry]\nurl = \"{0}\"\n[[root]]\nurl = \"file://{1}\"\n[[map]]\nurl_prefix = \"{prefix}\"\n\
             directory = \"{1}\"\n",
            registry.url,
            tree.display()
        )
    };
    let _first = start(folder, "gatherer", "g-ferns", &gathering(&ferns));
    let gatherers = || {
        let list = run_ok(["registry", "list", "--json", "--registry", &registry.url]);
        json(&list).as_array().unwrap().len()
    };
    until("the gatherer", gatherers, |it| *it == 1);
    let data = folder.join("up");
    let up = |more: &[&str]| {
        let args = ["up", "--once", "--data", text(&data), "--registry", &registry.url];
        let output = run([&args, more].concat());
        (output.status.success(), texts(&output))
    };
    // Nobody has this one; that the folder has it says nothing of the other one.
    let (is_done, printed) = up(&[&mosses]);
    assert!(is_done, "{printed:?}");
    let refused = |sites: &[&str]| {
        let (is_done, (_, problem)) = up(sites);
        assert!(
            !is_done && problem.contains("g-ferns") && problem.contains("--anyway"),
            "{problem}"
        );
        assert!(problem.contains(&ferns) && !problem.contains(&mosses), "{problem}");
    };
    refused(&[&mosses, &ferns]);
    let (is_done, printed) = up(&[&mosses, &ferns, "--anyway"]);
    assert!(is_done && printed.0.contains("2 objects"), "{printed:?}");
    // From then on both are gathered from here, whoever else begins to.
    let _second = start(folder, "gatherer", "g-mosses", &gathering(&mosses));
    until("the second one", gatherers, |it| *it == 2);
    let (is_done, printed) = up(&[&mosses, &ferns]);
    assert!(is_done, "{printed:?}");
    // What was left out in between is forgotten, and begins anew.
    assert!(up(&[&mosses]).0);
    refused(&[&mosses, &ferns]);
    // If several are taken, all of them are named.
    let other = folder.join("other");
    let args = ["up", "--once", "--data", text(&other), "--registry", &registry.url];
    let output = run(args.into_iter().chain([&*ferns, &*mosses]));
    let problem = texts(&output).1;
    assert!(!output.status.success() && problem.contains("g-ferns"), "{problem}");
    assert!(problem.contains("g-mosses") && !other.exists(), "{problem}");
}

#[test]
fn nobody_is_warned_of_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let registry = start(folder, "registry", "registry", "[announcements]\nevery = \"1 s\"\n");
    write(folder, "tree/a.txt", "a");
    let settings = format!(
        "[registry]\nurl = \"{0}\"\n[[root]]\nurl = \"file://{1}\"\n[[map]]\nurl_prefix = \"http://fern.example/\"\n\
         directory = \"{1}\"\n",
        registry.url,
        folder.join("tree").display()
    );
    let known = || {
        let question = format!("{}api/gathers?url=http%3A%2F%2Ffern.example%2F", registry.url);
        let (_, _, answer) = ask("GET", &question, &[]);
        let them = json(&String::from_utf8(answer).unwrap());
        let names =
            them.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let _first = start(folder, "gatherer", "first", &settings);
    until("the first one", known, |it| it == &["first"]);
    let second = start(folder, "gatherer", "second", &settings);
    // It asks as soon as it is listed: of the two, itself is one.
    let others = || {
        let status = run_ok(["gatherer", "status", "--json", "-c", text(&second.settings)]);
        json(&status)["registries"][0]["others"].clone()
    };
    let others = until("the warning", others, |it| it.as_array().is_some_and(|it| !it.is_empty()));
    assert_eq!(known(), ["first", "second"]);
    let sentences: Vec<&Value> = others.as_array().unwrap().iter().collect();
    assert_eq!(sentences.len(), 1, "{others}");
    let sentence = sentences[0].as_str().unwrap();
    assert!(sentence.contains("first") && !sentence.contains(&second.url), "{sentence}");
}

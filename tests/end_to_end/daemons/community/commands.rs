//! Commands to a registry: what they print, and where decisions go.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use broker::answer::{Answer, Hit};
use registry::answer::Listed;
use serde_json::Value;

use super::{answering, json, start, text, until};
use crate::daemons::free_port;
use crate::harness::{run, run_ok, texts, write};

/// A text that clears the screen, rings the bell, writes over its line and turns what follows round.
const EVIL: &str = "\u{1b}[2J\u{9b}31m\u{7}over\r\u{202e}evil";

#[test]
fn what_servers_say_commands_no_terminal() {
    let evil = || EVIL.to_owned();
    let (id, url) = ("0000000000000001".to_owned(), format!("http://{EVIL}/"));
    let server = Listed {
        name: evil(),
        kind: evil(),
        id: id.clone(),
        url: url.clone(),
        state: evil(),
        gathers: vec![evil()],
        ..Listed::default()
    };
    let hit = Hit { url, title: evil(), r#type: evil(), gatherer_id: evil(), ..Hit::default() };
    let found = Answer { total: 1, hits: vec![hit], ..Answer::default() };
    let answers = vec![
        (
            "/api/servers",
            serde_json::to_string(&[Listed { state: "alive".into(), ..server }]).unwrap(),
        ),
        ("/api/search", serde_json::to_string(&found).unwrap()),
    ];
    let lying = answering(answers, (500, evil()));
    let failing = answering(Vec::new(), (500, evil()));
    let no_json = answering(vec![("/api/servers", evil()), ("/api/search", evil())], (500, evil()));
    for command in
        [&["list"][..], &["find", "x"], &["show", &id], &["divide", "http://moss.example/"]]
    {
        for (registry, is_answer) in [(&lying, true), (&failing, false), (&no_json, false)] {
            for more in [&[][..], &["--json"]] {
                let args = [&["registry"][..], command, &["--registry", registry], more].concat();
                let output = run(&args);
                let (out, err) = texts(&output);
                assert_eq!(output.status.success(), is_answer, "{args:?}: {out:?} {err:?}");
                let is_evil = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
                assert!(
                    !out.contains(is_evil) && !err.contains(is_evil),
                    "{args:?}: {out:?} {err:?}"
                );
                if is_answer && !more.is_empty() {
                    // To a program it is the same text.
                    let answer = json(&out).to_string();
                    assert!(answer.contains(Value::from(EVIL).to_string().trim_matches('"')));
                }
            }
        }
    }
}

#[test]
fn programs_get_what_people_see() {
    let folder = tempfile::tempdir().unwrap();
    let registry = start(folder.path(), "registry", "registry", "");
    let cache = start(
        folder.path(),
        "cache",
        "cache",
        &format!("[registry]\nurl = \"{}\"\n", registry.url),
    );
    let get = |args: &[&str]| {
        json(&run_ok([&["registry"], args, &["--json", "--registry", &registry.url]].concat()))
    };
    let found = until("the cache", || get(&["find", "type:Cache"]), |it| it["total"] == 1);
    let hit = &found["hits"][0];
    for (name, value) in [("title", "cache"), ("type", "Cache"), ("url", &*cache.url)] {
        assert_eq!(hit[name], value, "{found:#}");
    }
    let id = hit["gatherer_id"].as_str().unwrap();
    let shown = get(&["show", id]);
    for (name, value) in
        [("name", "cache"), ("kind", "cache"), ("id", id), ("url", &*cache.url), ("state", "alive")]
    {
        assert_eq!(shown[name], value, "{shown:#}");
    }
    assert!(shown["last_seen"].is_u64() && shown["objects"].is_u64(), "{shown:#}");
    assert_eq!(get(&["list"]), Value::from(vec![shown]));
    assert_eq!(get(&["find", "type:Broker"])["hits"], Value::from(Vec::<Value>::new()));
}

#[test]
fn sites_go_to_the_nearest_gatherer() {
    let at = |name: &str, host: &str, gathers: &[&str]| Listed {
        name: name.to_owned(),
        kind: "gatherer".to_owned(),
        id: format!("{:016x}", name.len()),
        url: format!("http://{host}:8500/"),
        state: if name == "dead" { "dead" } else { "alive" }.to_owned(),
        gathers: gathers.iter().map(|it| (*it).to_owned()).collect(),
        ..Listed::default()
    };
    let gatherers = [
        at("country", "harvest.ac.uk", &["https://www.elsewhere.example/"]),
        at("faculty", "g.lib.ox.ac.uk", &[]),
        at("university", "g.ox.ac.uk", &[]),
        at("dead", "g.maps.lib.ox.ac.uk", &[]),
    ];
    let answers = vec![("/api/servers", serde_json::to_string(&gatherers).unwrap())];
    let registry = answering(answers, (500, String::new()));
    let expected = [
        ("https://maps.lib.ox.ac.uk/", "faculty", false),
        ("https://www.lib.ox.ac.uk/", "faculty", false),
        ("https://www.ox.ac.uk/", "university", false),
        ("https://www.cam.ac.uk/", "country", false),
        ("https://www.elsewhere.example/a/", "country", true),
    ];
    let args = ["registry", "divide", "--json", "--registry", &registry];
    let divided = json(&run_ok(args.into_iter().chain(expected.iter().map(|it| it.0))));
    for (at, (site, gatherer, already)) in expected.into_iter().enumerate() {
        let found = &divided[at];
        assert_eq!(
            (&found["site"], &found["gatherer"]),
            (&site.into(), &gatherer.into()),
            "{divided:#}"
        );
        assert_eq!(found["already"], already, "{divided:#}");
    }
}

#[test]
fn decisions_go_to_the_administration_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let registry = start(folder, "registry", "registry", "approval = \"admin\"\n");
    let cache =
        start(folder, "cache", "cache", &format!("[registry]\nurl = \"{}\"\n", registry.url));
    let settings = fs::read_to_string(&registry.settings).unwrap();
    let listen = settings.lines().find_map(|it| it.strip_prefix("admin_listen = ")).unwrap();
    let admin = format!("http://{}/", listen.trim_matches('"'));
    let all = || json(&run_ok(["registry", "list", "--json", "-c", text(&registry.settings)]));
    let waiting = until("the cache", all, |it| it[0]["state"] == "waiting");
    let id = waiting[0]["id"].as_str().unwrap();
    let token = folder.join("data-registry/admin.token");
    let wrong = write(folder, "wrong.token", "x".repeat(64));
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).unwrap();
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let decide = |command: &str, at: &str, token: &[&str]| {
        let args = ["registry", command, id, "--json", "--registry", at];
        run([&args, token].concat())
    };
    let file = ["--token-file", text(&token)];
    for (at, token, advice) in [
        (&*registry.url, &file[..], "admin_listen"),
        (&nobody, &file, "-c FILE"),
        ("http://registry.example/", &file, "could read the token"),
        (&admin, &[], "--token-file"),
        (&admin, &["--token-file", text(&wrong)], "has not the token"),
    ] {
        for command in ["approve", "revoke"] {
            let output = decide(command, at, token);
            let (out, problem) = texts(&output);
            assert!(!output.status.success() && problem.contains(advice), "{at}: {out}{problem}");
        }
    }
    assert_eq!(all()[0]["state"], "waiting");
    let done = |command: &str| json(&texts(&decide(command, &admin, &file)).0);
    let approved = done("approve");
    assert_eq!((&approved["id"], &approved["decision"]), (&id.into(), &"approved".into()));
    assert!(approved["url"] == *cache.url && approved["key"].is_string(), "{approved:#}");
    until("it is listed", all, |it| it[0]["state"] == "alive");
    assert_eq!(done("revoke"), serde_json::json!({ "id": id, "decision": "revoked" }));
    assert_eq!(all()[0]["state"], "revoked");
    let args = ["registry", "approve", "--json", "-c", text(&registry.settings), id];
    assert_eq!(json(&run_ok(args)), approved);
    let unnamed = run(["registry", "approve", id]);
    assert!(!unnamed.status.success() && texts(&unnamed).1.contains("--config"), "{unnamed:?}");
}

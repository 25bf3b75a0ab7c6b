//! The commands to a registry, and to whoever has replicas: an administrator decides, and the nearest that answers is
//! asked.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::community::{Member, json, run_daemon, start, text, until};
use super::free_port;
use crate::harness::{harvest, run, run_ok, texts, write};

/// Starts a registry, and a cache that announces itself there.
fn registry_and_cache(folder: &Path, more: &str) -> (Member, Member) {
    let often = format!("{more}[announcements]\nevery = \"1 s\"\n");
    let registry = start(folder, "registry", "registry", &often);
    let announcing = format!("[registry]\nurl = \"{}\"\n", registry.url);
    let cache = start(folder, "cache", "cache", &announcing);
    (registry, cache)
}

fn servers(more: &[&str]) -> Vec<Value> {
    let list = json(&run_ok([&["registry", "list", "--json"], more].concat()));
    list.as_array().unwrap().clone()
}

#[test]
fn an_administrator_approves_and_revokes_by_commands() {
    let folder = tempfile::tempdir().unwrap();
    let (registry, cache) = registry_and_cache(folder.path(), "approval = \"admin\"\n");
    let Member { mut running, url, settings } = registry;
    let settings = text(&settings);
    let began = net::clock::now_ms() / 1_000;
    let all = || servers(&["-c", settings]);
    let of_all = || servers(&["--registry", &url]);
    let waiting = until("it has announced itself", all, |it| it.len() == 1);
    assert_eq!((&waiting[0]["state"], of_all().len()), (&Value::from("waiting"), 0));
    let id = waiting[0]["id"].as_str().unwrap().to_owned();

    let approved = run_ok(["registry", "approve", "-c", settings, &id]);
    assert!(approved.contains(&id) && approved.contains(&cache.url), "{approved}");
    let listed = until("it is listed", of_all, |it| it.len() == 1);
    let server = &listed[0];
    for (name, value) in [
        ("name", "cache"),
        ("kind", "cache"),
        ("id", &*id),
        ("url", &*cache.url),
        ("state", "alive"),
    ] {
        assert_eq!(server[name], value, "{server:#}");
    }
    let seen = |servers: &[Value]| servers[0]["last_seen"].as_u64().unwrap();
    // It announced itself before this test looked, and does again.
    assert!(seen(&listed).abs_diff(began) < 300, "{server:#}");
    until("it is seen again", of_all, |it| seen(&listed) < seen(it));

    let revoked = run_ok(["registry", "revoke", "-c", settings, &id]);
    assert!(revoked.contains("revoked"), "{revoked}");
    assert!(of_all().is_empty());
    assert_eq!(all()[0]["state"], "revoked");
    for command in ["approve", "revoke"] {
        let unknown = run(["registry", command, "-c", settings, "0000000000000000"]);
        let problem = texts(&unknown).1;
        assert!(!unknown.status.success() && problem.contains("no server of this id"), "{problem}");
    }
    run_ok(["registry", "approve", "-c", settings, &id]);
    until("it is listed again", of_all, |it| it.len() == 1);
    assert!(running.stop("TERM").success());
    // Without the registry, the commands name what does not answer.
    let nobody = run(["registry", "revoke", "-c", settings, &id]);
    let problem = texts(&nobody).1;
    assert!(!nobody.status.success() && problem.contains("no registry answers"), "{problem}");
}

#[test]
fn who_does_not_know_their_address_is_warned_and_announces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (registry, _cache) = registry_and_cache(folder, "");
    let settings = |name: &str, more: &str| {
        let settings = format!(
            "name = \"{name}\"\nlisten = \"0.0.0.0:{}\"\nadmin_listen = \"127.0.0.1:{}\"\ndata = \"data-{name}\"\n{more}\
             [registry]\nurl = \"{}\"\n",
            free_port(),
            free_port(),
            registry.url
        );
        write(folder, &format!("{name}.toml"), settings)
    };
    let check = |settings: &Path| {
        let checked = run(["broker", "check", "-c", text(settings)]);
        let (out, err) = texts(&checked);
        assert!(checked.status.success() && out.contains("no mistakes"), "{out}{err}");
        err
    };
    let named = settings("named", "base_url = \"http://broker.example/\"\n");
    assert!(!check(&named).contains("nothing is announced"));
    let nameless = settings("nameless", "");
    let warning = check(&nameless);
    assert!(warning.contains("nothing is announced") && warning.contains("base_url"), "{warning}");
    let mut broker = run_daemon("broker", &nameless);
    let status = || run_ok(["broker", "status", "--json", "-c", text(&nameless)]);
    until("its status", status, |it| it.contains("set base_url"));
    let list = || servers(&["--registry", &registry.url]);
    let list = until("the cache", list, |it| !it.is_empty());
    assert_eq!((list.len(), &list[0]["kind"]), (1, &Value::from("cache")));
    let known = servers(&["-c", text(&registry.settings)]);
    assert_eq!(known.len(), 1, "nobody else has asked to be listed");
    assert!(broker.stop("TERM").success());
}

/// Answers all requests with 503, as long as the test runs; returns its address.
fn failing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // Who measures how distant this is sends nothing.
            if matches!(stream.read(&mut [0; 4_096]), Ok(read) if read != 0) {
                let answer =
                    "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";
                let _gone = stream.write_all(answer.as_bytes());
            }
        }
    });
    url
}

/// Runs a command with an option for each place.
fn ask(command: &str, option: &str, places: &[&str]) -> Output {
    run(command.split(' ').chain(places.iter().flat_map(|it| [option, *it])))
}

#[test]
fn of_several_the_nearest_that_answers_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (registry, cache) = registry_and_cache(folder.path(), "");
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let (busy, also) = (failing(), failing());
    // A registry is a broker of servers: it answers as both.
    let find = |places: &[&str]| ask("search type:Cache --json", "--broker", places);
    let list = |places: &[&str]| ask("registry list --json", "--registry", places);
    let own = &*registry.url;
    let found = || json(&texts(&find(&[own])).0)["total"].clone();
    until("the cache", found, |it| *it == 1);
    for places in [&[&*nobody, &busy, &also, own][..], &[own, &busy, &nobody][..]] {
        let output = find(places);
        let (out, err) = texts(&output);
        assert!(output.status.success() && json(&out)["total"] == 1, "{places:?}: {out}{err}");
        let (out, err) = texts(&list(places));
        assert_eq!(json(&out)[0]["url"], cache.url.as_str(), "{places:?}: {err}");
    }
    // If nobody answers, all are named; of one that does, what it says.
    for (output, what) in [(find(&[&*nobody, &nobody]), "broker"), (list(&[&*nobody]), "registry")]
    {
        let problem = texts(&output).1;
        assert!(!output.status.success() && problem.contains(&*nobody), "{problem}");
        assert!(problem.contains(&format!("no {what} answers at")), "{problem}");
    }
    let output = find(&[&*busy, &also]);
    let problem = texts(&output).1;
    assert!(!output.status.success() && problem.contains("answers 503"), "{problem}");
    assert!(problem.contains("another one is asked: 503"), "{problem}");
    // The environment names several, too.
    let mut command = harvest(["registry", "list", "--json"]);
    command.env("HARVEST_REGISTRY", format!("{nobody} {own}"));
    let output = command.output().unwrap();
    assert_eq!(json(&texts(&output).0)[0]["kind"], "cache", "{}", texts(&output).1);
}

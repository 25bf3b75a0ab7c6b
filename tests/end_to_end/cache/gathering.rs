//! Tests of a gatherer that asks a cache.

use std::path::Path;

use net::clock;

use super::{Cache, Origin, Secure, settings, settings_with, text};
use crate::certificates::Authority;
use crate::harness::{PATIENCE, Running, harvest, run, run_ok, texts, write};

/// Starts a gatherer with a root of these settings, and waits until it has so many objects.
fn gather(folder: &Path, root: &str, objects: u64) -> Running {
    let admin = crate::daemons::free_port();
    let settings = format!(
        "name = 'Orchard'\nlisten = '127.0.0.1:0'\nadmin_listen = '127.0.0.1:{admin}'\ndata = 'gathered'\n\
         [[root]]\n{root}"
    );
    let file = write(folder, "gatherer.toml", settings);
    let running = Running::start(harvest(["gatherer", "run", "-c", text(&file)]));
    let end = clock::monotonic() + PATIENCE;
    loop {
        let output = run(["gatherer", "status", "-c", text(&file), "--json"]);
        let status: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        if status.as_ref().is_some_and(|it| it["objects"] == objects) {
            return running;
        }
        assert!(clock::monotonic() < end, "{status:#?} {}", texts(&output).1);
    }
}

#[test]
fn a_gatherer_takes_what_a_cache_has_and_leaves_nothing_in_it() {
    let (folder, origin) = (tempfile::tempdir().unwrap(), Origin::start());
    settings(folder.path());
    let cache = Cache::start(folder.path());
    cache.get(&origin, "/o1");
    cache.get(&origin, "/o2");
    cache.has(2);
    let root = format!("url = '{}/'\nproxy = 'http://{}'\n", origin.base, cache.proxy);
    let _running = gather(folder.path(), &root, 4);
    let asked = origin.asked.lock().unwrap().clone();
    let times = |path: &str| asked.get(path).copied().unwrap_or_default();
    assert_eq!([times("/o1"), times("/o2"), times("/o3"), times("/")], [1; 4], "{asked:?}");
    let status = cache.status();
    assert_eq!(status["answers"]["hit"], 2, "{status:#}");
    assert_eq!((&status["disk_objects"], &status["objects"]), (&2.into(), &2.into()), "{status:#}");
}

#[test]
fn a_cache_that_a_gatherer_trusts_gives_it_what_it_has_of_https() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("of the web");
    write(folder.path(), "ca.pem", &authority.pem);
    let origin = Secure::start(&authority, folder.path());
    let url = format!("{}/page", origin.url);
    let listen = format!("listen = '127.0.0.1:{}'", crate::daemons::free_port());
    settings_with(folder.path(), &listen, "[tls]\ntrust = 'ca.pem'");
    let cache = Cache::start(folder.path());
    let file = folder.path().join("cache.toml");
    assert_eq!(run_ok(["cache", "get", "-c", text(&file), &url]), "a page\n");
    // The gatherer does not know the authority: only the cache can have asked the origin.
    let root = format!("url = '{url}'\nproxy = 'http://{}'\nproxy_https = 'fetch'\n", cache.proxy);
    let _running = gather(folder.path(), &root, 1);
    let status = cache.status();
    assert_eq!((&status["answers"]["hit"], &status["answers"]["tunnel"]), (&1.into(), &0.into()));
    let explained = run_ok(["cache", "explain", "-c", text(&file), &url]);
    assert!(explained.contains("last given by: localhost (DIRECT)"), "{explained}");
}

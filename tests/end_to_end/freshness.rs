//! Tests of a broker's freshness, as an administrator sees and changes it.

use std::fs;
use std::path::Path;

use crate::daemons::{broker_settings, gatherer_site};
use crate::harness::{Running, ask, harvest, run, run_ok, texts, wait_for_total, write};

/// Another policy is shown before it is applied. Afterwards it is in the settings file, comments
/// stay, and the running broker uses it.
#[test]
fn a_policy_is_tried_and_then_applied() {
    let site = gatherer_site();
    let settings = broker_settings(site.folder.path(), &[(&site.gatherer_url, false)]);
    let settings = settings.replace("theta = 0.9\n", "theta = 0.9 # by the board\n");
    let path = write(site.folder.path(), "broker.toml", &settings);
    let file = path.to_str().unwrap();
    let mut broker = Running::start(harvest(["broker", "run", "-c", file]));
    let page = broker.search_url();
    wait_for_total(&page, "orchard", 1);

    let shown = run_ok(["broker", "tune", "-c", file, "--theta", "0.95"]);
    for part in ["theta = 0.9 ", "theta = 0.95", "pulls an hour", "freshness, expected"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), settings, "shown, not applied");

    let applied = run_ok(["broker", "tune", "-c", file, "--theta", "0.95", "--apply"]);
    assert!(applied.contains("is changed, and taken over"), "{applied}");
    let expected = settings.replace("theta = 0.9 #", "theta = 0.95 #");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let status = run_ok(["broker", "status", "-c", file]);
    assert!(status.contains("oap for freshness 0.95: "), "{status}");

    run_ok(["broker", "tune", "-c", file, "--interval", "2 h", "--apply"]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("policy = \"fixed\"\n")
            && text.contains("interval = \"2 h\" # by the board\n"),
        "{text}"
    );
    assert!(run_ok(["broker", "status", "-c", file]).contains("fixed at 2.0 h: "));

    for (args, expected) in [
        (["--theta", "1.5"], "theta"),
        (["--interval", "soon"], "interval is a time"),
        (["--policy", "best"], "best"),
    ] {
        let output = run(["broker", "tune", "-c", file, "--apply"].iter().chain(&args));
        let (_, err) = texts(&output);
        assert!(!output.status.success() && err.contains(expected), "{args:?}: {err}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "refused options change no file");

    // A file that this broker does not read is not changed.
    let copy = write(site.folder.path(), "copy.toml", &text);
    let output = run(["broker", "tune", "-c", copy.to_str().unwrap(), "--theta", "0.5", "--apply"]);
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("broker.toml and not"), "{err}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), text);

    // A reload answers with its outcome; without the token it is refused.
    let status: serde_json::Value =
        serde_json::from_str(&run_ok(["broker", "status", "-c", file, "--json"])).unwrap();
    let reload = format!("http://{}/reload", status["admin_listen"].as_str().unwrap());
    let token = fs::read_to_string(site.folder.path().join("broker-data/admin.token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(ask("POST", &reload, &[]).0, 401);
    let (code, _, body) = ask("POST", &reload, &headers);
    assert_eq!((code, String::from_utf8(body).unwrap().as_str()), (200, r#"{"at_next_start":[]}"#));
    fs::write(&path, text.replace("interval = \"2 h\"", "interval = \"soon\"")).unwrap();
    let (code, _, body) = ask("POST", &reload, &headers);
    let message = String::from_utf8(body).unwrap();
    assert!(code == 400 && message.contains("broker.toml:"), "{code} {message}");
    assert!(
        run_ok(["broker", "status", "-c", site_file(&path, &text)]).contains("fixed at 2.0 h: ")
    );
    assert!(broker.stop("TERM").success());
}

/// The admin listener's pages: `/` leads to the page of freshness; it is read without a token.
#[test]
fn the_administration_leads_to_the_page_of_freshness() {
    let site = gatherer_site();
    let settings = broker_settings(site.folder.path(), &[(&site.gatherer_url, false)]);
    let path = write(site.folder.path(), "broker.toml", settings);
    let file = path.to_str().unwrap();
    let mut broker = Running::start(harvest(["broker", "run", "-c", file]));
    let page = broker.search_url();
    wait_for_total(&page, "orchard", 1);
    let status: serde_json::Value =
        serde_json::from_str(&run_ok(["broker", "status", "-c", file, "--json"])).unwrap();
    let admin = format!("http://{}/", status["admin_listen"].as_str().unwrap());

    let (code, head, body) = ask("GET", &admin, &[]);
    let overview = String::from_utf8(body).unwrap();
    assert!(code == 200 && overview.contains("href=\"freshness\""), "{head}{overview}");
    // The change rate of a source needs more than one pull.
    let planned = || {
        let (_, _, body) = ask("GET", &format!("{admin}freshness?format=json"), &[]);
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["sources_planned"].clone()
    };
    while planned() != 1 {
        run_ok(["broker", "pull", "-c", file]);
    }
    let (code, _, body) = ask("GET", &format!("{admin}freshness?theta=0.95"), &[]);
    let html = String::from_utf8(body).unwrap();
    assert_eq!(code, 200, "{html}");
    assert!(html.contains("<svg") && html.contains("0.95"), "{html}");
    let (code, _, body) = ask("GET", &format!("{admin}freshness?format=json&theta=0.95"), &[]);
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((code, &json["preview"]["aim"]["value"]), (200, &serde_json::json!(0.95)));
    let (code, _, _) = ask("GET", &format!("{admin}freshness?theta=2"), &[]);
    assert_eq!(code, 400);
    assert!(broker.stop("TERM").success());
}

/// Writes the settings file, and returns its path.
fn site_file<'a>(path: &'a Path, text: &str) -> &'a str {
    fs::write(path, text).unwrap();
    path.to_str().unwrap()
}

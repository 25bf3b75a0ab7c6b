//! Tests of the commands that run to an end (`search`, `soif`, `collection`), and of their errors.

use crate::harness::{Running, harvest, run, run_ok, small_tree, texts, wait_for_total, write};

const STREAM: &str =
    "@UPDATE {\n@FILE { http://a/\nTitle{3}:\tOne\n}\n@FILE { http://b/\nTitle{5}:\ttwo\nx\n}\n}\n";

#[test]
fn search_answers_in_the_shell() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small_tree(tree.path());
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data.path()).arg(tree.path());
    let mut running = Running::start(command);
    let page = running.gathered_url();
    wait_for_total(&page, "pears", 2);

    let text = run_ok(["search", "title:pears", "--broker", &page]);
    assert!(text.contains("pears.md"), "{text}");
    let json = run_ok(["search", "pears", "--json", "--limit", "1", "--broker", &page]);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer["total"], 2);
    assert_eq!(answer["hits"].as_array().unwrap().len(), 1);

    let by = |more: &[&str]| {
        run_ok([&["search", "--broker", &page], more, &["pears", "orchards"]].concat())
    };
    let all = by(&["--match", "all"]);
    assert!(all.starts_with("1 object in ") && all.contains("index.html"), "{all}");
    for best in [by(&[]), by(&["--match", "best"])] {
        assert!(
            best.starts_with("1 object in ") && best.contains("and 1 more with some"),
            "{best}"
        );
        let (first, rest) = best.split_once("with some of the words:").unwrap();
        assert!(first.contains("index.html") && rest.contains("pears.md"), "{best}");
    }
    let any = by(&["--match", "any"]);
    assert!(any.contains("and 1 more with some") && any.contains("pears.md"), "{any}");
    assert!(!any.contains("with some of the words:"), "they stand anywhere: {any}");
    let output = run(["search", "pears", "--match", "some", "--broker", &page]);
    let (_, err) = texts(&output);
    assert!(!output.status.success() && err.contains("best, all, any"), "{err}");
    let explained = by(&["--explain", "--limit", "1"]);
    let why = explained.lines().find_map(|it| it.trim().strip_prefix("score ")).unwrap();
    let (score, factors) = why.split_once(": ").unwrap();
    let factors = factors.split(" × ").map(|it| it.split_once(' ').unwrap());
    let (names, values): (Vec<_>, Vec<f64>) =
        factors.map(|(name, value)| (name, value.parse::<f64>().unwrap())).unzip();
    assert_eq!(names, ["words", "title", "name", "near", "standing", "age"]);
    let product: f64 = values.iter().product();
    assert!((product - score.parse::<f64>().unwrap()).abs() < product / 20.0, "{why}");

    let (_, err) = texts(&run(["search", "pears AND (", "--broker", &page]));
    assert!(err.contains('^'), "a bad query is pointed at:\n{err}");
    assert!(running.stop("INT").success());

    let output = run(["search", "pears", "--broker", &page]);
    let (_, err) = texts(&output);
    assert!(!output.status.success());
    assert!(err.contains("127.0.0.1"), "the error names the broker: {err}");
}

#[test]
fn soif_is_checked_printed_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "good.soif", STREAM);
    let good = good.to_str().unwrap();
    assert!(run_ok(["soif", "check", good]).contains("2 objects, 0 problems"));
    assert!(run_ok(["soif", "print", good]).contains("http://b/"));

    let json = run_ok(["soif", "convert", "--to", "json", good]);
    let file = write(folder.path(), "good.json", &json);
    let back = run_ok(["soif", "convert", "--to", "soif", file.to_str().unwrap()]);
    assert!(back.contains("Title{5}:\ttwo\nx\n"), "{back}");

    let bad = write(folder.path(), "bad.soif", STREAM.replace("Title{5}", "Title{55}"));
    let output = run(["soif", "check", bad.to_str().unwrap()]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("1 problem"), "{out}{err}");
    assert!(format!("{out}{err}").contains("byte"), "the offset is named: {out}{err}");
}

#[test]
fn what_records_of_servers_lack_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let record = |names: &[&str]| {
        let mut record = soif::Record::new("BROKER", "http://b.example/");
        names.iter().for_each(|it| record.push(*it, "x"));
        let mut text = Vec::new();
        soif::write_record(&mut text, &record);
        text
    };
    let check = |content: &[u8], more: &[&str]| {
        let file = write(folder.path(), "servers.soif", content);
        let output = run([&["soif", "check", file.to_str().unwrap()], more].concat());
        let (out, err) = texts(&output);
        (output.status.code(), format!("{out}{err}"))
    };
    let must = ["Type", "Title", "Host", "Port", "Software-Version", "Update-Time"];
    let should = ["Administrator", "Location", "Object-Types", "Refresh-Rate", "Time-to-Live"];
    // What it has to have is a problem, what it should have is a note.
    let (code, printed) = check(&record(&must[..4]), &["--schema"]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "BROKER http://b.example/ lacks Software-Version, Update-Time",
        "should have Administrator, Location, Object-Types, Refresh-Rate, Time-to-Live",
        "1 objects, 2 problems",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    let (code, printed) = check(&record(&[&must[..], &should[1..]].concat()), &["--schema"]);
    assert!(code == Some(0) && printed.contains("should have Administrator\n"), "{printed}");
    let whole = record(&[&must[..], &should].concat());
    for (content, more) in [
        (&whole, &["--schema"][..]),
        (&record(&[]), &[][..]),
        (&STREAM.as_bytes().to_vec(), &["--schema"]),
    ] {
        let (code, printed) = check(content, more);
        assert!(code == Some(0) && !printed.contains("b.example"), "{printed}");
    }
}

/// Returns the data folder of `up --once` for a small tree.
fn gathered() -> tempfile::TempDir {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small_tree(tree.path());
    run_ok([
        "up".as_ref(),
        "--once".as_ref(),
        "--data".as_ref(),
        data.path().as_os_str(),
        tree.path().as_os_str(),
    ]);
    data
}

#[test]
fn a_collection_is_verified_rebuilt_and_exported() {
    let data = gathered();
    let collection = data.path().join("gatherer").join("collection");
    let collection = collection.to_str().unwrap();
    run_ok(["collection", "verify", collection]);
    run_ok(["collection", "rebuild", collection]);
    run_ok(["collection", "verify", collection]);
    assert!(run_ok(["collection", "stats", collection]).contains('8'));
    let soif = run_ok(["collection", "export", collection]);
    let exported = write(data.path(), "export.soif", &soif);
    let checked = run_ok(["soif", "check", exported.to_str().unwrap()]);
    assert!(checked.contains("8 objects, 0 problems"), "{checked}");
}

#[test]
fn a_flipped_byte_is_named_with_file_and_offset() {
    let data = gathered();
    let collection = data.path().join("gatherer/collection");
    let segment = largest_segment(&collection);
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&segment, bytes).unwrap();

    let output = run(["collection", "verify", collection.to_str().unwrap()]);
    let (out, err) = texts(&output);
    let all = format!("{out}{err}");
    assert!(!output.status.success(), "{all}");
    assert!(all.contains(segment.file_name().unwrap().to_str().unwrap()), "{all}");
    assert!(all.contains("byte") || all.contains("offset"), "{all}");
}

#[test]
fn mistakes_get_one_clear_message() {
    let output = run(["up", "--once", "--data", "/proc/nothing/here", "/no/such/folder"]);
    let (_, err) = texts(&output);
    assert!(!output.status.success());
    assert!(err.contains("/no/such/folder"), "{err}");
    assert!(!err.contains("panicked"), "{err}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = run([
        "up".as_ref(),
        "--no-open".as_ref(),
        "--listen".as_ref(),
        address.as_ref(),
        "--data".as_ref(),
        data.path().as_os_str(),
        tree.path().as_os_str(),
    ]);
    let (_, err) = texts(&output);
    assert!(!output.status.success());
    assert!(err.contains("in use") && err.contains(&address), "{err}");
}

fn largest_segment(folder: &std::path::Path) -> std::path::PathBuf {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "gz"))
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap()
}

#[test]
fn the_figures_of_the_paper_are_computed() {
    let csv = run_ok(["freshness", "simulate", "--figure", "adly3", "--csv"]);
    assert!(csv.starts_with("theta,t1_share,ratio\n0.95,0.75,"), "{csv}");
    let row = csv.lines().find_map(|it| it.strip_prefix("0.98,0.75,")).unwrap();
    assert!((row.parse::<f64>().unwrap() - 1.706_331).abs() < 0.0005, "{row}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adly6.svg");
    let options = ["--mix", "T2,50:0:0:50", "--theta", "0.42", "--repos", "7", "--svg"];
    let mut args = vec!["freshness", "simulate", "--figure", "adly6"];
    args.extend(options);
    args.push(file.to_str().unwrap());
    assert_eq!(run_ok(&args), "");
    assert!(std::fs::read_to_string(&file).unwrap().contains("</svg>"));

    let mut args = vec!["freshness", "simulate", "--figure", "adly5", "--csv"];
    args.extend(["--engine", "event", "--g", "0.5", "--days", "40", "--seed", "9"]);
    args.extend(["--repos", "10", "--theta", "0.9", "--mix", "60:0:0:40"]);
    let row = run_ok(&args).lines().find_map(|it| it.strip_prefix("0.9,0.6,").map(str::to_owned));
    // Id `fig5.unap_over_oap.theta=0.9.T1=0.6`, of a thousand repositories and a longer time.
    let ratio: f64 = row.unwrap().parse().unwrap();
    assert!((ratio - 1.156_365).abs() < 0.06, "{ratio}");

    for (flag, value, expected) in [
        ("--g", "0", "0.001 to 1"),
        ("--figure", "adly2", "adly3 to adly9"),
        ("--theta", "1", "not including 1"),
        ("--mix", "T9", "75:0:0:25"),
        ("--repos", "0", "from 1 to"),
    ] {
        let mut args = vec!["freshness", "simulate", flag, value];
        if flag != "--figure" {
            args.extend(["--figure", "adly3"]);
        }
        let output = run(&args);
        let (_, err) = texts(&output);
        assert!(!output.status.success() && err.contains(expected), "{flag} {value}: {err}");
    }
}

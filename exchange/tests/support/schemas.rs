//! Validation of responses against schemas: the standard's, and our own in docs/schemas.
//!
//! xmllint validates with one schema that imports all others, and without a network. The standard's
//! schemas accept only elements of known schemas, so a response with another element is refused.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Namespaces and files of the standard's schemas. Imported ones come first.
const OUTSIDE: [(&str, &str); 3] = [
    ("http://purl.org/dc/elements/1.1/", "simpledc20021212.xsd"),
    ("http://www.openarchives.org/OAI/2.0/oai_dc/", "oai_dc.xsd"),
    ("http://www.openarchives.org/OAI/2.0/", "OAI-PMH.xsd"),
];

/// Namespaces and files of our own schemas.
const OURS: [(&str, &str); 7] = [
    ("http://www.openarchives.org/OAI/2.0/oai-identifier", "oai-identifier.xsd"),
    ("http://www.openarchives.org/OAI/2.0/friends/", "friends.xsd"),
    ("http://www.openarchives.org/OAI/2.0/branding/", "branding.xsd"),
    ("http://www.openarchives.org/OAI/2.0/provenance", "provenance.xsd"),
    ("http://purl.org/rss/1.0/modules/syndication/", "syndication.xsd"),
    ("https://harvest.example/oap/1.0/", "totals.xsd"),
    ("https://harvest.example/soif/1.0/", "soif.xsd"),
];

/// Validates a document.
///
/// # Errors
///
/// The messages of xmllint.
pub(crate) fn validate(xml: &[u8]) -> Result<(), String> {
    static SCHEMA: OnceLock<PathBuf> = OnceLock::new();
    let schema = SCHEMA.get_or_init(schema);
    let mut child = Command::new("xmllint")
        .args(["--nonet", "--noout", "--schema"])
        .arg(schema)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("xmllint is missing: run ./test, or apt-get install libxml2-utils");
    // xmllint may have stopped reading: only its messages matter.
    let _ = child.stdin.take().unwrap().write_all(xml);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr)
        .lines()
        // Dublin Core is imported a second time, by its address on the Web.
        .filter(|line| !line.contains("Skipping import of schema"))
        .collect::<Vec<_>>()
        .join("\n"))
}

#[track_caller]
pub(crate) fn assert_valid(xml: &[u8]) {
    if let Err(problems) = validate(xml) {
        panic!("{problems}\nin\n{}", String::from_utf8_lossy(xml));
    }
}

fn schema() -> PathBuf {
    let root = root();
    let prepared =
        Command::new(root.join("tests/oai_peers/prepare")).arg("schemata").status().unwrap();
    assert!(prepared.success(), "the standard's schemas are not there; see above");
    let mut text = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n".to_owned();
    let mut import = |namespace: &str, file: PathBuf| {
        assert!(file.exists(), "{} is missing", file.display());
        let location = file.display().to_string().replace('&', "&amp;");
        writeln!(text, "<xs:import namespace=\"{namespace}\" schemaLocation=\"{location}\"/>")
            .unwrap();
    };
    for (namespace, name) in OUTSIDE {
        import(namespace, root.join("target/oai/schemata").join(name));
    }
    for (namespace, name) in OURS {
        import(namespace, root.join("docs/schemas").join(name));
    }
    text.push_str("</xs:schema>\n");
    // One file for each process, since others may be writing theirs.
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("oai-{}.xsd", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|it| it.join("Cargo.lock").exists()).unwrap().to_owned()
}

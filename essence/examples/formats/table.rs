//! The page docs/formats.md: one row for each type, made from the records of its sample.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use essence::extract::{EssenceSettings, extract};
use essence::typing::{self, DecidedBy, Reason, Recognizer};
use formats::Type;
use formats::limit::Limit;
use formats::object::{Object, Summary};

use crate::samples::{self, Sample};

/// Name that matches no rule.
const BARE: &str = "x";
/// Text that matches no rule.
const WORDS: &[u8] = b"some words\nin lines\n";
/// Maximum length of a beginning that is shown as a signature, in bytes.
const SIGNATURE_BYTES_MAX: usize = 32;
const MEBIBYTE: usize = 1024 * 1024;
/// Maximum length of a value that is shown, in bytes.
const VALUE_BYTES_MAX: usize = 160;
/// Attributes of all, or nearly all, records.
const COMMON: &[&str] = &["Title", "Type", "File-Size", "MD5", "Keywords"];
/// Attributes that are not shown in samples: they tell little, or depend on the packing program.
const UNSHOWN: &[&str] = &["File-Size", "MD5", "Keywords"];

const HEAD: &str = "# Formats

The built-in types, how each is recognized, and what is read of it. Written by
`cargo run -p essence --example formats > docs/formats.md` from what the program makes of a small sample of
each, and held true by `cargo test -p essence --test formats`. In which order names and contents decide says
[essence.md](essence.md); what a site's own types are summarized as, too.

Every record has `Title` (the file's name where there is none), `Type`, `File-Size`, `MD5` and `Keywords`; the
table names what else the sample's record has. What an object does not say is left out, and other objects of a
type may say more.

";

pub(crate) fn page() -> String {
    let samples = samples::all();
    let mut page = HEAD.to_owned();
    page.push_str("| Type | Recognized by | Attributes | Sample |\n|---|---|---|---|\n");
    for sample in &samples {
        let (name, attributes) = (sample.r#type.name(), attributes(&summaries(sample)));
        let anchor = name.to_lowercase().replace('+', "");
        let ways = ways(sample).join("; ");
        let _ =
            writeln!(page, "| `{name}` | {ways} | {attributes} | [{}](#{anchor}) |", sample.name);
    }
    for (r#type, why) in samples::UNSEEN {
        let _ = writeln!(page, "| `{}` | {why} | | |", r#type.name());
    }
    page.push_str(
        "\n# Sample records\n\nWithout `File-Size`, `MD5` and `Keywords`; long values are cut.\n",
    );
    for sample in &samples {
        let _ = write!(page, "\n## {}\n\n{}", sample.r#type.name(), rendered(&summaries(sample)));
    }
    page
}

/// Returns the table of limits, in their order.
pub(crate) fn limits() -> String {
    let row = |limit: &Limit| {
        let (bound, unit) = (limit.standard(), limit.unit());
        let bound = match bound {
            0 => String::new(),
            _ if unit.starts_with("bytes") && bound % MEBIBYTE == 0 => {
                format!("{} MiB", bound / MEBIBYTE)
            }
            _ if unit.starts_with("bytes") && bound % 1024 == 0 => format!("{} KiB", bound / 1024),
            _ => with_commas(bound),
        };
        format!("| `{limit}` | {bound} | {unit} |\n")
    };
    Limit::ALL.iter().map(row).collect()
}

fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let start = digits.len() % 3;
    let (first, rest) = digits.split_at(start);
    let groups = rest.as_bytes().chunks(3).map(|it| String::from_utf8_lossy(it).into_owned());
    let all = [first.to_owned()].into_iter().filter(|it| !it.is_empty()).chain(groups);
    all.collect::<Vec<_>>().join(",")
}

/// Returns the samples that are recognized as another type.
pub(crate) fn faults() -> Vec<String> {
    let wrong = |sample: &Sample| {
        let found = explain(sample.name, &sample.bytes).0;
        let summaries = summaries(sample);
        let inside = summaries.first()?.record.text("Type")?.into_owned();
        let is_right = found == sample.r#type || inside == sample.r#type.name();
        (!is_right).then(|| format!("{} is {}", sample.name, found.name()))
    };
    samples::all().iter().filter_map(wrong).collect()
}

/// Returns the types that have no sample and are not listed in [`samples::UNSEEN`].
pub(crate) fn missing() -> Vec<&'static str> {
    let samples = samples::all();
    let has_sample = |it: &Type| {
        samples.iter().any(|sample| sample.r#type == *it)
            || samples::UNSEEN.iter().any(|(unseen, _)| unseen == it)
    };
    Type::ALL.iter().filter(|it| !has_sample(it)).map(|it| it.name()).collect()
}

fn summaries(sample: &Sample) -> Vec<Summary> {
    let url = format!("http://h.example/d/{}", sample.name);
    let object =
        Object { name: sample.name.to_owned(), ..Object::whole(url, sample.bytes.clone()) };
    extract(object, &EssenceSettings::default(), &|| false)
}

fn explain(name: &str, bytes: &[u8]) -> (Type, Reason) {
    let head = typing::head_of(bytes);
    let recognizer = Recognizer::default();
    let decision = recognizer.explain("http://h.example/d/x", name, head);
    match decision.by {
        DecidedBy::BuiltIn(reason) => (decision.r#type, reason),
        DecidedBy::Rule { .. } => unreachable!("there are no rules"),
    }
}

fn ways(sample: &Sample) -> Vec<String> {
    let r#type = sample.r#type;
    let (named, bare) = (explain(sample.name, &sample.bytes), explain(BARE, &sample.bytes));
    let mut ways = Vec::new();
    let mut signatures = typing::signatures_of(r#type);
    let is_known = |sample: &Sample| signatures.iter().any(|it| sample.bytes.starts_with(it));
    if bare == (r#type, Reason::Signature) && !is_known(sample) {
        signatures.extend(signature(sample));
    }
    if !signatures.is_empty() {
        let shown = signatures.iter().map(|it| it.escape_ascii().to_string().replace('|', "\\|"));
        ways.push(format!("begins `{}`", shown.collect::<Vec<_>>().join("` `")));
    }
    if bare.0 == r#type && (bare.1 != Reason::Signature || ways.is_empty()) {
        ways.push(bare.1.to_string());
    } else if bare.0 != r#type && named.0 == r#type && named.1 != Reason::Name {
        ways.push(named.1.to_string());
    } else if named.0 != r#type {
        ways.push(format!("what is in it; as it is, it is `{}`", named.0.name()));
    }
    let (extensions, names) = typing::names_of(r#type);
    let extensions = extensions.iter().map(|it| format!(".{it}"));
    let names: Vec<String> = names.iter().map(ToString::to_string).chain(extensions).collect();
    let is_named = |content| explain(sample.name, content) == (r#type, Reason::Name);
    if !names.is_empty() {
        ways.push(format!("names: `{}`", names.join("` `")));
    } else if is_named(WORDS) || is_named(b"") {
        ways.push(format!("names such as `{}`", sample.name));
    }
    ways
}

/// Returns the shortest beginning by which the sample is recognized, if it is not too long to show.
fn signature(sample: &Sample) -> Option<&[u8]> {
    let mut fronts = (1..=SIGNATURE_BYTES_MAX).filter_map(|it| sample.bytes.get(..it));
    fronts.find(|it| explain(BARE, it) == (sample.r#type, Reason::Signature))
}

fn attributes(summaries: &[Summary]) -> String {
    let Some(own) = summaries.first() else { return String::new() };
    let names = own.record.attributes().iter().map(|it| it.name.as_str());
    let names: BTreeSet<&str> = names.filter(|it| !COMMON.contains(it)).collect();
    let mut names: Vec<String> = names.into_iter().map(|it| format!("`{it}`")).collect();
    if 1 < summaries.len() {
        names.push("a record for each that is in it".to_owned());
    }
    names.join(", ")
}

fn rendered(summaries: &[Summary]) -> String {
    let mut text = "```\n".to_owned();
    for summary in summaries {
        let _ = writeln!(text, "@{} {{ {}", summary.record.template, summary.record.url);
        for it in summary.record.attributes() {
            if UNSHOWN.contains(&it.name.as_str()) {
                continue;
            }
            let value = String::from_utf8_lossy(&it.value).replace('\n', " | ");
            let cut = value.get(..value.floor_char_boundary(VALUE_BYTES_MAX)).unwrap_or_default();
            let more = if cut.len() < value.len() { "…" } else { "" };
            let _ = writeln!(text, "{}: {cut}{more}", it.name);
        }
        text.push_str("}\n");
        for problem in &summary.problems {
            let _ = writeln!(text, "! {}: {}", problem.kind, problem.message);
        }
    }
    text.push_str("```\n");
    text
}

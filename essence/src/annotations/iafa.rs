//! Annotations as IAFA templates: a template states its fields about the objects of its `URI`
//! fields.
//!
//! A template without a `URI` describes no object (but a person or an archive), and is ignored; so
//! are empty fields. Variants of `URI` (`URI-v1`, `URI-v2`) name several objects, which get the
//! same statements.
//!
//! Sans-I/O.

use formats::catalog::iafa::templates;
use settings::Mistake;

use super::{ANNOTATIONS_MAX, Annotation, Statement, mistake_at};

pub(super) fn read(text: &str) -> Result<Vec<Annotation>, Vec<Mistake>> {
    let (mut annotations, mut mistakes) = (Vec::new(), Vec::new());
    let mut any = false;
    for template in templates(text).flatten() {
        if ANNOTATIONS_MAX < annotations.len() {
            break;
        }
        any = true;
        let line = template.line();
        let mut report = |message: String| {
            let expected = String::new();
            mistakes.push(Mistake { file: None, line, column: 1, message, expected });
        };
        let Some(fields) = template.attributes() else {
            report("the template is too long".to_owned());
            continue;
        };
        let mut statements = Vec::new();
        for (name, value) in fields {
            match Statement::new(&name, value) {
                Ok(statement) => statements.push(statement),
                Err(message) => report(message),
            }
        }
        let statements: std::sync::Arc<[Statement]> = statements.into();
        for uri in template.uris() {
            if uri.contains(char::is_whitespace) {
                report(format!("{uri:?} is no URL"));
            }
            let (about, statements) = (uri.to_owned(), statements.clone());
            annotations.push(Annotation { line, about, is_pattern: false, statements });
        }
    }
    if !any && !text.trim().is_empty() {
        mistakes.push(mistake_at(b"", 0, "there is no template in it", "Template-Type: …"));
    }
    if mistakes.is_empty() { Ok(annotations) } else { Err(mistakes) }
}

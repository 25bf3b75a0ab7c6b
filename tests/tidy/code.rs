//! The code of a file: its text without tests, and without comments and literals.

/// A file as the rules read it. In both texts blanks replace what was taken out, so lines and
/// offsets are those of the file.
#[derive(Debug)]
pub(crate) struct Code {
    /// Without test items.
    pub(crate) product: String,
    /// Without test items, comments, and the contents of literals.
    pub(crate) bare: String,
    /// Number of lines outside test items.
    pub(crate) lines: usize,
    /// Modules that exist only in tests, and have files of their own.
    pub(crate) test_modules: Vec<String>,
}

impl Code {
    pub(crate) fn read(text: &str) -> Self {
        let mut product: Vec<char> = text.chars().collect();
        let mut bare = without_literals(&product);
        let mut lines = text.lines().count();
        let mut test_modules = Vec::new();
        for mark in ["#[cfg(test)]", "#[cfg(all(test"] {
            let mark: Vec<char> = mark.chars().collect();
            let mut from = 0;
            while let Some(start) = find(&bare, &mark, from) {
                let begin = after_attributes(&bare, start);
                let end = item_end(&bare, begin);
                test_modules.extend(module_of(&bare[begin..end]));
                lines -= lines_taken(&product, start, end);
                for at in start..end {
                    blank(&mut product[at]);
                    blank(&mut bare[at]);
                }
                from = end;
            }
        }
        Self {
            product: product.into_iter().collect(),
            bare: bare.into_iter().collect(),
            lines,
            test_modules,
        }
    }
}

/// Returns a file without comments and literals, but with its tests.
pub(crate) fn bare(text: &str) -> String {
    without_literals(&text.chars().collect::<Vec<_>>()).into_iter().collect()
}

pub(crate) fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

fn blank(it: &mut char) {
    if *it != '\n' {
        *it = ' ';
    }
}

fn find(text: &[char], wanted: &[char], from: usize) -> Option<usize> {
    text.get(from..)?.windows(wanted.len()).position(|it| it == wanted).map(|at| at + from)
}

/// Returns the number of lines that have nothing outside `start..end`.
fn lines_taken(text: &[char], start: usize, end: usize) -> usize {
    let begins = text[..start].iter().rev().take_while(|it| **it != '\n').all(|it| *it == ' ');
    let breaks = text[start..end].iter().filter(|it| **it == '\n').count();
    let ends = text[end..].iter().take_while(|it| **it != '\n').all(|it| *it == ' ');
    (breaks + 1).saturating_sub(usize::from(!begins) + usize::from(!ends))
}

/// Returns the text with comments and literals blanked.
fn without_literals(text: &[char]) -> Vec<char> {
    let mut bare = text.to_vec();
    let mut at = 0;
    while at < text.len() {
        let end = match (text[at], text.get(at + 1)) {
            ('/', Some('/')) => find(text, &['\n'], at).unwrap_or(text.len()),
            ('/', Some('*')) => block_comment_end(text, at),
            ('"', _) => string_end(text, at),
            ('r', _) if is_raw_prefix(text, at) => raw_string_end(text, at).unwrap_or(at + 1),
            ('\'', Some('\\')) => find(text, &['\''], at + 3).map_or(text.len(), |it| it + 1),
            ('\'', _) if text.get(at + 2) == Some(&'\'') => at + 3,
            _ => at + 1,
        };
        if at + 1 < end {
            bare[at..end].iter_mut().for_each(blank);
        }
        at = end;
    }
    bare
}

fn block_comment_end(text: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    text.len().min(at + 1)
}

/// Returns whether an `r` may begin a raw string: it begins a word, or follows such a `b` or `c`.
fn is_raw_prefix(text: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|it| text[it]);
    match before(1) {
        Some('b' | 'c') => !before(2).is_some_and(is_word),
        other => !other.is_some_and(is_word),
    }
}

fn raw_string_end(text: &[char], start: usize) -> Option<usize> {
    let hashes = text[start + 1..].iter().take_while(|it| **it == '#').count();
    if text.get(start + 1 + hashes) != Some(&'"') {
        return None;
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    Some(find(text, &close, start + 2 + hashes).map_or(text.len(), |it| it + close.len()))
}

/// Returns the start of the item that has the attribute at `start`; further attributes are skipped.
fn after_attributes(bare: &[char], start: usize) -> usize {
    let mut at = start;
    while bare.get(at) == Some(&'#') {
        at = after_brackets(bare, at + 1);
        at += bare[at..].iter().take_while(|it| it.is_whitespace()).count();
    }
    at
}

/// Returns the place after the bracket that closes the one at `start`.
fn after_brackets(bare: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, it) in bare.iter().enumerate().skip(start) {
        match it {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    bare.len()
}

/// Returns the end of the item, statement, field, variant or arm that starts at `begin`.
fn item_end(bare: &[char], begin: usize) -> usize {
    const KEYWORDS: [&str; 18] = [
        "fn",
        "mod",
        "impl",
        "struct",
        "enum",
        "union",
        "trait",
        "use",
        "const",
        "static",
        "type",
        "unsafe",
        "async",
        "extern",
        "macro_rules",
        "if",
        "let",
        "for",
    ];
    let mut known = words_of_item(&bare[begin..]);
    let (first, second) = (known.next().unwrap_or_default(), known.next());
    // Everything else is a field, a variant or an arm.
    let is_item = KEYWORDS.contains(&first.as_str());
    let is_value = matches!(first.as_str(), "use" | "let" | "const" | "static" | "type");
    let braces_end_it = !is_value || second.as_deref() == Some("fn");
    let mut at = begin;
    while at < bare.len() {
        match bare[at] {
            ';' => return at + 1,
            ',' if !is_item => return at + 1,
            '}' | ')' | ']' => return at,
            '{' if is_item && braces_end_it => {
                at = after_brackets(bare, at);
                let next = bare[at..].iter().skip_while(|it| it.is_whitespace()).take(4);
                if next.collect::<String>() != "else" {
                    return at;
                }
            }
            '(' | '[' | '{' => at = after_brackets(bare, at),
            _ => at += 1,
        }
    }
    bare.len()
}

fn words(text: &[char]) -> impl Iterator<Item = String> {
    text.split(|it| !is_word(*it)).filter(|it| !it.is_empty()).map(|it| it.iter().collect())
}

/// Returns the words of an item, without its visibility.
fn words_of_item(text: &[char]) -> impl Iterator<Item = String> {
    words(text).skip_while(|it| matches!(it.as_str(), "pub" | "crate" | "super" | "in"))
}

/// Returns the module that the item declares, if it has a file of its own.
fn module_of(item: &[char]) -> Option<String> {
    let mut known = words_of_item(item);
    let is_file = item.last() == Some(&';') && known.next().as_deref() == Some("mod");
    known.next().filter(|_| is_file)
}

#[test]
fn tests_are_taken_out_and_nothing_else() {
    let text = r####"//! Says "#[cfg(test)]" in a comment.
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "x.rs"]
pub(crate) mod other;
const A: &str = "#[cfg(test)] {"; // }
const B: &str = r#"a " { "#;
const C: [char; 3] = ['{', '\'', '"'];
fn f<'a>(it: &'a str) -> &'a str { it }
#[cfg(test)]
pub(crate) const D: &[u8] = { &[1] };
enum E {
    G,
    #[cfg(test)]
    F(u8, u8),
    H,
}
fn g() {
    #[cfg(test)]
    if let Some(a) = b { c } else { d }
    h();
}
/* a /* b */ c */
#[cfg(test)]
mod inner {
    fn x() { "}" }
}
fn last() {}
"####;
    let code = Code::read(text);
    let left: Vec<&str> =
        code.bare.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let expected = [
        "const A: &str =",
        "const B: &str =",
        "const C: [char; 3] = [",
        "fn f<'a>(it: &'a str)",
        "enum E {",
        "    G,",
        "    H,",
        "}",
        "fn g() {",
        "    h();",
        "}",
        "fn last() {}",
    ];
    assert_eq!(left.len(), expected.len(), "{left:#?}");
    for (line, expected) in left.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line} for {expected}");
    }
    assert_eq!(code.test_modules, ["tests", "other"]);
    assert_eq!(code.lines, text.lines().count() - 15);
    assert!(code.product.contains("// }") && code.product.lines().count() == text.lines().count());
}

//! Print: formats of typeset pages, and the languages that they are written in.

pub(crate) mod dvi;
pub(crate) mod man;
pub(crate) mod postscript;
pub(crate) mod tex;
pub(crate) mod tex_fonts;
pub(crate) mod texinfo;
pub(crate) mod troff;
pub(crate) mod typeset;

/// Takes the text up to `at` off `rest`.
fn take<'a>(rest: &mut &'a str, at: usize) -> &'a str {
    let (front, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
    *rest = after;
    front
}

/// Takes a special character off `rest`. For a line's end, returns `\n` if an empty line follows,
/// else `space`.
fn take_special(rest: &mut &str, space: char) -> Option<char> {
    let mut characters = rest.chars();
    let first = characters.next()?;
    *rest = characters.as_str();
    if first != '\n' {
        return Some(first);
    }
    let after = rest.trim_start_matches([' ', '\t', '\r']);
    if after.starts_with('\n') {
        *rest = after;
        return Some('\n');
    }
    Some(space)
}

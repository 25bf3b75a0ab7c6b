//! Plain lists: one URL a line. Empty lines, and lines that begin with `#`, are left out.
//!
//! Sans-I/O.

use url::Url;

use super::{Kind, List, NoList};

pub(super) fn read(base: &Url, text: &str) -> Result<List, NoList> {
    let mut list = List::new(Kind::Objects);
    let lines = text.split(['\r', '\n']).map(str::trim);
    for line in lines.filter(|it| !it.is_empty() && !it.starts_with('#')) {
        // Nothing is relative here: words are not taken for URLs.
        let loc = if line.contains("://") { line } else { "" };
        if !list.push(base, loc, None) {
            break;
        }
    }
    if list.entries.is_empty() { Err(NoList::Text) } else { Ok(list) }
}

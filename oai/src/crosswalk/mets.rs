//! The METS crosswalk: the description of the whole object, in any format with a known namespace,
//! and links to its files.
//!
//! Source: METS 1.12 (`dmdSec`, `mdWrap`, `fileSec`, `structMap`).
//!
//! Administrative and structural metadata and the descriptions of parts are not read: they would
//! add the words of every page and chapter.

use super::dc;
use super::draft::{Draft, Field};
use super::tree::Element;

/// Maximum number of links to files.
const FILES_MAX: usize = 100;
/// Maximum number of descriptions that are looked up for a division.
const NAMED_MAX: usize = 16;

/// Reads the object in `root`; `read_by_namespace` reads the metadata in it.
pub(super) fn read<'t, 'a>(
    root: Element<'t, 'a>,
    draft: &mut Draft<'t>,
    read_by_namespace: fn(Element<'t, 'a>, &mut Draft<'t>) -> bool,
) {
    if let Some(section) = section(root) {
        for data in section.all("mdWrap").filter_map(|it| it.child("xmlData")) {
            if dc::holds(data) && data.children().any(|it| dc::field(it.name()).is_some()) {
                dc::read(data, draft);
            } else {
                data.children().for_each(|it| {
                    read_by_namespace(it, draft);
                });
            }
        }
    }
    if draft.lacks(Field::Title) {
        draft.put(Field::Title, root.attribute("LABEL"));
    }
    if draft.lacks(Field::Type) {
        draft.put(Field::Type, root.attribute("TYPE"));
    }
    draft.put(Field::Identifier, root.attribute("OBJID"));
    let files = root.all("fileSec").flat_map(Element::descendants);
    let locations = files.filter(|it| it.name() == "FLocat").map(|it| it.attribute(":href"));
    locations.take(FILES_MAX).for_each(|it| draft.put_link(it));
}

/// Returns the description of the whole: that of the outermost division that has a description, or
/// else the first description.
fn section<'t, 'a>(root: Element<'t, 'a>) -> Option<Element<'t, 'a>> {
    let of_map = |map: Element<'t, 'a>| {
        let divisions = map.descendants().filter(|it| it.name() == "div");
        divisions.map(|it| it.attribute("DMDID")).find(|it| !it.is_empty())
    };
    let maps = || root.all("structMap");
    let logical = maps().filter(|it| it.attribute("TYPE").eq_ignore_ascii_case("logical"));
    let ids = logical.chain(maps()).find_map(of_map).unwrap_or_default();
    let named = ids.split_whitespace().take(NAMED_MAX).find_map(|id| {
        root.all("dmdSec").find(|it| it.attribute("ID") == id && it.child("mdWrap").is_some())
    });
    named.or_else(|| root.all("dmdSec").find(|it| it.child("mdWrap").is_some()))
}

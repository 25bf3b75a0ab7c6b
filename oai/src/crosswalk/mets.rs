//! METS: what it says of the object as a whole, in whichever format it has that in, and links to its files.
//!
//! Source: METS 1.12 (`dmdSec`, `mdWrap`, `fileSec`, `structMap`).
//!
//! Only the description of the object is read: administrative and structural metadata, and what describes
//! its parts, would make a heap of words of every page and chapter.

use super::dc;
use super::draft::{Draft, Field};
use super::tree::Element;

/// Most links to files that are taken.
const FILES_MAX: usize = 100;
/// Most descriptions that a division may name.
const NAMED_MAX: usize = 16;

/// Takes down the object in `root`; `known` reads the metadata within.
pub(super) fn read<'t, 'a>(
    root: Element<'t, 'a>,
    draft: &mut Draft<'t>,
    known: fn(Element<'t, 'a>, &mut Draft<'t>) -> bool,
) {
    if let Some(section) = section(root) {
        for data in section.all("mdWrap").filter_map(|it| it.child("xmlData")) {
            if dc::holds(data) && data.children().any(|it| dc::field(it.name()).is_some()) {
                dc::read(data, draft);
            } else {
                data.children().for_each(|it| {
                    known(it, draft);
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
    let places = files.filter(|it| it.name() == "FLocat").map(|it| it.attribute(":href"));
    places.take(FILES_MAX).for_each(|it| draft.put_link(it));
}

/// The description of the whole: the one that the outermost division names which has one, or else the first.
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

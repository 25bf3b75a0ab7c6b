//! Text of composite fonts that do not tell it: from their CMaps, their character collections, or the letters
//! of the embedded font.
//!
//! Source: ISO 32000-1 §9.7.5.2 (predefined CMaps), §9.7.3 (character collections), §9.10.2 (mapping codes to
//! Unicode); ISO/IEC 14496-22 (table `cmap` of OpenType). The CMaps themselves are Adobe's, in `hayro_cmap`.
//!
//! # Differences from the specification
//!
//! * The interpreter does this for fonts that are not embedded; here it is done for all, when a character has
//!   no text by its font's `ToUnicode`.
//! * A `ToUnicode` that is the name `Identity-H` means that the codes are Unicode.
//! * A `ToUnicode` with mistakes tells what its sound sections tell.
//! * Some programs leave out common fonts and write the numbers of their glyphs, whose order is known.
//! * A font of no known collection is read by its table `cmap` backwards: from glyphs to letters.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

use hayro_interpret::font::{FontData, OutlineGlyph};
use hayro_interpret::hayro_cmap::{
    BfString, CMap, CMapName, CidFamily, WritingMode, load_embedded,
};
use hayro_syntax::Pdf;
use hayro_syntax::object::dict::keys::{
    BASE_FONT, CID_TO_GID_MAP, CIDSYSTEMINFO, DESCENDANT_FONTS, ENCODING, FONT_DESC, FONT_FILE,
    FONT_FILE2, FONT_FILE3, ORDERING, REGISTRY, SUBTYPE, TO_UNICODE,
};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use memchr::memmem;
use skrifa::{FontRef, MetadataProvider};

use crate::limit::Limit;

/// Maximum number of objects of a document that are searched for composite fonts.
const OBJECTS_MAX: usize = 500_000;
/// Objects between two checks of the time limit.
const POLL_OBJECTS: usize = 500;
/// Maximum number of fonts of one name.
const NAMESAKES_MAX: usize = 20;
/// Maximum number of letters of an embedded font.
const LETTERS_MAX: usize = 70_000;

/// Letters of the glyphs that follow those of ASCII in Microsoft's fonts, as the `ToUnicode` of embedded ones
/// tells: in the order of the Macintosh, without two of its letters, and then of central Europe.
const FURTHER_LETTERS: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\
    ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔÒÚÛÙıˆ˜ˉ˘˙˚¸˝˛ˇŁłŠšŽž¦ÐðÝýÞþ−×¹²³½¼¾₣ĞğİŞşĆćČčđ¯\
    ·ĂăĄąĎďĐĘęĚěĹĺĽľĿŀŃńŇňŐőŔŕŘřŚśŢţŤťŮůŰűŹźŻż";
/// Letters of private use.
const PRIVATE: RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// Returns the data of a predefined CMap.
pub(super) fn resolve(name: CMapName<'_>) -> Option<&'static [u8]> {
    match name {
        // Another choice of forms for the same letters.
        CMapName::Custom(b"UniJIS2004-UTF16-H") => load_embedded(CMapName::UniJisUtf16H),
        CMapName::Custom(b"UniJIS2004-UTF16-V") => load_embedded(CMapName::UniJisUtf16V),
        name => load_embedded(name),
    }
}

/// The composite fonts of a document, read when the first is asked for.
pub(super) struct CompositeFonts<'p> {
    pdf: &'p Pdf,
    all: Option<Vec<Composite<'p>>>,
    /// The decoders for a glyph, by what it says of its font.
    known: HashMap<Key, Rc<[Decoder]>>,
    collections: Vec<(CidFamily, Option<Rc<CMap>>)>,
    /// The number of fonts that were read, if there are more, whose letters may be unknown.
    pub(super) read_of_more: Option<usize>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    program: u128,
    name: Option<String>,
    vertical: bool,
}

struct Composite<'p> {
    name: Option<String>,
    font: Dict<'p>,
}

/// The way from a code to its text.
struct Decoder {
    encoding: CMap,
    letters: Letters,
}

enum Letters {
    /// The codes are Unicode.
    Codes,
    /// The letters of a collection, by CID.
    Collection(Rc<CMap>),
    /// The letters of the embedded font, by glyph.
    Glyphs(HashMap<u32, char>),
    /// The letters by code, as a damaged `ToUnicode` tells them.
    Told(Rc<CMap>),
    /// The letters of a font that is not embedded, by CID.
    Common(HashMap<u32, char>),
}

impl<'p> CompositeFonts<'p> {
    pub(super) fn new(pdf: &'p Pdf) -> Self {
        let (known, collections) = (HashMap::new(), Vec::new());
        Self { pdf, all: None, known, collections, read_of_more: None }
    }

    /// Returns the text of a glyph whose font does not tell it.
    pub(super) fn text(
        &mut self,
        glyph: &OutlineGlyph,
        vertical: bool,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<BfString> {
        let data = glyph.font_data()?;
        let key = Key { program: data.cache_key, name: data.postscript_name, vertical };
        let decoders = match self.known.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let found: Rc<[Decoder]> = self.find(&key, &data.data, cancelled).into();
                self.known.insert(key, Rc::clone(&found));
                found
            }
        };
        let (code, glyph) = (glyph.char_code(), glyph.glyph_id().to_u32());
        decoders.iter().find_map(|it| it.decode(code, glyph))
    }

    /// Returns the decoders of the fonts that have this name and writing mode; of several only of those
    /// that have this very program, if any has.
    fn find(&mut self, key: &Key, data: &FontData, cancelled: &dyn Fn() -> bool) -> Vec<Decoder> {
        let pdf = self.pdf;
        let more = &mut self.read_of_more;
        let all = self.all.get_or_insert_with(|| composites(pdf, more, cancelled));
        let mut found = Vec::new();
        for (count, it) in all.iter().filter(|it| it.name == key.name).enumerate() {
            if cancelled() {
                break;
            }
            if NAMESAKES_MAX <= count {
                more.get_or_insert(all.len());
                break;
            }
            let Some(encoding) = encoding(&it.font) else { continue };
            let vertical = encoding.metadata().writing_mode == Some(WritingMode::Vertical);
            if vertical == key.vertical
                && let Some(letters) = letters(&it.font, &encoding, data, &mut self.collections)
            {
                found.push((it, Decoder { encoding, letters }));
            }
        }
        let same = |it: &(&Composite<'_>, Decoder)| {
            let program = program(&it.0.font).filter(|_| !cancelled());
            let program = program.and_then(|it| it.decoded_data().ok());
            program.is_some_and(|it| it.as_ref() == (**data).as_ref())
        };
        let these: Vec<bool> =
            if 1 < found.len() { found.iter().map(same).collect() } else { Vec::new() };
        let any = these.contains(&true);
        let mut these = these.into_iter();
        found.retain(|_| these.next().is_none_or(|it| it || !any));
        found.into_iter().map(|(_, decoder)| decoder).collect()
    }
}

impl Decoder {
    fn decode(&self, code: u32, glyph: u32) -> Option<BfString> {
        match &self.letters {
            Letters::Codes => char::from_u32(code).map(BfString::Char),
            Letters::Collection(letters) => {
                let cid = (1..=4).find_map(|bytes| self.encoding.lookup_cid_code(code, bytes))?;
                letters.lookup_bf_string(cid)
            }
            Letters::Glyphs(letters) => letters.get(&glyph).copied().map(BfString::Char),
            Letters::Told(letters) => letters.lookup_bf_string(code),
            Letters::Common(letters) => {
                let cid = (1..=4).find_map(|bytes| self.encoding.lookup_cid_code(code, bytes))?;
                letters.get(&cid).copied().map(BfString::Char)
            }
        }
    }
}

/// Returns the composite fonts of a document.
fn composites<'p>(
    pdf: &'p Pdf,
    read_of_more: &mut Option<usize>,
    cancelled: &dyn Fn() -> bool,
) -> Vec<Composite<'p>> {
    let mut found = Vec::new();
    for (count, object) in pdf.objects().into_iter().enumerate() {
        if count.is_multiple_of(POLL_OBJECTS) && cancelled() {
            break;
        }
        if OBJECTS_MAX <= count || Limit::Fonts.bound() < found.len() {
            *read_of_more = Some(found.len());
            break;
        }
        let Object::Dict(font) = object else { continue };
        if font.get::<Name<'_>>(SUBTYPE).is_some_and(|it| it.as_ref() == b"Type0") {
            // As the interpreter names it: without the prefix of a subset.
            let name =
                font.get::<Name<'_>>(BASE_FONT).map(|it| match it.as_str().split_once('+') {
                    Some((prefix, rest)) if prefix.len() == 6 => rest.to_owned(),
                    _ => it.as_str().to_owned(),
                });
            found.push(Composite { name, font });
        }
    }
    found
}

fn descendant<'p>(font: &Dict<'p>) -> Option<Dict<'p>> {
    font.get::<Array<'_>>(DESCENDANT_FONTS)?.iter::<Dict<'_>>().next()
}

/// Returns the stream of an embedded font.
fn program<'p>(font: &Dict<'p>) -> Option<Stream<'p>> {
    let descriptor = descendant(font)?.get::<Dict<'_>>(FONT_DESC)?;
    [FONT_FILE2, FONT_FILE3, FONT_FILE].iter().find_map(|it| descriptor.get::<Stream<'_>>(it))
}

fn encoding(font: &Dict<'_>) -> Option<CMap> {
    match font.get::<Object<'_>>(ENCODING)? {
        Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
            CMapName::IdentityH => Some(CMap::identity_h()),
            CMapName::IdentityV => Some(CMap::identity_v()),
            name => CMap::parse(resolve(name)?, resolve),
        },
        Object::Stream(stream) => CMap::parse(&stream.decoded_data().ok()?, resolve),
        _ => None,
    }
}

fn letters(
    font: &Dict<'_>,
    encoding: &CMap,
    data: &FontData,
    collections: &mut Vec<(CidFamily, Option<Rc<CMap>>)>,
) -> Option<Letters> {
    let to_unicode = font.get::<Name<'_>>(TO_UNICODE);
    if to_unicode.is_some_and(|it| it.as_ref().starts_with(b"Identity")) {
        return Some(Letters::Codes);
    }
    if let Some(told) = font.get::<Stream<'_>>(TO_UNICODE).and_then(|it| mended(&it)) {
        return Some(Letters::Told(Rc::new(told)));
    }
    let own = encoding.metadata().character_collection.as_ref().map(|it| it.family.clone());
    let family = own.filter(|it| *it != CidFamily::AdobeIdentity).or_else(|| family(font));
    if let Some(name) = family.as_ref().and_then(CidFamily::ucs2_cmap)
        && let Some(family) = family
    {
        let known = collections.iter().find(|(it, _)| *it == family).map(|(_, it)| it.clone());
        let letters = known.unwrap_or_else(|| {
            let read = resolve(name).and_then(|it| CMap::parse(it, resolve)).map(Rc::new);
            collections.push((family, read.clone()));
            read
        });
        return letters.map(Letters::Collection);
    }
    // The interpreter may have put another font in the place of one that is not embedded.
    if program(font).is_none() {
        return common(font).map(Letters::Common);
    }
    let font = FontRef::new((**data).as_ref()).ok()?;
    let mut glyphs = HashMap::new();
    for (letter, glyph) in font.charmap().mappings().take(LETTERS_MAX) {
        // Symbol fonts have letters of private use.
        if let Some(letter) = char::from_u32(letter).filter(|it| !PRIVATE.contains(it)) {
            glyphs.entry(glyph.to_u32()).or_insert(letter);
        }
    }
    Some(Letters::Glyphs(glyphs))
}

/// Returns those sections of a damaged `ToUnicode` that can be read; the interpreter reads all or nothing.
fn mended(stream: &Stream<'_>) -> Option<CMap> {
    let data = stream.decoded_data().ok()?;
    if CMap::parse(&data, resolve).is_some() {
        return None;
    }
    let mut sections = Vec::new();
    for (begin, end) in [("beginbfchar", "endbfchar"), ("beginbfrange", "endbfrange")] {
        let mut rest = data.as_ref();
        while let Some(start) = memmem::find(rest, begin.as_bytes()) {
            rest = rest.get(start..).unwrap_or_default();
            let Some(at) = memmem::find(rest, end.as_bytes()) else { break };
            let (section, behind) = rest.split_at_checked(at + end.len()).unwrap_or_default();
            if CMap::parse(section, resolve).is_some() {
                sections.extend_from_slice(section);
                sections.push(b'\n');
            }
            rest = behind;
        }
    }
    CMap::parse(&sections, resolve).filter(|_| !sections.is_empty())
}

/// Returns the letters by glyph of a common font that is not embedded and whose CIDs are glyphs.
fn common(font: &Dict<'_>) -> Option<HashMap<u32, char>> {
    let identity = font.get::<Name<'_>>(ENCODING)?.starts_with(b"Identity-");
    let below = descendant(font).filter(|_| identity)?;
    if below.get::<Stream<'_>>(CID_TO_GID_MAP).is_some() {
        return None;
    }
    let name = below.get::<Name<'_>>(BASE_FONT)?.as_str().replace([' ', '-'], "");
    let begins = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
    let further = match name.as_str() {
        _ if begins(&["ArialBlack", "ArialUnicode"]) => "",
        _ if begins(&["Arial", "TimesNewRoman", "CourierNew"]) => FURTHER_LETTERS,
        _ if begins(&["Verdana", "Georgia", "Tahoma", "TrebuchetMS", "ComicSansMS"]) => "",
        _ => return None,
    };
    Some((3..).zip((' '..='~').chain(further.chars())).collect())
}

/// Returns the character collection of a font's descendant.
fn family(font: &Dict<'_>) -> Option<CidFamily> {
    let information = descendant(font)?.get::<Dict<'_>>(CIDSYSTEMINFO)?;
    let registry = information.get::<PdfString<'_>>(REGISTRY)?;
    let ordering = information.get::<PdfString<'_>>(ORDERING)?;
    Some(CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes()))
}

//! FITS: the cards of the first header, as attributes and text.
//!
//! Source: "Definition of the Flexible Image Transport System", version 4.0, §4 (headers) and appendix C
//! (keywords in use).

use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::text::{Body, decode};
use crate::{Draft, Input};

/// First bytes of the first card.
pub(super) const MARK: &[u8] = b"SIMPLE  =";
/// Bytes of a card.
const CARD_BYTES: usize = 80;
/// Bytes of a keyword.
const KEYWORD_BYTES: usize = 8;

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut about = Metadata::default();
    let mut body = Body::new(input.text_bytes_max());
    let mut sides = Vec::new();
    let mut is_ended = false;
    let cards = input.object.bytes.chunks_exact(CARD_BYTES);
    let is_long = Limit::Cards.bound() < cards.len();
    for card in cards.take(Limit::Cards.bound()) {
        let card = decode(card, None);
        let (keyword, rest) = card.split_at_checked(KEYWORD_BYTES).unwrap_or((&*card, ""));
        let keyword = keyword.trim_end();
        if keyword == "END" {
            is_ended = true;
            break;
        }
        let value = value(rest);
        match keyword {
            "COMMENT" | "HISTORY" | "" => body.push_squeezed_line(rest),
            _ => body.push_squeezed_line(&format!("{keyword} {}", rest.trim_start_matches("= "))),
        }
        let field = match keyword {
            "OBJECT" => Field::Title,
            "AUTHOR" | "OBSERVER" => Field::Author,
            "ORIGIN" => Field::Publisher,
            "TELESCOP" | "INSTRUME" => Field::Camera,
            "DATE-OBS" => Field::Date,
            "REFERENC" => Field::Identifier,
            "CREATOR" | "PROGRAM" => Field::Generator,
            "NAXIS1" | "NAXIS2" => {
                sides.extend(value.parse::<u64>());
                continue;
            }
            _ => continue,
        };
        about.add(field, &value);
    }
    if let [width, height] = sides.as_slice() {
        about.dimensions(*width, *height);
    }
    let mut draft = about.draft(input.text_bytes_max());
    draft.set_body(body);
    if !is_ended && is_long {
        draft.cut(Limit::Cards.cut());
    } else if !is_ended {
        super::breaks_off(input, "has a header without an end", &mut draft);
    }
    draft
}

/// Returns the value of a card: text in quotes, which are doubled within it, or all before a comment.
fn value(rest: &str) -> String {
    let rest = rest.trim_start_matches('=').trim_start();
    match rest.strip_prefix('\'') {
        Some(quoted) => {
            let quoted = quoted.replace("''", "\0");
            quoted.split('\'').next().unwrap_or_default().replace('\0', "'").trim_end().to_owned()
        }
        None => rest.split('/').next().unwrap_or_default().trim().to_owned(),
    }
}

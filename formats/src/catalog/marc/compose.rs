//! Letters and the marks above and below them as one character: what a search finds, and what people
//! type.
//!
//! Source: Unicode's canonical compositions of the letters of ASCII.
//!
//! Sans-I/O.

/// A mark, the letters that it can be put to, and what becomes of them.
const COMPOSED: &[(char, &str, &str)] = &[
    // Grave.
    ('\u{300}', "AEINOUWYaeinouwy", "ÀÈÌǸÒÙẀỲàèìǹòùẁỳ"),
    // Acute.
    ('\u{301}', "ACEGIKLMNOPRSUWYZacegiklmnoprsuwyz", "ÁĆÉǴÍḰĹḾŃÓṔŔŚÚẂÝŹáćéǵíḱĺḿńóṕŕśúẃýź"),
    // Circumflex.
    ('\u{302}', "ACEGHIJOSUWYZaceghijosuwyz", "ÂĈÊĜĤÎĴÔŜÛŴŶẐâĉêĝĥîĵôŝûŵŷẑ"),
    // Tilde.
    ('\u{303}', "AEINOUVYaeinouvy", "ÃẼĨÑÕŨṼỸãẽĩñõũṽỹ"),
    // Macron.
    ('\u{304}', "AEGIOUYaegiouy", "ĀĒḠĪŌŪȲāēḡīōūȳ"),
    // Breve.
    ('\u{306}', "AEGIOUaegiou", "ĂĔĞĬŎŬăĕğĭŏŭ"),
    // Dot above.
    (
        '\u{307}',
        "ABCDEFGHIMNOPRSTWXYZabcdefghmnoprstwxyz",
        "ȦḂĊḊĖḞĠḢİṀṄȮṖṘṠṪẆẊẎŻȧḃċḋėḟġḣṁṅȯṗṙṡṫẇẋẏż",
    ),
    // Diaeresis.
    ('\u{308}', "AEHIOUWXYaehiotuwxy", "ÄËḦÏÖÜẄẌŸäëḧïöẗüẅẍÿ"),
    // Hook above.
    ('\u{309}', "AEIOUYaeiouy", "ẢẺỈỎỦỶảẻỉỏủỷ"),
    // Ring.
    ('\u{30a}', "AUauwy", "ÅŮåůẘẙ"),
    // Double acute.
    ('\u{30b}', "OUou", "ŐŰőű"),
    // Caron.
    ('\u{30c}', "ACDEGHIKLNORSTUZacdeghijklnorstuz", "ǍČĎĚǦȞǏǨĽŇǑŘŠŤǓŽǎčďěǧȟǐǰǩľňǒřšťǔž"),
    // Dot below.
    ('\u{323}', "ABDEHIKLMNORSTUVWYZabdehiklmnorstuvwyz", "ẠḄḌẸḤỊḲḶṂṆỌṚṢṬỤṾẈỴẒạḅḍẹḥịḳḷṃṇọṛṣṭụṿẉỵẓ"),
    // Ring below.
    ('\u{325}', "Aa", "Ḁḁ"),
    // Comma below.
    ('\u{326}', "STst", "ȘȚșț"),
    // Cedilla.
    ('\u{327}', "CDEGHKLNRSTcdeghklnrst", "ÇḐȨĢḨĶĻŅŖŞŢçḑȩģḩķļņŗşţ"),
    // Ogonek.
    ('\u{328}', "AEIOUaeiou", "ĄĘĮǪŲąęįǫų"),
    // Breve below.
    ('\u{32e}', "Hh", "Ḫḫ"),
    // Macron below.
    ('\u{331}', "BDKLNRTZbdhklnrtz", "ḆḎḴḺṈṞṮẔḇḏẖḵḻṉṟṯẕ"),
];

/// Returns `text` with each letter and the mark that follows it as one character, where there is one.
pub(super) fn compose(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for it in text.chars() {
        // All marks are beyond ASCII.
        let whole = made
            .chars()
            .next_back()
            .filter(|_| !it.is_ascii())
            .and_then(|letter| whole(letter, it));
        match whole {
            Some(whole) => {
                made.pop();
                made.push(whole);
            }
            None => made.push(it),
        }
    }
    made
}

fn whole(letter: char, mark: char) -> Option<char> {
    let (_, letters, composed) = COMPOSED.iter().find(|(it, ..)| *it == mark)?;
    let at = letters.chars().position(|it| it == letter)?;
    composed.chars().nth(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many_letters_as_compositions() {
        for (mark, letters, composed) in COMPOSED {
            assert_eq!(letters.chars().count(), composed.chars().count(), "{mark:?}");
        }
        assert!(COMPOSED.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn letters_and_marks_become_one() {
        for (text, expected) in [
            ("Gru\u{308}\u{df}e", "Grüße"),
            ("Dvor\u{30c}a\u{301}k", "Dvořák"),
            ("q\u{301} \u{301}", "q\u{301} \u{301}"),
            ("schon é", "schon é"),
            ("\u{301}", "\u{301}"),
        ] {
            assert_eq!(compose(text), expected);
        }
    }
}

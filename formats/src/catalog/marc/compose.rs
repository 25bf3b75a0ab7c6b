//! Composition of letters and their marks into one character, the form that people type and search finds.
//!
//! Source: Unicode's canonical compositions of ASCII letters.

/// Marks, each with the letters that it combines with, and the composed characters.
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

/// Returns `text` with each letter and its following mark as one character, if Unicode has it.
pub(super) fn compose(text: &str) -> String {
    let mut composed = String::with_capacity(text.len());
    for it in text.chars() {
        // All marks are beyond ASCII.
        let whole = composed
            .chars()
            .next_back()
            .filter(|_| !it.is_ascii())
            .and_then(|letter| whole(letter, it));
        match whole {
            Some(whole) => {
                composed.pop();
                composed.push(whole);
            }
            None => composed.push(it),
        }
    }
    composed
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

//! Edit distance between words.
//!
//! Sans-I/O.

use crate::scripts::is_unspaced;

/// Returns how many of the `typed` edits a fuzzy word allows for: none if it is one character or of a
/// script without spaces, whose words have one or two. Nearly any of those is that near.
pub fn edits(word: &str, typed: u8) -> u8 {
    let is_short = word.chars().nth(1).is_none() || word.starts_with(is_unspaced);
    if is_short { 0 } else { typed }
}

/// Returns whether `word` is at most `edits` insertions, deletions, replacements or swaps of
/// neighbors away from `wanted`, in characters: optimal string alignment, in which no letter is
/// changed twice.
pub fn within(wanted: &[char], word: &str, edits: usize) -> bool {
    // A character has at most four bytes, so the length alone excludes most words.
    if wanted.len() + edits < word.len() / 4 || word.len() + edits < wanted.len() {
        return false;
    }
    let word: Vec<char> = word.chars().collect();
    if edits < wanted.len().abs_diff(word.len()) {
        return false;
    }
    // Rows of the usual table; only cells near the diagonal can be small enough.
    let far = edits + 1;
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=word.len()).map(|at| at.min(far)).collect();
    let mut next = vec![far; word.len() + 1];
    for (i, a) in wanted.iter().enumerate() {
        next.fill(far);
        if let Some(first) = next.first_mut() {
            *first = (i + 1).min(far);
        }
        for j in i.saturating_sub(edits)..(i + edits + 1).min(word.len()) {
            let at = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(far);
            let b = word.get(j);
            let mut best = (at(&row, j) + usize::from(Some(a) != b))
                .min(at(&row, j + 1) + 1)
                .min(at(&next, j) + 1);
            if 0 < i && 0 < j && wanted.get(i - 1) == b && word.get(j - 1) == Some(a) {
                best = best.min(at(&before, j - 1) + 1);
            }
            if let Some(cell) = next.get_mut(j + 1) {
                *cell = best.min(far);
            }
        }
        if next.iter().all(|distance| *distance == far) {
            return false;
        }
        before.clone_from(&row);
        std::mem::swap(&mut row, &mut next);
    }
    row.last().is_some_and(|distance| *distance <= edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let check = |a: &str, b: &str, edits: usize| {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            for (x, b) in [(&x, b), (&y, a)] {
                assert!(within(x, b, edits), "{a} {b}");
                assert!(edits == 0 || !within(x, b, edits - 1), "{a} {b}");
            }
        };
        check("", "", 0);
        check("", "ab", 2);
        check("harvest", "harvest", 0);
        check("harvest", "havrest", 1);
        check("harvest", "harves", 1);
        check("harvest", "arvesty", 2);
        check("日本語", "日語", 1);
        // A letter that has been swapped is not changed again.
        check("ca", "abc", 3);
        check("abcdefgh", "badcfehg", 4);
    }
}

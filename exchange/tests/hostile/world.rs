//! World of the hostile repository: generated items, its clock, and lists by pages.

use std::collections::BTreeMap;

use super::mode::Mode;

/// Items at the beginning.
pub(crate) const ITEMS: usize = 60;
/// The item that faults damage.
pub(crate) const DAMAGED: usize = 23;
/// Deleted items of [`Mode::DeletedMany`].
const TOMBSTONES: usize = 20_000;
const DAY_SECS: i64 = 86_400;

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) index: usize,
    pub(crate) identifier: String,
    pub(crate) title: String,
    pub(crate) stamp: i64,
    pub(crate) deleted: bool,
    pub(crate) set: &'static str,
}

/// The repository's items and its clock, Unix seconds.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) mode: Mode,
    pub(crate) items: Vec<Item>,
    pub(crate) clock: i64,
}

/// The content of a token: the selection of a list, and a position in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) from: Option<i64>,
    pub(crate) until: Option<i64>,
    pub(crate) set: Option<String>,
    /// Stamp and index of the last listed item.
    pub(crate) after: Option<(i64, usize)>,
    pub(crate) cursor: usize,
    pub(crate) page: usize,
    pub(crate) size: Option<usize>,
}

impl World {
    pub(crate) fn new(mode: Mode, now: i64) -> Self {
        let clock = match mode {
            Mode::ClockAhead => now + 3_600,
            Mode::ClockBehind => now - 3_600,
            _ => now,
        };
        let first = clock - 40 * DAY_SECS;
        let mut items: Vec<Item> = (0..ITEMS).map(|it| item(mode, it, first)).collect();
        if mode == Mode::DeletedMany {
            items.extend((0..TOMBSTONES).map(|it| Item {
                identifier: format!("oai:hostile.example:gone:{it}"),
                stamp: first - DAY_SECS,
                deleted: true,
                ..item(mode, ITEMS + it, first)
            }));
        }
        Self { mode, items, clock }
    }

    pub(crate) fn change(&mut self) {
        self.clock += 10;
        for index in [4, 41] {
            self.touch(index);
        }
        if let Some(item) = self.items.get_mut(50) {
            (item.deleted, item.stamp) = (true, self.clock);
        }
        let index = self.items.len();
        self.items.push(Item { stamp: self.clock, deleted: false, ..item(self.mode, index, 0) });
        self.clock += 10;
    }

    pub(crate) fn touch(&mut self, index: usize) {
        if let Some(item) = self.items.get_mut(index) {
            item.title.push_str(", second edition");
            item.stamp = self.clock;
        }
    }

    /// Returns the final titles by identifier, `None` if deleted.
    pub(crate) fn truth(&self) -> BTreeMap<String, Option<String>> {
        self.items
            .iter()
            .map(|it| (it.identifier.clone(), (!it.deleted).then(|| it.title.clone())))
            .collect()
    }

    /// Returns the items of a page in order, and the position of the next page.
    pub(crate) fn page(&self, slot: &Slot, page_size: usize) -> (Vec<Item>, Option<Slot>) {
        let chosen = self.chosen(slot);
        let size = slot.size.unwrap_or(chosen.len());
        let rest: Vec<&Item> = match slot.after {
            // Items that changed meanwhile have moved to the end.
            Some(after) if !self.by_offset() => {
                chosen.into_iter().filter(|it| after < (it.stamp, it.index)).collect()
            }
            _ => chosen.into_iter().skip(slot.cursor).collect(),
        };
        let page: Vec<Item> = rest.iter().take(page_size).map(|it| (*it).clone()).collect();
        let next = (page.len() < rest.len()).then(|| Slot {
            after: page.last().map(|it| (it.stamp, it.index)),
            cursor: slot.cursor + page.len(),
            page: slot.page + 1,
            size: Some(size),
            ..slot.clone()
        });
        (page, next)
    }

    /// Counts the items of the whole list.
    pub(crate) fn size(&self, slot: &Slot) -> usize {
        slot.size.unwrap_or_else(|| self.chosen(slot).len())
    }

    /// Returns the items of a list, in its order.
    fn chosen(&self, slot: &Slot) -> Vec<&Item> {
        let fits = |it: &&Item| {
            slot.from.is_none_or(|from| from <= it.stamp)
                && slot.until.is_none_or(|until| it.stamp <= until)
                && slot.set.as_ref().is_none_or(|set| set == it.set)
                && !(self.mode == Mode::DeletionsUnsaid && it.deleted)
        };
        let mut chosen: Vec<&Item> = self.items.iter().filter(fits).collect();
        if self.mode == Mode::Unsorted {
            // A permutation: 37 has no divisor in common with the modulus.
            chosen.sort_by_key(|it| it.index * 37 % 101);
        } else {
            chosen.sort_by_key(|it| (it.stamp, it.index));
        }
        chosen
    }

    fn by_offset(&self) -> bool {
        matches!(self.mode, Mode::Unsorted | Mode::MovesLost)
    }
}

fn item(mode: Mode, index: usize, first: i64) -> Item {
    let identifier = match mode {
        // Pairs that differ only in case.
        Mode::CaseAlone if index % 2 == 1 => format!("oai:hostile.example:REC{}", index / 2),
        Mode::CaseAlone => format!("oai:hostile.example:rec{}", index / 2),
        Mode::IdentifierOdd => format!("No. {index} of «q»/<a>&b?c#d%20"),
        _ => format!("oai:hostile.example:{index}"),
    };
    let title = match index {
        DAMAGED => format!("Item {index}: café & <co>"),
        _ => format!("Item {index}"),
    };
    Item {
        index,
        identifier,
        title,
        stamp: first + i64::try_from(index).unwrap() * 600,
        deleted: index % 10 == 7,
        set: if index % 2 == 1 { "odd" } else { "even:all" },
    }
}

impl Slot {
    /// Returns the token, without characters that are special in XML.
    pub(crate) fn token(&self) -> String {
        let number = |it: Option<i64>| it.map(|it| it.to_string()).unwrap_or_default();
        let (stamp, index) = self.after.unwrap_or_default();
        format!(
            "{}!{}!{}!{stamp}!{index}!{}!{}!{}",
            number(self.from),
            number(self.until),
            self.set.clone().unwrap_or_default(),
            self.cursor,
            self.page,
            self.size.unwrap_or_default()
        )
    }

    pub(crate) fn of_token(token: &str) -> Option<Self> {
        let parts: Vec<&str> = token.split('!').collect();
        let [from, until, set, stamp, index, cursor, page, size] = parts.try_into().ok()?;
        Some(Self {
            from: from.parse().ok(),
            until: until.parse().ok(),
            set: Some(set.to_owned()).filter(|it| !it.is_empty()),
            after: Some((stamp.parse().ok()?, index.parse().ok()?)),
            cursor: cursor.parse().ok()?,
            page: page.parse().ok()?,
            size: size.parse().ok(),
        })
    }
}

/// Returns Unix seconds in the protocol's form.
pub(crate) fn timestamp(secs: i64) -> String {
    let (days, of_day) = (secs.div_euclid(DAY_SECS), secs.rem_euclid(DAY_SECS));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Reads a day or a second in the protocol's form; a day gives its first second.
pub(crate) fn read(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let days = days(number(0..4)?, number(5..7)?, number(8..10)?);
    match text.len() {
        10 => Some(days * DAY_SECS),
        20 => {
            let of_day = number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?;
            Some(days * DAY_SECS + of_day)
        }
        _ => None,
    }
}

/// Returns the days since 1970 of a date, by counting eras of 400 years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the date of a number of days since 1970.
fn civil(since: i64) -> (i64, i64, i64) {
    let mut year = 1970 + since / 366;
    while days(year + 1, 1, 1) <= since {
        year += 1;
    }
    let month = (1..=12).rev().find(|it| days(year, *it, 1) <= since).unwrap_or(1);
    (year, month, since - days(year, month, 1) + 1)
}

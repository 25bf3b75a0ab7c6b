//! The counts of matching objects, in total and by facet value.

use std::collections::{BTreeMap, HashMap};

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::StrColumn;
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::schema::name;
use crate::answer::{FACET_VALUES_MAX, Facet};

/// A collector that counts the matching objects and, on request, their facet values.
pub(super) struct Tally {
    pub(super) facets: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) total: u64,
    /// Facet keys (`FACET NUL VALUE`), each with its number of objects.
    values: HashMap<String, u64>,
}

impl Counts {
    /// Adds the counts of other objects.
    pub(super) fn add(&mut self, more: Self) {
        self.total += more.total;
        for (key, count) in more.values {
            *self.values.entry(key).or_default() += count;
        }
    }

    /// Returns the [`FACET_VALUES_MAX`] most frequent values of each facet with their counts: the
    /// most frequent first; of years, the latest first.
    pub(super) fn into_facets(self) -> BTreeMap<String, Vec<(String, u64)>> {
        let mut facets: BTreeMap<String, Vec<(String, u64)>> =
            Facet::ALL.iter().map(|facet| (facet.name().to_owned(), Vec::new())).collect();
        for (key, count) in self.values {
            if let Some((facet, value)) = key.split_once('\0')
                && let Some(values) = facets.get_mut(facet)
            {
                values.push((value.to_owned(), count));
            }
        }
        for (facet, values) in &mut facets {
            values.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
            values.truncate(FACET_VALUES_MAX);
            if facet == Facet::Year.name() {
                values.sort_by(|(a, _), (b, _)| b.cmp(a));
            }
        }
        facets
    }
}

pub(super) struct SegmentTally {
    total: u64,
    column: Option<StrColumn>,
    /// Number of objects of each facet value, by the value's ordinal in the column's dictionary.
    counts: Vec<u64>,
}

impl Collector for Tally {
    type Fruit = Counts;
    type Child = SegmentTally;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<SegmentTally> {
        let column = if self.facets { segment.fast_fields().str(name::FACET)? } else { None };
        let terms = column.as_ref().map_or(0, |column| column.num_terms());
        Ok(SegmentTally { total: 0, column, counts: vec![0; terms] })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<tantivy::Result<Counts>>) -> tantivy::Result<Counts> {
        let mut all = Counts::default();
        for segment in segments {
            all.add(segment?);
        }
        Ok(all)
    }
}

impl SegmentCollector for SegmentTally {
    type Fruit = tantivy::Result<Counts>;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.total += 1;
        let Some(column) = &self.column else { return };
        for ord in column.term_ords(doc) {
            if let Some(count) = usize::try_from(ord).ok().and_then(|ord| self.counts.get_mut(ord))
            {
                *count += 1;
            }
        }
    }

    fn harvest(self) -> tantivy::Result<Counts> {
        let mut values = HashMap::new();
        if let Some(column) = &self.column {
            let counted = (0..).zip(&self.counts).filter(|(_, count)| **count != 0);
            let (ords, counts): (Vec<u64>, Vec<u64>) = counted.unzip();
            // Look up all ordinals in one go, since the dictionary is compressed in blocks.
            let mut counts = counts.into_iter();
            column.dictionary().sorted_ords_to_term_cb(&ords, |key| {
                let key = String::from_utf8_lossy(key).into_owned();
                values.extend(counts.next().map(|count| (key, count)));
            })?;
        }
        Ok(Counts { total: self.total, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facets_list_the_most_frequent_values_and_the_latest_years() {
        let values = (0..20).map(|n| (format!("host\0h{n:02}"), 20 - n));
        let years = [(format!("year\0{}", 2020), 5), (format!("year\0{}", 2024), 1)];
        let counts = Counts { total: 9, values: values.chain(years).collect() };
        let facets = counts.into_facets();
        assert_eq!(facets["host"].len(), FACET_VALUES_MAX);
        assert_eq!(facets["host"][0], ("h00".to_owned(), 20));
        assert_eq!(facets["year"], [("2024".to_owned(), 1), ("2020".to_owned(), 5)]);
        assert_eq!(facets["type"], []);
    }
}

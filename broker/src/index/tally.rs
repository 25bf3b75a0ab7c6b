//! The counts of matching objects, in total and by facet value.

use std::collections::{BTreeMap, HashMap};

use collection::Serials;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::document::facet_key;
use super::schema::name;
use crate::answer::{CountedView, FACET_VALUES_MAX, Facet, SearchRequest};

/// A collector that counts the matching objects and, on request, their facet values.
pub(super) struct Tally {
    facets: bool,
    /// Whether to keep which objects they are.
    serials: bool,
}

impl Tally {
    pub(super) fn new(request: &SearchRequest) -> Self {
        Self { facets: request.facets, serials: request.facets && !request.views.is_empty() }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) total: u64,
    /// Facet keys (`FACET NUL VALUE`), each with its number of objects.
    values: HashMap<String, u64>,
    /// The last changes of the objects; empty unless views are counted.
    serials: Serials,
}

impl Counts {
    /// Adds the counts of other objects.
    pub(super) fn add(&mut self, more: Self) {
        self.total += more.total;
        for (key, count) in more.values {
            *self.values.entry(key).or_default() += count;
        }
        self.serials |= more.serials;
    }

    /// Returns the [`FACET_VALUES_MAX`] most frequent values of each facet with their counts: the
    /// most frequent first; of years, the latest first.
    pub(super) fn into_facets(
        mut self,
        views: &[CountedView],
    ) -> BTreeMap<String, Vec<(String, u64)>> {
        for view in views {
            let count = view.objects.members.intersection_len(&self.serials);
            if 0 < count {
                self.values.insert(facet_key(Facet::View, &view.name), count);
            }
        }
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
    serial: Option<Column<u64>>,
    serials: Serials,
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
        let fast = segment.fast_fields();
        let column = if self.facets { fast.str(name::FACET)? } else { None };
        let serial = if self.serials { Some(fast.u64(name::SERIAL)?) } else { None };
        let terms = column.as_ref().map_or(0, |column| column.num_terms());
        let (counts, serials) = (vec![0; terms], Serials::new());
        Ok(SegmentTally { total: 0, column, serial, serials, counts })
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
        self.serials.extend(self.serial.as_ref().and_then(|it| it.first(doc)));
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
        Ok(Counts { total: self.total, values, serials: self.serials })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use collection::Subset;

    use super::*;

    #[test]
    fn facets_list_the_most_frequent_values_and_the_latest_years() {
        let values = (0..20).map(|n| (format!("host\0h{n:02}"), 20 - n));
        let years = [(format!("year\0{}", 2020), 5), (format!("year\0{}", 2024), 1)];
        let view = |name: &str, serials: &[u64]| CountedView {
            name: name.to_owned(),
            title: String::new(),
            objects: Subset {
                members: Arc::new(serials.iter().copied().collect()),
                ..Subset::default()
            },
        };
        let views = [view("a", &[3, 4]), view("b", &[1, 2, 5, 9]), view("c", &[3, 8])];
        let counts = Counts {
            total: 9,
            values: values.chain(years).collect(),
            serials: Serials::from_iter([2, 4, 9]),
        };
        let facets = counts.into_facets(&views);
        assert_eq!(facets["view"], [("b".to_owned(), 2), ("a".to_owned(), 1)]);
        assert_eq!(facets["host"].len(), FACET_VALUES_MAX);
        assert_eq!(facets["host"][0], ("h00".to_owned(), 20));
        assert_eq!(facets["year"], [("2024".to_owned(), 1), ("2020".to_owned(), 5)]);
        assert_eq!(facets["type"], []);
    }
}

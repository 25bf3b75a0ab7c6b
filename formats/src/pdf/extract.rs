//! The extractor: it chooses the best template for a document, and applies its rules.
//!
//! It implements the kinds of conditions and rules; the rules themselves are in the templates.

use super::super::{DateSource, Draft};
use super::declared::Declared;
use super::layout::{Layout, Line};
use super::template::{Condition, Number, Replace, Rule, Take, Template, Text};

/// Maximum number of values of one field.
const VALUES_MAX: usize = 50;
/// Maximum number of lines of one section, and of one block.
const SECTION_LINES_MAX: usize = 100;
/// Length of the parts of a text that are searched, at its front and at its end, in bytes.
const SEARCHED_BYTES_MAX: usize = 128 * 1024;
/// Largest difference between sizes that are taken as equal, as a share.
const SAME_SIZE_SHARE: f64 = 0.06;
/// Least size of a line that belongs to the larger one below it, as a share of that.
const NEARLY: f64 = 0.8;
/// Largest step between lines of one block, in units of their size.
const BLOCK_STEP_EM: f64 = 2.1;
/// Maximum number of smaller lines that belong to a block.
const TRAIL_LINES_MAX: usize = 3;
/// Largest distance between a subtitle and the names below it, as a share of the page's height.
const LIST_REACH: f64 = 0.15;
/// Largest step to the line that must stand below, in units of the line's size.
const BEFORE_STEP_EM: f64 = 4.0;
/// Largest step between lines of one section, in units of their size.
const SECTION_STEP_EM: f64 = 3.5;

/// A document as rules see it.
pub(super) struct Extractor<'a> {
    pub(super) layout: &'a Layout,
    /// The text of the front pages.
    pub(super) front: &'a str,
    pub(super) body: &'a str,
    pub(super) name: &'a str,
    pub(super) declared: Declared,
}

/// The values that rules found for a field, and their position.
#[derive(Clone, Debug, Default)]
struct FieldMatch {
    values: Vec<String>,
    /// The page, and the lowest position on it as a share of its height.
    bottom: Option<(usize, f64)>,
    /// Whether later rules may add values.
    more: bool,
}

impl Extractor<'_> {
    /// Adds the document's class, and the fields that its template finds.
    pub(super) fn describe(&self, templates: &[Template], draft: &mut Draft<'_>) {
        let Some(template) = self.classify(templates) else { return };
        draft.other("Document-Class", template.class());
        let mut found: Vec<(&str, FieldMatch)> = Vec::new();
        let mut rules: Vec<&Rule> = Vec::new();
        let mut next = Some(template);
        // The bound ends chains of templates that refer to each other.
        for _ in 0..templates.len() {
            let Some(template) = next else { break };
            rules.extend(&template.rules);
            let like = template.like.as_deref();
            next = like.and_then(|like| templates.iter().find(|it| it.class() == like));
        }
        for rule in &rules {
            let field = rule.name.get_ref();
            let follows =
                |it: &&&Rule| it.lead && it.take == Take::Lines && it.below.as_ref() == Some(field);
            self.apply(rule, rules.iter().find(follows).copied(), &mut found);
        }
        for (field, FieldMatch { values, .. }) in found {
            match field {
                "Title" => draft.title = values.join(" "),
                "Author" => draft.authors = values,
                "Abstract" => draft.r#abstract = values.join("\n"),
                "Description" => draft.description = values.join(" "),
                "Keywords" => draft.keywords = values.join("\n"),
                "Date" => values.iter().for_each(|it| draft.date(it, DateSource::FirstPage)),
                other => {
                    draft.others.retain(|(name, _)| !name.eq_ignore_ascii_case(other));
                    draft.other(other, values.join("\n"));
                }
            }
        }
    }

    /// Returns the template with the most evidence; of equals the first.
    fn classify<'t>(&self, templates: &'t [Template]) -> Option<&'t Template> {
        let mut best: Option<(&Template, f64)> = None;
        for template in templates {
            let holds = |it: &Condition| self.holds(it);
            let all = template.evidence.iter().filter(|it| it.when.iter().all(holds));
            let sum: f64 = all.map(|it| *it.weight.get_ref()).sum();
            if best.is_none_or(|(_, most)| most < sum) {
                best = Some((template, sum));
            }
        }
        best.map(|(template, _)| template)
    }

    fn holds(&self, condition: &Condition) -> bool {
        let (min, max) = (condition.min.unwrap_or(f64::MIN), condition.max.unwrap_or(f64::MAX));
        match (&condition.number, &condition.matches) {
            (Some(number), _) => (min..=max).contains(&self.number(*number.get_ref())),
            (None, Some(it)) => self.texts(condition.text).iter().any(|text| it.is_match(text)),
            (None, None) => false,
        }
    }

    fn number(&self, number: Number) -> f64 {
        let words = |text: &str| text.split_whitespace().count() as f64;
        match number {
            Number::Pages => self.declared.pages as f64,
            Number::Width => self.declared.width,
            Number::Aspect => self.declared.aspect,
            Number::Fields => self.declared.fields as f64,
            Number::Outline => self.declared.outline as f64,
            Number::WordsPerPage => words(self.body) / self.declared.pages.max(1) as f64,
            Number::FirstWords => {
                self.layout.lines.iter().filter(|it| it.page == 1).map(|it| words(&it.text)).sum()
            }
            Number::BodySize => self.layout.body_size,
            Number::Largest => {
                let sizes = self.layout.lines.iter().map(|it| it.size);
                sizes.fold(0.0, f64::max) / self.layout.body_size.max(1.0)
            }
        }
    }

    /// Returns a text, or its front and its end if it is long.
    fn texts(&self, text: Text) -> Vec<&str> {
        let text = match text {
            Text::Front => self.front,
            Text::Body => self.body,
            Text::DeclaredTitle => &self.declared.title,
            Text::DeclaredAuthor => &self.declared.author,
            Text::MadeBy => &self.declared.made_by,
            Text::Name => self.name,
        };
        if text.len() <= 2 * SEARCHED_BYTES_MAX {
            return vec![text];
        }
        let head = text.get(..text.floor_char_boundary(SEARCHED_BYTES_MAX));
        let tail = text.get(text.ceil_char_boundary(text.len() - SEARCHED_BYTES_MAX)..);
        [head, tail].into_iter().flatten().collect()
    }

    /// Adds what `rule` finds; `next` is the rule of the lists right below its field.
    fn apply<'t>(
        &self,
        rule: &'t Rule,
        next: Option<&Rule>,
        found: &mut Vec<(&'t str, FieldMatch)>,
    ) {
        let known = found.iter().position(|(field, _)| *field == rule.name.get_ref());
        if known.and_then(|it| found.get(it)).is_some_and(|(_, it)| !it.more) {
            return;
        }
        let mut new = match rule.take {
            Take::Match | Take::Whole => self.in_text(rule),
            _ => self.in_layout(rule, next, found),
        };
        new.values = values(rule, std::mem::take(&mut new.values));
        if rule.confirmed {
            new.values.retain(|it| self.is_on_front_pages(it));
            new.bottom = new.values.first().and_then(|it| self.position_of(it));
        }
        if new.values.is_empty() {
            return;
        }
        new.more = rule.more;
        match known.and_then(|it| found.get_mut(it)) {
            Some((_, old)) => {
                new.values.retain(|it| !old.values.contains(it));
                old.values.append(&mut new.values);
                old.values.truncate(VALUES_MAX);
            }
            None => found.push((rule.name.get_ref(), new)),
        }
    }

    /// Returns whether the front pages have the words of `value` in one sequence.
    fn is_on_front_pages(&self, value: &str) -> bool {
        let wanted = letters(value);
        !wanted.is_empty() && letters(self.front).contains(&wanted)
    }

    /// Returns the position on the first page at which `value` ends.
    fn position_of(&self, value: &str) -> Option<(usize, f64)> {
        let wanted = letters(value);
        let ends = |line: &&Line| {
            let end = letters(&line.text);
            line.page == 1 && 2 < end.len() && wanted.ends_with(&end)
        };
        self.layout.lines.iter().find(ends).map(|it| (it.page, it.top))
    }

    fn in_text(&self, rule: &Rule) -> FieldMatch {
        let mut found = FieldMatch::default();
        for text in self.texts(rule.text) {
            let Some(pattern) = rule.matches.as_ref().filter(|_| rule.take == Take::Match) else {
                found.values.push(text.to_owned());
                continue;
            };
            for captures in pattern.captures_iter(text).take(VALUES_MAX) {
                let group = captures.get(1).or_else(|| captures.get(0));
                found.values.extend(group.map(|it| it.as_str().to_owned()));
            }
        }
        found
    }

    fn in_layout(
        &self,
        rule: &Rule,
        next: Option<&Rule>,
        found: &[(&str, FieldMatch)],
    ) -> FieldMatch {
        let (pages, reach) = (rule.pages.unwrap_or(1), rule.reach.unwrap_or(f64::MAX));
        let below = match &rule.below {
            None => None,
            Some(field) => match found.iter().find(|(name, _)| name == field) {
                Some((_, FieldMatch { bottom: Some(bottom), .. })) => Some(*bottom),
                _ => return FieldMatch::default(),
            },
        };
        let start = |line: &Line| match below {
            None => true,
            Some((page, top)) => {
                page == line.page && top + 1e-6 < line.top && line.top < top + reach
                    || page + 1 == line.page && line.page <= pages
            }
        };
        let lines = self.layout.lines.iter().filter(|it| it.page <= pages && start(it));
        let label = rule.after.as_ref();
        let label = label.and_then(|it| lines.clone().find(|line| it.is_match(&line.text)));
        let follows = |line: &&Line| {
            label.is_none_or(|label| {
                let near = line.top < label.top + reach;
                line.page == label.page && label.base - 0.3 * label.size < line.base && near
            })
        };
        let lines = lines.filter(follows);
        // `until` ends a section only below its heading.
        let ends = |line: &Line| rule.until.iter().any(|end| end.is_match(&line.text));
        let lines = lines.take_while(|it| rule.take == Take::Section || !ends(it));
        let chosen: Vec<&Line> = lines.filter(|it| self.fits(rule, it)).collect();
        let lines: Vec<&Line> = match rule.take {
            Take::Largest => {
                let mut best: Vec<&Line> = Vec::new();
                for block in blocks(&chosen).into_iter().filter(|it| !is_dropped(rule, it)) {
                    let size = |block: &[&Line]| block.first().map_or(0.0, |it| it.size);
                    if size(&best) * (1.0 + SAME_SIZE_SHARE / 2.0) < size(&block) {
                        best = block;
                    }
                }
                self.with_trail(rule, next, best)
            }
            Take::First => {
                let first = blocks(&chosen).into_iter().find(|it| !is_dropped(rule, it));
                self.with_trail(rule, next, first.unwrap_or_default())
            }
            Take::Section => return self.section(rule, &chosen),
            _ => chosen,
        };
        let text = |line: &&Line| {
            if rule.superscripts { line.text.clone() } else { line.plain() }
        };
        let bottom = lines.last().map(|it| (it.page, it.top));
        let values: Vec<String> = lines.iter().map(text).collect();
        let values = if rule.take == Take::Lines { values } else { vec![joined(&values, false)] };
        FieldMatch { values, bottom, more: false }
    }

    /// Adds the smaller lines right below a block, as subtitles are, and a line of nearly its size right
    /// above. A line that `list` needs is none of them.
    fn with_trail<'l>(
        &'l self,
        rule: &Rule,
        list: Option<&Rule>,
        mut block: Vec<&'l Line>,
    ) -> Vec<&'l Line> {
        let (Some(trail), Some(first)) = (rule.trail, block.first().copied()) else { return block };
        let joins = |line: &Line, to: &Line| {
            let near = |it: &&Line| {
                let beside = it.page == line.page && (it.base - line.base).abs() < 0.3 * it.size;
                beside && it.text.contains(char::is_alphabetic)
            };
            // Names stand beside each other, too.
            let alone = self.layout.lines.iter().filter(near).count() == 1;
            let aligned = line.centered && to.centered || (line.left - to.left).abs() < first.size;
            let step = (line.base - to.base).abs();
            let close = 0.3 * line.size < step && step < trail * first.size;
            let mut not = rule.not.iter().chain(&rule.drop);
            close && alone && aligned && !not.any(|it| it.is_match(&line.text))
        };
        let own = block.len();
        while let Some(last) = block.last().filter(|_| block.len() < SECTION_LINES_MAX).copied() {
            let smaller =
                |it: &&Line| 0.7 * self.layout.body_size < it.size && it.size < first.size;
            let next = self.next_below(last).filter(smaller).filter(|it| joins(it, last));
            let Some(line) = next.filter(|it| !list.is_some_and(|list| self.needs(list, it)))
            else {
                break;
            };
            block.push(line);
        }
        // So many lines are running text.
        if own + TRAIL_LINES_MAX < block.len() {
            block.truncate(own);
        }
        let above = self.layout.lines.iter().filter(|it| it.page == first.page);
        let above = above.rev().find(|it| it.base < first.base - 0.3 * first.size);
        let similar = |it: &&Line| (NEARLY * first.size..first.size).contains(&it.size);
        if let Some(line) = above.filter(similar).filter(|it| joins(it, first)) {
            block.insert(0, line);
        }
        block
    }

    /// Returns the next line below another on its page.
    fn next_below(&self, line: &Line) -> Option<&Line> {
        let lower = |it: &&Line| it.page == line.page && line.base + 0.3 * it.size < it.base;
        self.layout.lines.iter().find(lower)
    }

    /// Returns whether `list` would take values from a line, and has no other line for them. Subtitles can
    /// look like names; but then the names stand below in another size, or at a distance.
    fn needs(&self, list: &Rule, line: &Line) -> bool {
        let takes = |it: &Line| !values(list, vec![it.plain()]).is_empty();
        let other = |it: &&Line| {
            let step = it.base - line.base;
            let apart = SAME_SIZE_SHARE * line.size < (it.size - line.size).abs()
                || BLOCK_STEP_EM * line.size < step;
            let near = it.page == line.page && it.top < line.top + LIST_REACH;
            near && 0.3 * line.size < step && apart && self.fits(list, it)
        };
        let ends = |it: &&Line| {
            it.page == line.page
                && line.base < it.base
                && list.until.iter().any(|end| end.is_match(&it.text))
        };
        let end = self.layout.lines.iter().find(ends).map_or(f64::MAX, |it| it.base);
        let mut others = self.layout.lines.iter().filter(other);
        takes(line) && !others.any(|it| it.base < end && takes(it))
    }

    fn fits(&self, rule: &Rule, line: &Line) -> bool {
        let is = |wanted: Option<bool>, it: bool| wanted.is_none_or(|wanted| wanted == it);
        let range = |it: Option<[f64; 2]>| it.map_or(f64::MIN..f64::MAX, |[from, to]| from..to);
        range(rule.top).contains(&line.top)
            && range(rule.size).contains(&(line.size / self.layout.body_size.max(1.0)))
            && is(rule.centered, line.centered)
            && is(rule.bold, line.bold)
            && is(rule.italic, line.italic)
            && rule.matches.as_ref().is_none_or(|it| it.is_match(&line.text))
            && !rule.not.iter().any(|it| it.is_match(&line.text))
            && rule.before.as_ref().is_none_or(|it| {
                let near = |next: &&Line| next.base - line.base < BEFORE_STEP_EM * line.size;
                self.next_below(line).filter(near).is_some_and(|next| it.is_match(&next.text))
            })
    }

    /// Returns the text after the first of the `headings`, in its line and below.
    fn section(&self, rule: &Rule, headings: &[&Line]) -> FieldMatch {
        let (Some(heading), Some(pattern)) = (headings.first(), &rule.matches) else {
            return FieldMatch::default();
        };
        let behind = pattern.find(&heading.text).and_then(|it| heading.text.get(it.end()..));
        let mut texts = vec![behind.unwrap_or_default().trim().to_owned()];
        let mut last: (f64, usize) = (heading.base, heading.page);
        let mut bottom = (heading.page, heading.top);
        // The edges of the section's column, as far as its lines have shown them.
        let (mut left, mut right) = (heading.left, heading.right.max(heading.left + 200.0));
        let is_below = |line: &&Line| line.page == heading.page && heading.base < line.base;
        for line in self.layout.lines.iter().filter(is_below).take(SECTION_LINES_MAX) {
            if right <= line.left || line.right <= left {
                continue;
            }
            let far = SECTION_STEP_EM * line.size < line.base - last.0;
            if far || rule.until.iter().any(|it| it.is_match(&line.text)) {
                break;
            }
            (left, right) = (left.min(line.left), right.max(line.right));
            last = (line.base, line.page);
            bottom = (line.page, line.top);
            texts.push(line.plain());
        }
        texts.retain(|it| !it.is_empty());
        FieldMatch { values: vec![joined(&texts, true)], bottom: Some(bottom), more: false }
    }
}

/// Returns the letters and digits of a text in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Joins consecutive lines of one size and weight to blocks.
fn blocks<'l>(lines: &[&'l Line]) -> Vec<Vec<&'l Line>> {
    let mut blocks: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        let block = blocks.iter_mut().rev().take(4).find(|block| {
            block.last().is_some_and(|last| {
                let step = line.base - last.base;
                line.page == last.page
                    && (line.size - last.size).abs() <= SAME_SIZE_SHARE * last.size
                    && line.bold == last.bold
                    && (0.0..BLOCK_STEP_EM * last.size).contains(&step)
                    && line.left < last.right + last.size
                    && last.left < line.right + last.size
            })
        });
        match block {
            Some(block) if block.len() < SECTION_LINES_MAX => block.push(line),
            Some(_) => {}
            None => blocks.push(vec![line]),
        }
    }
    blocks
}

/// Returns whether a block's text is none that the rule takes.
fn is_dropped(rule: &Rule, block: &[&Line]) -> bool {
    let lines: Vec<String> = block.iter().map(|it| it.text.clone()).collect();
    let text = joined(&lines, false);
    rule.drop.iter().any(|it| it.is_match(&text))
}

/// Joins lines. In running text a hyphen before a small letter is removed, in a title it stays.
fn joined(lines: &[String], running: bool) -> String {
    let mut text = String::new();
    for line in lines {
        let starts_small = line.starts_with(char::is_lowercase);
        match text.strip_suffix('-') {
            Some(word) if word.ends_with(char::is_alphabetic) => {
                if running && starts_small {
                    text.pop();
                }
            }
            _ if text.is_empty() => {}
            _ => text.push(' '),
        }
        text.push_str(line);
    }
    text
}

/// Cleans and splits the values of a rule.
fn values(rule: &Rule, raw: Vec<String>) -> Vec<String> {
    let mut values = Vec::new();
    'all: for mut text in raw {
        for Replace { find, with } in &rule.replace {
            text = find.replace_all(&text, with.as_str()).into_owned();
        }
        let pieces: Vec<&str> = match &rule.split {
            Some(split) => split.split(&text).collect(),
            None => vec![&text],
        };
        let mut first = true;
        for piece in pieces.into_iter().map(str::trim).filter(|it| !it.is_empty()) {
            if rule.last.as_ref().is_some_and(|it| it.is_match(piece)) {
                break 'all;
            }
            let kept = rule.keep.as_ref().is_none_or(|it| it.is_match(piece));
            if !kept || rule.drop.iter().any(|it| it.is_match(piece)) {
                if rule.lead && first {
                    continue 'all;
                }
                continue;
            }
            first = false;
            if values.len() < VALUES_MAX && !values.iter().any(|it| it == piece) {
                values.push(piece.to_owned());
            }
        }
    }
    values
}

//! Tests of lists: loops, gaps, windows, wrong sizes, sets.

use super::*;

#[test]
fn a_full_harvest_is_followed_by_incremental_ones() {
    for granularity in [Granularity::Day, Granularity::Second] {
        let behavior = Behavior { granularity, ..Behavior::default() };
        let (mut store, mut repository, end) = harvest_to_end(behavior, &Ok(()));
        assert_eq!((end.report.records, end.report.elements), (60, Some(60)));
        assert_eq!(end.report.warnings, [], "{granularity:?}");
        repository.now += 20 * 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, end.report.records), (Ok(()), 0), "nothing new is no failure");
        assert_eq!(end.report.requests, 2);
        for _ in 0..20 {
            repository.change();
        }
        repository.now += 2 * HOUR;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!(end.outcome, Ok(()));
        assert!((1..=20).contains(&end.report.records), "{end:?}");
        assert_eq!(store.live(), repository.live());
    }
}

#[test]
fn unchanged_records_of_the_overlap_are_dropped() {
    let behavior = Behavior { granularity: Granularity::Day, ..Behavior::default() };
    let (mut store, mut repository, _) = harvest_to_end(behavior, &Ok(()));
    repository.now += HOUR;
    repository.items.get_mut(&3).unwrap().stamp = repository.now;
    repository.items.get_mut(&4).unwrap().stamp = repository.now;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (2, 0));
    // The item changes twice on the same day.
    repository.items.get_mut(&4).unwrap().version += 1;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (1, 1));
    assert_eq!(store.live(), repository.live());
}

#[test]
fn shorter_windows_avoid_a_token_loop() {
    let (_, _, end) = harvest_to_end(Behavior { loops: true, ..Behavior::default() }, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
    assert!(end.checkpoint.run.is_none());
    // Nine records of one date defeat every window; all later ones come nevertheless.
    let mut repository =
        Repository::new(Behavior { loops: true, page: 2, ..Behavior::default() }, 60, 42);
    for (id, item) in &mut repository.items {
        let days = if *id < 9 { 0 } else { i64::try_from(*id).unwrap() };
        item.stamp = START - 90 * 86_400 + days * 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { why, .. }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert_eq!(why, Failure::TokenLoop.to_string());
    assert!((9..60).all(|it| store.items.contains_key(&it)) && store.checkpoint.reached.is_some());
    repository.behavior.loops = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn a_complete_list_ends_although_its_last_token_repeats() {
    let mut harvest = at_list(settings());
    let item = |id| Repository::new(Behavior::default(), 2, 1).record(id);
    let told = || Some(Token { complete_list_size: Some(2), ..token("a") });
    answer(&mut harvest, list_of(vec![item(0)], told(), vec![]), 0);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    answer(&mut harvest, list_of(vec![item(1)], told(), vec![]), 0);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    let report = harvest.report();
    assert_eq!(report.warnings.iter().filter(|it| it.0 == Warning::EndedByToken).count(), 1);
    assert!(!report.warnings.iter().any(|it| matches!(it.0, Warning::Restarted(_))));
}

#[test]
fn a_failing_gap_does_not_stop_later_changes() {
    let behavior = Behavior { broken_item: Some(30), ..Behavior::default() };
    let mut repository = Repository::new(behavior, 60, 42);
    let mut store = Store::default();
    run(&settings(), &mut store, &mut repository, || false).unwrap();
    let reached = store.checkpoint.reached.unwrap();
    repository.now += 7_200;
    let mut harvest = Harvest::new(settings(), store.checkpoint.clone());
    for _ in 0..50 {
        let now_ms = u64::try_from(repository.now).unwrap() * 1_000;
        match harvest.poll(now_ms) {
            Action::Ask(request) => {
                let is_gap = harvest.is_at_gap();
                let outcome = repository.answer(&request);
                let refused = Outcome::Status { status: 403, retry_after_secs: None };
                answer(&mut harvest, if is_gap { refused } else { outcome }, now_ms);
            }
            Action::Wait(pause) => repository.now += i64::try_from(pause.as_secs()).unwrap() + 1,
            Action::Take(_) => {}
            Action::Done(end) => {
                assert!(matches!(end.outcome, Err(Failure::Gaps { .. })), "{:?}", end.outcome);
                return assert!(Some(reached) < end.checkpoint.reached);
            }
        }
    }
    panic!("it has no end");
}

#[test]
fn windows_of_dates_replace_refused_tokens() {
    // Every window of more than a page fails, until windows are short enough.
    let behavior = Behavior { refuses_tokens: true, page: 20, ..Behavior::default() };
    let (_, _, end) = harvest_to_end(behavior, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn refused_tokens_of_one_date_are_a_named_gap() {
    let behavior = Behavior { refuses_tokens: true, ..Behavior::default() };
    let mut repository = Repository::new(behavior, 60, 42);
    for item in repository.items.values_mut() {
        item.stamp = START - 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { gaps, why }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert!(gaps.contains("2025-12-31") && why.contains("badResumptionToken"), "{gaps}: {why}");
    repository.behavior.refuses_tokens = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn complete_records_of_a_cut_page_are_taken() {
    let behavior = Behavior { broken_item: Some(30), ..Behavior::default() };
    let mut repository = Repository::new(behavior, 60, 42);
    let mut store = Store::default();
    for full in [true, false] {
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        let Err(Failure::Gaps { gaps, why }) = end.outcome else { panic!("{:?}", end.outcome) };
        let day = repository.stamp(repository.items[&30].stamp).to_string();
        assert!(gaps.contains(&day[..10]) && why.contains("cut"), "{gaps}: {why}");
        assert_eq!((end.report.full, end.report.gaps.join(", ")), (full, gaps));
        let mut all = repository.live();
        all.remove(&30);
        assert_eq!(store.live(), all, "all others come");
        repository.now += 7_200;
        repository.change();
    }
    repository.behavior.broken_item = None;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(end.checkpoint.gaps.is_empty() && !end.report.full);
}

#[test]
fn many_failing_windows_do_not_stop_the_others() {
    for bad in [5, 40] {
        let mut repository = Repository::new(Behavior { page: 1, ..Behavior::default() }, 60, 42);
        // Two records on each of the first days, which takes a token; one each on the others.
        repository.behavior.refuses_tokens = true;
        for (id, item) in &mut repository.items {
            let id = i64::try_from(*id).unwrap();
            item.stamp = START - 90 * 86_400 + if id < bad { id / 2 } else { id } * 86_400;
        }
        let twice: Vec<u64> = (1..u64::try_from(bad).unwrap()).step_by(2).collect();
        repository.behavior.granularity = Granularity::Day;
        let settings = Settings { window_days: 1, ..settings() };
        let mut store = Store::default();
        for _ in 0..30 {
            run(&settings, &mut store, &mut repository, || false).unwrap();
        }
        let mut all = repository.live();
        all.retain(|id, _| !twice.contains(id));
        assert!(all.keys().all(|it| store.items.contains_key(it)), "{bad}");
        assert!(!store.checkpoint.gaps.is_empty() && store.checkpoint.reached.is_some());
        repository.behavior.refuses_tokens = false;
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    }
}

#[test]
fn oddities_give_warnings_and_lose_nothing() {
    let check = |behavior: Behavior, expected: Warning| {
        let (_, _, end) = harvest_to_end(behavior, &Ok(()));
        assert!(warned(&end, &expected), "{expected:?}: {:?}", end.report.warnings);
    };
    let off = Behavior { off_secs: HOUR, ..Behavior::default() };
    check(off, Warning::ClockOff { secs: HOUR });
    let off = Behavior { off_secs: -HOUR, ..Behavior::default() };
    check(off, Warning::ClockOff { secs: -HOUR });
    let more = Behavior { size_off: 5, ..Behavior::default() };
    check(more, Warning::ListSize { announced: 0, found: 0 });
    check(Behavior { days_only: true, ..Behavior::default() }, Warning::DaysOnly);
    check(Behavior { no_dates: true, ..Behavior::default() }, Warning::NoResponseDate);
    let (_, _, end) =
        harvest_to_end(Behavior { earliest_late: true, ..Behavior::default() }, &Ok(()));
    assert_eq!(end.report.records, 60);
}

#[test]
fn sets_are_harvested_one_after_the_other() {
    let mut repository = Repository::new(Behavior::default(), 60, 42);
    let mut store = Store::default();
    let settings = Settings { sets: vec!["even".to_owned(), "no".to_owned()], ..settings() };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!(end.outcome, Ok(()));
    assert!(warned(&end, &Warning::UnknownSet(String::new())));
    let expected: Vec<u64> = (0..60).step_by(2).collect();
    assert_eq!(store.items.keys().copied().collect::<Vec<u64>>(), expected);
    // With other sets the selection is another one: everything is harvested anew.
    let settings = Settings { sets: vec!["even".to_owned()], ..settings };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.full, end.report.records), (true, 30));
    let behavior = Behavior { loses_set: true, ..Behavior::default() };
    let mut repository = Repository { behavior, ..repository };
    let settings = Settings { window_days: 0, ..settings };
    let end = run(&settings, &mut Store::default(), &mut repository, || false).unwrap();
    assert!(warned(&end, &Warning::SetLost(String::new())), "{:?}", end.report);
}

#[test]
fn a_strict_harvest_fails_without_its_set_or_format() {
    let check = |settings: Settings, expected: &str| {
        let mut repository = Repository::new(Behavior::default(), 60, 42);
        let mut store = Store::default();
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        let failure = end.outcome.err().map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(failure, expected);
        assert_eq!(store.items.is_empty(), !expected.is_empty());
    };
    let strict = || Settings { strict: true, ..settings() };
    check(strict(), "");
    check(Settings { sets: vec!["even".to_owned()], ..strict() }, "");
    let sets = vec!["even".to_owned(), "no".to_owned()];
    check(Settings { sets, ..strict() }, "it does not list the set no");
    let prefixes = vec!["marc21".to_owned()];
    let none = "it has none of the metadata formats marc21, but oai_dc";
    check(Settings { prefixes, ..strict() }, none);
}

#[test]
fn a_harvest_with_an_end_asks_for_no_later_dates() {
    for window_days in [0, 30, 3_650] {
        let mut repository = Repository::new(Behavior::default(), 60, 42);
        let until = Datestamp::at(START - 400 * 86_400, Granularity::Day);
        let settings = Settings { until: Some(until), window_days, ..settings() };
        let mut harvest = Harvest::new(settings.clone(), Checkpoint::default());
        let mut found = Vec::new();
        let end = loop {
            match harvest.poll(START_MS) {
                Action::Ask(request) => {
                    if let Request::List { scope: Scope::Selection(it), .. } = &request {
                        assert!(it.until.is_some_and(|it| it.secs() <= until.last_secs()));
                    }
                    let outcome = repository.answer(&request);
                    answer(&mut harvest, outcome, START_MS);
                }
                Action::Take(batch) => found.extend(batch.records),
                Action::Wait(_) => panic!("nothing fails"),
                Action::Done(end) => break *end,
            }
        };
        assert_eq!(end.outcome, Ok(()));
        let expected = repository.items.values().filter(|it| it.stamp <= until.last_secs());
        assert_eq!((found.len(), 60), (expected.count(), repository.items.len()));
        // The next harvest has nothing to ask for.
        let mut store = Store { checkpoint: end.checkpoint, ..Store::default() };
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, end.report.requests), (Ok(()), 1));
    }
}

#[test]
fn records_of_other_sets_are_left_out_once_a_list_forgets_its_set() {
    let behavior = Behavior { loses_set: true, ..Behavior::default() };
    let mut repository = Repository::new(behavior, 60, 42);
    let sets = vec!["even".to_owned()];
    let settings = Settings { sets, window_days: 0, requests_max: 6, ..settings() };
    let mut store = Store::default();
    // After an interruption the harvest still knows the list's set.
    let first = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert!(matches!(first.outcome, Err(Failure::OverLimit { .. })), "{:?}", first.outcome);
    let settings = Settings { requests_max: 100, ..settings };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert!(warned(&first, &Warning::SetLost(String::new())), "{:?}", first.report);
    assert!(!warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
    let expected: Vec<u64> = (0..60).step_by(2).collect();
    assert_eq!(store.items.keys().copied().collect::<Vec<u64>>(), expected);
}

#[test]
fn shorter_windows_bring_what_truncated_lists_leave_out() {
    for window_days in [0, 30, 365] {
        let behavior = Behavior { list_max: 20, deleted: Deleted::No, ..Behavior::default() };
        let mut repository = Repository::new(behavior, 60, 42);
        let settings = Settings { window_days, ..settings() };
        let mut store = Store::default();
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome.clone(), store.live()), (Ok(()), repository.live()));
        assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
        assert!(!warned(&end, &Warning::ReleaseWithheld), "nothing is missing");
        assert!(!end.checkpoint.miscounts && end.report.requests < 60, "{:?}", end.report);
    }
}

#[test]
fn wrong_sizes_cause_restarts_only_once() {
    let behavior = Behavior { size_off: 50, ..Behavior::default() };
    let mut repository = Repository::new(behavior, 60, 42);
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    let restarts = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Restarted(_)));
    assert!(restarts.is_some_and(|it| it.1 <= 12), "{:?}", end.report);
    assert!(end.checkpoint.miscounts && end.report.requests < 80, "{:?}", end.report);
    // The next harvest remembers the wrong size.
    for _ in 0..30 {
        repository.now += 86_400;
        repository.change();
    }
    repository.now += HOUR;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    assert!(warned(&end, &Warning::ListSize { announced: 0, found: 0 }), "{:?}", end.report);
    assert!(!warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn an_empty_list_proves_neither_no_change_nor_deletion() {
    let behavior = Behavior { deleted: Deleted::No, ..Behavior::default() };
    let (mut store, mut repository, _) = harvest_to_end(behavior, &Ok(()));
    let (before, reached) = (store.items.len(), store.checkpoint.reached);
    for full in [false, true] {
        let days = if full { 31 } else { 3 };
        repository.now += days * 86_400;
        repository.items.get_mut(&9).unwrap().version += 1;
        repository.items.get_mut(&9).unwrap().stamp = repository.now;
        repository.behavior.hollow = true;
        repository.now += 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert!(end.report.full == full && warned(&end, &Warning::EmptyList), "{:?}", end.report);
        let asked = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Retried(_)));
        assert!(asked.is_some_and(|it| it.1 >= 4), "{:?}", end.report);
        assert_eq!((end.outcome, store.items.len()), (Ok(()), before));
        assert_eq!(store.checkpoint.reached, reached, "as it was");
    }
    repository.behavior.hollow = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(reached < store.checkpoint.reached);
}

#[test]
fn an_empty_list_before_later_records_is_accepted() {
    let mut harvest = at_list_at(Settings { window_days: 1, ..settings() }, START_MS);
    let item = || vec![Repository::new(Behavior::default(), 1, 1).record(0)];
    let (mut now_ms, mut asked) = (START_MS, 0);
    loop {
        match harvest.poll(now_ms) {
            Action::Ask(Request::List { scope: Scope::Selection(it), .. }) => {
                asked += 1;
                let items = if it.until.is_none() { item() } else { Vec::new() };
                answer(&mut harvest, list_of(items, None, Vec::new()), now_ms);
            }
            Action::Wait(pause) => now_ms += u64::try_from(pause.as_millis()).unwrap(),
            Action::Take(_) => {}
            Action::Done(end) => {
                assert!(5 < asked && warned(&end, &Warning::EmptyList));
                assert_eq!((end.outcome, end.checkpoint.reached), (Ok(()), Some(START)));
                return;
            }
            Action::Ask(it) => panic!("{it:?}"),
        }
    }
}

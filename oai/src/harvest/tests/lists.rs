//! Lists as they come: loops, gaps, windows, sizes that are wrong, sets.

use super::*;

#[test]
fn all_comes_and_then_only_what_is_new() {
    for granularity in [Granularity::Day, Granularity::Second] {
        let nature = Nature { granularity, ..Nature::default() };
        let (mut store, mut repository, end) = ends(nature, &Ok(()));
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
fn what_the_overlap_brings_again_is_dropped_unless_it_says_something_else() {
    let nature = Nature { granularity: Granularity::Day, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    repository.now += HOUR;
    repository.items.get_mut(&3).unwrap().stamp = repository.now;
    repository.items.get_mut(&4).unwrap().stamp = repository.now;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (2, 0));
    // Twice on the same day.
    repository.items.get_mut(&4).unwrap().version += 1;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.records, end.report.duplicates), (1, 1));
    assert_eq!(store.live(), repository.live());
}

#[test]
fn a_token_that_comes_back_is_a_loop_which_shorter_windows_avoid() {
    let (_, _, end) = ends(Nature { loops: true, ..Nature::default() }, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
    assert!(!end.checkpoint.is_in_progress());
    // Of one date, no window is short enough: all behind comes nevertheless.
    let mut repository =
        Repository::new(Nature { loops: true, page: 2, ..Nature::default() }, 60, 42);
    for (id, item) in &mut repository.items {
        let days = if *id < 9 { 0 } else { i64::try_from(*id).unwrap() };
        item.stamp = START - 90 * 86_400 + days * 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { why, .. }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert_eq!(why, Failure::TokenLoop.to_string());
    assert!((9..60).all(|it| store.items.contains_key(&it)) && store.checkpoint.reached.is_some());
    repository.nature.loops = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn a_list_that_is_whole_ends_although_its_last_token_leads_back() {
    let mut harvest = at_list(settings());
    let item = |id| Repository::new(Nature::default(), 2, 1).record(id);
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
fn whatever_ails_a_gap_the_harvest_ends_behind_it() {
    let nature = Nature { broken_item: Some(30), ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
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
fn without_tokens_it_goes_by_dates() {
    // Every window of more than a page fails, until windows are short enough.
    let nature = Nature { refuses_tokens: true, page: 20, ..Nature::default() };
    let (_, _, end) = ends(nature, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn tokens_that_are_refused_for_one_date_end_it_by_name() {
    let nature = Nature { refuses_tokens: true, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    for item in repository.items.values_mut() {
        item.stamp = START - 86_400;
    }
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    let Err(Failure::Gaps { gaps, why }) = end.outcome else { panic!("{:?}", end.outcome) };
    assert!(gaps.contains("2025-12-31") && why.contains("badResumptionToken"), "{gaps}: {why}");
    repository.nature.refuses_tokens = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

#[test]
fn of_a_page_that_is_always_cut_comes_what_is_whole() {
    let nature = Nature { broken_item: Some(30), ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
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
    repository.nature.broken_item = None;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(end.checkpoint.gaps.is_empty() && !end.report.full);
}

#[test]
fn however_many_windows_cannot_be_had_all_others_come() {
    for bad in [5, 40] {
        let mut repository = Repository::new(Nature { page: 1, ..Nature::default() }, 60, 42);
        // Two records on each of the first days, which takes a token; one each on the others.
        repository.nature.refuses_tokens = true;
        for (id, item) in &mut repository.items {
            let id = i64::try_from(*id).unwrap();
            item.stamp = START - 90 * 86_400 + if id < bad { id / 2 } else { id } * 86_400;
        }
        let twice: Vec<u64> = (1..u64::try_from(bad).unwrap()).step_by(2).collect();
        repository.nature.granularity = Granularity::Day;
        let settings = Settings { window_days: 1, ..settings() };
        let mut store = Store::default();
        for _ in 0..30 {
            run(&settings, &mut store, &mut repository, || false).unwrap();
        }
        let mut all = repository.live();
        all.retain(|id, _| !twice.contains(id));
        assert!(all.keys().all(|it| store.items.contains_key(it)), "{bad}");
        assert!(!store.checkpoint.gaps.is_empty() && store.checkpoint.reached.is_some());
        repository.nature.refuses_tokens = false;
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    }
}

#[test]
fn oddities_are_named_and_lose_nothing() {
    let check = |nature: Nature, expected: Warning| {
        let (_, _, end) = ends(nature, &Ok(()));
        assert!(warned(&end, &expected), "{expected:?}: {:?}", end.report.warnings);
    };
    let off = Nature { off_secs: HOUR, ..Nature::default() };
    check(off, Warning::ClockOff { secs: HOUR });
    let off = Nature { off_secs: -HOUR, ..Nature::default() };
    check(off, Warning::ClockOff { secs: -HOUR });
    let more = Nature { size_off: 5, ..Nature::default() };
    check(more, Warning::ListSize { told: 0, found: 0 });
    check(Nature { days_only: true, ..Nature::default() }, Warning::DaysOnly);
    check(Nature { no_dates: true, ..Nature::default() }, Warning::NoResponseDate);
    let (_, _, end) = ends(Nature { earliest_late: true, ..Nature::default() }, &Ok(()));
    assert_eq!(end.report.records, 60);
}

#[test]
fn sets_are_harvested_one_after_the_other() {
    let mut repository = Repository::new(Nature::default(), 60, 42);
    let mut store = Store::default();
    let settings = Settings { sets: vec!["even".to_owned(), "no".to_owned()], ..settings() };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!(end.outcome, Ok(()));
    assert!(warned(&end, &Warning::UnknownSet(String::new())));
    let expected: Vec<u64> = (0..60).step_by(2).collect();
    assert_eq!(store.items.keys().copied().collect::<Vec<u64>>(), expected);
    // Other sets are another selection: all is harvested anew.
    let settings = Settings { sets: vec!["even".to_owned()], ..settings };
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.report.full, end.report.records), (true, 30));
    let nature = Nature { loses_set: true, ..Nature::default() };
    let mut repository = Repository { nature, ..repository };
    let settings = Settings { window_days: 0, ..settings };
    let end = run(&settings, &mut Store::default(), &mut repository, || false).unwrap();
    assert!(warned(&end, &Warning::SetLost(String::new())), "{:?}", end.report);
}

#[test]
fn records_of_other_sets_are_left_out_once_a_list_forgets_its_set() {
    let nature = Nature { loses_set: true, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let sets = vec!["even".to_owned()];
    let settings = Settings { sets, window_days: 0, requests_max: 6, ..settings() };
    let mut store = Store::default();
    // Broken off in between, it is known of which set the list was.
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
fn what_lists_leave_out_that_end_early_comes_in_shorter_windows() {
    for window_days in [0, 30, 365] {
        let nature = Nature { list_max: 20, deleted: Deleted::No, ..Nature::default() };
        let mut repository = Repository::new(nature, 60, 42);
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
fn sizes_that_are_wrong_are_asked_about_once() {
    let nature = Nature { size_off: 50, ..Nature::default() };
    let mut repository = Repository::new(nature, 60, 42);
    let mut store = Store::default();
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    let restarts = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Restarted(_)));
    assert!(restarts.is_some_and(|it| it.1 <= 12), "{:?}", end.report);
    assert!(end.checkpoint.miscounts && end.report.requests < 80, "{:?}", end.report);
    // The next harvest knows.
    for _ in 0..30 {
        repository.now += 86_400;
        repository.change();
    }
    repository.now += HOUR;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((&end.outcome, store.live()), (&Ok(()), repository.live()));
    assert!(warned(&end, &Warning::ListSize { told: 0, found: 0 }), "{:?}", end.report);
    assert!(!warned(&end, &Warning::Restarted(String::new())), "{:?}", end.report);
}

#[test]
fn an_empty_list_does_not_say_that_nothing_is_new_or_that_all_is_gone() {
    let nature = Nature { deleted: Deleted::No, ..Nature::default() };
    let (mut store, mut repository, _) = ends(nature, &Ok(()));
    let (before, reached) = (store.items.len(), store.checkpoint.reached);
    for full in [false, true] {
        let days = if full { 31 } else { 3 };
        repository.now += days * 86_400;
        repository.items.get_mut(&9).unwrap().version += 1;
        repository.items.get_mut(&9).unwrap().stamp = repository.now;
        repository.nature.hollow = true;
        repository.now += 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert!(end.report.full == full && warned(&end, &Warning::EmptyList), "{:?}", end.report);
        let asked = end.report.warnings.iter().find(|it| matches!(it.0, Warning::Retried(_)));
        assert!(asked.is_some_and(|it| it.1 >= 4), "{:?}", end.report);
        assert_eq!((end.outcome, store.items.len()), (Ok(()), before));
        assert_eq!(store.checkpoint.reached, reached, "as it was");
    }
    repository.nature.hollow = false;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
    assert!(reached < store.checkpoint.reached);
}

#[test]
fn an_empty_list_among_others_is_one_without_records() {
    let mut harvest = at_list_at(Settings { window_days: 1, ..settings() }, START_MS);
    let item = || vec![Repository::new(Nature::default(), 1, 1).record(0)];
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

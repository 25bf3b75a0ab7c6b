//! Tests of single answers: pauses, tokens, bounds, and continuation after a stop.

use super::*;

#[test]
fn requested_pauses_are_kept_up_to_a_limit() {
    let busy = |retry_after_secs| Outcome::Status { status: 503, retry_after_secs };
    let mut harvest = at_list(settings());
    answer(&mut harvest, busy(Some(30)), 0);
    assert_eq!(harvest.poll(0), Action::Wait(Duration::from_secs(30)));
    assert_eq!(harvest.poll(29_000), Action::Wait(Duration::from_secs(1)));
    assert!(matches!(harvest.poll(30_000), Action::Ask(_)));
    // Without a requested pause our own applies, longer each time.
    answer(&mut harvest, busy(None), 30_000);
    assert_eq!(harvest.poll(30_000), Action::Wait(Duration::from_secs(2)));
    answer(&mut harvest, busy(Some(0)), 40_000);
    assert_eq!(harvest.poll(40_000), Action::Wait(Duration::from_secs(4)));
    answer(&mut harvest, busy(None), 50_000);
    answer(&mut harvest, busy(None), 60_000);
    let Action::Done(end) = harvest.poll(60_000) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::Status { status: 503 }));
    let mut harvest = at_list(settings());
    answer(&mut harvest, busy(Some(601)), 0);
    let Action::Done(end) = harvest.poll(0) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::Busy { secs: 601 }));
    let mut harvest = at_list(Settings { delay_ms: 250, ..settings() });
    answer(&mut harvest, list_of(vec![], Some(token("a")), vec![]), 1_000);
    assert!(matches!(harvest.poll(1_000), Action::Take(_)));
    assert_eq!(harvest.poll(1_000), Action::Wait(Duration::from_millis(250)));
}

fn unreadable(remedy: Remedy) -> Outcome {
    Outcome::Unreadable { problem: "junk".to_owned(), remedy, whole: Vec::new() }
}

#[track_caller]
fn assert_over(harvest: &mut Harvest, requests: u64) {
    let Action::Done(end) = harvest.poll(0) else { panic!("it goes on") };
    assert_eq!(end.outcome, Err(Failure::Unreadable("junk".to_owned())));
    assert_eq!(end.report.requests, requests);
}

#[test]
fn what_can_never_succeed_is_not_repeated() {
    let mut harvest = Harvest::new(settings(), Checkpoint::default());
    answer(&mut harvest, unreadable(Remedy::None), 0);
    assert_over(&mut harvest, 1);
    // The first list has what every list will have.
    let mut harvest = at_list(settings());
    answer(&mut harvest, unreadable(Remedy::Less), 0);
    assert_over(&mut harvest, 3);
    // Once records have come, other dates may be sound, and are asked for without a pause.
    let mut harvest = at_list(settings());
    let repository = Repository::new(Behavior::default(), 1, 1);
    answer(&mut harvest, list_of(vec![repository.record(0)], Some(token("a")), vec![]), 0);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    answer(&mut harvest, unreadable(Remedy::Less), 0);
    assert!(matches!(harvest.poll(0), Action::Ask(_)));
}

#[test]
fn a_harvest_says_what_it_does() {
    let harvest = Harvest::new(settings(), Checkpoint::default());
    assert_eq!(harvest.activity(0), "asks what the repository is");
    let mut harvest = at_list(Settings { window_days: 0, ..settings() });
    assert_eq!(harvest.activity(0), "asks for part 1 of the records; 0 records so far");
    let repository = Repository::new(Behavior::default(), 1, 1);
    let next = Token { complete_list_size: Some(30), ..token("a") };
    answer(&mut harvest, list_of(vec![repository.record(0)], Some(next), vec![]), 0);
    let part = "asks for part 2 of the records, after 1 of 30 records of this list; \
                1 records so far";
    assert_eq!(harvest.activity(0), part);
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    answer(&mut harvest, Outcome::Status { status: 503, retry_after_secs: Some(9) }, 1_000);
    let again = format!("{part}; again in 8 s: it answers with status 503");
    assert_eq!(harvest.activity(2_000), again);
    assert_eq!(harvest.activity(10_000), part);
    let until = Datestamp::parse("2020-01-31");
    let harvest = at_list(Settings { until, window_days: 0, ..settings() });
    let dates = " changed until 2020-01-31T23:59:59Z";
    let expected = format!("asks for part 1 of the records{dates}; 0 records so far");
    assert_eq!(harvest.activity(0), expected);
}

#[test]
fn an_endless_list_is_ended() {
    let mut harvest = at_list(settings());
    for n in 0..100_000 {
        let repository = Repository::new(Behavior::default(), 1, 1);
        let items = if n == 0 { vec![repository.record(0)] } else { vec![] };
        answer(&mut harvest, list_of(items, Some(token(&n.to_string())), vec![]), 0);
        assert!(matches!(harvest.poll(0), Action::Take(_)));
        if let Action::Done(end) = harvest.poll(0) {
            assert_eq!(end.outcome, Err(Failure::Endless { pages: 1_000 }));
            return;
        }
    }
    panic!("it has no end");
}

#[test]
fn the_size_of_a_token_is_bounded() {
    let mut harvest = at_list(settings());
    let too_long = || list_of(vec![], Some(token(&"t".repeat(40_000))), vec![]);
    for _ in 0..100 {
        answer(&mut harvest, too_long(), 0);
        let Action::Take(batch) = harvest.poll(0) else { panic!() };
        assert!(Checkpoint::from_bytes(&batch.checkpoint.to_bytes()).is_some());
        if let Action::Done(end) = harvest.poll(0) {
            let expected = Failure::TokenSize { bytes: 40_000, bytes_max: 32_768 };
            return assert_eq!(end.outcome, Err(expected));
        }
    }
    panic!("it has no end");
}

fn broken(identifier: &str) -> Quarantined {
    Quarantined { identifier: Some(identifier.to_owned()), ..Quarantined::default() }
}

#[test]
fn a_repeated_page_is_not_counted_twice() {
    let mut harvest = at_list(settings());
    let repository = Repository::new(Behavior::default(), 3, 1);
    for next in ["a", "b", "c", ""] {
        let items = (0..3).map(|it| repository.record(it)).collect();
        let next = Token { complete_list_size: Some(4), ..token(next) };
        answer(&mut harvest, list_of(items, Some(next), vec![broken("x")]), 0);
        assert!(matches!(harvest.poll(0), Action::Take(_)));
    }
    let report = harvest.report();
    assert_eq!((report.records, report.quarantined), (3, 1));
    assert!(!report.warnings.iter().any(|(it, _)| matches!(it, Warning::ListSize { .. })));

    // Shorter windows bring the records of the first window again.
    let short = Behavior { list_max: 14, ..Behavior::default() };
    let (_, repository, end) = harvest_to_end(short, &Ok(()));
    assert!(warned(&end, &Warning::Restarted(String::new())));
    assert_eq!(end.report.records, u64::try_from(repository.items.len()).unwrap());
}

#[test]
fn unreadable_records_are_named_up_to_a_bound() {
    let mut harvest = at_list(settings());
    let broken = (0..150).map(|it| broken(&it.to_string())).collect();
    answer(&mut harvest, list_of(vec![], None, broken), 0);
    let report = harvest.report();
    assert_eq!((report.quarantined, report.quarantine.len()), (150, 100));
    assert_eq!(report.elements, Some(77));
    let Action::Take(batch) = harvest.poll(0) else { panic!() };
    assert!(!batch.release);
}

#[test]
fn totals_are_read_in_all_forms() {
    let mut harvest = at_list(settings());
    assert_eq!(harvest.report().elements, Some(5), "of the Identify response");
    let item = || Repository::new(Behavior::default(), 1, 1).record(0);
    let total = Token { total_elements: Some(8), ..token("a") };
    let outcome = list_of(vec![item()], Some(total), vec![]);
    harvest.handle(Answer { outcome, bytes: 1, elements: Some(7), list: Some(3) }, 0);
    assert_eq!(harvest.report().elements, Some(8), "of the token");
    let outcome = list_of(vec![], None, vec![]);
    harvest.poll(0);
    harvest.handle(Answer { outcome, bytes: 1, elements: Some(9), list: Some(3) }, 0);
    assert_eq!(harvest.report().elements, Some(9), "of the head");
    let short = (Warning::ListSize { announced: 3, found: 1 }, 1);
    assert!(harvest.report().warnings.contains(&short));
}

#[test]
fn a_stopped_harvest_continues_where_it_was() {
    let mut harvest = at_list(settings());
    answer(&mut harvest, list_of(vec![], Some(token("a")), vec![]), 0);
    harvest.stop(Failure::TimeUp { secs: 1 });
    assert!(matches!(harvest.poll(0), Action::Take(_)));
    let Action::Done(end) = harvest.poll(0) else { panic!() };
    assert_eq!(end.outcome, Err(Failure::TimeUp { secs: 1 }));
    let mut harvest = Harvest::new(settings(), end.checkpoint);
    let scope = Scope::Token("a".to_owned());
    let expected = Request::List { listed: Listed::Records, scope };
    assert_eq!(harvest.poll(0), Action::Ask(expected));
}

#[test]
fn a_harvest_that_reaches_a_limit_can_be_continued() {
    let requests = Settings { requests_max: 4, ..settings() };
    let records = Settings { records_max: 35, ..settings() };
    for (settings, named) in [(requests, "requests_max"), (records, "records_max")] {
        let mut repository = Repository::new(Behavior::default(), 60, 42);
        let (mut store, mut ends) = (Store::default(), 0);
        let mut harvest = || run(&settings, &mut store, &mut repository, || false).unwrap();
        while let Err(failure) = harvest().outcome {
            assert!(failure.to_string().contains(named), "{failure}");
            ends += 1;
            assert!(ends < 100);
        }
        assert!(1 <= ends);
        assert_eq!(store.live(), repository.live());
    }
}

#[test]
fn the_record_limit_of_a_list_spans_several_harvests() {
    let mut repository = Repository::new(Behavior::default(), 60, 42);
    let mut store = Store::default();
    let mut settings = Settings { records_max: 10, window_days: 0, ..settings() };
    for _ in 0..10 {
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert!(matches!(end.outcome, Err(Failure::OverLimit { .. })), "{:?}", end.outcome);
        assert!(store.items.len() < 20 && end.checkpoint.run.is_some());
    }
    settings.records_max = 100;
    let end = run(&settings, &mut store, &mut repository, || false).unwrap();
    assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()));
}

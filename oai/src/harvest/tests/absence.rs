//! Tests of absence: misleading dates and errors, unannounced deletions, killed harvests.

use super::*;

#[test]
fn a_looping_list_is_noticed_despite_interruptions() {
    for length in [1, 2, 7, 50] {
        let repository = Repository::new(Behavior::default(), 60, 1);
        let mut harvest = at_list(settings());
        let mut pages = 0;
        loop {
            let next = token(&(pages % length).to_string());
            let item = repository.record(pages % length);
            answer(&mut harvest, list_of(vec![item], Some(next), vec![]), 0);
            pages += 1;
            if harvest.report().warnings.iter().any(|it| matches!(it.0, Warning::Restarted(_))) {
                break;
            }
            let Action::Take(batch) = harvest.poll(0) else { panic!() };
            if pages % 3 == 0 {
                let stored = Checkpoint::from_bytes(&batch.checkpoint.to_bytes()).unwrap();
                harvest = Harvest::new(settings(), stored);
            }
            assert!(pages < 4 * length + 8, "{length}");
        }
    }
}

#[test]
fn datestamps_in_local_time_lose_nothing_east_or_west() {
    for hours in [-11, -5, 5, 14] {
        let behavior = Behavior { stamps_off_secs: hours * HOUR, ..Behavior::default() };
        let mut repository = Repository::new(behavior, 60, 42);
        let (settings, mut store) = (Settings::new("http://h/oai"), Store::default());
        for _ in 0..20 {
            run(&settings, &mut store, &mut repository, || false).unwrap();
            repository.now += 2 * HOUR;
            repository.change();
            repository.now += 60;
        }
        let end = run(&settings, &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()), "{hours} h");
    }
}

#[test]
fn a_list_that_ends_with_an_error_is_begun_again_only_if_much_is_missing() {
    let repository = Repository::new(Behavior::default(), 200, 1);
    for (told, is_short) in
        [(None, false), (Some(199), false), (Some(200), false), (Some(300), true)]
    {
        let mut harvest = at_list_at(Settings { window_days: 0, ..settings() }, START_MS);
        let items = (0..199).map(|it| repository.record(it)).collect();
        let next = Token { complete_list_size: told, ..token("a") };
        answer(&mut harvest, list_of(items, Some(next), vec![]), START_MS);
        assert!(matches!(harvest.poll(START_MS), Action::Take(_)));
        let none = Body::Faults(vec![Fault::new(Code::NoRecordsMatch, "")]);
        answer(&mut harvest, repository.response(none), START_MS);
        let has = |kind: &str| {
            harvest.report().warnings.iter().any(|it| format!("{:?}", it.0).starts_with(kind))
        };
        assert!(has("EndedByError") && has("Restarted") == is_short, "{told:?}");
        assert_eq!(has("ListSize"), told == Some(200));
        // One of 200 is within the error of an estimate: absent records are released nevertheless.
        let Action::Take(batch) = harvest.poll(START_MS) else { panic!() };
        assert_eq!((batch.last, batch.release), (!is_short, !is_short), "{told:?}");
    }
}

#[test]
fn a_full_harvest_finds_unannounced_deletions() {
    let behavior = Behavior { deleted: Deleted::No, ..Behavior::default() };
    let (mut store, mut repository, _) = harvest_to_end(behavior, &Ok(()));
    repository.items.retain(|id, _| id % 3 != 0);
    repository.now += 29 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(!end.report.full && store.items.len() == 60);
    repository.now += 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full);
    assert_eq!((end.report.elements, store.live()), (Some(40), repository.live()));
}

#[test]
fn a_full_harvest_finds_forgotten_deletions() {
    let behavior = Behavior { deleted: Deleted::Transient, ..Behavior::default() };
    let (mut store, mut repository, _) = harvest_to_end(behavior, &Ok(()));
    // Frequent harvests learn of all deletions.
    for _ in 0..3 {
        repository.now += 29 * 86_400;
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert!(!end.report.full && !warned(&end, &Warning::DeletionsLate));
    }
    repository.items.retain(|id, _| id % 3 != 0);
    repository.now += 31 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && warned(&end, &Warning::DeletionsLate));
    assert_eq!((store.items.len(), store.live()), (40, repository.live()));
}

#[test]
fn a_set_that_is_not_listed_any_more_loses_nothing() {
    let mut repository = Repository::new(Behavior::default(), 60, 42);
    let mut store = Store::default();
    let sets = |it: &str| Settings { sets: vec![it.to_owned()], ..settings() };
    let end = run(&sets("no"), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && warned(&end, &Warning::UnknownSet(String::new())));
    assert!(warned(&end, &Warning::ReleaseWithheld));
    let end = run(&sets("even"), &mut store, &mut repository, || false).unwrap();
    assert!(end.report.full && !warned(&end, &Warning::ReleaseWithheld));
}

#[test]
fn setting_the_clock_back_prolongs_no_pause() {
    let mut harvest = at_list(settings());
    let busy = Outcome::Status { status: 503, retry_after_secs: Some(30) };
    answer(&mut harvest, busy, 86_400_000);
    assert_eq!(harvest.poll(0), Action::Wait(Duration::from_secs(600)));
    assert!(matches!(harvest.poll(600_000), Action::Ask(_)));
}

#[test]
fn a_repository_without_a_list_of_formats_is_harvested() {
    let mut repository = Repository::new(Behavior::default(), 60, 42);
    let mut harvest = Harvest::new(settings(), Checkpoint::default());
    let identified = repository.answer(&Request::Identify);
    answer(&mut harvest, identified, 0);
    let refused = Outcome::Status { status: 404, retry_after_secs: None };
    answer(&mut harvest, refused, 0);
    assert!(matches!(harvest.poll(0), Action::Ask(Request::List { .. })));
}

#[test]
fn absent_records_are_kept_if_some_may_be_missing() {
    let behavior = Behavior { deleted: Deleted::No, ..Behavior::default() };
    let (mut store, mut repository, _) = harvest_to_end(behavior, &Ok(()));
    repository.items.remove(&7);
    repository.behavior.size_off = 1;
    repository.now += 31 * 86_400;
    let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
    assert!(warned(&end, &Warning::ReleaseWithheld));
    assert!(end.report.full && store.items.contains_key(&7));
}

#[test]
fn a_harvest_that_is_killed_before_any_step_goes_on() {
    let behavior = Behavior { page: 5, ..Behavior::default() };
    let whole = Repository::new(behavior, 60, 42);
    let steps = {
        let mut steps = 0;
        let (mut store, mut repository) = (Store::default(), whole.clone());
        let counted = || {
            steps += 1;
            false
        };
        run(&settings(), &mut store, &mut repository, counted).unwrap();
        steps
    };
    for at in 0..steps {
        let (mut store, mut repository) = (Store::default(), whole.clone());
        let mut left = at;
        let kill = || {
            left -= 1;
            left < 0
        };
        assert!(run(&settings(), &mut store, &mut repository, kill).is_none());
        let end = run(&settings(), &mut store, &mut repository, || false).unwrap();
        assert_eq!((end.outcome, store.live()), (Ok(()), repository.live()), "killed at {at}");
    }
}

fn behaviors() -> impl Strategy<Value = Behavior> {
    let numbers = (1..30_usize, 0..12_u64, 0..6_u64, 0..800_u64, -4..=4_i64);
    (numbers, any::<[bool; 6]>(), prop::sample::select(vec![0, 4, 8])).prop_map(
        |((page, faults, changes, delay_secs, off), flags, least)| Behavior {
            granularity: if flags[0] { Granularity::Day } else { Granularity::Second },
            deleted: if flags[1] { Deleted::No } else { Deleted::Persistent },
            off_secs: off * HOUR,
            page,
            fault_every: if faults == 0 { 0 } else { faults + least },
            change_every: changes,
            delay_secs,
            tells_size: flags[2],
            days_only: flags[3],
            earliest_late: flags[4],
            no_dates: flags[5] && changes % 2 == 0,
            ..Behavior::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Repositories may change and fail, and harvests may be killed. Checks that once there are no
    /// more changes and faults, a successful harvest leaves nothing out.
    #[test]
    fn nothing_is_lost(behavior in behaviors(), count in 0..80_u64, seed in any::<u64>(),
                       kill_every in 0..40_u64, window_days in prop::sample::select(vec![0, 1, 30, 365])) {
        let mut repository = Repository::new(behavior, count, seed);
        let settings = Settings { window_days, ..settings() };
        let mut store = Store::default();
        let mut dice = Dice(seed.rotate_left(17) | 1);
        for round in 0..12 {
            if round == 8 {
                // No more changes or faults from now on.
                repository.behavior.change_every = 0;
                repository.behavior.fault_every = 0;
                repository.now += HOUR;
            }
            let kill_every = if round < 8 { kill_every } else { 0 };
            let end = run(&settings, &mut store, &mut repository, || dice.once_in(kill_every));
            prop_assert!(round < 8 || end.is_some_and(|it| it.outcome.is_ok()));
            repository.now += i64::try_from(dice.roll(3 * 86_400)).unwrap();
            for _ in 0..dice.roll(5) {
                if round < 7 {
                    repository.change();
                }
            }
        }
        if repository.behavior.deleted == Deleted::No {
            repository.now += 31 * 86_400;
            let end = run(&settings, &mut store, &mut repository, || false);
            prop_assert!(end.is_some_and(|it| it.outcome.is_ok() && it.report.full));
        }
        prop_assert_eq!(store.live(), repository.live());
    }
}

//! Tests of unreadable records: remembered, asked for again, and recovered.

use super::*;

/// Returns the end of a harvest of 60 records, of which these could not be read.
fn harvested(broken: &[u64]) -> (Store, Repository, End) {
    let mut repository = Repository::new(Behavior::default(), 60, 42);
    let mut store = Store::default();
    let end = harvest(&mut store, &mut repository, broken, broken);
    (store, repository, end)
}

/// Harvests. Lists have `broken` as unreadable records, and GetRecord has `alone`.
fn harvest(store: &mut Store, repository: &mut Repository, broken: &[u64], alone: &[u64]) -> End {
    let mut harvest = Harvest::new(settings(), store.checkpoint.clone());
    let is_in =
        |all: &[u64], identifier: &str| all.iter().any(|it| identifier == format!("oai:x:{it}"));
    loop {
        let now_ms = u64::try_from(repository.now).unwrap() * 1_000;
        match harvest.poll(now_ms) {
            Action::Ask(Request::Get { identifier, .. }) if is_in(alone, &identifier) => {
                let (problem, remedy) = ("&".to_owned(), Remedy::AgainOrLess);
                let outcome = Outcome::Unreadable { problem, remedy, whole: Vec::new() };
                answer(&mut harvest, outcome, now_ms);
            }
            Action::Ask(request) => {
                let mut outcome = repository.answer(&request);
                if let Outcome::Response { response, .. } = &mut outcome
                    && let Body::Records(page) = &mut response.body
                {
                    let all = std::mem::take(&mut page.items);
                    let (bad, good) = all
                        .into_iter()
                        .partition::<Vec<_>, _>(|it| is_in(broken, &it.header.identifier));
                    page.items = good;
                    page.quarantined = bad
                        .into_iter()
                        .map(|it| Quarantined {
                            identifier: Some(it.header.identifier),
                            offset: 9,
                            problem: "an ampersand".to_owned(),
                        })
                        .collect();
                }
                answer(&mut harvest, outcome, now_ms);
            }
            Action::Wait(_) => panic!("nothing has to wait"),
            Action::Take(batch) => store.take(*batch),
            Action::Done(end) => {
                store.checkpoint = Checkpoint::from_bytes(&end.checkpoint.to_bytes()).unwrap();
                return *end;
            }
        }
    }
}

fn named(end: &End) -> Vec<&str> {
    end.report.quarantine.iter().filter_map(|it| it.identifier.as_deref()).collect()
}

#[test]
fn unreadable_records_stay_in_the_report_until_they_have_come() {
    let (mut store, mut repository, end) = harvested(&[3, 4]);
    assert_eq!((end.report.quarantined, store.items.len()), (2, 58));
    // Still unreadable: nothing new comes, and they are named again.
    let end = harvest(&mut store, &mut repository, &[], &[3, 4]);
    let mut still = named(&end);
    still.sort_unstable();
    assert_eq!((still, end.report.quarantined), (vec!["oai:x:3", "oai:x:4"], 2));
    // One is repaired without a new datestamp, and one is gone.
    repository.items.remove(&4);
    let end = harvest(&mut store, &mut repository, &[], &[]);
    assert_eq!((named(&end), end.report.quarantined), (vec![], 0));
    let mut recovered = end.report.recovered.clone();
    recovered.sort_unstable();
    assert_eq!(recovered, ["oai:x:3", "oai:x:4"]);
    assert_eq!((store.live(), end.report.records), (repository.live(), 1));
    let end = harvest(&mut store, &mut repository, &[], &[]);
    assert!(end.report.recovered.is_empty());
}

#[test]
fn a_list_that_brings_an_unreadable_record_recovers_it() {
    let (mut store, mut repository, _) = harvested(&[3]);
    let (stamp, version) = (repository.now, 7);
    repository.items.insert(3, Item { stamp, visible: stamp, deleted: false, version });
    let end = harvest(&mut store, &mut repository, &[], &[3]);
    assert!(named(&end).is_empty());
    assert_eq!(end.report.recovered, ["oai:x:3"]);
    assert_eq!(store.live(), repository.live());
}

#[test]
fn a_harvest_asks_for_few_unreadable_records_and_for_all_in_turn() {
    let all: Vec<u64> = (0..25).collect();
    let (mut store, mut repository, end) = harvested(&all);
    assert_eq!(end.report.quarantined, 25);
    for left in [15, 5, 0] {
        let end = harvest(&mut store, &mut repository, &all, &[]);
        assert_eq!(end.report.quarantined, left);
    }
    assert_eq!(store.live(), repository.live());
    // Those that stay unreadable do not keep others from their turn.
    let (mut store, mut repository, _) = harvested(&all);
    for _ in 0..3 {
        harvest(&mut store, &mut repository, &all, &all[..20]);
    }
    assert_eq!(store.checkpoint.unread.len(), 20);
    // A full harvest begins anew.
    store.checkpoint.forget_progress();
    let end = harvest(&mut store, &mut repository, &[2], &[]);
    assert_eq!((end.report.full, named(&end)), (true, vec!["oai:x:2"]));
}

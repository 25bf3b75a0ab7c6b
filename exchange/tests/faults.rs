//! Tests of the harvester against a repository with all faults known from the field.
//!
//! In every mode the harvest ends with all readable records, or with a failure that names the
//! problem, and a checkpoint from which it continues after the repository is healed. Nothing is
//! lost silently, and nothing hangs. The healed repository is harvested again, and once more after
//! changes: a harvester that continues from a wrong date loses something there.
//!
//! Requests and answers go over real sockets; the test's own clock skips the harvester's pauses.
//! `cargo test -p exchange --test faults -- --nocapture` prints the outcome of each mode.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "the outcome of each mode is of interest")]

mod hostile;

use std::collections::BTreeMap;
use std::time::Duration;

use collection::{Collection, Oid, Options, Stamp};
use exchange::harvester::{Access, Bounds, Repository, Running, Step, Target};
use hostile::{Expected, Mode, Server};
use net::client::{Client, Settings as ClientSettings, Timeouts};
use net::clock;
use net::shutdown::Shutdown;
use oai::crosswalk::{SourceIdentity, object_name, to_soif};
use oai::harvest::{Action, Batch, Checkpoint, End, Failure, Harvest, Settings};
use oai::response::Header;
use tokio::time::timeout;
use url::Url;

/// Our clock at the beginning, in Unix seconds: in 2026.
const START_SECS: i64 = 1_790_000_000;
/// Maximum number of requests of one harvest of 60 records.
const REQUESTS_MAX: u64 = 400;
/// A harvest that takes longer is taken to hang; pauses are skipped.
const PATIENCE: Duration = Duration::from_secs(300);
const PAGE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of bytes sent of endless answers, with those in socket buffers.
const STREAMED_BYTES_MAX: u64 = 256 << 20;

/// The store of a consumer.
#[derive(Debug, Default)]
struct Store {
    /// Title, `None` if deleted, and the number of the full harvest that brought it.
    items: BTreeMap<String, (Option<String>, u64)>,
    checkpoint: Checkpoint,
    /// Problems of records that came nevertheless.
    problems: Vec<String>,
}

impl Store {
    fn take(&mut self, batch: Batch, source: &SourceIdentity) {
        for record in &batch.records {
            let title = if record.header.deleted {
                None
            } else {
                let (soif, problems) = to_soif(record, "oai_dc", source, false);
                self.problems.extend(problems.iter().map(ToString::to_string));
                Some(soif.text("Title").unwrap_or_default().into_owned())
            };
            self.items.insert(record.header.identifier.clone(), (title, batch.generation));
        }
        if batch.release {
            self.items.retain(|_, (_, generation)| batch.generation <= *generation);
        }
        // Keep the checkpoint in its stored form, as a commit does.
        self.checkpoint = Checkpoint::from_bytes(&batch.checkpoint.to_bytes()).unwrap();
    }

    /// Returns the wrong items: identifier and difference.
    fn differences(&self, truth: &BTreeMap<String, Option<String>>) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (identifier, title) in truth {
            let has = self.items.get(identifier).and_then(|(title, _)| title.as_ref());
            if has != title.as_ref() {
                found.push((identifier.clone(), format!("{has:?}, not {title:?}")));
            }
        }
        let unknown = self.items.keys().filter(|it| !truth.contains_key(*it));
        found.extend(unknown.map(|it| (it.clone(), "made up".to_owned())));
        found
    }
}

/// Makes one harvest; our clock advances with the requests, and skips the pauses.
async fn harvest(server: &Server, mode: Mode, store: &mut Store, now_ms: &mut u64) -> End {
    let mut settings = Settings::new(server.base_url());
    settings.requests_max = REQUESTS_MAX;
    if mode == Mode::SetLost {
        settings.sets = vec!["odd".to_owned()];
    }
    let time_max = match mode {
        // Each request of these modes takes the whole time limit.
        Mode::Silent | Mode::HeadDrips | Mode::BodyDrips if !server.is_healed() => 40,
        _ => 20_000,
    };
    let time_max = Duration::from_millis(time_max);
    let timeouts = Timeouts { header: time_max / 4, ..Timeouts::default() };
    let client = Client::new(ClientSettings { timeouts, ..ClientSettings::default() });
    let access = Access {
        allow_private: true,
        page_bytes_max: PAGE_BYTES_MAX,
        time_max,
        ..Access::default()
    };
    let base = Url::parse(server.base_url()).unwrap();
    let repository = Repository::new(client, base, access);
    let source = SourceIdentity::new(server.base_url());
    let mut harvest = Harvest::new(settings, store.checkpoint.clone());
    loop {
        match harvest.poll(*now_ms) {
            Action::Ask(request) => {
                let answer = repository.answer(&request).await;
                *now_ms += 1_000;
                harvest.handle(answer, *now_ms);
            }
            Action::Wait(pause) => *now_ms += u64::try_from(pause.as_millis()).unwrap().max(1),
            Action::Take(batch) => store.take(*batch, &source),
            Action::Done(end) => {
                store.checkpoint = Checkpoint::from_bytes(&end.checkpoint.to_bytes()).unwrap();
                return *end;
            }
        }
    }
}

/// Returns whether an item is not in the set `odd`, which [`Mode::SetLost`] harvests.
fn is_of_other_set(identifier: &str) -> bool {
    let number = identifier.rsplit(':').next().and_then(|it| it.parse::<usize>().ok());
    number.is_some_and(|it| it % 2 == 0)
}

/// Returns whether an item may differ in this mode.
fn is_excused(mode: Mode, server: &Server, identifier: &str, changed: bool) -> bool {
    let number = identifier.rsplit(':').next().and_then(|it| it.parse::<usize>().ok());
    match mode {
        // The other half of the records is not in the set.
        Mode::SetLost => is_of_other_set(identifier),
        // Deletions are not announced, and items deleted at the beginning are never listed.
        Mode::DeletionsUnsaid => changed && number == Some(50),
        _ => is_damaging(mode) && identifier == server.damaged(),
    }
}

fn is_damaging(mode: Mode) -> bool {
    matches!(mode.expected(), Expected::Damaged | Expected::DamagedOrFails)
}

/// Checks a mode; returns its outcome in a line, or the mistakes.
async fn check(mode: Mode) -> Result<String, String> {
    let server = Server::start(mode, START_SECS).await;
    let mut now_ms = u64::try_from(START_SECS).unwrap() * 1_000;
    let mut store = Store::default();
    let end = harvest(&server, mode, &mut store, &mut now_ms).await;
    let report = &end.report;
    let warned =
        !report.warnings.is_empty() || 0 < report.quarantined || !store.problems.is_empty();
    let missing: Vec<_> = store
        .differences(&server.truth())
        .into_iter()
        .filter(|(identifier, _)| !is_excused(mode, &server, identifier, false))
        .collect();
    let left_out = matches!(end.outcome, Err(Failure::Gaps { .. }));
    let failure = end.outcome.err().map(|it| it.to_string());
    let sound = match (mode.expected(), &failure) {
        (Expected::Whole | Expected::Damaged, Some(_)) => false,
        (Expected::Fails, None) => false,
        (Expected::Warned, it) => it.is_none() && warned,
        (Expected::Any, None) => missing.is_empty() || warned,
        (_, Some(failure)) => !failure.is_empty(),
        (_, None) => missing.is_empty(),
    };
    let outcome = match &failure {
        Some(failure) => format!("fails: {failure}"),
        None if missing.is_empty() && warned => "whole, with warnings".to_owned(),
        None if missing.is_empty() => "whole".to_owned(),
        None => "short, with warnings".to_owned(),
    };
    let summary =
        format!("{mode:?} ({}): {outcome}; {report:#?}\n{:?}", mode.text(), store.problems);
    if !sound {
        return Err(format!("{summary}\nmissing: {missing:?}\n{:#?}", server.asked()));
    }
    // All records come but those with the same datestamp as the record that breaks every page. If
    // the fault makes the harvester request whole days, those of the same day are missing.
    let by_days = matches!(mode, Mode::ErrorUnknown | Mode::ErrorUncoded);
    let damaged = server.damaged();
    if left_out && !by_days && missing.iter().any(|(identifier, _)| *identifier != damaged) {
        return Err(format!("{summary}\nmore is left out than need be: {missing:?}"));
    }
    // A damaged record that did not come is named.
    let came = store.items.get(&server.damaged()).is_some_and(|(title, _)| title.is_some());
    if failure.is_none() && is_damaging(mode) && !came && !warned {
        return Err(format!("{summary}\nthe damaged record is lost without a word"));
    }
    // Nothing is made up or incomplete, even after a failure.
    let truth = server.truth();
    let half = |(identifier, (title, _)): (&String, &(Option<String>, u64))| {
        title.is_some()
            && truth.get(identifier).map(Option::as_ref) != Some(title.as_ref())
            && !is_excused(mode, &server, identifier, false)
    };
    if let Some(wrong) = store.items.iter().find(|it| half(*it)) {
        return Err(format!("{summary}\nwrong: {wrong:?}"));
    }
    if STREAMED_BYTES_MAX < server.streamed() {
        return Err(format!("{summary}\nread {} bytes", server.streamed()));
    }
    if server.asked().iter().any(|it| it.contains("leak")) {
        return Err(format!("{summary}\nfetched an entity"));
    }
    let requests = report.requests;
    let lost = if failure.is_none() { missing } else { Vec::new() };
    let again = check_again(&server, mode, &mut store, &mut now_ms, failure.is_some(), &lost).await;
    again.map_err(|error| format!("{summary}\n{error}"))?;
    if mode == Mode::SetLost && store.items.keys().any(|it| is_of_other_set(it)) {
        return Err(format!("{summary}\nrecords of other sets are stored: {:?}", store.items));
    }
    Ok(format!("{:<22} {:<70} {requests:>4}  {outcome}", format!("{mode:?}"), mode.text()))
}

/// Harvests the healed repository, and then its changes.
async fn check_again(
    server: &Server,
    mode: Mode,
    store: &mut Store,
    now_ms: &mut u64,
    failed: bool,
    lost: &[(String, String)],
) -> Result<(), String> {
    let steps: &[&str] = if failed { &["healed", "changed"] } else { &["changed"] };
    for step in steps {
        match *step {
            "healed" => server.heal(),
            _ => server.change(),
        }
        *now_ms += 20_000;
        let before = server.asked().len();
        let mut end = harvest(server, mode, store, now_ms).await;
        if end.outcome.is_err() && matches!(mode.expected(), Expected::WholeOrFails) {
            // Shorter windows avoided the fault before, but the new records come in one window.
            server.heal();
            *now_ms += 20_000;
            end = harvest(server, mode, store, now_ms).await;
        }
        let asked = || server.asked().split_off(before);
        if let Err(failure) = &end.outcome {
            return Err(format!("once {step}: {failure}\n{:#?}", asked()));
        }
        let missing: Vec<_> = store
            .differences(&server.truth())
            .into_iter()
            .filter(|(identifier, _)| !is_excused(mode, server, identifier, *step == "changed"))
            .filter(|it| !lost.iter().any(|(lost, _)| *lost == it.0))
            .collect();
        if !missing.is_empty() {
            return Err(format!("once {step}, missing: {missing:?}\n{:#?}", asked()));
        }
    }
    Ok(())
}

/// Checks every mode whose index has this remainder.
async fn check_all(remainder: usize) {
    let mut table = Vec::new();
    let mut wrong = Vec::new();
    for mode in Mode::ALL.iter().copied().skip(remainder).step_by(PARTS) {
        match timeout(PATIENCE, check(mode)).await {
            Ok(Ok(line)) => table.push(line),
            Ok(Err(error)) => wrong.push(error),
            Err(_) => wrong.push(format!("{mode:?} hangs")),
        }
    }
    println!("{}", table.join("\n"));
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        table.len() + wrong.len(),
        wrong.join("\n\n")
    );
}

/// Number of tests that share the modes.
const PARTS: usize = 4;

#[tokio::test]
async fn every_fault_is_survived_or_named_1() {
    check_all(0).await;
}

#[tokio::test]
async fn every_fault_is_survived_or_named_2() {
    check_all(1).await;
}

#[tokio::test]
async fn every_fault_is_survived_or_named_3() {
    check_all(2).await;
}

#[tokio::test]
async fn every_fault_is_survived_or_named_4() {
    check_all(3).await;
}

/// Faults of all layers without pauses, for harvests into a collection with the daemon's clock.
const INTO_A_COLLECTION: [Mode; 17] = [
    Mode::Honest,
    Mode::TokenRefusedOnce,
    Mode::TokenOdd,
    Mode::TokenLong,
    Mode::Gzip,
    Mode::Utf16,
    Mode::InvalidUtf8,
    Mode::HtmlEntities,
    Mode::Prefixed,
    Mode::DayOnly,
    Mode::StampEmpty,
    Mode::ClockBehind,
    Mode::DeletedWithMetadata,
    Mode::MetadataMissing,
    Mode::MovesKept,
    Mode::CaseAlone,
    Mode::IdentifierOdd,
];

/// Harvests into a collection, from its checkpoint.
async fn pull(server: &Server, collection: &Collection) {
    let base = Url::parse(server.base_url()).unwrap();
    let identity = SourceIdentity::new(server.base_url());
    let mut target = Target::new(collection.clone(), "hostile".to_owned(), identity);
    let access = Access { allow_private: true, ..Access::default() };
    let repository = Repository::new(Client::new(ClientSettings::default()), base, access);
    let settings = Settings::new(server.base_url());
    let checkpoint = target.checkpoint().await.unwrap();
    let (bounds, shutdown) = (Bounds::default(), Shutdown::new());
    let mut running = Running::new(repository, settings, checkpoint, bounds, shutdown);
    loop {
        match running.next().await {
            Step::Batch(batch) => {
                let prefix = running.prefix().to_owned();
                target.store(*batch, &prefix).await.unwrap();
            }
            Step::End(end) => {
                assert_eq!(end.outcome, Ok(()), "{:#?}", end.report);
                return target.store_end(&end.checkpoint).await.unwrap();
            }
            Step::Stopped => panic!("nobody stops it"),
        }
    }
}

/// Checks that the collection has the repository's items.
fn compare(server: &Server, mode: Mode, collection: &Collection) {
    let source = SourceIdentity::new(server.base_url());
    let mut living = 0;
    for (identifier, title) in server.truth() {
        living += u64::from(title.is_some());
        let is_damaged = is_damaging(mode) && identifier == server.damaged();
        let header = Header { identifier, ..Header::default() };
        let name = object_name(&header, "oai_dc", &source).unwrap();
        let stored = collection.get(&Oid::new(&name.gatherer_id, &name.url)).unwrap();
        let found = stored.map(|it| it.record.text("Title").unwrap_or_default().into_owned());
        if is_damaged && mode == Mode::MetadataMissing {
            // Its header says that it is there.
            assert_eq!(found.as_deref(), Some(""), "{mode:?}");
        }
        assert!(found == title || is_damaged, "{mode:?}: {found:?}, not {title:?}");
    }
    assert_eq!(collection.len(), living, "{mode:?}");
}

#[tokio::test]
async fn a_collection_gets_the_records_of_a_broken_repository() {
    for mode in INTO_A_COLLECTION {
        let dir = tempfile::tempdir().unwrap();
        let collection = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap().0;
        let server = Server::start(mode, i64::try_from(clock::now_ms() / 1_000).unwrap()).await;
        pull(&server, &collection).await;
        compare(&server, mode, &collection);
        server.change();
        pull(&server, &collection).await;
        compare(&server, mode, &collection);
    }
}

//! Tests of hostile and broken sources: each is bounded in time, memory and disk, and named in
//! status with its kind of failure. The good source beside it is collected and searched as before.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::config::Config;
use broker::source::Source;
use broker::status::{SourceStatus, Status};
use common::{Origin, Running, client, config, url_of};
use flate2::{Compress, Compression, Crc, FlushCompress};
use net::client::{Request, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use xxhash_rust::xxh3::xxh3_64;

const GOOD: &str = "000000000000000a";
const BAD: &str = "000000000000000b";
const OTHER: &str = "000000000000000c";

/// The epoch of hostile sources.
const EPOCH: u64 = 7;

/// Maximum growth of memory during a failing pull, in bytes: two members of 64 MiB with their
/// changes, and the other tests of this process.
const MEMORY_BYTES_MAX: u64 = 600 << 20;

/// A source that sends arbitrary bytes.
struct Hostile {
    address: SocketAddr,
    /// Number of bytes sent after the first piece of each answer.
    sent: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

/// Answer of a hostile source to the head of any request.
#[derive(Clone)]
enum Answer {
    /// These bytes; then the connection is closed.
    Once(Vec<u8>),
    /// These bytes, and then others as long as the client reads, a piece at a time.
    Forever(Vec<u8>, Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>),
    /// These bytes, and then one at a time with pauses.
    Trickle(Vec<u8>),
}

impl Hostile {
    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::new(AtomicU64::new(0));
        let (count, mut tasks) = (sent.clone(), JoinSet::new());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(talk(stream, answer.clone(), count.clone()));
            }
        });
        Self { address, sent, _tasks: tasks }
    }

    fn source(&self) -> Source {
        Source::gatherer("bad", url_of(self.address))
    }
}

async fn talk(mut stream: TcpStream, answer: Answer, sent: Arc<AtomicU64>) {
    let (mut head, mut byte) = (Vec::new(), [0; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let (Answer::Once(first) | Answer::Forever(first, _) | Answer::Trickle(first)) = &answer;
    if stream.write_all(first).await.is_err() {
        return;
    }
    for number in 0.. {
        let piece = match &answer {
            Answer::Once(_) => return,
            Answer::Forever(_, next) => next(number),
            Answer::Trickle(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                vec![0x1f]
            }
        };
        if stream.write_all(&piece).await.is_err() {
            return;
        }
        sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
    }
}

/// Returns the head of an answer with a snapshot of `objects` objects up to serial `to`.
fn head(framing: &str, objects: u64, to: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\n{framing}\r\nHarvest-Kind: snapshot\r\nHarvest-Format: 1\r\n\
         Harvest-Epoch: {EPOCH:016x}\r\nHarvest-From: 0\r\nHarvest-To: {to}\r\n\
         Harvest-Objects: {objects}\r\n\r\n"
    )
    .into_bytes()
}

/// Frames a piece of a chunked body.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        out.push(0x80 | u8::try_from(number & 0x7f).unwrap());
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
}

/// Returns a sound member with one object, number `serial`, and a text; see docs/collection.md.
/// `lie` is added to the announced length.
fn member(serial: u64, text: &str, lie: u32) -> Vec<u8> {
    let (before, after) = section(serial, text.len());
    let plain = [&before, text, &after].concat();
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut body = Vec::with_capacity(plain.len() + 1_024);
    deflate.compress_vec(plain.as_bytes(), &mut body, FlushCompress::Finish).unwrap();
    frame(serial, body, plain.as_bytes(), lie)
}

/// Returns a small member whose text unpacks to `mebibytes` MiB.
fn bomb(serial: u64, mebibytes: usize) -> Vec<u8> {
    let spaces = [b' '; 1 << 20];
    let (before, after) = section(serial, mebibytes << 20);
    let mut deflate = Compress::new(Compression::best(), false);
    let mut pack = |bytes: &[u8], flush| {
        let mut out = Vec::with_capacity(8 << 10);
        deflate.compress_vec(bytes, &mut out, flush).unwrap();
        out
    };
    let first = pack(before.as_bytes(), FlushCompress::Full);
    // A block that refers to nothing before it may be repeated.
    let block = pack(&spaces, FlushCompress::Full).repeat(mebibytes);
    let last = pack(after.as_bytes(), FlushCompress::Finish);
    let plain = [before.into_bytes(), spaces.repeat(mebibytes), after.into_bytes()].concat();
    frame(serial, [first, block, last].concat(), &plain, 0)
}

/// Returns the SOIF before and after the text of an object.
fn section(serial: u64, text_bytes: usize) -> (String, String) {
    let before = format!(
        "@UPDATE {{\n@FILE {{ http://bad.example/{serial}\nGatherer-Id{{16}}:\t{BAD}\n\
         Partial-Text{{{text_bytes}}}:\t"
    );
    (before, "\n}\n}\n".to_owned())
}

/// Puts header and trailer around a packed section with one change.
fn frame(serial: u64, mut body: Vec<u8>, plain: &[u8], lie: u32) -> Vec<u8> {
    let deflate_bytes = u32::try_from(body.len()).unwrap() + lie;
    let mut crc = Crc::new();
    crc.update(plain);
    body.extend(crc.sum().to_le_bytes());
    body.extend(crc.amount().to_le_bytes());
    let mut fields = vec![1, 1 | 8];
    fields.extend(EPOCH.to_le_bytes());
    fields.extend(deflate_bytes.to_le_bytes());
    fields.extend(xxh3_64(&body).to_le_bytes());
    for number in [serial, serial - 1, 1, 1, 1_000] {
        put(&mut fields, number);
    }
    let subfield = u16::try_from(fields.len() + 4).unwrap();
    let mut member = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
    member.extend((subfield + 4).to_le_bytes());
    member.extend(b"HV");
    member.extend(subfield.to_le_bytes());
    member.extend(fields);
    let seal = xxh3_64(&member).to_le_bytes();
    member.extend(&seal[..4]);
    member.extend(body);
    member
}

/// Returns text that does not compress.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed + 1;
    let next = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    });
    next.take(bytes).collect()
}

/// Returns the peak of this process' resident memory, in bytes.
fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// A broker with short timeouts, a good source and bad ones.
struct Beside {
    good: Origin,
    broker: Running,
    _dir: tempfile::TempDir,
}

impl Beside {
    async fn start(bad: Vec<Source>) -> Self {
        let good = Origin::start(GOOD).await;
        let dir = tempfile::tempdir().unwrap();
        let sources = std::iter::once(good.source("good")).chain(bad).collect();
        let mut config: Config = config(dir.path(), sources);
        config.timeouts.request =
            Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() };
        config.timeouts.slot_max = Duration::from_millis(500);
        Self { good, broker: Running::start(config).await, _dir: dir }
    }

    /// Checks that new objects of the good source are found.
    async fn serves(&self, word: &str) {
        let version = self.good.update(1..=20, word).await;
        self.broker.caught_up("good", version).await;
        assert_eq!(self.broker.total(word).await, 20, "{word}");
    }

    /// Waits until the bad source fails with `kind`; the good one must be served before and after.
    async fn fails(&self, kind: &str) -> SourceStatus {
        self.serves("before").await;
        let failed = |it: &Status| it.sources[1].errors.by_kind.contains_key(kind);
        let status = self.broker.until(kind, failed).await;
        self.serves("after").await;
        let [good, bad] = &status.sources[..] else { panic!("{status:#?}") };
        assert_eq!((good.errors.count, bad.pulls), (0, 0), "{status:#?}");
        assert!(bad.errors.last.as_ref().unwrap().contains("source bad"), "{bad:#?}");
        assert_eq!(bad.errors.by_kind.values().sum::<u64>(), bad.errors.count);
        let url = url_of(self.broker.admin).join("metrics").unwrap();
        let text = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let line = format!("harvest_source_errors_total{{source=\"bad\",kind=\"{kind}\"}} ");
        assert!(text.contains(&line), "no {line} in {text}");
        bad.clone()
    }
}

/// Checks that a source with this answer fails with `kind`, after it has brought `objects`.
async fn check(answer: Answer, kind: &str, objects: u64) {
    let hostile = Hostile::start(answer).await;
    let beside = Beside::start(vec![hostile.source()]).await;
    let bad = beside.fails(kind).await;
    assert_eq!(bad.objects, objects, "{bad:#?}");
    assert_eq!(beside.broker.total("hostile").await, objects);
    beside.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_sizes_are_found() {
    let text = "hostile";
    let whole = [member(1, text, 0), member(2, text, 0)].concat();
    // More bytes announced than sent.
    let more = [head("Content-Length: 100000", 2, 2), whole.clone()].concat();
    check(Answer::Once(more), "broken_off", 2).await;
    // Fewer: the second member is cut.
    let less = head(&format!("Content-Length: {}", whole.len() - 9), 2, 2);
    check(Answer::Once([less, whole].concat()), "corrupt", 1).await;
    // A member longer than announced, or announced longer than allowed.
    for lie in [1, u32::MAX / 2] {
        let lying = [member(1, text, 0), member(2, text, lie)].concat();
        let head = head(&format!("Content-Length: {}", lying.len()), 2, 2);
        check(Answer::Once([head, lying].concat()), "corrupt", 1).await;
    }
    // An impossible number of objects.
    let objects = head("Content-Length: 0", u64::MAX, 2);
    check(Answer::Once(objects), "over_limit", 0).await;
    // 500 GB announced: no byte of it is read.
    check(Answer::Once(head("Content-Length: 500000000000", 2, 2)), "over_limit", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_feed_is_bounded() {
    let page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec();
    check(Answer::Once(page), "not_a_feed", 0).await;
    check(Answer::Once(b"hello?\r\n\r\n".to_vec()), "broken_off", 0).await;
    let busy = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec();
    check(Answer::Once(busy), "refused", 0).await;
    // A head without an end.
    let lines = Arc::new(|number| format!("X-{number}: {}\r\n", noise(0, 900)).into_bytes());
    check(Answer::Forever(b"HTTP/1.1 200 OK\r\n".to_vec(), lines), "broken_off", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_trickles_bytes_is_given_up() {
    check(Answer::Trickle(head("Content-Length: 1000000", 2, 2)), "too_slow", 0).await;
    check(Answer::Trickle(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec()), "too_slow", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_end_ends_at_the_limit() {
    let endless = Arc::new(|number: u64| chunk(&member(number + 1, &noise(number, 30_000), 0)));
    let head = head("Transfer-Encoding: chunked", 2, u64::MAX / 2);
    let hostile = Hostile::start(Answer::Forever(head, endless)).await;
    let before = memory_peak_bytes();
    let source = Source { bytes_max: 8 << 20, ..hostile.source() };
    let beside = Beside::start(vec![source]).await;
    let bad = beside.fails("over_limit").await;
    assert!(bad.errors.back_off_seconds >= 86_400.0, "it would bring as much again: {bad:#?}");
    let sent = hostile.sent.load(Ordering::SeqCst);
    assert!(sent < 64 << 20, "{sent} bytes were read");
    let grown = memory_peak_bytes() - before;
    assert!(grown < MEMORY_BYTES_MAX, "{grown} bytes of memory");
    beside.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_is_not_unpacked_to_its_end() {
    // The second bomb exceeds the 64 MiB within which the compression ratio is not checked.
    let bombs = chunk(&[bomb(1, 33), bomb(2, 33)].concat());
    assert!(bombs.len() < 200_000);
    let bombs = Arc::new(move |_| bombs.clone());
    let head = head("Transfer-Encoding: chunked", 2, u64::MAX / 2);
    let hostile = Hostile::start(Answer::Forever(head, bombs)).await;
    let before = memory_peak_bytes();
    let beside = Beside::start(vec![hostile.source()]).await;
    let bad = beside.fails("over_limit").await;
    assert!(bad.errors.last.as_ref().unwrap().contains("200 times"), "{bad:#?}");
    assert_eq!(bad.objects, 0, "an object of 33 MiB is too large: {bad:#?}");
    let grown = memory_peak_bytes() - before;
    assert!(grown < MEMORY_BYTES_MAX, "{grown} bytes of memory");
    beside.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_sources_do_not_keep_the_others_waiting() {
    let slow = Hostile::start(Answer::Trickle(head("Content-Length: 1000000", 2, 2))).await;
    let named = |n: u64| Source { name: format!("slow{n}"), ..slow.source() };
    let good = Origin::start(GOOD).await;
    let dir = tempfile::tempdir().unwrap();
    let sources = (0..40).map(named).chain([good.source("zgood")]).collect();
    let mut settings = config(dir.path(), sources);
    settings.timeouts.slot_max = Duration::from_millis(200);
    let broker = Running::start(settings).await;
    let version = good.update(1..=20, "word").await;
    broker.caught_up("zgood", version).await;
    let status = broker.status().await;
    let slow = status.sources.iter().filter(|it| it.name != "zgood");
    assert!(slow.clone().all(|it| it.errors.count == 0), "none has been given up yet: {status:#?}");
    assert!(16 < slow.filter(|it| it.pulling).count(), "{status:#?}");
    broker.stop().await;
}

/// An address that forwards to one source or another.
struct Switch {
    address: SocketAddr,
    to: Arc<Mutex<SocketAddr>>,
    _tasks: JoinSet<()>,
}

impl Switch {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let to = Arc::new(Mutex::new(to));
        let (target, mut tasks) = (to.clone(), JoinSet::new());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                connections.spawn(forward(near, target.clone()));
            }
        });
        Self { address, to, _tasks: tasks }
    }

    fn turn(&self, to: SocketAddr) {
        *self.to.lock().unwrap() = to;
    }
}

/// Forwards bytes until the switch is turned.
async fn forward(mut near: TcpStream, target: Arc<Mutex<SocketAddr>>) {
    let to = *target.lock().unwrap();
    let mut far = TcpStream::connect(to).await.unwrap();
    let turned = async {
        while *target.lock().unwrap() == to {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        () = turned => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_collection_under_the_name_deletes_nothing_unconfirmed() {
    let first = Origin::start(BAD).await;
    let version = first.update(1_001..=1_300, "first").await;
    let other = Origin::start(OTHER).await;
    other.update(2_001..=3_500, "other").await;
    let switch = Switch::start(first.address()).await;
    let beside = Beside::start(vec![Source::gatherer("bad", url_of(switch.address))]).await;
    beside.broker.caught_up("bad", version).await;
    switch.turn(other.address());
    beside.serves("before").await;
    // Two pulls must be refused: the objects of the other collection must not make the loss look
    // small.
    let held = |it: &Status| it.sources[1].errors.by_kind.get("loss").is_some_and(|it| 2 <= *it);
    let status = beside.broker.until("held", held).await;
    let bad = &status.sources[1];
    assert!(bad.held.as_ref().unwrap().contains("300 of its 300"), "{bad:#?}");
    beside.serves("after").await;
    assert_eq!(beside.broker.total("first").await, 300, "nothing is deleted");

    // The first collection is back; its epoch is older than that of the other one.
    switch.turn(first.address());
    beside
        .broker
        .until("wrong epoch", |it| it.sources[1].errors.by_kind.contains_key("wrong_epoch"))
        .await;
    assert_eq!(beside.broker.total("first").await, 300);
    switch.turn(other.address());
    assert_eq!(beside.broker.handle.confirm_source("bad").unwrap(), 1);
    let gone = |it: &Status| it.sources[1].held.is_none() && it.sources[1].objects == 1_500;
    let status = beside.broker.until("confirmed", gone).await;
    assert_eq!(status.objects, 1_520);
    beside.broker.until("indexed", |it| it.index_covered == Some(it.serial)).await;
    assert_eq!(
        (beside.broker.total("first").await, beside.broker.total("other").await),
        (0, 1_500)
    );
    beside.broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_epoch_is_not_accepted_unconfirmed() {
    // A restored copy: older, with other content under the same names.
    let copy = Origin::start(BAD).await;
    copy.update(1_001..=1_200, "copy").await;
    let present = Origin::start(BAD).await;
    let version = present.update(1_001..=1_300, "present").await;
    let switch = Switch::start(present.address()).await;
    let beside = Beside::start(vec![Source::gatherer("bad", url_of(switch.address))]).await;
    beside.broker.caught_up("bad", version).await;
    switch.turn(copy.address());
    beside.serves("before").await;
    let held = |it: &Status| it.sources[1].errors.by_kind.contains_key("wrong_epoch");
    let status = beside.broker.until("held", held).await;
    assert!(status.sources[1].held.is_some(), "{status:#?}");
    assert_eq!((status.objects, beside.broker.total("present").await), (320, 300));
    assert_eq!(beside.broker.total("copy").await, 0);
    beside.serves("after").await;

    assert_eq!(beside.broker.handle.confirm_source("bad").unwrap(), 1);
    let taken = |it: &Status| it.sources[1].held.is_none() && it.sources[1].objects == 200;
    beside.broker.until("confirmed", taken).await;
    beside.broker.until("indexed", |it| it.index_covered == Some(it.serial)).await;
    assert_eq!((beside.broker.total("copy").await, beside.broker.total("present").await), (200, 0));
    // A newer epoch needs no confirmation.
    switch.turn(present.address());
    beside.broker.caught_up("bad", version).await;
    assert_eq!(beside.broker.total("present").await, 300);
    beside.broker.stop().await;
}

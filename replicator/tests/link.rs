//! Tests of links between members, over real connections on this machine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use net::clock::monotonic;
use net::identity::Identity;
use net::peer::Endpoint;
use net::shutdown::Shutdown;
use replicator::id::MemberId;
use replicator::limit::Bucket;
use replicator::link::frame::{MESSAGE_BYTES_MAX, Reason};
use replicator::link::{Caller, Command, EVENTS_MAX, End, Event, Hub, Link, Neighbor, SendError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

/// Much longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn identity(seed: u8) -> Identity {
    Identity::of(&[seed; 32]).unwrap()
}

fn endpoint(seed: u8) -> Endpoint {
    Endpoint::new(Arc::new(identity(seed))).unwrap()
}

/// A member that has real links and makes no decisions.
struct Host {
    seed: u8,
    address: String,
    commands: mpsc::Sender<Command>,
    events: mpsc::Receiver<Event>,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Host {
    async fn start(seed: u8, knows: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let known: HashSet<[u8; 32]> = knows.iter().map(|it| identity(*it).public()).collect();
        let known = Arc::new(move |key: &[u8; 32]| match known.contains(key) {
            true => Ok(()),
            false => Err(Reason::Unknown),
        });
        let (to, events) = mpsc::channel(EVENTS_MAX);
        let (commands, from) = mpsc::channel(8);
        let hub = Hub::new(endpoint(seed), known, monotonic(), to);
        let shutdown = Shutdown::new();
        let task = tokio::spawn(hub.run(listener, from, shutdown.clone()));
        Self { seed, address, commands, events, shutdown, task }
    }

    fn as_neighbor(&self) -> Neighbor {
        Neighbor { address: self.address.clone(), key: Some(identity(self.seed).public()) }
    }

    fn id(&self) -> MemberId {
        MemberId::of(&identity(self.seed).public())
    }

    async fn wants(&self, neighbor: Neighbor) {
        self.commands.send(Command::Want(vec![neighbor])).await.unwrap();
    }

    async fn event(&mut self) -> Event {
        timeout(PATIENCE, self.events.recv()).await.expect("an event").unwrap()
    }

    /// Waits for the next event from which `pick` returns a value.
    async fn until<T>(&mut self, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let event = self.event().await;
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    }

    async fn up(&mut self) -> Link {
        self.until(|it| if let Event::Up(link) = it { Some(link.clone()) } else { None }).await
    }

    async fn message(&mut self) -> Bytes {
        let pick =
            |it: &Event| if let Event::Message(_, it) = it { Some(it.clone()) } else { None };
        self.until(pick).await
    }

    async fn down(&mut self) -> (Link, String) {
        let pick = |it: &Event| match it {
            Event::Down(link, end) => Some((link.clone(), end.to_string())),
            _ => None,
        };
        self.until(pick).await
    }

    async fn stop(self) {
        self.shutdown.start();
        timeout(PATIENCE, self.task).await.expect("it stops").unwrap();
    }
}

async fn two() -> (Host, Link, Host, Link) {
    let (mut a, mut b) = (Host::start(1, &[2]).await, Host::start(2, &[1]).await);
    a.wants(b.as_neighbor()).await;
    let (to_b, to_a) = (a.up().await, b.up().await);
    (a, to_b, b, to_a)
}

#[tokio::test]
async fn messages_arrive_unchanged_in_both_directions() {
    let (mut a, to_b, mut b, to_a) = two().await;
    assert_eq!((to_b.member(), to_a.member()), (b.id(), a.id()));
    assert!(to_b.is_dialed() && !to_a.is_dialed());
    assert!(to_b.call_key().is_some());
    assert_eq!(to_b.call_key(), to_a.call_key());
    let messages: Vec<Bytes> =
        [0, 1, 200, 16 << 10, 64 << 10, MESSAGE_BYTES_MAX].map(|it| vec![7; it].into()).into();
    for message in &messages {
        to_b.send(message.clone()).unwrap();
        to_a.send_chunk(1, [1; 32], message.clone()).unwrap();
    }
    for message in &messages {
        assert_eq!(b.message().await, message);
        assert_eq!(a.message().await, message);
    }
    assert!(to_a.traffic().bytes_in > MESSAGE_BYTES_MAX as u64);
    let long = vec![0; MESSAGE_BYTES_MAX + 1].into();
    assert_eq!(to_a.send(long), Err(SendError::TooLong(MESSAGE_BYTES_MAX + 1)));
    b.stop().await;
    let (link, why) = a.down().await;
    assert!(link == to_b && why.ends_with("it stops"), "{why}");
    assert_eq!(to_b.send(Bytes::new()), Err(SendError::Down));
    a.stop().await;
}

#[tokio::test]
async fn a_small_update_overtakes_a_large_one_under_way() {
    let (a, to_b, mut b, to_a) = two().await;
    // A slow link, so that many chunks wait here.
    to_b.set_limits(vec![Arc::new(Mutex::new(Bucket::new(1 << 20, 64 << 10)))]);
    let bulk = Bytes::from(vec![3; 16 << 10]);
    for number in 0..32 {
        to_b.send_chunk(3, [number; 32], bulk.clone()).unwrap();
    }
    assert_eq!(b.message().await, bulk);
    to_b.send_chunk(0, [99; 32], Bytes::from_static(b"small")).unwrap();
    let waiting = to_b.waiting() / bulk.len();
    let mut before = 0;
    while b.message().await != b"small"[..] {
        before += 1;
    }
    // Chunks that had left the queue come before it.
    assert!(before + 16 <= waiting, "{before} chunks came before it while {waiting} waited");
    assert!(to_b.cancel(&[31; 32]) && !to_b.cancel(&[0; 32]));
    drop((a, to_a));
}

#[tokio::test]
async fn a_full_link_reports_when_it_has_room() {
    let (mut a, to_b, mut b, _to_a) = two().await;
    let bulk = Bytes::from(vec![3; 64 << 10]);
    let mut sent = 0u64;
    // The other end reads nothing, so the link gets full.
    while to_b.send_chunk(3, [0; 32], bulk.clone()).is_ok() {
        sent += 1;
    }
    let mut came = 0;
    let (room, ()) = tokio::join!(
        a.until(|it| if let Event::Room(link) = it { Some(link.clone()) } else { None }),
        async {
            while came < sent {
                assert_eq!(b.message().await, bulk);
                came += 1;
            }
        }
    );
    assert_eq!(room, to_b);
    assert!(to_b.send_chunk(3, [0; 32], bulk).is_ok());
}

#[tokio::test]
async fn of_two_connections_one_stays() {
    for round in 0..5 {
        let (mut a, mut b) = (Host::start(1, &[2]).await, Host::start(2, &[1]).await);
        tokio::join!(a.wants(b.as_neighbor()), b.wants(a.as_neighbor()));
        // Messages over the link that stays arrive in both directions.
        let mut links = (a.up().await, b.up().await);
        let smaller_is_a = a.id() < b.id();
        loop {
            let is_right = |link: &Link, is_a: bool| link.is_dialed() == (is_a == smaller_is_a);
            if is_right(&links.0, true) && is_right(&links.1, false) {
                break;
            }
            // If one end saw the other's connection before it dialed, there is only this one.
            if links.0.is_dialed() != links.1.is_dialed() && links.0.is_up() && links.1.is_up() {
                break;
            }
            tokio::select! { it = a.up() => links.0 = it, it = b.up() => links.1 = it }
        }
        links.0.send(Bytes::from_static(b"from a")).unwrap();
        links.1.send(Bytes::from_static(b"from b")).unwrap();
        assert_eq!(b.message().await, "from a", "round {round}");
        assert_eq!(a.message().await, "from b", "round {round}");
        tokio::join!(a.stop(), b.stop());
    }
}

#[tokio::test]
async fn an_unknown_member_gets_the_reason_of_the_refusal() {
    let (mut a, mut b) = (Host::start(1, &[2]).await, Host::start(2, &[]).await);
    a.wants(b.as_neighbor()).await;
    let pick = |it: &Event| match it {
        Event::Refused { key, reason, .. } => Some((*key, *reason)),
        _ => None,
    };
    assert_eq!(b.until(pick).await, (identity(1).public(), Reason::Unknown));
    let (_, why) = a.down().await;
    assert!(why.contains("does not know this member's key"), "{why}");
    // It tries again after growing pauses.
    assert_eq!(b.until(pick).await, (identity(1).public(), Reason::Unknown));
}

#[tokio::test]
async fn a_link_comes_back_when_its_other_end_does() {
    let (mut a, _to_b, b, _to_a) = two().await;
    let address = b.address.clone();
    let to_b = b.as_neighbor();
    b.stop().await;
    a.down().await;
    let unreachable = a.until(|it| match it {
        Event::Unreachable { neighbor, again, .. } => Some((neighbor.clone(), again.is_some())),
        _ => None,
    });
    assert_eq!(unreachable.await, (to_b, true));
    let listener = TcpListener::bind(&address).await.unwrap();
    let (tcp, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let back = endpoint(2).accept(tcp).await.unwrap();
    assert_eq!(a.up().await.key(), endpoint(2).identity().public());
    drop(back);
}

#[tokio::test]
async fn invalid_bytes_end_the_link_and_both_ends_know_why() {
    let mut a = Host::start(1, &[2]).await;
    let mut stranger = endpoint(2).connect(&a.address, None).await.unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    stranger.flush().await.unwrap();
    let end = a.until(|it| match it {
        Event::Down(_, End::Frame(member, error)) => Some((*member, error.to_string())),
        _ => None,
    });
    let (member, what) = end.await;
    assert_eq!(member, MemberId::of(&identity(2).public()));
    assert!(what.contains("unknown kind"), "{what}");
    let mut reply = Vec::new();
    stranger.read_to_end(&mut reply).await.unwrap();
    assert_eq!(reply[reply.len() - 5..reply.len() - 1], [1, 0, 0, 6]);
}

/// Makes a line to `to`: 16 KiB each 8 ms there, without a limit back. Returns its address.
async fn narrow(to: String) -> (String, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let line = async move {
        let (near, _) = listener.accept().await?;
        let (mut from_near, mut to_near) = near.into_split();
        let (mut from_far, mut to_far) = TcpStream::connect(to).await?.into_split();
        let there = async {
            let mut turns = interval(Duration::from_millis(8));
            let mut piece = vec![0; 16 << 10];
            loop {
                turns.tick().await;
                match from_near.read(&mut piece).await? {
                    0 => return Ok::<_, std::io::Error>(()),
                    count => to_far.write_all(&piece[..count]).await?,
                }
            }
        };
        tokio::try_join!(there, tokio::io::copy(&mut from_far, &mut to_near)).map(|_| ())
    };
    (address, tokio::spawn(line))
}

#[tokio::test]
async fn a_link_is_measured_while_it_is_busy_and_by_a_probe() {
    let (mut a, mut b) = (Host::start(1, &[2]).await, Host::start(2, &[1]).await);
    // The link has to be slower than its ends, even on a busy machine.
    let (address, line) = narrow(b.address.clone()).await;
    a.wants(Neighbor { address, ..b.as_neighbor() }).await;
    let (to_b, _to_a) = (a.up().await, b.up().await);
    to_b.probe(Duration::from_millis(1));
    let found = a.until(|it| if let Event::Probed(_, it) = it { Some(*it) } else { None }).await;
    assert!(found.is_some_and(|it| 1_000_000 < it), "{found:?}");
    let bulk = Bytes::from(vec![3; 64 << 10]);
    let (mut at_a, mut at_b) = (None, None);
    to_b.send_chunk(3, [0; 32], bulk.clone()).unwrap();
    while at_a.is_none() || at_b.is_none() {
        while to_b.send_chunk(3, [0; 32], bulk.clone()).is_ok() {}
        tokio::select! {
            event = a.event() => if let Event::Goodput(_, it) = event { at_a = Some(it) },
            event = b.event() => if let Event::Goodput(_, it) = event { at_b = Some(it) },
        }
    }
    assert!(at_b.unwrap().bytes >= 128 << 10);
    assert!(at_a.unwrap().took > Duration::ZERO);
    line.abort();
}

#[tokio::test]
async fn members_that_had_a_link_can_call_each_other() {
    let (_a, to_b, _b, to_a) = two().await;
    let socket = || UdpSocket::bind("127.0.0.1:0");
    let (at_a, at_b) = (socket().await.unwrap(), socket().await.unwrap());
    let (addr_a, addr_b) = (at_a.local_addr().unwrap(), at_b.local_addr().unwrap());
    let (a, b) = (Caller::new(at_a, monotonic()), Caller::new(at_b, monotonic()));
    assert!(!a.call(to_b.member(), addr_b).await.unwrap(), "without a link there is no key");
    a.handle_up(&to_b);
    b.handle_up(&to_a);
    let (events, mut heard) = mpsc::channel(EVENTS_MAX);
    let talk = async {
        // Packets of a stranger do no harm.
        let stranger = socket().await.unwrap();
        for packet in [&b""[..], &[0; 64], &[7; 65], &[9; 1_400]] {
            stranger.send_to(packet, addr_a).await.unwrap();
        }
        for (caller, member, addr) in [(&a, to_b.member(), addr_b), (&b, to_a.member(), addr_a)] {
            assert!(caller.call(member, addr).await.unwrap());
            let event = heard.recv().await.unwrap();
            let Event::RoundTrip(from, took) = event else { panic!("{event:?}") };
            assert!(from == member && took < PATIENCE);
        }
        assert!(stranger.try_recv(&mut [0; 64]).is_err(), "strangers are not answered");
    };
    tokio::select! {
        () = a.run(&events) => unreachable!(),
        () = b.run(&events) => unreachable!(),
        answered = timeout(PATIENCE, talk) => answered.expect("an answer"),
    }
}

#[tokio::test]
async fn a_neighbor_wanted_once_is_not_dialed_again() {
    let (mut a, mut b) = (Host::start(1, &[2]).await, Host::start(2, &[1]).await);
    let anybody = Neighbor { address: b.address.clone(), key: None };
    a.commands.send(Command::Once(anybody)).await.unwrap();
    let (to_b, to_a) = (a.up().await, b.up().await);
    assert_eq!((to_b.member(), to_a.member()), (b.id(), a.id()));
    to_a.close(Reason::Unwanted);
    a.down().await;
    let nobody = Neighbor { address: "127.0.0.1:1".to_owned(), key: None };
    a.commands.send(Command::Once(nobody)).await.unwrap();
    let again = a.until(|it| match it {
        Event::Unreachable { again, .. } => Some(again.is_none()),
        _ => None,
    });
    assert!(again.await);
}

//! A member of the simulated world: the real state machine, and a shell with a disk and links.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use net::identity::Identity;
use replicator::group::access::Access;
use replicator::group::charter::{Address, Carried, GroupTree};
use replicator::group::join::Invitation;
use replicator::group::{Group, Message, Settings};
use replicator::id::MemberId;
use replicator::version::{Kind, Name, Namespace, Number};

/// A member's conduct toward others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// It keeps the rules.
    Honest,
    /// It drops, changes, forges and repeats messages, and lies about its links.
    Liar,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Pause before the next attempt.
    pub pause: Duration,
}

pub(crate) struct Member {
    pub identity: Arc<Identity>,
    pub id: MemberId,
    pub conduct: Conduct,
    pub settings: Settings,
    pub invitation: Option<Invitation>,
    /// The state on disk.
    pub kept: Option<Vec<u8>>,
    /// The state machine, while it runs.
    pub group: Option<Group>,
    /// When it last started, on the world's clock.
    pub started: Duration,
    /// Rate of its own clock, in percent.
    pub rate: u32,
    /// Seconds by which its time of day is ahead.
    pub ahead: u64,
    /// Number of its starts and stops.
    pub life: u32,
    /// The end of a pause, in which it does nothing and loses nothing.
    pub paused: Option<Duration>,
    /// Number of actions that it still does before it crashes.
    pub doom: Option<usize>,
    /// The links that it believes to have, by the other end.
    pub links: BTreeMap<usize, usize>,
    pub wanted: BTreeMap<usize, Wanted>,
    /// Times until which links to members that are not neighbors are kept.
    pub once: BTreeMap<usize, Duration>,
    pub wake: Duration,
    /// Members that it accused of lying, and how often.
    pub accused: BTreeMap<MemberId, usize>,
    /// The present minute, and the number of messages sent in it.
    pub sent: (u64, usize),
    /// The most messages that it sent in a minute.
    pub sent_max: usize,
    /// Messages that it might repeat.
    pub memory: Vec<Message>,
    /// The versions that its readers see, on disk.
    pub held: BTreeMap<Namespace, Number>,
    /// Whether it never comes back.
    pub is_gone: bool,
}

pub(crate) fn identity(number: usize) -> Arc<Identity> {
    let mut secret = [7; 32];
    secret[..8].copy_from_slice(&(number as u64).to_le_bytes());
    Arc::new(Identity::of(&secret).unwrap())
}

pub(crate) fn foreign(number: usize, distance: u8) -> Carried {
    let writer = identity(1_000 + number % 2).public();
    let name = Name::new(&format!("foreign-{number}")).unwrap();
    Carried { tree: GroupTree { writer, name, kind: Kind::Collection }, distance }
}

pub(crate) fn settings(number: usize, site: usize, access: Option<Access>) -> Settings {
    Settings {
        address: Address::new(&format!("host-{number}:4000")).unwrap(),
        site: Name::new(&format!("site-{site}")).unwrap(),
        trees: vec![(Name::new("tree").unwrap(), Kind::Tree)],
        carried: Vec::new(),
        connectivity: None,
        deputies: Vec::new(),
        access,
    }
}

impl Member {
    pub(crate) fn new(number: usize, settings: Settings, rate: u32) -> Self {
        let identity = identity(number);
        Self {
            id: MemberId::of(&identity.public()),
            identity,
            conduct: Conduct::Honest,
            settings,
            invitation: None,
            kept: None,
            group: None,
            started: Duration::ZERO,
            rate,
            ahead: 0,
            life: 0,
            paused: None,
            doom: None,
            links: BTreeMap::new(),
            wanted: BTreeMap::new(),
            once: BTreeMap::new(),
            wake: Duration::MAX,
            accused: BTreeMap::new(),
            sent: (0, 0),
            sent_max: 0,
            memory: Vec::new(),
            held: BTreeMap::new(),
            is_gone: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.group.is_some()
    }

    /// Returns its time of day, in seconds since 1970.
    pub(crate) fn time_of_day(&self, now: Duration) -> u64 {
        1_700_000_000 + now.as_secs() + self.ahead
    }

    /// Returns the time of its own clock.
    pub(crate) fn clock(&self, now: Duration) -> Duration {
        now.saturating_sub(self.started) * self.rate / 100
    }

    /// Returns the world's time for a time of its own clock, rounded up.
    pub(crate) fn world_time(&self, at: Duration) -> Duration {
        let at = at.min(Duration::from_hours(24 * 365));
        self.started + at * 100 / self.rate + Duration::from_nanos(99)
    }

    /// Returns its number of starts, as stored on disk.
    pub(crate) fn incarnation(&self) -> u64 {
        let number = self.kept.as_ref().and_then(|it| it[1..].first_chunk());
        number.map_or(0, |it| u64::from(u32::from_be_bytes(*it)))
    }

    /// Starts it with the state on disk, or with its invitation.
    pub(crate) fn open(&mut self, now: Duration) {
        self.started = now;
        self.life += 1;
        let group = Group::open(
            Arc::clone(&self.identity),
            self.settings.clone(),
            self.kept.as_deref(),
            self.invitation.clone(),
            Duration::ZERO,
        );
        self.group = Some(group.expect("the stored state is whole"));
    }

    /// Stops it: only the disk stays.
    pub(crate) fn stop(&mut self) {
        self.group = None;
        self.life += 1;
        (self.paused, self.doom) = (None, None);
        self.links.clear();
        self.wanted.clear();
        self.once.clear();
        self.wake = Duration::MAX;
    }

    /// Adds to the stored silence of another member (docs/groups.md has the form).
    pub(crate) fn age(&mut self, other: MemberId, minutes: u32) {
        let Some(kept) = &self.kept else { return };
        let count = usize::from(u16::from_be_bytes([kept[5], kept[6]]));
        let (head, charter) = kept.split_at(7 + 12 * count);
        let mut silences: BTreeMap<u64, u32> = head[7..]
            .chunks_exact(12)
            .map(|it| {
                let (id, minutes) = it.split_at(8);
                (
                    u64::from_be_bytes(id.try_into().unwrap()),
                    u32::from_be_bytes(minutes.try_into().unwrap()),
                )
            })
            .collect();
        *silences.entry(other.0).or_default() += minutes;
        let mut bytes = head[..5].to_vec();
        bytes.extend(u16::try_from(silences.len()).unwrap().to_be_bytes());
        for (id, minutes) in silences {
            bytes.extend(id.to_be_bytes());
            bytes.extend(minutes.to_be_bytes());
        }
        bytes.extend(charter);
        self.kept = Some(bytes);
    }
}

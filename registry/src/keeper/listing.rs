//! Lists of the servers: the public one, and what an administrator sees.

use broker::error::Error;
use exchange::servers::Server;
use net::clock;

use super::{Keeper, locked};
use crate::answer::{Listed, Overview};
use crate::leases::{Lease, Standing};

impl Keeper {
    /// Returns the servers that are listed, of those that are wanted, by kind and name. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub fn listed(&self, is_wanted: impl Fn(&Server) -> bool) -> Result<Vec<Listed>, Error> {
        let mut directory = locked(&self.0.directory);
        directory.follow(&self.0.collection)?;
        let wanted: Vec<&Server> = directory.servers().filter(|it| is_wanted(it)).collect();
        let (leases, now_ms) = (self.leases(), clock::now_ms());
        let listed = |server: &&Server| {
            let lease = leases.get(&server.id);
            let standing = lease.map(|it| leases.standing(it, now_ms));
            // What is revoked here is not listed because others list it, and what waits, or was never read, here is theirs.
            if standing == Some(Standing::Revoked) {
                return None;
            }
            let is_own = |it: &&Lease| {
                it.url == server.url && 0 < it.pin.sequence && standing != Some(Standing::Waiting)
            };
            let own = lease.filter(is_own).zip(standing);
            Some(Listed {
                name: server.name.clone(),
                kind: server.kind.name().to_owned(),
                id: server.id.clone(),
                url: server.url.to_string(),
                state: own.map_or("relayed", |it| it.1.name()).to_owned(),
                last_seen: own.map_or(server.updated, |it| it.0.seen_ms / 1_000),
                objects: Some(server.objects),
                gathers: server.gathers.clone(),
            })
        };
        let mut listed: Vec<Listed> = wanted.iter().filter_map(listed).collect();
        listed.sort_by(|a, b| (&a.kind, &a.name, &a.id).cmp(&(&b.kind, &b.name, &b.id)));
        Ok(listed)
    }

    /// Returns what an administrator sees.
    pub fn overview(&self) -> Overview {
        let (leases, now_ms) = (self.leases(), clock::now_ms());
        let servers = leases.all().map(|(id, lease)| Listed {
            name: lease.name.clone(),
            kind: lease.kind.name().to_owned(),
            id: id.clone(),
            url: lease.url.to_string(),
            state: leases.standing(lease, now_ms).name().to_owned(),
            last_seen: lease.seen_ms / 1_000,
            ..Listed::default()
        });
        let servers = servers.collect();
        let (mut refused, refusals) = locked(&self.0.refusals).all();
        let summaries = self.0.summaries.refused();
        refused.extend((0 < summaries).then(|| ("summary".to_owned(), summaries)));
        Overview { servers, refused, refusals }
    }
}

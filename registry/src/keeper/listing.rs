//! Lists of the servers: the public one, and what an administrator sees.

use broker::error::Error;
use net::clock;

use super::{Keeper, locked};
use crate::answer::{Listed, Overview};

impl Keeper {
    /// Returns the servers that are listed, by kind and name. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub fn listed(&self) -> Result<Vec<Listed>, Error> {
        let mut directory = locked(&self.0.directory);
        directory.follow(&self.0.collection)?;
        let (leases, now_ms) = (self.leases(), clock::now_ms());
        let mut listed: Vec<Listed> = directory
            .servers()
            .map(|server| {
                let lease = leases.get(&server.id).filter(|it| it.url == server.url);
                let state = lease.map_or("relayed", |it| leases.standing(it, now_ms).name());
                Listed {
                    name: server.name.clone(),
                    kind: server.kind.name().to_owned(),
                    id: server.id.clone(),
                    url: server.url.to_string(),
                    state: state.to_owned(),
                    last_seen: lease.map_or(server.updated, |it| it.seen_ms / 1_000),
                    objects: server.objects,
                    gathers: server.gathers.clone(),
                }
            })
            .collect();
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

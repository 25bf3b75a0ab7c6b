//! Dividing sites among gatherers: who gathers a site already keeps it, and others get the nearest gatherer.
//!
//! Near is who shares most of the site's domain: networks and domains of an institution, and of a country, mostly go
//! together. Of those that are equally near, the one with the fewest sites gets it.
//!
//! Source: TR §3 (dividing the gathering process), TR §10 (from whichever gatherer was closest).
//!
//! # Differences from the TR
//!
//! The distance is that of names: a registry cannot measure from where its gatherers are.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use exchange::servers::covers;
use url::{Host, Url};

use crate::answer::Listed;

/// What is proposed for a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The site.
    pub site: Url,
    /// The gatherer, by its place in the list.
    pub gatherer: usize,
    /// Whether it gathers the site already.
    pub already: bool,
}

/// Proposes a gatherer for each site; none if there is no gatherer.
pub fn divided(sites: &[Url], gatherers: &[Listed]) -> Vec<Proposal> {
    let mut load: BTreeMap<usize, usize> = (0..gatherers.len()).map(|at| (at, 0)).collect();
    let mut proposals = Vec::new();
    for site in sites {
        let already = gatherers.iter().position(|it| it.gathers.iter().any(|it| covers(it, site)));
        let nearest = || {
            let key = |at: &usize| {
                let near = gatherers.get(*at).map_or(0, |it| shared(&it.url, site));
                (std::cmp::Reverse(near), load.get(at).copied().unwrap_or_default(), *at)
            };
            (0..gatherers.len()).min_by_key(key)
        };
        let Some(gatherer) = already.or_else(nearest) else { continue };
        *load.entry(gatherer).or_default() += 1;
        proposals.push(Proposal { site: site.clone(), gatherer, already: already.is_some() });
    }
    proposals
}

/// Returns the number of labels that the names of two hosts share at their ends.
fn shared(gatherer: &str, site: &Url) -> usize {
    let Ok(gatherer) = Url::parse(gatherer) else { return 0 };
    let labels = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name.rsplit('.').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let (own, other): (Vec<String>, Vec<String>) = (labels(&gatherer), labels(site));
    own.iter().zip(&other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_go_to_who_has_them_or_is_near() {
        let listed = |url: &str, gathers: &[&str]| Listed {
            url: url.to_owned(),
            gathers: gathers.iter().map(|it| (*it).to_owned()).collect(),
            ..Listed::default()
        };
        let gatherers = [
            listed("http://g.colorado.edu:8500/", &["https://other.example/"]),
            listed("http://g.example.de/", &[]),
            listed("http://10.0.0.1:8500/", &[]),
        ];
        let sites = [
            "https://www.colorado.edu/",
            "https://www.usc.edu/",
            "https://www.tu.de/",
            "https://other.example/a/",
            "https://one.fr/",
            "https://two.fr/",
        ]
        .map(|it| Url::parse(it).unwrap());
        let proposals = divided(&sites, &gatherers);
        let places: Vec<usize> = proposals.iter().map(|it| it.gatherer).collect();
        assert_eq!(places, [0, 0, 1, 0, 2, 1]);
        assert_eq!(proposals.iter().filter(|it| it.already).count(), 1);
        assert!(divided(&sites, &[]).is_empty());
    }

    #[test]
    fn the_nearest_of_several_gets_all_that_is_near_to_it() {
        let at = |host: &str| Listed { url: format!("http://{host}:8500/"), ..Listed::default() };
        let gatherers = ["harvest.ac.uk", "g.example.org", "g.ox.ac.uk", "g.lib.ox.ac.uk"].map(at);
        let sites = [
            ("https://www.lib.ox.ac.uk/", 3),
            ("https://maps.lib.ox.ac.uk/", 3),
            ("https://lib.ox.ac.uk/", 3),
            // Two are equally near: the one with fewer sites.
            ("https://www.ox.ac.uk/", 2),
            ("https://www.cam.ac.uk/", 0),
            ("https://www.example.org/", 1),
            ("https://ac.uk.example.org/", 1),
            ("https://org/", 1),
        ];
        let urls = sites.map(|it| Url::parse(it.0).unwrap());
        let places: Vec<usize> = divided(&urls, &gatherers).iter().map(|it| it.gatherer).collect();
        assert_eq!(places, sites.map(|it| it.1));
    }
}

//! Siblings: how many requests for what a neighbor has are answered, beside those for what is stored here.

use std::rc::Rc;

use crate::hits::{TURNS, median};
use crate::load::{self, Requests, proxy_form};
use crate::servers::{Ours, Site};

/// Objects that a turn is about.
const COUNT: usize = 2_000;

pub(crate) async fn measure() {
    let site = Site::start();
    let at = site.process().address;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let sibling = Ours::start_in(folders[0].path(), "127.0.0.2", "icp_listen = \"127.0.0.2:0\"");
    let neighbor = format!(
        "icp_listen = \"127.0.0.3:0\"\n[[neighbor]]\nhost = \"127.0.0.2\"\nhttp_port = {}\nicp_port = {}\n\
         kind = \"sibling\"\n",
        sibling.address.port(),
        sibling.icp_port
    );
    let ours = Ours::start_in(folders[1].path(), "127.0.0.3", &neighbor);
    let requests: Requests = Rc::new(move |n| proxy_form(at, &format!("/1k?{n}")));
    load::run(sibling.address, 32, (0, TURNS * 2 * COUNT), &requests).await;
    // The home would be faster: it is on this machine.
    drop(site);
    println!("sibling hits: requests a second, medians of {TURNS} turns");
    for (place, connections) in [1, 32].into_iter().enumerate() {
        let (mut theirs, mut own) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let numbers = ((place * TURNS + turn) * COUNT, COUNT);
            for rates in [&mut theirs, &mut own] {
                let took = load::run(ours.address, connections, numbers, &requests).await;
                rates.push(COUNT as f64 / took.as_secs_f64());
            }
        }
        let (theirs, own) = (median(&theirs), median(&own));
        let ratio = theirs / own;
        println!(
            "  {connections} connections: {theirs:.0} from the sibling, {own:.0} from here: {ratio:.2}"
        );
    }
}

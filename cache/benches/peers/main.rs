//! The cache beside others: what a request costs, what an object takes, and what a start and a hierarchy do.
//!
//! ```text
//! cargo bench -p cache --bench peers                     all of it
//! cargo bench -p cache --bench peers -- hit miss         parts: hit, miss, first, memory, disk, sibling, tr_fig9
//! ```
//!
//! CPU is user and system time of all of a server's processes, whole clock ticks of 10 ms; each turn has as many requests
//! as take some tenths of a second. Servers run on one core (`taskset`), the loader on another, if there are two. Turns of
//! all rows alternate, and medians are printed. Our cache runs in a process of its own, with the allocator of `harvest`.
//! nginx, Squid and Traffic Server are packages of Debian, which `net/tests/peers/prepare` unpacks below `target`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]

#[path = "../../../gatherer/benches/loads/cpu.rs"]
mod cpu;
mod fig9;
mod hits;
mod load;
mod misses;
#[path = "../../../net/tests/peers/nginx.rs"]
mod nginx;
mod origin;
#[path = "../../tests/common/peers.rs"]
mod others;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
mod room;
mod servers;
mod siblings;

/// The allocator of `harvest`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [servers::ROLE, file, data] => servers::serve(file, data),
        [origin::ROLE] => origin::serve(),
        [room::ROLE, folder, count] => room::fill(folder, count),
        parts => {
            servers::pin(std::process::id(), servers::LOADER_CORE);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(measure(parts));
        }
    }
}

async fn measure(parts: &[&str]) {
    let is_wanted = |part| parts.is_empty() || parts.contains(&part);
    if is_wanted("hit") {
        hits::measure().await;
    }
    if is_wanted("miss") {
        misses::measure().await;
    }
    if is_wanted("first") {
        misses::first_byte().await;
    }
    if is_wanted("memory") {
        room::memory().await;
    }
    if is_wanted("disk") {
        room::disk().await;
    }
    if is_wanted("sibling") {
        siblings::measure().await;
    }
    if is_wanted("tr_fig9") {
        fig9::measure().await;
    }
}

//! Tests of transfers.

use std::os::fd::AsRawFd as _;

use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;

use super::*;
use crate::fetch::coming::Coming;

fn transfer(length: Option<u64>) -> Arc<Transfer> {
    let transfer = Transfer::new(std::env::temp_dir(), boundless());
    transfer.promise(length);
    transfer
}

fn boundless() -> Arc<Quota> {
    Arc::new(Quota::new(u64::MAX))
}

fn bytes(from: usize, to: usize) -> Bytes {
    (from..to).map(|it| u8::try_from(it % 251).unwrap()).collect()
}

async fn all(reader: Reader) -> io::Result<Bytes> {
    Ok(reader.collect().await?.to_bytes())
}

#[tokio::test]
async fn readers_follow_from_any_place_at_their_own_pace() {
    let count = 3 * MEMORY_BYTES_MAX + 17;
    for length in [Some(count as u64), None] {
        let transfer = transfer(length);
        let early = tokio::spawn(all(transfer.read()));
        let idle = transfer.read();
        for at in (0..count).step_by(100_000) {
            transfer.append(bytes(at, (at + 100_000).min(count))).await.unwrap();
        }
        let part =
            all(transfer.read().part(MEMORY_BYTES_MAX as u64 - 5, MEMORY_BYTES_MAX as u64 + 5));
        let around = MEMORY_BYTES_MAX - 5..MEMORY_BYTES_MAX + 5;
        assert_eq!(part.await.unwrap(), bytes(around.start, around.end), "it need not end first");
        transfer.end(End::Whole);
        assert_eq!(early.await.unwrap().unwrap(), bytes(0, count));
        assert_eq!(all(idle).await.unwrap(), bytes(0, count));
        assert_eq!(transfer.whole(), None, "it is not in memory");
        let held: usize = transfer.state().pieces.iter().map(|it| it.1.len()).sum();
        assert!(held <= MEMORY_BYTES_MAX);
    }
}

#[tokio::test]
async fn a_small_body_is_in_memory_as_one_piece() {
    let transfer = transfer(None);
    transfer.append(bytes(0, 10)).await.unwrap();
    assert_eq!(transfer.whole(), None);
    transfer.append(bytes(10, 20)).await.unwrap();
    transfer.end(End::Whole);
    assert_eq!(transfer.whole(), Some(bytes(0, 20)));
    assert_eq!(all(transfer.read().part(5, 15)).await.unwrap(), bytes(5, 15));
    assert!(transfer.state().file.is_none());
}

#[tokio::test]
async fn all_are_cut_off_where_the_origin_breaks_off() {
    for (length, end) in [(Some(30), End::Broken), (None, End::Broken), (Some(30), End::Whole)] {
        let transfer = transfer(length);
        let mut reader = transfer.read();
        transfer.append(bytes(0, 20)).await.unwrap();
        transfer.end(end);
        let first = reader.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, bytes(0, 20));
        assert!(reader.frame().await.unwrap().is_err(), "{length:?} {end:?}");
    }
}

#[tokio::test]
async fn what_nobody_reads_is_finished_only_near_its_end() {
    let length: usize = 10 << 20;
    let transfer = transfer(Some(length as u64));
    let reader = transfer.read();
    transfer.append(bytes(0, 1_000)).await.unwrap();
    assert!(!transfer.is_abandoned());
    drop(reader);
    assert!(transfer.is_abandoned());
    transfer.abandoned().await;
    let early = self::transfer(Some(1_000 + REST_BYTES_MAX));
    early.append(bytes(0, 1_000)).await.unwrap();
    assert!(!early.is_abandoned(), "64 KiB are left");
    let late = self::transfer(Some(length as u64));
    late.append(bytes(0, length / 10 * 9 + 9)).await.unwrap();
    assert!(!late.is_abandoned(), "90 % is there");
}

/// Returns an answer with a part of a body, in pieces.
fn coming(from: usize, to: usize) -> Coming {
    let mut at = from;
    let read = move || {
        let piece = bytes(at, (at + PIECE).min(to));
        at += piece.len();
        Ok((!piece.is_empty()).then_some(piece))
    };
    let body = net::body::pieces(read, (to - from) as u64);
    let url = url::Url::parse("http://h/").unwrap();
    Coming::made(url, StatusCode::OK, HeaderMap::new(), body)
}

const PIECE: usize = 100_000;

#[tokio::test]
async fn what_cannot_be_kept_flows_to_those_who_read_it() {
    let (gone, there) = (tempfile::tempdir().unwrap().path().to_owned(), std::env::temp_dir());
    let (length, part) = (8_usize << 20, 5_usize << 20..6 << 20);
    let (whole, some) = (Some(length as u64), 3 * MEMORY_BYTES_MAX);
    for (promised, folder, kept_max) in [
        (whole, &gone, MEMORY_BYTES_MAX),
        (None, &gone, MEMORY_BYTES_MAX),
        (whole, &there, MEMORY_BYTES_MAX),
        (None, &there, some),
    ] {
        let transfer = Transfer::new(folder.clone(), boundless());
        transfer.promise(promised);
        let bytes_max = if folder == &gone { u64::MAX } else { some as u64 };
        let idle = transfer.read();
        let early = tokio::spawn(all(transfer.read()));
        let some = transfer.read().part(part.start as u64, part.end as u64);
        let some = tokio::spawn(all(some));
        let filled = Arc::clone(&transfer);
        let filling =
            tokio::spawn(async move { filled.fill(None, &mut coming(0, length), bytes_max).await });
        // The one that does not read holds up the others for a while, within bounded memory.
        let most = kept_max + usize::try_from(window::BYTES_MAX).unwrap();
        while transfer.arrived() <= (most - PIECE) as u64 {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert!(transfer.arrived() <= most as u64, "{}", transfer.arrived());
        let file = transfer.state().file.as_ref().map_or(0, |it| it.metadata().unwrap().len());
        assert!(file <= (kept_max - MEMORY_BYTES_MAX + PIECE) as u64, "{file}");
        assert_eq!(transfer.is_too_long(), folder == &there);
        transfer.settled().await;
        let idle = tokio::spawn(all(idle));
        assert_eq!(filling.await.unwrap(), End::Passed);
        for reader in [early, idle] {
            assert_eq!(reader.await.unwrap().unwrap(), bytes(0, length));
        }
        assert_eq!(some.await.unwrap().unwrap(), bytes(part.start, part.end));
        assert_eq!((transfer.whole(), transfer.readers()), (None, 0));
    }
}

#[tokio::test]
async fn what_is_written_already_is_read_where_the_disk_is_full_later() {
    let (middle, length) = (3_usize << 20, 6_usize << 20);
    let transfer = transfer(Some(length as u64));
    let reader = transfer.read();
    for at in (0..middle).step_by(1 << 20) {
        transfer.append(bytes(at, at + (1 << 20))).await.unwrap();
    }
    let file = transfer.state().file.clone().unwrap();
    let read_only = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    transfer.state().file = Some(Arc::new(read_only));
    let filled = Arc::clone(&transfer);
    let filling =
        tokio::spawn(async move { filled.fill(None, &mut coming(middle, length), u64::MAX).await });
    assert_eq!(all(reader).await.unwrap(), bytes(0, length));
    assert_eq!(filling.await.unwrap(), End::Passed);
}

#[tokio::test]
async fn bodies_on_their_way_have_no_more_room_than_all_together() {
    // Each has 1 MiB in memory.
    let (length, room) = (5_usize << 19, 2_u64 << 20);
    let quota = Arc::new(Quota::new(room));
    let fill = async || {
        let transfer = Transfer::new(std::env::temp_dir(), Arc::clone(&quota));
        let reading = tokio::spawn(all(transfer.read()));
        let end = transfer.fill(None, &mut coming(0, length), u64::MAX).await;
        assert_eq!(reading.await.unwrap().unwrap(), bytes(0, length), "who reads it has it");
        let file = transfer.state().file.as_ref().map_or(0, |it| it.metadata().unwrap().len());
        (transfer, end, file)
    };
    let one = fill().await;
    assert_eq!((one.1, quota.taken()), (End::Whole, one.2));
    let other = fill().await;
    assert_eq!((other.1, quota.taken()), (End::Passed, one.2 + other.2));
    assert!(0 < other.2 && quota.taken() <= room, "{} bytes", other.2);
    drop(one);
    assert_eq!(fill().await.1, End::Whole, "there is room again");
    assert_eq!(quota.taken(), other.2);
    drop(other);
    assert_eq!(quota.taken(), 0);
}

#[tokio::test]
async fn what_is_not_kept_is_given_up_with_its_last_reader() {
    let transfer = transfer(Some(MEMORY_BYTES_MAX as u64));
    let reader = transfer.read();
    transfer.append(bytes(0, MEMORY_BYTES_MAX - 10)).await.unwrap();
    transfer.pass_on(bytes(0, 5)).await;
    assert!(!transfer.is_abandoned());
    drop(reader);
    assert!(transfer.is_abandoned(), "the rest is short, and of use to nobody");
}

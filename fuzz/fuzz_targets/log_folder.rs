//! Fuzzing of a replica's log folder: any bytes, or a sound folder with altered bytes. It is
//! refused, or can be read up to its version.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use collection::replica::{CHAIN, Chain, Replica, check};
use libfuzzer_sys::fuzz_target;

/// Returns the folder for the rounds of this process, in memory if the system can.
fn temp() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("harvest-fuzz-{}-log", std::process::id()))
}

/// Returns the `CHAIN` of a sound folder, and its files.
fn sound() -> &'static (Vec<u8>, Vec<Vec<u8>>) {
    static SOUND: OnceLock<(Vec<u8>, Vec<Vec<u8>>)> = OnceLock::new();
    SOUND.get_or_init(|| collection::fuzzing::log_folder(&temp().join("sound")).expect("a folder"))
}

/// Writes a folder with its `CHAIN`; files without given bytes are missing.
fn write(dir: &Path, chain: &[u8], files: &[Vec<u8>]) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("a folder");
    fs::write(dir.join(CHAIN), chain).expect("room");
    if let Ok(chain) = Chain::parse(chain) {
        assert!(chain.link() == chain.base_link || !chain.files.is_empty());
        for (file, bytes) in chain.files.iter().zip(files) {
            fs::write(dir.join(file.name()), bytes).expect("room");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&way, bytes)) = bytes.split_first() else { return };
    let dir = temp().join("round");
    let (chain, files) = sound();
    let (mut chain, mut files) = (chain.clone(), files.clone());
    if way % 2 == 0 {
        let mut parts = bytes.split(|it| *it == 0xfe);
        chain = parts.next().unwrap_or_default().to_vec();
        files = parts.map(<[u8]>::to_vec).collect();
    } else {
        let which = usize::from(way / 2) % (files.len() + 1);
        let Some(([at, more], patch)) = bytes.split_first_chunk() else { return };
        let file = files.get_mut(which).unwrap_or(&mut chain);
        let at = usize::from(u16::from_le_bytes([*at, *more])) % file.len().max(1);
        file.iter_mut().skip(at).zip(patch).for_each(|(byte, other)| *byte = *other);
    }
    if let Ok(read) = Chain::parse(&chain) {
        assert_eq!(read.to_string().as_bytes(), chain);
    }
    write(&dir, &chain, &files);
    let is_sound = check(&dir, None).is_ok();
    match Replica::open(&dir) {
        Ok(replica) => {
            assert!(!is_sound || replica.version() == Chain::parse(&chain).unwrap().version)
        }
        Err(error) => assert!(!is_sound, "{error}"),
    }
});

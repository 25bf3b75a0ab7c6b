//! What befalls a folder: bits that flip, parts that are overwritten, sectors that are not there, files that
//! are cut.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Draws by lot.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 3) % end.max(1)
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }
}

/// Which files are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Log,
    Manifest,
    /// The manifest's copy.
    Copy,
    Keys,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Flip,
    Overwrite,
    Sectors,
    Cut,
    Remove,
}

/// One harm.
#[derive(Clone, Debug)]
pub(super) struct Harm {
    victim: Victim,
    way: Way,
    /// Whether the collection is closed first, and opened again afterwards.
    pub(super) at_rest: bool,
}

impl Harm {
    /// Whether it hits one of the two lists of segments: nobody starts without either.
    pub(super) fn is_of_list(&self) -> bool {
        matches!(self.victim, Victim::Manifest | Victim::Copy)
    }

    pub(super) fn by_lot(random: &mut Random) -> Self {
        let victim = match random.below(16) {
            0 => Victim::Manifest,
            1 => Victim::Copy,
            2 | 3 => Victim::Keys,
            _ => Victim::Log,
        };
        let way = [Way::Flip, Way::Flip, Way::Overwrite, Way::Sectors, Way::Cut, Way::Remove];
        let way = way[usize::try_from(random.below(6)).unwrap()];
        // A file that is open is written to, gone or not.
        let at_rest = matches!(way, Way::Remove) || random.below(2) == 0;
        Self { victim, way, at_rest }
    }

    /// Does it to one file of the folder; says what was done.
    pub(super) fn befall(&self, dir: &Path, random: &mut Random) -> String {
        let mut files = match self.victim {
            Victim::Manifest => vec![dir.join("MANIFEST")],
            Victim::Copy => vec![dir.join("MANIFEST.copy")],
            Victim::Keys => files(&dir.join("keys"), ""),
            Victim::Log => files(dir, ".gz"),
        };
        files.retain(|it| fs::metadata(it).is_ok_and(|it| it.is_file() && it.len() != 0));
        files.sort();
        if files.is_empty() {
            return "nothing is there".to_owned();
        }
        let path = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        let at = random.below(length);
        let most = [8, 512, 4096, 64 << 10][usize::try_from(random.below(4)).unwrap()];
        let count = (1 + random.below(most)).min(length - at);
        let count_bytes = usize::try_from(count).unwrap();
        match self.way {
            Way::Flip => {
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
            }
            Way::Overwrite => {
                let noise: Vec<u8> = (0..count_bytes).map(|_| random.byte()).collect();
                file.write_all_at(&noise, at).unwrap();
            }
            Way::Sectors => {
                let start = at / 512 * 512;
                let end = (start + count.next_multiple_of(512)).min(length);
                let zeros = vec![0; usize::try_from(end - start).unwrap()];
                file.write_all_at(&zeros, start).unwrap();
            }
            Way::Cut => file.set_len(at).unwrap(),
            Way::Remove => fs::remove_file(path).unwrap(),
        }
        format!("{} of {length} bytes, at {at}, {count}", path.display())
    }
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|it| it.path()).filter(|it| it.to_string_lossy().ends_with(ending)).collect()
}

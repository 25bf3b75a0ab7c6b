//! Harm to a folder: flipped bits, overwritten parts, missing sectors, cut files.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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

/// The kind of files that are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetFile {
    Log,
    Manifest,
    Copy,
    Keys,
}

#[derive(Clone, Copy, Debug)]
enum HarmKind {
    Flip,
    Overwrite,
    Sectors,
    Cut,
    Remove,
}

#[derive(Clone, Debug)]
pub(super) struct Harm {
    target: TargetFile,
    kind: HarmKind,
    /// Whether the collection is closed before and opened again after.
    pub(super) at_rest: bool,
}

impl Harm {
    /// Returns whether the harm hits one of the two manifests: an opening needs one of them.
    pub(super) fn hits_manifest(&self) -> bool {
        matches!(self.target, TargetFile::Manifest | TargetFile::Copy)
    }

    pub(super) fn random(random: &mut Random) -> Self {
        let target = match random.below(16) {
            0 => TargetFile::Manifest,
            1 => TargetFile::Copy,
            2 | 3 => TargetFile::Keys,
            _ => TargetFile::Log,
        };
        let kind = [
            HarmKind::Flip,
            HarmKind::Flip,
            HarmKind::Overwrite,
            HarmKind::Sectors,
            HarmKind::Cut,
            HarmKind::Remove,
        ];
        let kind = kind[usize::try_from(random.below(6)).unwrap()];
        // A process can still write to a removed file that it has open, so a removal needs a closed
        // collection.
        let at_rest = matches!(kind, HarmKind::Remove) || random.below(2) == 0;
        Self { target, kind, at_rest }
    }

    /// Harms one file of the folder; returns a description of the harm.
    pub(super) fn apply(&self, dir: &Path, random: &mut Random) -> String {
        let mut files = match self.target {
            TargetFile::Manifest => vec![dir.join("MANIFEST")],
            TargetFile::Copy => vec![dir.join("MANIFEST.copy")],
            TargetFile::Keys => files(&dir.join("keys"), ""),
            TargetFile::Log => files(dir, ".gz"),
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
        match self.kind {
            HarmKind::Flip => {
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
            }
            HarmKind::Overwrite => {
                let noise: Vec<u8> = (0..count_bytes).map(|_| random.byte()).collect();
                file.write_all_at(&noise, at).unwrap();
            }
            HarmKind::Sectors => {
                let start = at / 512 * 512;
                let end = (start + count.next_multiple_of(512)).min(length);
                let zeros = vec![0; usize::try_from(end - start).unwrap()];
                file.write_all_at(&zeros, start).unwrap();
            }
            HarmKind::Cut => file.set_len(at).unwrap(),
            HarmKind::Remove => fs::remove_file(path).unwrap(),
        }
        format!("{} of {length} bytes, at {at}, {count}", path.display())
    }
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|it| it.path()).filter(|it| it.to_string_lossy().ends_with(ending)).collect()
}

//! What there is of a tree when its store is opened.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;

use super::building::{admit, building_number};
use super::error::Error;
use super::generation::{Generation, TREE, serial};
use super::passage::{FOLDER, hide, set_mode};
use crate::version::Kind;

/// Generations that are being removed begin so.
const GONE: &str = ".gone-";

/// Where a generation is while it is removed.
pub(super) fn gone_dir(generation: &Path) -> PathBuf {
    let name = generation.file_name().unwrap_or_default().to_string_lossy();
    generation.with_file_name(format!("{GONE}{name}"))
}

/// The generations that are there.
pub(super) struct Opened {
    /// The newest is the last.
    pub(super) all: Vec<Arc<Generation>>,
    /// That was ever given, of those whose generations are there.
    pub(super) serial: u64,
    /// Those that were whole once.
    pub(super) damaged: Vec<PathBuf>,
    /// What was being made or removed, or is damaged. To remove it may take minutes.
    pub(super) left: Vec<PathBuf>,
    /// The greatest number of those that were being made.
    pub(super) begun: u64,
}

/// Opens all generations. What is damaged is put out of the way; what others could read that is not for them, they cannot
/// any more.
pub(super) fn open_all(disk: &Disk, dir: &Path, kind: Kind) -> Result<Opened, Error> {
    let mut serials = Vec::new();
    let (mut left, mut begun) = (Vec::new(), 0);
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let path = entry.map_err(Error::io(dir))?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        begun = begun.max(building_number(name).unwrap_or(0));
        match serial(name) {
            Some(serial) => serials.push((serial, path)),
            None => left.push(path),
        }
    }
    serials.sort_unstable();
    let serial = serials.last().map_or(0, |it| it.0);
    let mut opened = Opened { all: Vec::new(), serial, damaged: Vec::new(), left, begun };
    for (_, path) in serials {
        admit(&path, kind)?;
        if kind == Kind::Collection {
            set_mode(&path.join(TREE), FOLDER)?;
            hide(&path.join(TREE), 0o400, true)?;
        }
        match Generation::open(&path, kind) {
            Ok(generation) => opened.all.push(Arc::new(generation)),
            Err(error) if error.is_damage() => {
                let gone = gone_dir(&path);
                disk.remove_tree(&gone).map_err(Error::io(&gone))?;
                disk.rename(&path, &gone).map_err(Error::io(&path))?;
                opened.damaged.push(path);
                opened.left.push(gone);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(opened)
}

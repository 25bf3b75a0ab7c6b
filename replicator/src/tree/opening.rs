//! Opening of a store: its generations, and the leftovers of an earlier run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;

use super::access::{FOLDER, hide, set_mode};
use super::building::{admit, building_number};
use super::error::Error;
use super::generation::{Generation, TREE, serial};
use crate::version::Kind;

/// Prefix of generations that are being removed.
const GONE: &str = ".gone-";

/// Returns the path of a generation while it is being removed.
pub(super) fn gone_dir(generation: &Path) -> PathBuf {
    let name = generation.file_name().unwrap_or_default().to_string_lossy();
    generation.with_file_name(format!("{GONE}{name}"))
}

pub(super) struct Opened {
    pub(super) all: Vec<Arc<Generation>>,
    /// The greatest serial of the generations found.
    pub(super) serial: u64,
    /// The former paths of the damaged generations, which were once whole.
    pub(super) damaged: Vec<PathBuf>,
    /// Directories that were being made or removed, or are damaged. Their removal may take minutes.
    pub(super) leftovers: Vec<PathBuf>,
    /// The greatest number of the builds that were found.
    pub(super) begun: u64,
}

/// Opens all generations. Renames damaged ones, and removes access rights that group and others
/// should not have.
pub(super) fn open_all(disk: &Disk, dir: &Path, kind: Kind) -> Result<Opened, Error> {
    let mut serials = Vec::new();
    let (mut leftovers, mut begun) = (Vec::new(), 0);
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let path = entry.map_err(Error::io(dir))?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        begun = begun.max(building_number(name).unwrap_or(0));
        match serial(name) {
            Some(serial) => serials.push((serial, path)),
            None => leftovers.push(path),
        }
    }
    serials.sort_unstable();
    let serial = serials.last().map_or(0, |it| it.0);
    let mut opened = Opened { all: Vec::new(), serial, damaged: Vec::new(), leftovers, begun };
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
                opened.leftovers.push(gone);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(opened)
}

//! Purging: removes deleted documents from the index's files at once, not with the next merge.

use std::collections::BTreeSet;
use std::fs;

use super::{Index, locked, make_writer};
use crate::error::Error;

impl Index {
    /// Rewrites every segment with deleted documents, and removes the old files. Returns the number
    /// of deleted documents and old files that remain: a running search holds its files until it
    /// ends. Waits for a running apply. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when the index cannot be written; call again.
    pub fn purge(&self) -> Result<u64, Error> {
        let inner = &self.inner;
        let failed = |source| self.failed(source);
        let mut slot = locked(&inner.writer);
        // A running merge may still read the old segments.
        if let Some(writer) = slot.take() {
            writer.wait_merging_threads().map_err(failed)?;
        }
        let mut writer = make_writer(&inner.engine, inner.options).map_err(failed)?;
        for meta in inner.engine.searchable_segment_metas().map_err(failed)? {
            if meta.num_deleted_docs() != 0 {
                writer.merge(&[meta.id()]).wait().map_err(failed)?;
            }
        }
        inner.reader.reload().map_err(failed)?;
        self.warm();
        writer.garbage_collect_files().wait().map_err(failed)?;
        *slot = Some(writer);
        let metas = inner.engine.searchable_segment_metas().map_err(failed)?;
        let deleted: u64 = metas.iter().map(|it| u64::from(it.num_deleted_docs())).sum();
        let known: BTreeSet<String> = metas.iter().map(|it| it.id().uuid_string()).collect();
        let files = fs::read_dir(&inner.dir).into_iter().flatten().flatten();
        let old = files.filter(|it| {
            let name = it.file_name();
            let stem = name.to_string_lossy().split('.').next().unwrap_or_default().to_owned();
            // Files of segments have names of 32 hex digits; no other file holds text of objects.
            stem.len() == 32
                && stem.bytes().all(|it| it.is_ascii_hexdigit())
                && !known.contains(&stem)
        });
        Ok(deleted + old.count() as u64)
    }
}

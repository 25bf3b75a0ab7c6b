//! `[[source]]` with `kind = "oai"`: the settings that only a broker has for a repository.
//!
//! Sans-I/O.

use exchange::source::Oai;
use settings::Table;

/// Reads the harvest settings of a `[[source]]`. Also returns whether the repository is pulled at
/// its announced update times.
pub(super) fn read(table: &Table<'_>) -> (Oai, bool) {
    if table.boolean("follow", false) {
        let message = "an OAI-PMH repository cannot be asked to hold its answer";
        table.mistake("follow", message, "false: the schedule keeps it fresh");
    }
    (Oai::read(table), table.boolean("announced", true))
}

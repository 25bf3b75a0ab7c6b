//! `[[source]]` of `kind = "oai"`: what only a broker says of a repository.
//!
//! Sans-I/O.

use exchange::source::Oai;
use settings::Table;

/// Reads what a `[[source]]` says of how it is harvested, and whether it is pulled when it says to be
/// updated.
pub(super) fn read(table: &Table<'_>) -> (Oai, bool) {
    if table.boolean("follow", false) {
        let message = "an OAI-PMH repository cannot be asked to hold its answer";
        table.mistake("follow", message, "false: the schedule keeps it fresh");
    }
    (Oai::read(table), table.boolean("announced", true))
}

//! Sound: tags and duration; tunes (MIDI), modules and play lists.
//!
//! Source: `lofty` reads the tags of ID3, Vorbis, MP4, APE, RIFF and AIFF. Play lists are M3U and PLS, as
//! players write them. Texts of tracker modules are at the positions that ProTracker, FastTracker 2,
//! Scream Tracker 3 and Impulse Tracker use.
//!
//! # Differences from the paper
//!
//! * Essence used only a sound's name. Here its tags are read, but never the sound itself.

mod midi;
mod modules;
mod sun;

use lofty::config::{ParseOptions, ParsingMode};
use lofty::file::{AudioFile, TaggedFileExt};
use lofty::probe::Probe;
use lofty::tag::{ItemKey, ItemValue, Tag};
use url::Url;

use super::{report_end, video};
use crate::cancellable::CancellableReader;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::object::ProblemKind;
use crate::text::decode;
use crate::{Draft, Input};

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &input.object.bytes;
    if is_play_list(input) {
        return play_list(input);
    }
    // ASF holds sound and films.
    if bytes.starts_with(b"\x30\x26\xb2\x75") {
        return video::summarize(input);
    }
    let mut about = Metadata::default();
    let is_whole = if bytes.starts_with(b"MThd") {
        midi::read(bytes, &mut about, input.cancelled)
    } else if bytes.starts_with(sun::MARK) {
        sun::read(bytes, input.object.size, &mut about).is_some()
    } else if modules::read(bytes, &mut about).is_some() {
        true
    } else {
        tagged(input, &mut about)
    };
    let mut draft = about.draft(input.text_bytes_max());
    if (input.cancelled)() {
        draft.problem(ProblemKind::Time, "ran out of time on the sound's tags");
    } else if !is_whole {
        report_end(input, "cannot be read to the end of its tags", &mut draft);
    }
    draft
}

/// Reads tags and duration; returns false if the sound is recognized but damaged.
fn tagged(input: &Input<'_>, about: &mut Metadata) -> bool {
    let reader = CancellableReader::of(input);
    let options = ParseOptions::new().read_cover_art(false).parsing_mode(ParsingMode::Relaxed);
    let Ok(probe) = Probe::new(reader).options(options).guess_file_type() else { return true };
    if probe.file_type().is_none() {
        // A format without tags.
        return true;
    }
    let Ok(file) = probe.read() else { return false };
    for tag in file.tags() {
        items(tag, about);
    }
    let duration = file.properties().duration().as_millis();
    about.duration(u64::try_from(duration).unwrap_or_default());
    true
}

fn items(tag: &Tag, about: &mut Metadata) {
    for item in tag.items() {
        let (ItemValue::Text(value) | ItemValue::Locator(value)) = item.value() else { continue };
        let Some(field) = field(item.key()) else { continue };
        about.add(field, value);
    }
}

fn field(key: ItemKey) -> Option<Field> {
    Some(match key {
        ItemKey::TrackTitle => Field::Title,
        ItemKey::TrackArtist | ItemKey::TrackArtists => Field::Author,
        ItemKey::AlbumArtist
        | ItemKey::Composer
        | ItemKey::Lyricist
        | ItemKey::Performer
        | ItemKey::Conductor
        | ItemKey::Arranger
        | ItemKey::Writer => Field::Contributor,
        ItemKey::AlbumTitle => Field::Album,
        ItemKey::Genre => Field::Genre,
        ItemKey::RecordingDate | ItemKey::Year | ItemKey::ReleaseDate => Field::Date,
        ItemKey::Description | ItemKey::PodcastDescription => Field::Description,
        ItemKey::Comment => Field::Description,
        ItemKey::Lyrics | ItemKey::UnsyncLyrics | ItemKey::TrackSubtitle => Field::Text,
        ItemKey::CopyrightMessage => Field::Copyright,
        ItemKey::License => Field::License,
        ItemKey::Publisher | ItemKey::Label => Field::Publisher,
        ItemKey::Language => Field::Language,
        ItemKey::EncoderSoftware => Field::Generator,
        ItemKey::PodcastKeywords => Field::Keyword,
        ItemKey::Isrc => Field::Identifier,
        _ => return None,
    })
}

fn is_play_list(input: &Input<'_>) -> bool {
    let head = input.head(1024);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.starts_with(b"#EXTM3U") || head.starts_with(b"[playlist]") {
        return true;
    }
    let name = input.object.name.to_ascii_lowercase();
    (name.ends_with(".m3u") || name.ends_with(".m3u8") || name.ends_with(".pls"))
        && !head.contains(&0)
}

/// Summarizes a play list: its entries are references, their titles are text.
fn play_list<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = decode(input.head(Limit::Playlist.bound()), None);
    let base = input.base();
    let mut about = Metadata::default();
    let mut references = Vec::new();
    let mut add = |link: &str| {
        references.extend(Url::options().base_url(base.as_ref()).parse(link).map(String::from));
    };
    for line in text.lines() {
        let line = line.trim();
        if let Some((name, value)) = line.split_once('=')
            && name.starts_with(['F', 'T', 'L', 'N', 'V'])
        {
            if name.starts_with("File") {
                add(value);
            } else if name.starts_with("Title") {
                about.add(Field::Text, value);
            }
        } else if let Some(entry) = line.strip_prefix("#EXTINF:") {
            about.add(Field::Text, entry.split_once(',').map_or("", |it| it.1));
        } else if let Some(title) = line.strip_prefix("#PLAYLIST:") {
            about.add(Field::Title, title);
        } else if !line.is_empty() && !line.starts_with(['#', '[']) {
            add(line);
        }
    }
    let entries = references.len();
    let mut draft = about.draft(input.text_bytes_max());
    input.report(Limit::Playlist, &mut draft);
    draft.other("Entries", entries.to_string());
    draft.references = references;
    draft
}

#[cfg(test)]
mod tests;

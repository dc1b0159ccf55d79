//! The options of every command.

use crate::terminal::Color;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indelible::{MediumKind, Tracking};
use std::time::Duration;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Kind of medium to take the pool for, instead of the kind that its path is
    ///
    /// auto: the path's own kind. file: a file or block device, written by system calls. memory: a
    /// file treated as persistent memory, such as one on tmpfs; whether anything survives a power
    /// failure is the file system's affair. dax: a file on a DAX file system. devdax: a device-DAX
    /// character device.
    #[arg(long, global = true, value_name = "KIND", default_value = "auto", value_parser = words(&MediumKind::WORDS))]
    pub medium: MediumKind,

    /// How stores to attached objects are found
    ///
    /// auto: the best the kernel offers. wp-async: write protection that the kernel lifts by itself
    /// (Linux 6.7). fault-log: the same, and the kernel's log of page faults names changed pages; a
    /// psync costs what changed, and may find other processes' stores later. mprotect: page
    /// protection and SIGSEGV; everywhere. explicit: the program marks its stores.
    #[arg(long, global = true, value_name = "HOW", default_value = "auto", value_parser = words(&Tracking::WORDS))]
    pub tracking: Tracking,

    /// Print JSON for programs instead of text for people
    ///
    /// Field names and the meaning of values are stable; fields may be added. Sizes are in bytes,
    /// times in UTC as RFC 3339 has them. A failure is an object on one line of standard error:
    /// {"error":"…","help":"…","exit":5,"kind":"NotFound","pool":"…","object":"…"}.
    #[arg(long, global = true)]
    pub json: bool,

    /// Print no notes, no progress, and no confirmations
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Report progress on standard error
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// Color the labels on standard error
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, hide_default_value = true)]
    pub color: Color,

    /// Accept network and user-space file systems, whose locks may not keep other machines out
    #[arg(long, global = true)]
    pub allow_remote: bool,

    /// Wait so many seconds for locks of others
    ///
    /// For an object or a device that another process has: by default not at all. For the table of
    /// a pool: by default 20 seconds.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub wait: Option<Duration>,
}

fn words<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).try_map(|given: String| {
        words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or("not one of the words")
    })
}

/// Ten years, in seconds.
const LONGEST: f64 = 315_360_000.0;

pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let usable = (0.0..=LONGEST).contains(&number).then(|| Duration::from_secs_f64(number));
    usable.ok_or_else(|| format!("give from 0 to {LONGEST} seconds, ten years"))
}

use super::{Anchor, INTERVAL};
use crate::pool::command;
use std::io;
use std::time::Duration;

const STORED: &str = "stored";

/// An anchor behind a command: a service on another machine, a ledger, a token.
///
/// `/bin/sh` runs the command with one line on its standard input, and expects exit status 0.
/// `get`: it writes the record, a line, or nothing if it has none. `put`, a blank and a record: it
/// stores that, and writes `stored` once it is durable. It may refuse a record whose version, the
/// fourth field, is lower than the stored one's.
///
/// ```
/// # use indelible::CommandAnchor;
/// # use std::time::Duration;
/// let anchor = CommandAnchor::new(
///     r#"read -r what record
///        case $what in
///            get) ssh vault cat ledger.anchor ;;
///            put) echo "$record" | ssh vault 'cat >new && sync new && mv new ledger.anchor' && echo stored ;;
///        esac"#,
///     Duration::from_secs(10),
/// );
/// ```
#[derive(Clone, Debug)]
pub struct CommandAnchor {
    command: String,
    timeout: Duration,
    interval: Duration,
}

impl CommandAnchor {
    /// The anchor of this command, which is killed after `timeout`.
    #[must_use]
    pub fn new(command: &str, timeout: Duration) -> CommandAnchor {
        CommandAnchor { command: command.to_owned(), timeout, interval: INTERVAL }
    }

    /// Sets the [interval](Anchor::interval); zero: each psync.
    #[must_use]
    pub fn every(self, interval: Duration) -> CommandAnchor {
        CommandAnchor { interval, ..self }
    }

    fn ask(&self, request: &str) -> io::Result<String> {
        let output = command::output(&self.command, &format!("{request}\n"), self.timeout);
        let text = String::from_utf8(output.map_err(io::Error::other)?).map_err(io::Error::other)?;
        Ok(text.trim_end().to_owned())
    }
}

impl Anchor for CommandAnchor {
    fn read(&self) -> io::Result<Option<String>> {
        Ok(Some(self.ask("get")?).filter(|record| !record.is_empty()))
    }

    fn write(&self, record: &str) -> io::Result<()> {
        match self.ask(&format!("put {record}"))?.as_str() {
            STORED => Ok(()),
            _ => {
                let what = format!("the command {:?} did not answer {STORED:?} to a record", self.command);
                Err(io::Error::other(what))
            }
        }
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

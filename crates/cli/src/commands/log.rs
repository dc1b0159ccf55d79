use crate::alike;
use crate::context::Context;
use crate::failure::Result;
use crate::keys::KeyArgs;
use crate::out::Out;
use crate::text::{self, printable};
use crate::values::pool;
use clap::Args;
use indelible::LogRecord;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(100);

/// Write the records of a log, as its last psync left them, and those that follow
///
/// A process that appends to the log goes on meanwhile. Each record is a line; bytes that are no
/// text are shown as they can be, and JSON has them as hexadecimal digits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo log data.pmo events
  pmo log data.pmo events --follow
  pmo log data.pmo events --from 1000 --json | jq -r .text

JSON, a line for each record:
  {\"number\":7,\"queue\":\"9f3a52c1d07be684\",\"message\":7,\"text\":\"started\"}
  queue and message say where a message came from, and are null for others; hex takes the place of text where the bytes are no UTF-8")]
pub struct Log {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the log
    name: String,

    /// Go on with records that are appended, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Number of the first record to write
    #[arg(long, value_name = "NUMBER", default_value = "0", hide_default_value = true)]
    from: u64,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    queue: Option<String>,
    message: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

pub fn run(context: &Context, args: &Log) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let log = pool.read_log(&args.name, &key);
    let mut log = log.map_err(|error| alike::explain(&pool, &args.name, error))?;
    let mut out = Out::new();
    loop {
        while let Some(record) = log.read()? {
            if record.number >= args.from {
                out.line(&line(context.json, &record)?)?;
            }
        }
        if !args.follow {
            return out.finish();
        }
        out.flush()?;
        while !log.refresh()? {
            std::thread::sleep(LOOK);
        }
    }
}

fn line(json: bool, record: &LogRecord) -> Result<String> {
    if !json {
        return Ok(printable(&String::from_utf8_lossy(&record.bytes)));
    }
    let text = std::str::from_utf8(&record.bytes).ok();
    let hex = || record.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = Line {
        number: record.number,
        queue: record.message.map(|(queue, _)| format!("{queue:016x}")),
        message: record.message.map(|(_, number)| number),
        text,
        hex: text.is_none().then(hex),
    };
    Ok(text::json(&line)?)
}

//! Anchors of sealed objects, from the command line and the environment.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use clap::Args;
use indelible::{CommandAnchor, FileAnchor, SealKey, TpmAnchor};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Time limit for a command that gives a key or keeps an anchor: it may ask a person.
pub const PATIENCE: Duration = Duration::from_secs(60);

const COMMAND: &str = "command:";
const TPM: &str = "tpm:";

/// The anchor of a sealed object.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Seal keys")]
pub struct AnchorArgs {
    /// Anchor, out of the pool's way, that keeps the number of the object's newest state, so that
    /// an older one is refused: a file; `command:COMMAND` of the shell, which reads `get`, or `put`
    /// and a record, and answers with the record, or with `stored`, within a minute;
    /// `tpm:INDEX:FILE`, a file, maybe beside the pool, with a counter of the TPM 2.0,
    /// `tpm:INDEX@DEVICE:FILE` of another device than /dev/tpmrm0 [env: PMO_ANCHOR]
    #[arg(long, value_name = "ANCHOR")]
    anchor: Option<OsString>,
}

impl AnchorArgs {
    pub fn given(&self) -> Option<OsString> {
        let named = || std::env::var_os("PMO_ANCHOR").filter(|name| !name.is_empty());
        self.anchor.clone().or_else(named)
    }

    pub fn is_asked(&self) -> bool {
        self.anchor.is_some()
    }

    pub fn with(&self, key: SealKey) -> Result<SealKey> {
        let Some(name) = self.given() else { return Ok(key) };
        let text = name.to_str().unwrap_or_default();
        if let Some(command) = text.strip_prefix(COMMAND) {
            return Ok(key.anchored(CommandAnchor::new(command, PATIENCE)));
        }
        match text.strip_prefix(TPM) {
            Some(place) => Ok(key.anchored(of_tpm(place).ok_or_else(|| no_anchor(text))?)),
            None => Ok(key.anchored(FileAnchor::new(Path::new(&name)))),
        }
    }
}

fn of_tpm(place: &str) -> Option<TpmAnchor> {
    let (counter, file) = place.split_once(':')?;
    let (index, device) = match counter.split_once('@') {
        Some((index, device)) => (index, Some(Path::new(device))),
        None => (counter, None),
    };
    let index = u32::from_str_radix(index.strip_prefix("0x")?, 16).ok()?;
    (index >> 24 == 1 && !file.is_empty()).then(|| TpmAnchor::new(file, index, device))
}

fn no_anchor(name: &str) -> Failure {
    let help = "name it as `tpm:0x1800042:FILE`: an index from 0x1000000 to 0x1ffffff that nobody uses, and a file for the record; of a file whose name begins so, write `./tpm:`";
    Failure::new(Exit::Usage, format!("{name:?} names no anchor"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_tpm_are_named_by_index_device_and_file() {
        for good in ["0x1800042:record", "0x01800042@/dev/tpmrm1:a:b", "0x1ffffff:/x"] {
            assert!(of_tpm(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ":",
            "0x1800042",
            "0x1800042:",
            "1800042:x",
            "0x2000000:x",
            "0xffffff:x",
            "0x1x:x",
            "@/dev/x:y",
        ] {
            assert!(of_tpm(bad).is_none(), "{bad}");
        }
    }
}

//! Passphrases, entered on the controlling terminal.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};
use zeroize::Zeroizing;

const LONGEST: usize = 4096;
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: u8 = 8;
const KILL: u8 = 21;
const QUIT: u8 = 28;
const DELETE: u8 = 127;

struct Silent {
    terminal: File,
    before: Termios,
}

/// A new one is asked for twice.
pub fn ask(is_new: bool) -> Result<String> {
    let mut terminal = Silent::open()?;
    if !is_new {
        return terminal.line("Passphrase: ");
    }
    let first = Zeroizing::new(terminal.line("New passphrase: ")?);
    let second = Zeroizing::new(terminal.line("The same again: ")?);
    if first != second {
        return Err(Failure::new(Exit::Usage, "the two passphrases differ", "nothing was done: try again"));
    }
    Ok(first.to_string())
}

impl Silent {
    fn open() -> Result<Silent> {
        let none = |error: io::Error| {
            let message = format!("there is no terminal to ask for the passphrase on: {error}");
            Failure::new(
                Exit::Usage,
                message,
                "give it in a file, by --seal-passphrase-file or --new-passphrase-file",
            )
        };
        let terminal = File::options().read(true).write(true).open("/dev/tty").map_err(none)?;
        let before = tcgetattr(&terminal).map_err(|error| none(error.into()))?;
        let mut silent = before.clone();
        // No signals either: one that ended the tool would leave the terminal silent.
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(|error| none(error.into()))?;
        Ok(Silent { terminal, before })
    }

    fn line(&mut self, prompt: &str) -> Result<String> {
        let failed = |error: io::Error| {
            let message = format!("the terminal failed: {error}");
            Failure::new(Exit::Failed, message, "give the passphrase in a file")
        };
        self.terminal.write_all(prompt.as_bytes()).map_err(failed)?;
        let mut line = Zeroizing::new(Vec::with_capacity(LONGEST));
        let mut byte = Zeroizing::new([0]);
        loop {
            let got = self.terminal.read(&mut *byte).map_err(failed)?;
            match byte[0] {
                _ if got == 0 => break,
                b'\n' | b'\r' | END => break,
                INTERRUPT | QUIT => {
                    let _ = self.terminal.write_all(b"\n");
                    return Err(Failure::new(Exit::Failed, "interrupted", "nothing was done"));
                }
                BACKSPACE | DELETE => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
                KILL => line.clear(),
                _ if line.len() == LONGEST => {
                    let message = format!("the passphrase has more than {LONGEST} bytes");
                    return Err(Failure::new(Exit::Usage, message, "take a shorter one, or a key file"));
                }
                byte => line.push(byte),
            }
        }
        self.terminal.write_all(b"\n").map_err(failed)?;
        String::from_utf8(std::mem::take(&mut line)).map_err(|error| {
            drop(Zeroizing::new(error.into_bytes()));
            Failure::new(Exit::Usage, "the passphrase is not UTF-8", "check the terminal's encoding")
        })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

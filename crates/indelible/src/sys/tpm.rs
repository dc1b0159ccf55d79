//! A TPM 2.0, by the kernel's resource manager or an emulator's socket (TCG's TPM 2.0 Library,
//! parts 2 and 3).
//!
//! Sealing takes a storage key, derived from the TPM's seed, and an object under it that holds the
//! secret: only that TPM recovers the secret from the blob.

mod counter;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// The resource manager: each opening has the TPM for itself.
pub(crate) const DEVICE: &str = "/dev/tpmrm0";

pub(crate) const SECRET: usize = 32;

const ANSWER: usize = 4096;
const HEADER: usize = 10;
/// The slowest TPMs take seconds for a storage key.
const PATIENCE: Duration = Duration::from_secs(60);

const NO_SESSIONS: u16 = 0x8001;
const SESSIONS: u16 = 0x8002;

const CREATE_PRIMARY: u32 = 0x131;
const CREATE: u32 = 0x153;
const LOAD: u32 = 0x157;
const UNSEAL: u32 = 0x15e;
const FLUSH: u32 = 0x165;

const OWNER: u32 = 0x4000_0001;
const PASSWORD: [u8; 13] = [0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0];

/// A storage key: ECC, P-256, with AES-128-CFB, restricted to decryption, of this TPM only.
const STORAGE: [u8; 26] = [
    0x00, 0x23, 0x00, 0x0b, 0x00, 0x03, 0x04, 0x72, 0x00, 0x00, 0x00, 0x06, 0x00, 0x80, 0x00, 0x43, 0x00,
    0x10, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00,
];
const SEALED: [u8; 14] = [0x00, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x04, 0x52, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00];
const NOTHING: [u8; 6] = [0; 6];

#[derive(Debug, thiserror::Error)]
pub(crate) enum TpmError {
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("gives an answer that makes no sense")]
    Answer,
    #[error("did not make this blob: it was reset since, or is another machine's")]
    NotItsBlob,
    #[error("is locked after too many wrong passwords: wait, or reset its lockout")]
    Locked,
    #[error("wants a password of its owner, which is not supported")]
    Owned,
    #[error("has no storage hierarchy: it is disabled")]
    Disabled,
    #[error("was not started by the firmware")]
    NotStarted,
    #[error("has no counter {0:#x}: it was cleared since, or is another machine's")]
    NoCounter(u32),
    #[error(
        "has something else than a counter of eight bytes without a password at {0:#x}: take another index"
    )]
    NotACounter(u32),
    #[error("has no memory for another counter: remove an unused index (`tpm2_nvundefine`)")]
    Full,
    #[error("limits how often it is written: try again later")]
    Worn,
    #[error("refuses the command {command:#x} with {code:#x}")]
    Refused { command: u32, code: u32 },
}

enum Device {
    File(File),
    Socket(UnixStream),
}

pub(crate) struct Tpm {
    device: Device,
}

impl Tpm {
    pub(crate) fn open(path: &Path) -> io::Result<Tpm> {
        let device = if path.metadata()?.file_type().is_socket() {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Device::Socket(socket)
        } else {
            Device::File(File::options().read(true).write(true).open(path)?)
        };
        Ok(Tpm { device })
    }

    pub(crate) fn seal(&mut self, secret: &[u8; SECRET]) -> Result<Vec<u8>, TpmError> {
        self.with_storage_key(|tpm, parent| {
            let sensitive = [&[0, 0], &sized(secret)?[..]].concat();
            let sensitive = Zeroizing::new(sensitive);
            let parameters = Zeroizing::new([&sized(&sensitive)?[..], &sized(&SEALED)?, &NOTHING].concat());
            let answer = tpm.call(CREATE, &[parent], &parameters)?;
            let mut rest = &answer[HEADER + 4..];
            let (private, public) = (take(&mut rest)?, take(&mut rest)?);
            Ok([&sized(private)?[..], &sized(public)?].concat())
        })
    }

    pub(crate) fn unseal(&mut self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, TpmError> {
        self.with_storage_key(|tpm, parent| {
            let answer = tpm.call(LOAD, &[parent], blob)?;
            let item = number(&answer[HEADER..])?;
            let unsealed = tpm.call(UNSEAL, &[item], &[]);
            tpm.flush(item)?;
            let unsealed = unsealed?;
            let secret = take(&mut &unsealed[HEADER + 4..])?;
            let mut out = Zeroizing::new([0; SECRET]);
            if secret.len() != SECRET {
                return Err(TpmError::Answer);
            }
            out.copy_from_slice(secret);
            Ok(out)
        })
    }

    fn with_storage_key<R>(
        &mut self,
        f: impl FnOnce(&mut Tpm, u32) -> Result<R, TpmError>,
    ) -> Result<R, TpmError> {
        let parameters = [&[0, 4, 0, 0, 0, 0], &sized(&STORAGE)?[..], &NOTHING].concat();
        let answer = self.call(CREATE_PRIMARY, &[OWNER], &parameters)?;
        let parent = number(&answer[HEADER..])?;
        let done = f(self, parent);
        let flushed = self.flush(parent);
        let done = done?;
        flushed?;
        Ok(done)
    }

    fn flush(&mut self, handle: u32) -> Result<(), TpmError> {
        self.exchange(NO_SESSIONS, FLUSH, &handle.to_be_bytes()).map(drop)
    }

    fn call(
        &mut self,
        command: u32,
        handles: &[u32],
        parameters: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let handles = handles.iter().flat_map(|handle| handle.to_be_bytes()).collect::<Vec<u8>>();
        let body = Zeroizing::new([&handles[..], &PASSWORD, parameters].concat());
        self.exchange(SESSIONS, command, &body)
    }

    fn exchange(&mut self, tag: u16, command: u32, body: &[u8]) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(HEADER + body.len()));
        bytes.extend_from_slice(&tag.to_be_bytes());
        bytes.extend_from_slice(&((HEADER + body.len()) as u32).to_be_bytes());
        bytes.extend_from_slice(&command.to_be_bytes());
        bytes.extend_from_slice(body);
        // A device takes a command as a whole.
        self.device.write_all(&bytes)?;
        let answer = self.answer()?;
        match number(&answer[6..])? {
            // A head without a body, but for commands that have none.
            0 if answer.len() < HEADER + 4 && tag == SESSIONS => Err(TpmError::Answer),
            0 => Ok(answer),
            code => Err(refusal(command, code)),
        }
    }

    fn answer(&mut self) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let mut answer = Zeroizing::new(vec![0; ANSWER]);
        let mut got = 0;
        loop {
            let len = if got < HEADER { HEADER } else { number(&answer[2..])? as usize };
            if !(HEADER..=ANSWER).contains(&len) {
                return Err(TpmError::Answer);
            }
            if got >= len && got >= HEADER {
                answer.truncate(len);
                return Ok(answer);
            }
            // A device gives a whole answer; in a socket the next may follow.
            let end = if matches!(self.device, Device::File(_)) { ANSWER } else { len };
            match self.device.read(&mut answer[got..end])? {
                0 => return Err(TpmError::Answer),
                more => got += more,
            }
        }
    }
}

fn refusal(command: u32, code: u32) -> TpmError {
    // With its bit 7, a code has the number of a parameter, handle or session beside the error.
    let error = if code & 0x80 == 0 { code } else { code & 0xbf };
    match error {
        0x9f if command == LOAD => TpmError::NotItsBlob,
        0x921 => TpmError::Locked,
        0x8e | 0xa2 => TpmError::Owned,
        0x85 => TpmError::Disabled,
        0x100 => TpmError::NotStarted,
        0x14b => TpmError::Full,
        0x920 => TpmError::Worn,
        _ => TpmError::Refused { command, code },
    }
}

fn sized(bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, TpmError> {
    let len = u16::try_from(bytes.len()).map_err(|_| TpmError::Answer)?;
    Ok(Zeroizing::new([&len.to_be_bytes(), bytes].concat()))
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], TpmError> {
    let (len, bytes) = rest.split_first_chunk().ok_or(TpmError::Answer)?;
    let (taken, left) =
        bytes.split_at_checked(usize::from(u16::from_be_bytes(*len))).ok_or(TpmError::Answer)?;
    *rest = left;
    Ok(taken)
}

fn number(bytes: &[u8]) -> Result<u32, TpmError> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(TpmError::Answer)
}

impl Read for Device {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Device::File(file) => file.read(bytes),
            Device::Socket(socket) => socket.read(bytes),
        }
    }
}

impl Write for Device {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Device::File(file) => file.write(bytes),
            Device::Socket(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn named(path: &Path, error: &TpmError) -> String {
    format!("the TPM at {} {error}", path.display())
}

pub(crate) fn path(given: Option<&Path>) -> PathBuf {
    given.unwrap_or(Path::new(DEVICE)).to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn answering(answers: &[&[u8]]) -> (Tpm, UnixStream) {
        let (ours, mut its) = UnixStream::pair().unwrap();
        for answer in answers {
            its.write_all(answer).unwrap();
        }
        its.shutdown(std::net::Shutdown::Write).unwrap();
        (Tpm { device: Device::Socket(ours) }, its)
    }

    #[test]
    fn answers_that_make_no_sense_are_errors() {
        let primary = [0x80, 2, 0, 0, 0, 18, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        let flushed = [0x80, 1, 0, 0, 0, 10, 0, 0, 0, 0];
        let cut_short = [0x80, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 2, 0, 40];
        let endless = [0x80, 2, 0xff, 0, 0, 0, 0, 0, 0, 0];
        let headless = [0x80, 2, 0, 0, 0, 10, 0, 0, 0, 0];
        for answers in [
            &[][..],
            &[&primary[..7]],
            &[&endless],
            &[&headless],
            &[&primary, &cut_short, &flushed],
            &[&primary, &headless, &flushed],
        ] {
            let found = answering(answers).0.seal(&[7; SECRET]);
            assert!(matches!(found, Err(TpmError::Answer)), "{answers:x?}: {found:?}");
        }
        let short = [0x80, 2, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 6, 0, 4, 1, 2, 3, 4];
        let found = answering(&[&primary, &primary, &short, &flushed, &flushed]).0.unseal(&[1; 200]);
        assert!(matches!(found, Err(TpmError::Answer)));
    }

    #[test]
    fn refusals_are_told_apart() {
        let code = |code: u32| [&[0x80, 1, 0, 0, 0, 10][..], &code.to_be_bytes()].concat();
        let primary = [0x80, 2, 0, 0, 0, 18, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        let flushed = [0x80, 1, 0, 0, 0, 10, 0, 0, 0, 0];
        for (number, words) in [
            (0x921, "locked"),
            (0x98e, "password of its owner"),
            (0x9a2, "password of its owner"),
            (0x185, "disabled"),
            (0x100, "not started"),
            (0x14b, "no memory"),
            (0x920, "how often it is written"),
            (0x902, "0x902"),
        ] {
            let found = answering(&[&code(number)]).0.unseal(&[1; 200]).unwrap_err().to_string();
            assert!(found.contains(words), "{number:#x}: {found}");
        }
        let found = answering(&[&primary, &code(0x1df), &flushed]).0.unseal(&[1; 200]).unwrap_err();
        assert!(matches!(found, TpmError::NotItsBlob), "{found}");
    }
}

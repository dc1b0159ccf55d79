//! Sealed objects: sources of their keys, and attaches. A key is never an argument.

use crate::alike;
use crate::anchor::{AnchorArgs, PATIENCE};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::keys::warn_if_open;
use crate::passphrase;
use crate::signing::SignArgs;
use clap::Args;
use indelible::{Cost, ErrorKind, Keep, Object, Pool, ReadObject, SealKey};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const TPM: &str = "/dev/tpmrm0";

/// The seal key of an object, and its anchor.
#[derive(Debug, Default, Args)]
pub struct SealArgs {
    #[command(flatten)]
    key: OneKey,

    #[command(flatten)]
    sign: SignArgs,

    #[command(flatten)]
    anchor: AnchorArgs,

    /// Name under which the object was sealed, if that is another than its own: of a copy, a
    /// snapshot, or an object that came back under another name
    #[arg(long, value_name = "NAME", help_heading = "Seal keys")]
    sealed_as: Option<String>,

    /// Memory and passes of Argon2id that the passphrase may cost, such as 512M,4: a slot that asks
    /// for more than 256M, or for five times the usual work, may be forged, and is refused without
    /// this
    #[arg(long, value_name = "MEMORY,PASSES", value_parser = cost, help_heading = "Seal keys")]
    seal_passphrase_cost: Option<Cost>,
}

/// The seal key of an object.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Seal keys")]
struct OneKey {
    /// Key file of a sealed object: 32 random bytes or more, all of which count [env:
    /// PMO_SEAL_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    seal_key_file: Option<PathBuf>,

    /// Ask for the passphrase of a sealed object on the terminal
    #[arg(long)]
    seal_passphrase: bool,

    /// File that has the passphrase of a sealed object; a line break at its end does not count
    /// [env: PMO_SEAL_PASSPHRASE_FILE]
    #[arg(long, value_name = "FILE")]
    seal_passphrase_file: Option<PathBuf>,

    /// Command of the shell whose standard output is the key, within a minute [env:
    /// PMO_SEAL_KEY_COMMAND]
    #[arg(long, value_name = "COMMAND")]
    seal_key_command: Option<String>,

    /// Credential that systemd gave to this service under this name, which is used as a key file
    #[arg(long, value_name = "NAME")]
    seal_credential: Option<String>,

    /// The TPM 2.0 of this machine, or another device or socket than /dev/tpmrm0
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true, default_missing_value = TPM)]
    seal_tpm: Option<PathBuf>,
}

/// The source of the seal key that a command adds.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "New seal key")]
struct NewKey {
    /// Key file that is to open the object
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,

    /// Ask twice, on the terminal, for a passphrase that is to open the object
    #[arg(long)]
    new_passphrase: bool,

    /// File that has a passphrase that is to open the object
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,

    /// Command of the shell whose standard output is to open the object
    #[arg(long, value_name = "COMMAND")]
    new_key_command: Option<String>,

    /// Credential of this service that is to open the object
    #[arg(long, value_name = "NAME")]
    new_credential: Option<String>,

    /// The TPM 2.0 of this machine, or another device or socket, is to open the object
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true, default_missing_value = TPM)]
    new_tpm: Option<PathBuf>,
}

/// The seal key that a command adds, and how long it is good.
#[derive(Debug, Default, Args)]
pub struct NewSealArgs {
    #[command(flatten)]
    key: NewKey,

    /// Refuse the key from then on: after 12h, 30d, 52w. A guard rail, which other software or a
    /// wrong clock gets around: `pmo key remove` and `pmo key rotate` take a key its use
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "New seal key")]
    expires: Option<Duration>,

    /// Memory and passes of Argon2id that the new passphrase costs, such as 128M,4 [default: 64M,3]
    #[arg(long, value_name = "MEMORY,PASSES", value_parser = cost, help_heading = "New seal key")]
    new_passphrase_cost: Option<Cost>,
}

fn cost(text: &str) -> std::result::Result<Cost, String> {
    let bad = || "give memory and passes, such as 256M,4".to_owned();
    let (memory, passes) = text.split_once(',').ok_or_else(bad)?;
    let memory = u32::try_from(crate::bytes::parse(memory)? >> 10).map_err(|_| bad())?;
    Ok(Cost { memory, passes: passes.parse().map_err(|_| bad())?, lanes: 1 })
}

fn costing(key: SealKey, cost: Option<Cost>) -> Result<SealKey> {
    Ok(match cost {
        Some(cost) => key.costing(cost)?,
        None => key,
    })
}

fn span(text: &str) -> std::result::Result<Duration, &'static str> {
    Keep::span(text).ok_or("it is no time such as 12h, 30d or 52w")
}

enum Source {
    KeyFile(PathBuf),
    PassphraseFile(PathBuf),
    Terminal,
    Command(String),
    Credential(String),
    Tpm(PathBuf),
}

impl OneKey {
    fn option(&self) -> Option<Source> {
        Source::first(
            [&self.seal_key_file, &self.seal_passphrase_file, &self.seal_tpm],
            self.seal_passphrase,
            [&self.seal_key_command, &self.seal_credential],
        )
    }

    fn source(&self) -> Option<Source> {
        let given = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        let file = |variable| given(variable).map(PathBuf::from);
        self.option()
            .or_else(|| file("PMO_SEAL_KEY_FILE").map(Source::KeyFile))
            .or_else(|| file("PMO_SEAL_PASSPHRASE_FILE").map(Source::PassphraseFile))
            .or_else(|| given("PMO_SEAL_KEY_COMMAND")?.into_string().ok().map(Source::Command))
    }
}

impl SealArgs {
    /// The key of an existing object, if given. Every attach passes it on, as the library refuses
    /// the key of an unsealed object.
    ///
    /// # Errors
    /// A sign key, a verify key or an anchor without a seal key.
    pub fn read(&self) -> Result<Option<SealKey>> {
        match self.key.source() {
            Some(source) => self.with(source.read(false)?).map(Some),
            None if self.sign.is_named() || self.anchor.given().is_some() || self.is_named() => {
                Err(none_given())
            }
            None => Ok(None),
        }
    }

    pub fn for_new(&self) -> Result<SealKey> {
        if self.is_named() {
            return Err(Failure::usage("a new object is sealed under its own name: leave --sealed-as out"));
        }
        self.with(self.key.source().ok_or_else(none_given)?.read(true)?)
    }

    fn with(&self, key: SealKey) -> Result<SealKey> {
        let key = costing(key, self.seal_passphrase_cost)?;
        let key = self.anchor.with(self.sign.with(key)?)?;
        Ok(match &self.sealed_as {
            Some(name) => key.sealed_as(name),
            None => key,
        })
    }

    pub fn is_named(&self) -> bool {
        self.sealed_as.is_some()
    }

    pub fn anchor(&self) -> Option<OsString> {
        self.anchor.given()
    }

    pub fn is_asked(&self) -> bool {
        self.key.option().is_some() || self.sign.is_asked() || self.anchor.is_asked() || self.is_named()
    }

    pub fn is_given(&self) -> bool {
        self.key.source().is_some()
            || self.sign.is_named()
            || self.anchor.given().is_some()
            || self.is_named()
    }

    pub fn required(&self) -> Result<SealKey> {
        self.read()?.ok_or_else(none_given)
    }

    /// # Errors
    /// The seal key is not given as a key file.
    pub fn required_file(&self) -> Result<PathBuf> {
        match self.key.source() {
            Some(Source::KeyFile(path)) => Ok(path),
            _ => Err(no_file("give its key file by --seal-key-file: what it opened is erased with it")),
        }
    }
}

impl NewSealArgs {
    /// # Errors
    /// The new key is not given as a key file.
    pub fn required_file(&self) -> Result<&Path> {
        let none =
            || no_file("give --new-key-file: an erasable object has a key file, which can be destroyed");
        self.key.new_key_file.as_deref().ok_or_else(none)
    }

    pub fn required(&self) -> Result<SealKey> {
        let key = costing(self.key.required()?, self.new_passphrase_cost)?;
        Ok(match self.expires {
            Some(span) => {
                let late = || {
                    Failure::new(
                        Exit::Usage,
                        "no clock reaches that time",
                        "leave --expires out for a key that lasts",
                    )
                };
                key.until(SystemTime::now().checked_add(span).ok_or_else(late)?)
            }
            None => key,
        })
    }
}

impl NewKey {
    fn required(&self) -> Result<SealKey> {
        let source = Source::first(
            [&self.new_key_file, &self.new_passphrase_file, &self.new_tpm],
            self.new_passphrase,
            [&self.new_key_command, &self.new_credential],
        );
        let none = || {
            let help = "give --new-key-file, --new-passphrase, --new-passphrase-file, --new-key-command, --new-credential or --new-tpm";
            Failure::new(Exit::Usage, "no new key is given", help)
        };
        source.ok_or_else(none)?.read(true)
    }
}

fn no_file(help: &str) -> Failure {
    Failure::new(Exit::Usage, "no key file is given", help)
}

fn none_given() -> Failure {
    Failure::new(
        Exit::Usage,
        "no seal key is given",
        "give --seal-key-file, --seal-passphrase or another of `Seal keys` in the command's --help, or name a file in PMO_SEAL_KEY_FILE",
    )
}

impl Source {
    fn first(
        [key_file, passphrase_file, tpm]: [&Option<PathBuf>; 3],
        asked: bool,
        [command, credential]: [&Option<String>; 2],
    ) -> Option<Source> {
        let file = key_file.clone().map(Source::KeyFile);
        file.or_else(|| passphrase_file.clone().map(Source::PassphraseFile))
            .or_else(|| asked.then_some(Source::Terminal))
            .or_else(|| command.clone().map(Source::Command))
            .or_else(|| credential.clone().map(Source::Credential))
            .or_else(|| tpm.clone().map(Source::Tpm))
    }

    fn read(self, is_new: bool) -> Result<SealKey> {
        match self {
            Source::KeyFile(path) => key_file(&path),
            Source::PassphraseFile(path) => passphrase_file(&path),
            Source::Terminal => Ok(SealKey::passphrase(passphrase::ask(is_new)?)?),
            Source::Command(command) => Ok(SealKey::command(&command, PATIENCE)?),
            Source::Credential(name) => SealKey::credential(&name)
                .map_err(|error| Failure::key_file("seal key", Path::new(&name), error)),
            Source::Tpm(path) => Ok(SealKey::tpm(Some(&path))?),
        }
    }
}

pub fn key_file(path: &Path) -> Result<SealKey> {
    warn_if_open(path);
    SealKey::from_file(path).map_err(|error| Failure::key_file("seal key", path, error))
}

pub fn passphrase_file(path: &Path) -> Result<SealKey> {
    warn_if_open(path);
    SealKey::passphrase_from_file(path).map_err(|error| Failure::key_file("seal key", path, error))
}

/// For writing, with a seal key if given.
pub fn attach(pool: &Pool, name: &str, key: &[u8], seal: &SealArgs) -> Result<Object> {
    let attached = match seal.read()? {
        Some(seal) => pool.attach_sealed(name, key, &seal),
        None => pool.attach_with_key(name, key),
    };
    attached.map_err(|error| alike::explain(pool, name, error))
}

/// For reading; beside a writer, the state of its last psync. `None`: no key is given.
pub fn attach_read(pool: &Pool, name: &str, key: &[u8], seal: &SealArgs) -> Result<Option<ReadObject>> {
    match seal.read()? {
        None => Ok(None),
        Some(seal) => {
            let attached = match pool.attach_read_sealed(name, key, &seal) {
                Err(held) if held.kind() == ErrorKind::Held => {
                    // At its own addresses: a heap has pointers.
                    pool.attach_snapshot_sealed(name, key, &seal)
                }
                attached => attached,
            };
            attached.map(Some).map_err(|error| alike::explain(pool, name, error))
        }
    }
}

//! The theft of an object at rest in four steps, as in the paper: an account with access to the
//! pool's file finds the object, opens it, reads or changes it, and leaves no trace. It succeeds
//! with a plain object, and fails with a sealed one.

#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use indelible::{CreateOptions, ErrorKind, Object, Pool, PoolOptions, SealKey};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SIZE: u64 = 8192;
const BALANCE: &[u8] = b"account 4711 holds 1000 coins";
const FORGED: &[u8] = b"account 4711 holds 9999 coins";

struct Theft {
    read: bool,
}

fn steal(path: &Path, name: &str) -> Result<Theft> {
    // 1. Find the object: names and places are no secret.
    let found = PoolOptions::new().read_only(true).open(path)?.stat(name)?;
    println!("  1. found {name:?} at byte {} of the pool's file", found.offset);
    // 2. Open its place, past the library.
    let file = File::options().read(true).write(true).open(path)?;
    println!("  2. opened its place");
    let mut bytes = vec![0; SIZE as usize];
    file.read_exact_at(&mut bytes, found.offset)?;
    let at = bytes.windows(BALANCE.len()).position(|window| window == BALANCE);
    file.write_all_at(FORGED, found.offset + at.unwrap_or(0) as u64)?;
    match at {
        Some(_) => println!("  3. read {:?}, wrote {:?}", text(BALANCE), text(FORGED)),
        None => println!("  3. read noise, wrote {:?} over it", text(FORGED)),
    }
    // 4. Close it: no trace is left.
    drop(file);
    println!("  4. closed it");
    Ok(Theft { read: at.is_some() })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn deposit(mut object: Object) -> Result<()> {
    object.range_mut(0..BALANCE.len()).copy_from_slice(BALANCE);
    object.psync()?;
    Ok(object.detach()?)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("bank.pmo");
    let mut secret = vec![0; 32];
    File::open("/dev/urandom")?.read_exact(&mut secret).context("cannot make a key")?;
    let key = SealKey::file(secret)?;

    let pool = Pool::format(&path, 16 << 20)?;
    pool.create("plain", SIZE)?;
    pool.create_with("sealed", &CreateOptions::new(SIZE).sealed(&key, "the bank"))?;
    deposit(pool.attach("plain")?)?;
    deposit(pool.attach_sealed("sealed", b"", &key)?)?;
    drop(pool);

    println!("A plain object:");
    let theft = steal(&path, "plain")?;
    let pool = Pool::open(&path)?;
    let plain = pool.attach("plain")?;
    let believed = &plain.as_slice()[..FORGED.len()];
    ensure!(theft.read && believed == FORGED, "the theft of the plain object failed");
    println!("  the owner reads {:?}, and believes it\n", text(believed));
    plain.detach()?;
    drop(pool);

    println!("A sealed object:");
    let theft = steal(&path, "sealed")?;
    ensure!(!theft.read, "the thief has read the sealed object");
    let pool = Pool::open(&path)?;
    match pool.attach_sealed("sealed", b"", &key) {
        Ok(_) => anyhow::bail!("the owner believes what the thief wrote"),
        Err(error) => {
            ensure!(error.kind() == ErrorKind::Damaged, "another error: {error}");
            println!("  the owner is told: {error}");
        }
    }
    Ok(())
}

//! A diary: the pool's file alone is not enough to read it.

use indelible::{CreateOptions, Pool, SealKey};

fn main() -> indelible::Result<()> {
    let key = SealKey::from_file("diary.key")?; // or passphrase, command, credential, tpm
    let pool = Pool::open_or_format("diary.pmo", 16 << 20)?;
    if pool.stat("diary").is_err() {
        pool.create_with("diary", &CreateOptions::new(4096).sealed(&key, "the key file"))?;
    }
    let mut diary = pool.attach_sealed("diary", b"", &key)?;
    *diary.root_mut::<u64>()? += 1;
    diary.psync()?;
    println!("{} entries", diary.root::<u64>()?);
    Ok(())
}

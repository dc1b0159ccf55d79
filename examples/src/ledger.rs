//! A ledger that notices when it is put back, that gets another key, and that is read beside its
//! writer.

use indelible::{CreateOptions, FileAnchor, Pool, SealKey};

fn main() -> indelible::Result<()> {
    // Or a CommandAnchor, or a TpmAnchor.
    let key = SealKey::from_file("diary.key")?.anchored(FileAnchor::new("elsewhere.anchor"));
    let pool = Pool::open_or_format("ledger.pmo", 16 << 20)?;
    if pool.stat("ledger").is_err() {
        pool.create_with("ledger", &CreateOptions::new(4096).sealed(&key, "the key file"))?;
    }
    // Owners of other keys, or of the object's own, read nothing that is psynced from now on.
    pool.reencrypt("ledger", b"", &[&key], |_, _| {})?;
    let mut ledger = pool.attach_sealed("ledger", b"", &key)?;
    *ledger.root_mut::<u64>()? += 1;
    ledger.psync()?;
    // In any process: what the newest psync left, while the writer goes on.
    let mut reader = pool.attach_snapshot_sealed_anywhere("ledger", b"", &key)?;
    *ledger.root_mut::<u64>()? += 1;
    ledger.psync()?;
    reader.refresh()?;
    println!("{} written, {} read", ledger.root::<u64>()?, reader.root::<u64>()?);
    ledger.detach()
}

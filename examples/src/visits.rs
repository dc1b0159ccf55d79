//! The program of the README: counts its own runs.

#![forbid(unsafe_code)]

use indelible::{Plain, Pool};

#[derive(Plain)]
#[repr(C)]
struct Visits {
    count: u64,
    last: [u8; 16],
}

fn main() -> indelible::Result<()> {
    let pool = Pool::open_or_format("visits.pmo", 64 << 20)?;
    if pool.stat("visits").is_err() {
        pool.create("visits", 4096)?;
    }
    let mut object = pool.attach("visits")?;
    let visits = object.root_mut::<Visits>()?;
    visits.count += 1;
    visits.last[..5].copy_from_slice(b"alice");
    object.psync()?; // durable from here on: both fields, or neither
    println!("visit {}", object.root::<Visits>()?.count);
    Ok(())
}

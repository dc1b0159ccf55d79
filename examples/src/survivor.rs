//! A computation that survives `kill -9`: which number below a limit takes the most steps of the
//! Collatz sequence, and how many numbers take how many steps.
//!
//! ```sh
//! pmo format data.pmo --size 16M
//! pmo create data.pmo progress 4K
//! pmo create data.pmo counts 8K
//! pmo view create data.pmo work
//! pmo view set data.pmo work 0 progress rw
//! pmo view set data.pmo work 1 counts rw
//! pmo run data.pmo --view work survivor 300000
//! ```

#![forbid(unsafe_code)]

use indelible::{AttachedView, Plain};

/// In slot 0.
#[derive(Plain)]
#[repr(C)]
struct Progress {
    next: u64,
    best: u64,
    most: u64,
}

/// In slot 1: how many numbers took so many steps.
type Counts = [u64; 1024];

/// Numbers between two psyncs.
const AT_ONCE: u64 = 500;

fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn work(mut view: AttachedView, limit: u64) -> indelible::Result<()> {
    println!("process {} begins at {}", std::process::id(), view.get::<Progress>(0)?.next);
    loop {
        let from = view.get::<Progress>(0)?.next;
        if from >= limit {
            break;
        }
        for number in from..limit.min(from + AT_ONCE) {
            let took = steps(number);
            view.get_mut::<Counts>(1)?[took as usize % 1024] += 1;
            let progress = view.get_mut::<Progress>(0)?;
            progress.next = number + 1;
            if took > progress.most {
                (progress.best, progress.most) = (number, took);
            }
        }
        view.psync()?; // both objects, as one step
        println!("{} done", view.get::<Progress>(0)?.next);
    }
    let counted: u64 = view.get::<Counts>(1)?.iter().sum();
    let progress = view.get::<Progress>(0)?;
    println!("{counted} numbers: {} takes {} steps", progress.best, progress.most);
    Ok(())
}

fn main() -> indelible::Result<()> {
    let limit = std::env::args().nth(1).and_then(|limit| limit.parse().ok()).unwrap_or(300_000);
    indelible::resume(
        |view| work(view, limit),
        |view, death| {
            for object in death.objects.iter().filter(|object| object.in_use) {
                println!("{} is as its psync {} left it", object.name, object.psyncs);
            }
            work(view, limit)
        },
    )?
}

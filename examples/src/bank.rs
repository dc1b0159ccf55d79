//! Eight threads move money between the accounts of two branches, each a persistent object. Kill it
//! at any time: the sum never changes, and every transfer that it has printed is there.

use indelible::{Class, CreateOptions, Error, Plain, Pool, TxCell, TxObject, transaction};

const THREADS: usize = 8;
const ACCOUNTS: usize = 100;
const MONEY: u64 = 1000;

#[derive(Plain)]
#[repr(C)]
struct Branch {
    accounts: [TxCell<u64>; ACCOUNTS],
    /// Transfers from here, by thread.
    transfers: [TxCell<u64>; THREADS],
    is_open: TxCell<u64>,
}

fn main() -> indelible::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pool = Pool::open_or_format(arguments.next().unwrap_or("bank.pmo".into()), 16 << 20)?;
    let transfers: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(100);
    let on_demand = arguments.next().is_some_and(|class| class == "on-demand");
    let class = if on_demand { Class::OnDemand } else { Class::Transactional };
    let (north, south) = (open(&pool, "north", class)?, open(&pool, "south", class)?);
    std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (from, to) = if thread.is_multiple_of(2) { (&north, &south) } else { (&south, &north) };
            scope.spawn(move || {
                for _ in 0..transfers {
                    let number = transfer(from, to, thread)?;
                    // Durable once this returns, if it was not before: acknowledge it now.
                    from.tx_sync()?;
                    println!("thread {thread}: transfer {number}");
                }
                Ok::<_, Error>(())
            })
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    let (sum, made) = transaction(&[&north, &south], |tx| {
        let (mut sum, mut made) = (0, [0; THREADS]);
        for branch in [&north, &south] {
            for account in &branch.accounts {
                sum += tx.read(account)?;
            }
            for (made, transfers) in made.iter_mut().zip(&branch.transfers) {
                *made += tx.read(transfers)?;
            }
        }
        Ok::<_, Error>((sum, made))
    })?;
    println!("{sum} in all; transfers {made:?}");
    Ok(())
}

fn open(pool: &Pool, name: &str, class: Class) -> indelible::Result<TxObject<Branch>> {
    if pool.stat(name).is_err() {
        pool.create_with(name, &CreateOptions::new(4096).class(class))?;
    }
    let branch = pool.attach_transactional::<Branch>(name)?;
    branch.transaction(|tx| {
        if tx.read(&branch.is_open)? == 0 {
            branch.accounts.iter().try_for_each(|account| tx.write(account, MONEY))?;
        }
        tx.write(&branch.is_open, 1)
    })?;
    Ok(branch)
}

/// One transfer: all of it, or nothing. Returns the number of the thread's transfers.
fn transfer(from: &TxObject<Branch>, to: &TxObject<Branch>, thread: usize) -> indelible::Result<u64> {
    transaction(&[from, to], |tx| {
        let number = tx.read(&from.transfers[thread])? + 1;
        tx.write(&from.transfers[thread], number)?;
        let (payer, payee) = (number as usize * 7 % ACCOUNTS, number as usize * 13 % ACCOUNTS);
        let amount = tx.read(&from.accounts[payer])?.min(number % 50);
        tx.update(&from.accounts[payer], |balance| balance - amount)?;
        tx.update(&to.accounts[payee], |balance| balance + amount)?;
        Ok(number)
    })
}

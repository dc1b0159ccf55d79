//! Clerks take orders from customers and pack them, each step a transaction: kill it at any time,
//! and no item is lost, or sold twice.

use indelible::collections::transactional::{TxHashMap, TxOrderedMap, TxQueue};
use indelible::{Error, Persist, Plain, Pool, TxCell, TxHeap};

const ITEMS: u64 = 20;
const EACH: u64 = 1000;

#[derive(Plain, Persist)]
#[repr(C)]
struct Shop {
    /// How many of each item are left.
    stock: TxHashMap<u64, u64>,
    /// Orders that are to be packed: number and item.
    orders: TxQueue<[u64; 2]>,
    /// Items that were packed, by the order's number.
    packed: TxOrderedMap<u64, u64>,
    /// Number of the last order; 0: the shop was never open.
    last: TxCell<u64>,
}

fn main() -> indelible::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pool = Pool::open_or_format(arguments.next().unwrap_or("shop.pmo".into()), 16 << 20)?;
    let customers: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(100);
    let heap = pool.transactional_heap("shop", 4 << 20)?;
    let shop = heap.root_or_default::<Shop>("shop")?;
    heap.transaction(|tx| {
        if tx.read(&shop.last)? == 0 && shop.stock.is_empty(tx)? {
            (0..ITEMS).try_for_each(|item| shop.stock.insert(tx, item, EACH).map(drop))?;
        }
        Ok::<_, Error>(())
    })?;
    std::thread::scope(|scope| {
        let clerks: Vec<_> = (0..4)
            .map(|clerk| {
                scope.spawn({
                    let heap = &heap;
                    move || work(heap, shop, clerk, customers / 4)
                })
            })
            .collect();
        clerks.into_iter().try_for_each(|clerk| clerk.join().expect("it does not panic"))
    })?;
    let (left, waiting, packed) = count(&heap, shop)?;
    println!("{left} left, {waiting} to be packed, {packed} packed: {} in all", left + waiting + packed);
    Ok(())
}

/// Serves customers, and packs what was ordered, by whichever clerk.
fn work(heap: &TxHeap, shop: &Shop, clerk: u64, customers: u64) -> indelible::Result<()> {
    for customer in 0..customers {
        let item = (customer * 7 + clerk * 3) % ITEMS;
        let order = heap.transaction(|tx| {
            let Some(left) = shop.stock.get(tx, item)?.and_then(|left| left.checked_sub(1)) else {
                return Ok(None);
            };
            let number = tx.read(&shop.last)? + 1;
            tx.write(&shop.last, number)?;
            shop.stock.insert(tx, item, left)?;
            shop.orders.push(tx, [number, item])?;
            Ok::<_, Error>(Some(number))
        })?;
        if let Some(number) = order {
            // Durable: the customer may be told.
            println!("order {number}: item {item}");
        }
        if customer % 3 != 0 {
            heap.transaction(|tx| {
                let Some([number, item]) = shop.orders.pop(tx)? else { return Ok(()) };
                shop.packed.insert(tx, number, item).map(drop)
            })?;
        }
    }
    Ok(())
}

/// Items that are left, ordered and packed.
fn count(heap: &TxHeap, shop: &Shop) -> indelible::Result<(u64, u64, u64)> {
    heap.transaction(|tx| {
        let mut left = 0;
        shop.stock.for_each(tx, |tx, _, count| {
            left += tx.read(count)?;
            Ok(())
        })?;
        Ok((left, shop.orders.to_vec(tx)?.len() as u64, shop.packed.to_vec(tx)?.len() as u64))
    })
}

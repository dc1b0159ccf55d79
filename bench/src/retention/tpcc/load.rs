//! The first contents of the tables, clause 4.3.3.

use super::requests::{between, name_of};
use super::rows::{
    Account, Address, Customer, District, History, Item, Level, Order, OrderLine, Stock, Warehouse,
};
use super::scale::{DISTRICTS, LINES};
use super::tree::Node;
use super::{Database, Scale, Space, Table};
use crate::Result;
use crate::pattern::Random;

const STEP: usize = 500;
const DATE: u64 = 1;
const PAID: i64 = 1_000;

fn text<const N: usize>(random: &mut Random) -> [u8; N] {
    let mut text = [0; N];
    for piece in text.chunks_mut(8) {
        let letters = random.next().to_le_bytes().map(|byte| b'a' + (byte & 15));
        piece.copy_from_slice(&letters[..piece.len()]);
    }
    text
}

fn data(random: &mut Random) -> [u8; 50] {
    let mut data = text(random);
    if random.below(10) == 0 {
        let at = random.below(42) as usize;
        data[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
    data
}

fn address(random: &mut Random) -> Address {
    Address {
        streets: [text(random), text(random)],
        city: text(random),
        state: text(random),
        zip: *b"123411111",
    }
}

/// Clause 4.3.2.3.
fn last_name(number: u32) -> [u8; 16] {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let mut name = [0; 16];
    let digits = [number / 100, number / 10 % 10, number % 10];
    let letters = digits.into_iter().flat_map(|digit| SYLLABLES[digit as usize].bytes());
    name.iter_mut().zip(letters).for_each(|(at, letter)| *at = letter);
    name
}

struct Loader<'s, S, N> {
    database: Database<N>,
    scale: Scale,
    space: &'s mut S,
    random: Random,
}

pub fn load<S: Space, N: Node<S>>(scale: Scale, seed: u64, space: &mut S) -> Result<Database<N>> {
    let database = space.step(|space| Database::new(scale, space))?;
    let mut loader = Loader { database, scale, space, random: Random::new(seed) };
    loader.items()?;
    for warehouse in 0..scale.warehouses {
        loader.warehouse(warehouse)?;
        loader.stock(warehouse)?;
        for district in 0..DISTRICTS {
            let number = scale.district(warehouse, district);
            loader.district(number)?;
            loader.customers(number)?;
            loader.orders(number, warehouse)?;
        }
    }
    Ok(database)
}

impl<S: Space, N: Node<S>> Loader<'_, S, N> {
    fn steps(&mut self, end: u32, mut each: impl FnMut(Database<N>, u32, &mut S, &mut Random)) -> Result<()> {
        let Loader { database, space, random, .. } = self;
        for first in (0..end).step_by(STEP) {
            let last = end.min(first + STEP as u32);
            space.step(|space| (first..last).for_each(|number| each(*database, number, space, random)))?;
        }
        Ok(())
    }

    fn items(&mut self) -> Result<()> {
        self.steps(self.scale.items, |database, number, space, random| {
            let (image, price) = (between(1, 10_000, random), between(100, 10_000, random));
            let item = Item { image, price: price.into(), name: text(random), data: data(random) };
            // SAFETY: a database of the space.
            unsafe { database.add(Table::Items, number.into(), item, space) };
        })
    }

    fn warehouse(&mut self, number: u32) -> Result<()> {
        let customers = DISTRICTS * self.scale.customers;
        self.steps(1, |database, _, space, random| {
            let row = Warehouse {
                name: text(random),
                address: address(random),
                tax: between(0, 2_000, random),
                year_to_date: PAID * i64::from(customers),
            };
            // SAFETY: a database of the space.
            unsafe { database.add(Table::Warehouses, number.into(), row, space) };
        })
    }

    fn stock(&mut self, warehouse: u32) -> Result<()> {
        let scale = self.scale;
        self.steps(scale.items, |database, item, space, random| {
            let level = Level { quantity: between(10, 100, random), sold: 0, orders: 0, remote: 0 };
            let districts = [(); 10].map(|()| text(random));
            let row = Stock { level, districts, data: data(random) };
            // SAFETY: a database of the space.
            unsafe { database.add(Table::Stock, scale.stock(warehouse, item), row, space) };
        })
    }

    fn district(&mut self, number: u32) -> Result<()> {
        let customers = self.scale.customers;
        self.steps(1, |database, _, space, random| {
            let row = District {
                name: text(random),
                address: address(random),
                tax: between(0, 2_000, random),
                next_order: customers,
                year_to_date: PAID * i64::from(customers),
            };
            // SAFETY: a database of the space.
            unsafe { database.add(Table::Districts, number.into(), row, space) };
        })
    }
}

impl<S: Space, N: Node<S>> Loader<'_, S, N> {
    fn customers(&mut self, district: u32) -> Result<()> {
        let scale = self.scale;
        let mut by_name = Vec::with_capacity(scale.customers as usize);
        self.steps(scale.customers, |database, number, space, random| {
            let name = name_of(number, random);
            let row = customer(number, name, random);
            by_name.push((name, row.first, number));
            let history = History {
                next: std::ptr::null_mut(),
                amount: PAID,
                date: DATE,
                customer: number,
                home: district,
                district,
                data: text(random),
            };
            // SAFETY: a database of the space.
            unsafe {
                database.add(Table::Customers, scale.customer(district, number), row, space);
                database.add_history(history, space);
            }
        })?;
        by_name.sort_unstable();
        let mut namesake = 0;
        self.steps(scale.customers, |database, at, space, _| {
            let at = at as usize;
            let (name, _, number) = by_name[at];
            namesake = if at > 0 && by_name[at - 1].0 == name { namesake + 1 } else { 0 };
            // SAFETY: a database of the space.
            unsafe {
                let key = scale.customer(district, number);
                let row = database.row::<S, Customer>(Table::Customers, key, space);
                database.link(Table::CustomersByName, scale.name(district, name, namesake), row, space);
            }
        })
    }

    fn orders(&mut self, district: u32, warehouse: u32) -> Result<()> {
        let scale = self.scale;
        let mut customers: Vec<u32> = (0..scale.customers).collect();
        self.random.shuffle(&mut customers);
        let delivered = scale.customers - scale.undelivered();
        self.steps(scale.customers, |database, id, space, random| {
            let customer = customers[id as usize];
            let is_delivered = id < delivered;
            let carrier = if is_delivered { between(1, 10, random) } else { 0 };
            let lines = between(LINES[0], LINES[1], random);
            let order = Order { id, customer, entered: DATE, lines, is_local: true, carrier };
            // SAFETY: a database of the space.
            unsafe {
                let order = database.add(Table::Orders, scale.order(district, id), order, space);
                let key = scale.order_by_customer(district, customer, id);
                database.link(Table::OrdersByCustomer, key, order, space);
                if !is_delivered {
                    database.link(Table::NewOrders, scale.order(district, id), order, space);
                }
                for number in 0..lines {
                    let line = order_line(scale, warehouse, is_delivered, random);
                    database.add(Table::OrderLines, scale.line(district, id, number), line, space);
                }
            }
        })
    }
}

fn customer(id: u32, name: u32, random: &mut Random) -> Customer {
    Customer {
        id,
        first: text(random),
        middle: *b"OE",
        last: last_name(name),
        address: address(random),
        phone: text(random),
        has_bad_credit: random.below(10) == 0,
        discount: between(0, 5_000, random),
        credit_limit: 5_000_000,
        account: Account { balance: -PAID, paid: PAID, payments: 1, deliveries: 0 },
        data: text(random),
    }
}

fn order_line(scale: Scale, supplier: u32, is_delivered: bool, random: &mut Random) -> OrderLine {
    OrderLine {
        item: random.below(u64::from(scale.items)) as u32,
        supplier,
        quantity: 5,
        amount: if is_delivered { 0 } else { between(1, 999_999, random).into() },
        delivered: if is_delivered { DATE } else { 0 },
        district: text(random),
    }
}

//! The operations, chosen before the run: equal for all programs.

use super::scale::{DISTRICTS, LINES, NAMES, Scale};
use crate::pattern::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    Number(u32),
    Name(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub item: u32,
    pub supplier: u32,
    pub quantity: u32,
}

#[derive(Clone, Debug)]
pub enum Request {
    NewOrder { warehouse: u32, district: u32, customer: u32, lines: Vec<Line> },
    Payment { warehouse: u32, district: u32, home: (u32, u32), customer: By, amount: i64 },
    OrderStatus { warehouse: u32, district: u32, customer: By },
    Delivery { warehouse: u32, carrier: u32 },
    StockLevel { warehouse: u32, district: u32, threshold: u32 },
}

/// NURand, clause 2.1.6, of so many values from 0; `most` is a power of two less one.
fn uneven(most: u32, count: u32, random: &mut Random) -> u32 {
    const SHIFT: u32 = 123;
    let (one, other) = (random.below(u64::from(most) + 1), random.below(u64::from(count)));
    ((one | other) as u32 + SHIFT) % count
}

pub fn between(low: u32, high: u32, random: &mut Random) -> u32 {
    low + random.below(u64::from(high - low) + 1) as u32
}

pub fn customer(scale: Scale, random: &mut Random) -> u32 {
    uneven(1_023, scale.customers, random)
}

pub fn item(scale: Scale, random: &mut Random) -> u32 {
    uneven(8_191, scale.items, random)
}

pub fn name(random: &mut Random) -> u32 {
    uneven(255, NAMES, random)
}

/// The last name of a district's customer `number`: the first ones have all names.
pub fn name_of(number: u32, random: &mut Random) -> u32 {
    if number < NAMES { number } else { name(random) }
}

fn chance(percent: u64, random: &mut Random) -> bool {
    random.below(100) < percent
}

pub struct Script {
    pub scale: Scale,
    pub seed: u64,
    pub original: Vec<Request>,
    pub updates: Vec<Request>,
}

impl Script {
    pub fn new(scale: Scale, random: &mut Random) -> Script {
        let seed = random.next();
        let mut requests = || (0..scale.operations).map(|_| request(scale, random)).collect();
        Script { scale, seed, original: requests(), updates: requests() }
    }
}

/// An operation of the standard mix: 45, 43, 4, 4 and 4 of a hundred (clause 5.2.3).
fn request(scale: Scale, random: &mut Random) -> Request {
    let warehouse = random.below(u64::from(scale.warehouses)) as u32;
    let district = random.below(u64::from(DISTRICTS)) as u32;
    match random.below(100) {
        0..45 => {
            let customer = customer(scale, random);
            Request::NewOrder { warehouse, district, customer, lines: lines(scale, warehouse, random) }
        }
        45..88 => {
            let home = match scale.warehouses > 1 && chance(15, random) {
                true => (another(warehouse, scale, random), random.below(u64::from(DISTRICTS)) as u32),
                false => (warehouse, district),
            };
            let amount = i64::from(between(100, 500_000, random));
            Request::Payment { warehouse, district, home, customer: by(scale, random), amount }
        }
        88..92 => Request::OrderStatus { warehouse, district, customer: by(scale, random) },
        92..96 => Request::Delivery { warehouse, carrier: between(1, 10, random) },
        _ => Request::StockLevel { warehouse, district, threshold: between(10, 20, random) },
    }
}

fn by(scale: Scale, random: &mut Random) -> By {
    if chance(60, random) {
        By::Name(name(random) % scale.customers.min(NAMES))
    } else {
        By::Number(customer(scale, random))
    }
}

fn another(warehouse: u32, scale: Scale, random: &mut Random) -> u32 {
    (warehouse + between(1, scale.warehouses - 1, random)) % scale.warehouses
}

/// One order in a hundred has a missing item, the last one.
fn lines(scale: Scale, warehouse: u32, random: &mut Random) -> Vec<Line> {
    let count = between(LINES[0], LINES[1], random);
    let mut lines: Vec<Line> = (0..count)
        .map(|_| {
            let is_remote = scale.warehouses > 1 && chance(1, random);
            let supplier = if is_remote { another(warehouse, scale, random) } else { warehouse };
            Line { item: item(scale, random), supplier, quantity: between(1, 10, random) }
        })
        .collect();
    if chance(1, random)
        && let Some(last) = lines.last_mut()
    {
        last.item = scale.items;
    }
    lines
}

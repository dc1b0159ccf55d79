use crate::heaps::{made, sound};
use indelible::collections::{HeapRef, PString, PVec};
use indelible::retention::Converted;
use indelible::{ErrorKind, Heap, Persist};
use indelible_testing::Seeded;

macro_rules! version {
    ($name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        mod $name {
            use super::*;

            #[derive(Persist)]
            #[repr(C)]
            pub struct Item<'h> { $(pub $field: $ty),* }

            pub type Items<'h> = PVec<'h, Item<'h>>;
        }
    };
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Money {
    amount: u32,
    currency: u8,
}

version!(v0 { id: u32, note: PString<'h>, price: u32, name: PString<'h> });
version!(added { id: u32, note: PString<'h>, price: u32, name: PString<'h>, stock: u16 });
version!(nested { id: u32, note: PString<'h>, price: Money, name: PString<'h>, stock: u16 });
version!(reordered { name: PString<'h>, note: PString<'h>, price: Money, id: u32, stock: u16 });
version!(shrunk { name: PString<'h>, price: Money, id: u32, stock: u16 });
version!(renamed { title: PString<'h>, price: Money, id: u32, stock: u16 });
version!(widened { title: PString<'h>, price: Money, id: u64, stock: u32 });

macro_rules! convert {
    ($name:ident: $from:ident => $to:ident, |$old:ident, $text:ident| $item:expr) => {
        fn $name<'h>(old: &$from::Items<'h>, heap: HeapRef<'h>) -> Converted<$to::Items<'h>> {
            let $text = |text: &PString<'h>| PString::from_in(text, heap);
            let mut items = PVec::new_in(heap);
            for $old in old.iter() {
                items.try_push({
                    use $to::Item;
                    $item
                })?;
            }
            Ok(items)
        }
    };
}

convert!(add: v0 => added, |old, text| Item {
    id: old.id, note: text(&old.note), price: old.price, name: text(&old.name), stock: old.id as u16 ^ 1
});
convert!(nest: added => nested, |old, text| Item {
    id: old.id, note: text(&old.note), price: Money { amount: old.price, currency: 7 }, name: text(&old.name), stock: old.stock
});
convert!(reorder: nested => reordered, |old, text| Item {
    name: text(&old.name), note: text(&old.note), price: old.price, id: old.id, stock: old.stock
});
convert!(shrink: reordered => shrunk, |old, text| Item { name: text(&old.name), price: old.price, id: old.id, stock: old.stock });
convert!(rename: shrunk => renamed, |old, text| Item { title: text(&old.name), price: old.price, id: old.id, stock: old.stock });
convert!(widen: renamed => widened, |old, text| Item {
    title: text(&old.title), price: old.price, id: u64::from(old.id), stock: u32::from(old.stock)
});

#[derive(Clone, Debug, PartialEq)]
struct Plain {
    id: u64,
    price: u32,
    name: String,
    stock: u32,
    note: String,
    currency: u8,
}

const VERSIONS: usize = 7;

fn random(rng: &mut Seeded) -> Plain {
    let text = |rng: &mut Seeded| "long words ".repeat(rng.usize(..6));
    Plain {
        id: rng.u64(..1 << 32),
        price: rng.u32(..),
        name: text(rng),
        stock: rng.u32(..1 << 16),
        note: text(rng),
        currency: rng.u8(..),
    }
}

fn write(heap: &mut Heap, version: usize, all: &[Plain]) {
    macro_rules! write {
        ($module:ident, |$item:ident, $text:ident| $made:expr) => {{
            let (items, h) = heap.root_and_heap::<$module::Items<'_>>("it").unwrap();
            let $text = |text: &str| PString::from_in(text, h);
            for $item in all {
                items.push({
                    use $module::Item;
                    $made
                });
            }
        }};
    }
    let money = |item: &Plain| Money { amount: item.price, currency: item.currency };
    match version {
        0 => write!(v0, |item, text| Item {
            id: item.id as u32,
            note: text(&item.note),
            price: item.price,
            name: text(&item.name)
        }),
        1 => write!(added, |item, text| Item {
            id: item.id as u32,
            note: text(&item.note),
            price: item.price,
            name: text(&item.name),
            stock: item.stock as u16
        }),
        2 => write!(nested, |item, text| Item {
            id: item.id as u32,
            note: text(&item.note),
            price: money(item),
            name: text(&item.name),
            stock: item.stock as u16
        }),
        3 => write!(reordered, |item, text| Item {
            name: text(&item.name),
            note: text(&item.note),
            price: money(item),
            id: item.id as u32,
            stock: item.stock as u16
        }),
        4 => write!(shrunk, |item, text| Item {
            name: text(&item.name),
            price: money(item),
            id: item.id as u32,
            stock: item.stock as u16
        }),
        5 => write!(renamed, |item, text| Item {
            title: text(&item.name),
            price: money(item),
            id: item.id as u32,
            stock: item.stock as u16
        }),
        _ => write!(widened, |item, text| Item {
            title: text(&item.name),
            price: money(item),
            id: item.id,
            stock: item.stock
        }),
    }
}

fn open(heap: &mut Heap, version: usize) -> indelible::Result<Vec<Plain>> {
    macro_rules! read {
        ($items:expr, |$item:ident| $id:expr, $price:expr, $name:expr, $stock:expr, $note:expr, $currency:expr) => {
            $items
                .iter()
                .map(|$item| Plain {
                    id: $id.into(),
                    price: $price,
                    name: $name.to_string(),
                    stock: $stock,
                    note: $note,
                    currency: $currency,
                })
                .collect()
        };
    }
    let from = heap.root_from("it");
    Ok(match version {
        0 => read!(
            heap.root_from::<v0::Items<'_>>("it").open()?,
            |item| item.id,
            item.price,
            item.name,
            0,
            item.note.to_string(),
            0
        ),
        1 => read!(
            from.convert(add).open()?,
            |item| item.id,
            item.price,
            item.name,
            item.stock.into(),
            item.note.to_string(),
            0
        ),
        2 => read!(
            from.convert(add).convert(nest).open()?,
            |item| item.id,
            item.price.amount,
            item.name,
            item.stock.into(),
            item.note.to_string(),
            item.price.currency
        ),
        3 => read!(
            from.convert(add).convert(nest).convert(reorder).open()?,
            |item| item.id,
            item.price.amount,
            item.name,
            item.stock.into(),
            item.note.to_string(),
            item.price.currency
        ),
        4 => read!(
            from.convert(add).convert(nest).convert(reorder).convert(shrink).open()?,
            |item| item.id,
            item.price.amount,
            item.name,
            item.stock.into(),
            String::new(),
            item.price.currency
        ),
        5 => read!(
            from.convert(add).convert(nest).convert(reorder).convert(shrink).convert(rename).open()?,
            |item| item.id,
            item.price.amount,
            item.title,
            item.stock.into(),
            String::new(),
            item.price.currency
        ),
        _ => read!(
            from.convert(add)
                .convert(nest)
                .convert(reorder)
                .convert(shrink)
                .convert(rename)
                .convert(widen)
                .open()?,
            |item| item.id,
            item.price.amount,
            item.title,
            item.stock,
            String::new(),
            item.price.currency
        ),
    })
}

fn expected(item: &Plain, written: usize, read: usize) -> Plain {
    let mut item = item.clone();
    if written < 1 {
        item.stock = u32::from(item.id as u16 ^ 1);
    }
    if written < 2 {
        item.currency = 7;
    }
    if read < 1 {
        item.stock = 0;
    }
    if read < 2 {
        item.currency = 0;
    }
    if read > 3 {
        item.note = String::new();
    }
    item
}

#[test]
fn data_of_each_version_opened_as_each_are_right_or_an_error_by_name() {
    let mut rng = Seeded::new(8);
    for written in 0..VERSIONS {
        for read in 0..VERSIONS {
            let (_dir, mut heap) = made();
            let all: Vec<Plain> = (0..rng.usize(..30)).map(|_| random(&mut rng)).collect();
            write(&mut heap, written, &all);
            let blocks = sound(&mut heap);
            match open(&mut heap, read) {
                Ok(found) => {
                    assert!(written <= read, "version {written} was opened as {read}");
                    let expected: Vec<Plain> = all.iter().map(|item| expected(item, written, read)).collect();
                    assert_eq!(found, expected, "{written} as {read}");
                    let notes = all.iter().filter(|item| !item.note.is_empty() && written < 4 && read > 3);
                    assert_eq!(sound(&mut heap), blocks - notes.count() as u64, "{written} as {read}");
                    assert_eq!(open(&mut heap, read).unwrap(), found);
                }
                Err(error) => {
                    assert!(written > read, "version {written} was not opened as {read}: {error}");
                    assert_eq!(error.kind(), ErrorKind::RootType);
                    let text = error.to_string();
                    assert!(
                        text.contains("first (here the heap, there the program), PVec<Item>[0]."),
                        "{text}"
                    );
                    assert_eq!(text.matches("Item (fingerprint").count(), 0);
                    assert_eq!(sound(&mut heap), blocks);
                    assert_eq!(open(&mut heap, written).unwrap().len(), all.len());
                }
            }
        }
    }
}

use super::{CONFIG, KEY, Verdict, create, of, open};
use crate::hooked::{BeforeRead, Hooked};
use crate::pool::{check_tiling, process, psync};
use crate::scenario::formatted;
use indelible_store::store::Store;
use std::sync::Arc;

pub(super) fn nodes_kept_although_another_process_changed_them() -> Verdict {
    let medium = formatted(8 << 20, CONFIG);
    let stores = [1, 2].map(|pid| Store::open(Arc::new(medium.handle()), process(pid)).unwrap());
    let mut names: Vec<String> = Vec::new();
    for round in 0..600_usize {
        let (own, other) = (&stores[round % 2], &stores[(round + 1) % 2]);
        let name = format!("object {round}");
        own.create(&name, &of(1)).map_err(|error| error.to_string())?;
        names.push(name);
        if round % 3 == 2 {
            let gone = names.swap_remove(round % names.len());
            other.destroy(&gone, KEY).map_err(|error| error.to_string())?;
            if own.find(&gone).is_ok() {
                return Err(format!("{gone} is destroyed, and found"));
            }
        }
        for name in names.iter().rev().take(5) {
            other.find(name).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    let store = open(&medium, 3);
    check_tiling(&store)
}

pub(super) fn read_unchecked() -> Verdict {
    read_beside_a_change(false)?;
    read_beside_a_change(true)
}

fn read_beside_a_change(again: bool) -> Verdict {
    for point in 0.. {
        let medium = formatted(2 << 20, CONFIG);
        let store = open(&medium, 1);
        create(&store, "a", 1);
        let hooked = Hooked::new(Arc::new(medium.read_only_handle()), BeforeRead::default());
        let reader = Store::open(hooked.clone(), process(2)).unwrap();
        if again {
            reader.list((0, 0), 10).map_err(|error| error.to_string())?;
        }
        hooked.plan(point, move || {
            store.destroy("a", KEY).unwrap();
            create(&store, "b", 300_000);
        });
        let found = reader.list((0, 0), 10).map_err(|error| format!("before read {point}: {error}"))?;
        if found.objects.len() != 1 {
            return Err(format!("before read {point}: {} objects", found.objects.len()));
        }
        if hooked.is_due() {
            break;
        }
    }
    Ok(())
}

pub(super) fn read_unchecked_object() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    create(&store, "a", 10_000);
    let reader = Store::open(Arc::new(medium.read_only_handle()), process(2)).unwrap();
    let reading = reader.attach_reader("a", KEY).unwrap();
    let mut writer = store.attach_writer("a", KEY).unwrap();
    psync(&mut writer, &[(0, b"new"), (9000, b"new")]).unwrap();
    writer.detach().unwrap();
    match reading.is_current() {
        Ok(false) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

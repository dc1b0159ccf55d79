//! Exchanged and renamed sealed objects of one key: an object opens only under the name and the ID
//! that its root authenticates.

use super::{CONFIG, KEY, LIMITS, Verdict, of, open};
use crate::for_each_crash;
use crate::pool::{process, psync};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Fault, OpKind, SimConfig, SimMedium};
use crate::tamper::{EXCHANGES, say_identity};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::seal::SealKey;
use indelible_store::store::Store;
use indelible_store::table::Located;
use std::sync::Arc;

const SIZE: u64 = 66 * PAGE - 100;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn keys(signed: bool) -> [SealKey; 2] {
    let key = sealed::strict_key;
    let signed_by = || key().signed_by(&sealed::sign_key()).expect("it is another one");
    if signed { [key().verified_by(sealed::sign_key().verify_key()), signed_by()] } else { [key(), key()] }
}

fn prepared(config: SimConfig, signed: bool) -> Result<SimMedium> {
    prepared_in(2 << 20, config, signed)
}

fn prepared_in(len: u64, config: SimConfig, signed: bool) -> Result<SimMedium> {
    let medium = formatted(len, config);
    let store = open(&medium, 1);
    for (name, value) in [("a", 1), ("b", 2)] {
        let create = if signed { sealed::create_signed } else { sealed::create };
        create(&store, name, SIZE)?;
        let mut writer = sealed::writer(&store, name)?;
        psync(&mut writer, &[(640, &[value; 64]), (65 * PAGE, &[value; 64])])?;
        writer.detach()?;
    }
    medium.settle();
    Ok(medium)
}

fn attach(store: &Arc<Store>, name: &str, [reading, writing]: &[SealKey; 2]) -> [Result<u8>; 3] {
    let byte = |pages: Option<Arc<indelible_store::store::SealedPages>>| {
        let mut page = Box::new([0; PAGE as usize]);
        pages.expect("it is sealed").read(0, &mut page)?;
        Ok(page[640])
    };
    let reader = || {
        let unlocked = store.unlock(name, KEY, reading)?;
        byte(store.attach_sealed_reader(name, KEY, &unlocked)?.sealed_pages())
    };
    let beside = || {
        let mut reader = store.attach_snapshot(name, KEY)?;
        let opened = reader.unlock(reading).and_then(|unlocked| reader.unseal(&unlocked));
        let found = opened.and_then(|()| byte(reader.sealed_pages()));
        store.end_snapshot(reader)?;
        found
    };
    let writer = || {
        let unlocked = store.unlock(name, KEY, writing)?;
        let writer = store.attach_sealed_writer(name, KEY, &unlocked)?;
        let found = byte(writer.sealed_pages())?;
        writer.detach()?;
        Ok(found)
    };
    [reader(), writer(), beside()]
}

fn is_refused(bytes: &[u8], names: &[&str], keys: &[SealKey; 2], what: &str) -> Verdict {
    let store = open(&SimMedium::from_bytes(bytes, CONFIG), 7);
    for name in names {
        for (how, found) in ["reader", "writer", "reader beside"].iter().zip(attach(&store, name, keys)) {
            match found {
                Err(StoreError::Seal(SealError::AnotherIdentity)) => {}
                found => return Err(format!("{what}: {how} of {name}: {found:?}")),
            }
        }
    }
    Ok(())
}

fn objects(bytes: &[u8]) -> Result<[Located; 2]> {
    let store = open(&SimMedium::from_bytes(bytes, CONFIG), 6);
    Ok([store.find("a")?, store.find("b")?])
}

fn exchanged(signed: bool) -> Verdict {
    let bytes = prepared(CONFIG, signed).map_err(text)?.to_bytes();
    let ([a, b], keys) = (objects(&bytes).map_err(text)?, keys(signed));
    let sound = attach(&open(&SimMedium::from_bytes(&bytes, CONFIG), 5), "a", &keys);
    if sound.iter().any(|found| !matches!(found, Ok(1))) {
        return Err(format!("as it was: {sound:?}"));
    }
    for (what, exchange) in EXCHANGES {
        let mut bytes = bytes.clone();
        exchange(&mut bytes, &a, &b);
        is_refused(&bytes, &["a", "b"], &keys, what)?;
    }
    let mut renamed = bytes.clone();
    [a, b].iter().for_each(|object| say_identity(&mut renamed, object, false));
    let medium = SimMedium::from_bytes(&renamed, CONFIG);
    let store = open(&medium, 8);
    for (name, new) in [("a", "x"), ("b", "a"), ("x", "b")] {
        store.rename(name, new, KEY).map_err(text)?;
    }
    drop(store);
    let mut renamed = medium.to_bytes();
    [a, b].iter().for_each(|object| say_identity(&mut renamed, object, true));
    is_refused(&renamed, &["a", "b"], &keys, "names")
}

pub(super) fn objects_that_were_exchanged_are_told_apart() -> Verdict {
    exchanged(false)
}

pub(super) fn signed_objects_that_were_exchanged_are_told_apart() -> Verdict {
    exchanged(true)
}

pub(super) fn a_copy_is_not_taken_for_its_origin() -> Verdict {
    for signed in [false, true] {
        let medium = prepared_in(8 << 20, CONFIG, signed).map_err(text)?;
        let [reading, writing] = keys(signed);
        let store = open(&medium, 2);
        store.create_from("a", KEY, "copy", &of(0)).map_err(text)?;
        let strict = [reading.clone(), writing.clone()];
        is_refused(&medium.to_bytes(), &["copy"], &strict, "a copy")?;
        let as_copy = [reading.clone().sealed_as("a"), writing.clone().sealed_as("a")];
        is_refused(&medium.to_bytes(), &["b"], &as_copy, "another object")?;
        let found = attach(&store, "copy", &as_copy);
        if found.iter().any(|found| !matches!(found, Ok(1))) {
            return Err(format!("a copy by the name of its origin: {found:?}"));
        }
        let bind = || {
            let unlocked = store.unlock("copy", KEY, &as_copy[1])?;
            let mut writer = store.attach_sealed_writer("copy", KEY, &unlocked)?;
            writer.bind_name()?;
            writer.detach()
        };
        bind().map_err(text)?;
        let found = [attach(&store, "copy", &strict), attach(&store, "a", &strict)];
        if found.iter().flatten().any(|found| !matches!(found, Ok(1))) {
            return Err(format!("a copy that was bound: {found:?}"));
        }
        is_refused(&medium.to_bytes(), &["copy"], &as_copy, "a copy that was bound")?;
    }
    Ok(())
}

fn has_one_name(store: &Arc<Store>, keys: &[SealKey; 2], renamed: bool) -> Verdict {
    let found: Vec<&str> = ["a", "c"].into_iter().filter(|name| store.find(name).is_ok()).collect();
    let [name] = found[..] else { return Err(format!("it has the names {found:?}")) };
    if renamed && name == "a" {
        return Err("the rename is lost".into());
    }
    let is_it = attach(store, name, keys);
    if is_it.iter().any(|found| !matches!(found, Ok(1))) {
        return Err(format!("{name}: {is_it:?}"));
    }
    let ended = || {
        let unlocked = store.unlock(name, KEY, &keys[1])?;
        let mut writer = store.attach_sealed_writer(name, KEY, &unlocked)?;
        writer.finish_rename()?;
        let identity = writer.sealed_pages().and_then(|pages| pages.identity());
        writer.detach()?;
        Ok(identity.is_some_and(|identity| identity.name == identity.other))
    };
    match ended().map_err(text)? {
        true => Ok(()),
        false => Err(format!("{name} has another name as well")),
    }
}

pub(super) fn a_renamed_object_has_one_of_two_names_after_a_power_cut() -> Verdict {
    for (disk, signed) in [(true, false), (false, true)] {
        let medium = prepared(SimConfig { disk, ..CONFIG }, signed).map_err(text)?;
        let keys = keys(signed);
        let record = |medium: &SimMedium| {
            let mut writer = sealed::writer(&open(medium, 2), "a").unwrap();
            writer.rename("c").unwrap();
            medium.mark(1);
            writer.detach().unwrap();
        };
        let judge = |image: &crate::CrashImage| {
            has_one_name(&open(&image.medium(), 3), &keys, image.last_mark().is_some_and(|mark| mark > 0))
        };
        for_each_crash(&medium, record, judge, &LIMITS).map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

pub(super) fn an_object_whose_renamer_dies_has_one_of_two_names() -> Verdict {
    const KINDS: [OpKind; 3] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier];
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let medium = prepared(CONFIG, late).map_err(text)?;
            let handle = Arc::new(medium.handle());
            let store = Store::open(handle.clone(), process(2)).map_err(text)?;
            medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            let done = sealed::rename(&store, "a", "c");
            medium.clear_faults();
            let named = |what: String| format!("{kind:?} {nth}, late {late}: {what}");
            let dead = handle.is_dead();
            if !dead {
                done.map_err(|error| named(error.to_string()))?;
            }
            drop(store);
            has_one_name(&open(&medium, 3), &keys(late), !dead).map_err(named)?;
            if !dead {
                break;
            }
        }
    }
    Ok(())
}

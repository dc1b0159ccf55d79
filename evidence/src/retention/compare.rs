use super::perform::{CACHE, CONFIG, ITEMS, RUNNERS, STEP};
use super::program::{CROWD, Cache, Config, Data, Item, More, Moving, Sale, Server, Stage};
use super::types::{Crowd, NewList, NewMap, OldList, OldMap, v1, v2, v3};
use anyhow::{Result, bail, ensure};
use indelible::Heap;
use indelible::collections::{PString, RootTypes};
use indelible::retention::Migrating;
use std::collections::BTreeMap;

type MigratingList<'h> = Migrating<OldList<'h>, NewList<'h>>;
type MigratingMap<'h> = Migrating<OldMap<'h>, NewMap<'h>>;

pub(super) fn step(heap: &mut Heap) -> Result<u64> {
    Ok(*heap.root_mut::<u64>(STEP)?)
}

pub(super) fn sound(heap: &mut Heap, data: &Data) -> Result<()> {
    let damage = heap.check();
    ensure!(damage.is_empty(), "the heap is damaged: {damage:?}");
    let audit = heap.audit()?;
    ensure!(audit.findings.is_empty(), "an audit finds {:?}", audit.findings);
    ensure!(audit.leaks.is_empty(), "leaked: {:?}", audit.leaks);
    ensure!(audit.pointers.is_empty(), "pointers lead nowhere: {:?}", audit.pointers);
    let types = RootTypes::new().root::<u64>(STEP).root::<v3::Items<'_>>(ITEMS).root::<Crowd<'_>>(RUNNERS);
    let types = match data.config.version {
        1 => types.root::<v1::Config<'_>>(CONFIG),
        2 => types.root::<v2::Config<'_>>(CONFIG),
        _ => types.root::<v3::Config<'_>>(CONFIG),
    };
    let types = match data.cache.version {
        1 => types.root::<v1::Cache<'_>>(CACHE),
        2 => types.root::<v2::Cache<'_>>(CACHE),
        _ => types.root::<v3::Cache<'_>>(CACHE),
    };
    let types = match data.list.stage {
        Stage::Old => types.root::<OldList<'_>>("list"),
        Stage::Both(_) => types.root::<MigratingList<'_>>("list"),
        Stage::New => types.root::<NewList<'_>>("list"),
    };
    let types = match data.map.stage {
        Stage::Old => types.root::<OldMap<'_>>("map"),
        Stage::Both(_) => types.root::<MigratingMap<'_>>("map"),
        Stage::New => types.root::<NewMap<'_>>("map"),
    };
    Ok(heap.verify(&types)?)
}

pub(super) fn same(heap: &mut Heap, data: &Data) -> Result<()> {
    let found = config(heap, data.config.version)?;
    ensure!(found == data.config, "the config is {found:?}, and should be {:?}", data.config);
    let found = cache(heap, data.cache.version)?;
    ensure!(found == data.cache, "the cache is {found:?}, and should be {:?}", data.cache);
    items(heap, &data.items)?;
    crowd(heap, data.crowd)?;
    list(heap, &data.list)?;
    map(heap, &data.map)
}

fn config(heap: &mut Heap, version: u8) -> Result<Config> {
    let server = |name: &PString<'_>, port: u32, weight: u32| Server { name: name.to_string(), port, weight };
    Ok(match version {
        1 => {
            let config = heap.root_mut::<v1::Config<'_>>(CONFIG)?;
            let servers = config.servers.iter().map(|of| server(&of.name, of.port, of.weight)).collect();
            Config { version, title: config.title.to_string(), servers, seconds: 0 }
        }
        2 => {
            let config = heap.root_mut::<v2::Config<'_>>(CONFIG)?;
            let servers = config.servers.iter().map(|of| server(&of.name, of.port, of.weight)).collect();
            Config { version, title: config.title.to_string(), servers, seconds: 0 }
        }
        _ => {
            let config = heap.root_mut::<v3::Config<'_>>(CONFIG)?;
            let mut servers = Vec::new();
            for (number, of) in &config.servers {
                ensure!(*number == servers.len() as u64, "server {number} behind {}", servers.len());
                servers.push(server(&of.name, of.port, u32::try_from(of.weight)?));
            }
            Config { version, title: config.title.to_string(), servers, seconds: config.seconds }
        }
    })
}

fn cache(heap: &mut Heap, version: u8) -> Result<Cache> {
    let by_number = |all: BTreeMap<u64, String>| all.into_values().collect();
    let texts = match version {
        1 => heap.root_mut::<v1::Cache<'_>>(CACHE)?.iter().map(PString::to_string).collect(),
        2 => by_number(
            heap.root_mut::<v2::Cache<'_>>(CACHE)?
                .iter()
                .map(|(key, text)| (*key, text.to_string()))
                .collect(),
        ),
        _ => by_number(
            heap.root_mut::<v3::Cache<'_>>(CACHE)?
                .iter()
                .map(|(key, text)| (*key, text.to_string()))
                .collect(),
        ),
    };
    Ok(Cache { version, texts })
}

fn items(heap: &mut Heap, model: &[Item]) -> Result<()> {
    let first = heap.root_mut::<v1::Items<'_>>(ITEMS)?;
    let seen: Vec<_> = first.iter().map(|item| (item.name.to_string(), item.count)).collect();
    let expected: Vec<_> = model.iter().map(|item| (item.name.clone(), item.count)).collect();
    ensure!(seen == expected, "version 1 sees {seen:?}, and should see {expected:?}");
    let expected: Vec<_> = model.iter().map(|item| (item.sale(), item.more())).collect();
    let second = heap.root_mut::<v2::Items<'_>>(ITEMS)?;
    for (item, (sale, _)) in second.iter().zip(&expected) {
        let seen = Sale { price: item.price(), sold: item.sold() };
        ensure!(seen == *sale, "version 2 sees {seen:?} of {}, and should see {sale:?}", item.name);
    }
    let third = heap.root_mut::<v3::Items<'_>>(ITEMS)?;
    for (item, expected) in third.iter().zip(&expected) {
        let sale = Sale { price: item.price(), sold: item.sold() };
        let more = More { wide: item.wide(), gross: item.gross(), code: item.code() };
        ensure!(
            (sale, more) == *expected,
            "version 3 sees {sale:?}, {more:?} of {}, and should see {expected:?}",
            item.name
        );
    }
    Ok(())
}

fn crowd(heap: &mut Heap, first: u64) -> Result<()> {
    let crowd = heap.root_mut::<Crowd<'_>>(RUNNERS)?;
    let expected = if first == 0 { 0 } else { CROWD };
    ensure!(crowd.len() as u64 == expected, "{} values where {expected} were made", crowd.len());
    for (number, runner) in (first..).zip(crowd.iter()) {
        let right = runner.number == number && runner.many() == [number; 512];
        ensure!(right, "value {} is at the place of {number}, with {:?}", runner.number, runner.many());
    }
    Ok(())
}

fn list(heap: &mut Heap, model: &Moving) -> Result<()> {
    let old = |list: &OldList<'_>| list.iter().map(PString::to_string).collect();
    let new = |list: &NewList<'_>| -> Vec<String> {
        list.iter().filter(|of| of.len == of.text.len() as u64).map(|of| of.text.to_string()).collect()
    };
    let (left, done) = match model.stage {
        Stage::Old => (old(heap.root_mut::<OldList<'_>>("list")?), Vec::new()),
        Stage::Both(_) => {
            let list = heap.root_mut::<MigratingList<'_>>("list")?;
            (old(list.old()), new(list.converted()))
        }
        Stage::New => (Vec::new(), new(heap.root_mut::<NewList<'_>>("list")?)),
    };
    let kept: &[String] = if model.stage == Stage::New { &[] } else { &model.texts };
    ensure!(left == kept, "the old list is {left:?}, and should be {kept:?}");
    ensure!(done == model.texts[..model.done()], "the new list is {done:?}, of {model:?}");
    Ok(())
}

fn map(heap: &mut Heap, model: &Moving) -> Result<()> {
    let old = |map: &OldMap<'_>| map.iter().map(|(key, text)| (*key, text.to_string())).collect();
    let new = |map: &NewMap<'_>| map.iter().map(|(text, key)| (*key, text.to_string())).collect();
    let all: BTreeMap<u64, String> = (0..).zip(model.texts.iter().cloned()).collect();
    let (left, done): (BTreeMap<u64, String>, BTreeMap<u64, String>) = match model.stage {
        Stage::Old => (old(heap.root_mut::<OldMap<'_>>("map")?), BTreeMap::new()),
        Stage::Both(_) => {
            let map = heap.root_mut::<MigratingMap<'_>>("map")?;
            (old(map.old()), new(map.converted()))
        }
        Stage::New => (all.clone(), new(heap.root_mut::<NewMap<'_>>("map")?)),
    };
    ensure!(left == all, "the old map is {left:?}, and should be {all:?}");
    if done.len() != model.done() || done.iter().any(|(key, text)| all.get(key) != Some(text)) {
        bail!("the new map is {done:?}, of {model:?}");
    }
    Ok(())
}

use super::program::{Action, CROWD, Data, Moving, SERVERS, Stage, TEXTS, Which};
use super::types::{
    Crowd, Measured, NewList, NewMap, OldList, OldMap, Runner, first_to_second, second_to_third,
    third_to_first, v1, v2, v3,
};
use crate::kills::watch::idle;
use crate::workloads::wire::Said;
use anyhow::{Result, bail};
use indelible::collections::{PString, PVec};
use indelible::retention::{Converted, Extensions};
use indelible::{ErrorKind, Heap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub(super) const CONFIG: &str = "config";
pub(super) const CACHE: &str = "cache";
pub(super) const ITEMS: &str = "items";
pub(super) const RUNNERS: &str = "crowd";
pub(super) const STEP: &str = "step";
const RACERS: usize = 2;

const CUTS: u64 = 4;

pub(super) fn make(heap: &mut Heap, data: &Data) -> Result<()> {
    heap.root_or_insert_with::<v1::Config<'_>, _>(CONFIG, |h| v1::Config {
        title: PString::from_in(&data.config.title, h),
        servers: PVec::new_in(h),
    })?;
    heap.root_or_default::<v1::Cache<'_>>(CACHE)?;
    heap.root_or_default::<v1::Items<'_>>(ITEMS)?;
    heap.root_or_default::<Crowd<'_>>(RUNNERS)?;
    anew(heap, Which::List, &data.list.texts)?;
    anew(heap, Which::Map, &data.map.texts)?;
    heap.root_or_default::<u64>(STEP)?;
    Ok(())
}

pub(super) fn perform(heap: &mut Heap, data: &Data, action: &Action) -> Result<()> {
    let version = data.version();
    match action {
        Action::ConfigRefused => refused(open_config(heap, version, |_| Ok(())))?,
        Action::ConverterFails => refused(fail_to_convert(heap, version))?,
        Action::Config { .. } | Action::Back => config(heap, version, action)?,
        Action::Cache { text } => cache(heap, data, text)?,
        Action::MovingRefused(Which::List) => refused(heap.root_mut::<OldList<'_>>("list").map(drop))?,
        Action::MovingRefused(Which::Map) => refused(heap.root_mut::<OldMap<'_>>("map").map(drop))?,
        Action::Add(which, text) => add(heap, data, *which, text)?,
        Action::Migrate { which, most, fails } => {
            migrate(heap, data.moving(*which), (*which, *most, *fails))?
        }
        Action::Abandon(Which::List) => {
            heap.abandon_migration::<OldList<'_>, NewList<'_>>("list")?;
        }
        Action::Abandon(Which::Map) => {
            heap.abandon_migration::<OldMap<'_>, NewMap<'_>>("map")?;
        }
        Action::Anew(which, texts) => anew(heap, *which, texts)?,
        Action::Sell { at, sale } if version == 2 => {
            let item = &mut heap.root_mut::<v2::Items<'_>>(ITEMS)?[*at];
            *item.price_mut() = sale.price;
            *item.sold_mut() = sale.sold;
        }
        Action::Sell { at, sale } => {
            let item = &mut heap.root_mut::<v3::Items<'_>>(ITEMS)?[*at];
            *item.sold_mut() = sale.sold;
            *item.price_mut() = sale.price;
        }
        Action::More { at, more } => {
            let view = heap.root_mut::<v3::Items<'_>>(ITEMS)?[*at].extended();
            (*view.wide, *view.gross, *view.code) = (more.wide, more.gross, more.code);
        }
        Action::Race if version == 2 => race(heap, |heap| {
            Ok(heap.root_ref::<v2::Items<'_>>(ITEMS)?.iter().try_for_each(|item| item.extend())?)
        })?,
        Action::Race => race(heap, |heap| {
            Ok(heap.root_ref::<v3::Items<'_>>(ITEMS)?.iter().try_for_each(|item| item.extend())?)
        })?,
        Action::Crowd => return crowd(heap, data.step),
        Action::Push { .. } | Action::Remove { .. } | Action::Count { .. } | Action::Copy { .. } => {
            match version {
                1 => by_first::items(heap, action)?,
                2 => by_second::items(heap, action)?,
                _ => by_third::items(heap, action)?,
            }
        }
    }
    *heap.root_mut::<u64>(STEP)? += 1;
    Ok(())
}

fn refused(result: indelible::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::RootType => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => bail!("a root of another type was opened"),
    }
}

enum Opened<'a, 'h> {
    First(&'a mut v1::Config<'h>),
    Second(&'a mut v2::Config<'h>),
    Third(&'a mut v3::Config<'h>),
}

fn open_config(
    heap: &mut Heap,
    version: u8,
    change: impl FnOnce(Opened<'_, '_>) -> indelible::Result<()>,
) -> indelible::Result<()> {
    match version {
        1 => change(Opened::First(heap.root_mut::<v1::Config<'_>>(CONFIG)?)),
        2 => {
            let chain = heap.root_from::<v1::Config<'_>>(CONFIG).convert(first_to_second);
            change(Opened::Second(chain.open()?))
        }
        _ => {
            let chain = heap.root_from::<v1::Config<'_>>(CONFIG).convert(first_to_second);
            change(Opened::Third(chain.convert(second_to_third).open()?))
        }
    }
}

fn fail_to_convert(heap: &mut Heap, version: u8) -> indelible::Result<()> {
    fn failing<T>(made: Converted<T>) -> Converted<T> {
        made.and_then(|_| Err("not this one".into()))
    }
    let chain = heap.root_from::<v1::Config<'_>>(CONFIG);
    if version == 2 {
        return chain.convert(|old, h| failing(first_to_second(old, h))).open().map(drop);
    }
    chain.convert(first_to_second).convert(|old, h| failing(second_to_third(old, h))).open().map(drop)
}

fn config(heap: &mut Heap, version: u8, action: &Action) -> Result<()> {
    let Action::Config { title, server } = action else {
        heap.root_from::<v3::Config<'_>>(CONFIG).convert(third_to_first).open()?;
        return Ok(());
    };
    let (port, weight) = (server.port, server.weight);
    open_config(heap, version, |opened| {
        let stored = match opened {
            Opened::First(config) => {
                if config.servers.len() == SERVERS {
                    config.servers.clear();
                }
                let name = PString::from_in(&server.name, config.servers.heap());
                config.servers.push(v1::Server { name, port, weight });
                &mut config.title
            }
            Opened::Second(config) => {
                if config.servers.len() == SERVERS {
                    config.servers.clear();
                }
                let name = PString::from_in(&server.name, config.servers.heap());
                config.servers.push(v2::Server { name, weight, port });
                &mut config.title
            }
            Opened::Third(config) => {
                if config.servers.len() == SERVERS {
                    config.servers.clear();
                }
                let (number, name) =
                    (config.servers.len() as u64, PString::from_in(&server.name, config.servers.heap()));
                config.servers.insert(number, v3::Server { name, weight: weight.into(), port });
                &mut config.title
            }
        };
        stored.clear();
        stored.try_push_str(title)
    })?;
    Ok(())
}

fn cache(heap: &mut Heap, data: &Data, text: &str) -> Result<()> {
    let (version, resets) = (data.version(), std::cell::Cell::new(0));
    let full = data.cache.texts.len() == TEXTS;
    let told = |_: &indelible::retention::Reset| resets.set(1);
    match version {
        1 => {
            let cache = heap.root_from::<v1::Cache<'_>>(CACHE).or_reset(told).or_default()?;
            if full {
                cache.clear();
            }
            cache.push(text);
        }
        2 => {
            let cache = heap.root_from::<v2::Cache<'_>>(CACHE).or_reset(told).or_default()?;
            if full {
                cache.clear();
            }
            cache.insert(cache.len() as u64, text);
        }
        _ => {
            let cache = heap.root_from::<v3::Cache<'_>>(CACHE).or_reset(told).or_default()?;
            if full {
                cache.clear();
            }
            cache.insert(cache.len() as u64, text);
        }
    }
    if resets.get() != u8::from(data.cache.version != version) {
        bail!("{} resets of a cache of version {} by {version}", resets.get(), data.cache.version);
    }
    Ok(())
}

fn anew(heap: &mut Heap, which: Which, texts: &[String]) -> Result<()> {
    match which {
        Which::List => {
            let list = heap.root_from::<OldList<'_>>("list").or_reset(|_| ()).or_default()?;
            list.clear();
            texts.iter().for_each(|text| list.push(text.as_str()));
        }
        Which::Map => {
            let map = heap.root_from::<OldMap<'_>>("map").or_reset(|_| ()).or_default()?;
            map.clear();
            for (number, text) in (0..).zip(texts) {
                map.insert(number, text.as_str());
            }
        }
    }
    Ok(())
}

fn add(heap: &mut Heap, data: &Data, which: Which, text: &str) -> Result<()> {
    let Moving { texts, stage } = data.moving(which);
    let number = texts.len() as u64;
    match (which, stage) {
        (Which::List, Stage::Old) => heap.root_mut::<OldList<'_>>("list")?.push(text),
        (Which::List, _) => {
            let list = heap.root_mut::<NewList<'_>>("list")?;
            list.push(Measured { text: PString::from_in(text, list.heap()), len: text.len() as u64 });
        }
        (Which::Map, Stage::Old) => drop(heap.root_mut::<OldMap<'_>>("map")?.insert(number, text)),
        (Which::Map, _) => drop(heap.root_mut::<NewMap<'_>>("map")?.insert(text, number)),
    }
    Ok(())
}

fn migrate(heap: &mut Heap, before: &Moving, (which, most, fails): (Which, usize, bool)) -> Result<()> {
    let mut count = 0;
    let mut next = || {
        count += 1;
        if fails && count == most { Err("not this one") } else { Ok(()) }
    };
    let progress = match which {
        Which::List => heap.migrate_vec("list", most as u64, |old: &PString<'_>, h| {
            next()?;
            Ok(Measured { text: PString::from_in(old, h), len: old.len() as u64 })
        }),
        Which::Map => heap.migrate_map::<OldMap<'_>, NewMap<'_>>("map", most as u64, |key, value, h| {
            next()?;
            Ok((PString::from_in(value, h), *key))
        }),
    };
    if before.comes_to_the_failure(most, fails) {
        return refused(progress.map(drop));
    }
    let (done, total) = ((before.done() + most).min(before.texts.len()) as u64, before.texts.len() as u64);
    let found = progress?;
    if (found.done, found.total, found.finished) != (done, total, done == total) {
        bail!("a step of {most} behind {} ends as {found:?}", before.done());
    }
    Ok(())
}

fn race(heap: &Heap, extend: impl Fn(&Heap) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS).map(|_| scope.spawn(|| extend(heap))).collect();
        heap.psync_cut()?;
        racers.into_iter().try_for_each(|racer| racer.join().expect("it does not panic"))
    })
}

pub(super) fn wait_for_the_end() -> ! {
    idle().say();
    loop {
        thread::park();
    }
}

/// Threads extend new values beside repeated, reported cuts. After some cuts the program waits for
/// its end, so that the judge finds that cut's state.
fn crowd(heap: &mut Heap, first: u64) -> Result<()> {
    *heap.root_mut::<u64>(STEP)? += 1;
    let crowd = heap.root_or_default::<Crowd<'_>>(RUNNERS)?;
    crowd.clear();
    crowd.extend((first..first + CROWD).map(|number| Runner { number, extensions: Extensions::new() }));
    let (heap, extended): (&Heap, _) = (heap, AtomicU64::new(0));
    let run = || -> indelible::Result<()> {
        heap.root_ref::<Crowd<'_>>(RUNNERS)?.iter().try_for_each(|runner| {
            runner.extend()?;
            extended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    };
    thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS).map(|_| scope.spawn(run)).collect();
        for cut in 0..CUTS {
            while extended.load(Ordering::Relaxed) <= cut * CROWD / CUTS
                && racers.iter().any(|racer| !racer.is_finished())
            {
                std::hint::spin_loop();
            }
            heap.psync_cut()?;
            Said::Count { what: "cuts beside threads that extend".into(), count: 1 }.say();
            if first % (2 * CUTS) == cut {
                wait_for_the_end();
            }
        }
        racers.into_iter().try_for_each(|racer| Ok(racer.join().expect("it does not panic")?))
    })
}

macro_rules! by_version {
    ($($name:ident: $version:ident),*) => {$(
        mod $name {
            use super::*;

            pub(super) fn items(heap: &mut Heap, action: &Action) -> Result<()> {
                let items = heap.root_mut::<$version::Items<'_>>(ITEMS)?;
                match action {
                    Action::Push { name, count } => {
                        let name = PString::from_in(name, items.heap());
                        items.push($version::Item { name, count: *count, extensions: Extensions::new() });
                    }
                    Action::Remove { at } => drop(items.remove(*at)),
                    Action::Count { at, count } => items[*at].count = *count,
                    Action::Copy { at } => {
                        let copy = items[*at].clone();
                        items.push(copy);
                    }
                    _ => bail!("{action:?} is not made by all versions"),
                }
                Ok(())
            }
        }
    )*};
}

by_version!(by_first: v1, by_second: v2, by_third: v3);

//! Forged images with matching checksums: check and repair end, and report the damage.

use super::sample::{Map, check, copy, judge, map, open, sample, seed_of, settled, try_repair};
use indelible_store::error::StoreError;
use indelible_store::format::batch::{Header, MAGIC, Run, Section, kind};
use indelible_store::format::entry::{Entry, STATE_W};
use indelible_store::format::lane::{DIRECTORY_MAGIC, Directory};
use indelible_store::format::node::{CAPACITY, Node, Slot};
use indelible_store::format::root::{Root, TreeId};
use indelible_store::format::superblock::{FEATURE_UPGRADING, SLOTS, Superblock};
use indelible_store::format::{
    DATA, LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT, checksum,
};
use indelible_store::lane::{LaneLog, scan};
use indelible_store::medium::{Device, Medium, read_struct};
use indelible_store::store::{Severity, Store};
use indelible_testing::SimMedium;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

struct Forge {
    medium: SimMedium,
    seed: u64,
    map: Map,
}

impl Forge {
    fn root(&self, change: impl FnOnce(&mut Root)) {
        let mut root: Root = read_struct(&self.medium, TABLE_ROOT).unwrap();
        change(&mut root);
        self.medium.write(TABLE_ROOT, root.sealed(self.seed).as_bytes()).unwrap();
    }

    fn node(&self, offset: u64, change: impl FnOnce(&mut Node)) {
        let mut node: Node = read_struct(&self.medium, offset).unwrap();
        change(&mut node);
        node.seal(self.seed);
        self.medium.write(offset, node.as_bytes()).unwrap();
    }

    fn entry(&self, index: usize, change: impl FnOnce(&mut Entry)) {
        let offset = self.map.used[index];
        let mut entry: Entry = read_struct(&self.medium, offset).unwrap();
        change(&mut entry);
        self.medium.write(offset, entry.sealed(self.seed).as_bytes()).unwrap();
    }

    fn lane(&self, index: u64, change: impl FnOnce(&mut Directory)) {
        let offset = LANE_DIRECTORY + index * LINE;
        let mut lane: Directory = read_struct(&self.medium, offset).unwrap();
        lane.magic = U32::new(DIRECTORY_MAGIC);
        change(&mut lane);
        self.medium.write(offset, lane.sealed(self.seed).as_bytes()).unwrap();
    }

    fn top(&self, tree: TreeId) -> u64 {
        read_struct::<Root>(&self.medium, TABLE_ROOT).unwrap().trees[tree as usize].node.get()
    }

    fn loops(&self, tree: TreeId, node: u64, child: u64, level: u16) {
        self.node(node, |made| {
            *made = Node::empty(level, node);
            for index in 0..CAPACITY {
                made.insert(index, Slot::new((index as u64, 0), child));
            }
        });
        self.root(|root| {
            root.trees[tree as usize].node = U64::new(node);
            root.trees[tree as usize].height = U32::new(u32::from(level) + 1);
        });
    }
}

type Forgery = (&'static str, fn(&Forge));

const FORGERIES: &[Forgery] = &[
    ("a node is its own child", |f| f.loops(TreeId::Names, f.top(TreeId::Names), f.top(TreeId::Names), 15)),
    ("a node is its own child, one level deep", |f| {
        f.loops(TreeId::Ids, f.top(TreeId::Ids), f.top(TreeId::Ids), 1)
    }),
    ("all children are one leaf", |f| f.loops(TreeId::Names, f.map.free_pages[0], f.top(TreeId::Names), 1)),
    ("a child of another tree", |f| f.loops(TreeId::Names, f.map.free_pages[0], f.top(TreeId::Ids), 1)),
    ("children in the superblock", |f| f.loops(TreeId::FreeByPage, f.map.free_pages[0], 0, 1)),
    ("children beyond the pool", |f| f.loops(TreeId::FreeByPage, f.map.free_pages[0], u64::MAX - 4095, 1)),
    ("children at odd offsets", |f| f.loops(TreeId::FreeByPage, f.map.free_pages[0], DATA + 1, 1)),
    ("counts beyond all bounds", |f| {
        f.root(|root| {
            root.objects = U64::new(u64::MAX);
            root.free_pages = U64::new(u64::MAX);
            root.free_page_count = U64::new(u64::MAX);
            root.next_binding = U64::new(u64::MAX);
            root.trees.iter_mut().for_each(|tree| tree.count = U64::new(u64::MAX));
        });
    }),
    ("trees of sixteen levels", |f| {
        f.root(|r| r.trees.iter_mut().for_each(|tree| tree.height = U32::new(16)))
    }),
    ("all trees are one", |f| {
        let names = f.top(TreeId::Names);
        f.root(|root| root.trees.iter_mut().for_each(|tree| tree.node = U64::new(names)));
    }),
    ("trees of nothing", |f| f.root(|r| r.trees.iter_mut().for_each(|tree| tree.height = U32::new(0)))),
    ("free pages in a ring", |f| {
        f.medium.write(*f.map.free_pages.last().unwrap(), &f.map.free_pages[0].to_le_bytes()).unwrap();
    }),
    ("free pages through an object", |f| {
        let entry: Entry = read_struct(&f.medium, f.map.used[0]).unwrap();
        f.medium.write(f.map.free_pages[0], &entry.primary_offset().to_le_bytes()).unwrap();
    }),
    ("free slots in a ring", |f| {
        let last = *f.map.free.last().unwrap();
        let mut slot: Entry = read_struct(&f.medium, last).unwrap();
        slot.next_free = U64::new(f.map.free[0]);
        f.medium.write(last, slot.as_bytes()).unwrap();
    }),
    ("a used slot is free", |f| f.root(|root| root.free_slot = U64::new(f.map.used[0]))),
    ("free slots beyond the pool", |f| f.root(|root| root.free_slot = U64::new(u64::MAX - 1023))),
    ("a chunk over everything", |f| {
        f.root(|root| {
            root.chunk_next = U64::new(0);
            root.chunk_end = U64::new(4 << 20);
        });
    }),
    ("all space is untouched", |f| f.root(|root| root.virgin = U64::new(0))),
    ("an object over everything", |f| {
        f.entry(0, |entry| {
            entry.primary = U64::new(0);
            entry.pages = U64::new(1024);
            entry.size = U64::new(4 << 20);
            entry.reserved = U64::new(4 << 20);
        });
    }),
    ("an object over the data region", |f| {
        f.entry(1, |entry| {
            entry.primary = U64::new(DATA / PAGE);
            entry.pages = U64::new(1024 - DATA / PAGE);
            entry.size = U64::new((4 << 20) - DATA);
            entry.reserved = U64::new(4 << 20);
        });
    }),
    ("two objects in one place", |f| {
        let other: Entry = read_struct(&f.medium, f.map.used[0]).unwrap();
        f.entry(1, |entry| (entry.primary, entry.address) = (other.primary, other.address));
    }),
    ("two objects of one name", |f| {
        let other: Entry = read_struct(&f.medium, f.map.used[0]).unwrap();
        f.entry(1, |entry| (entry.name, entry.name_len) = (other.name, other.name_len));
    }),
    ("two objects of one ID", |f| {
        let other: Entry = read_struct(&f.medium, f.map.used[0]).unwrap();
        f.entry(1, |entry| entry.id = other.id);
    }),
    ("an attach to come", |f| f.entry(2, |entry| entry.binding = U64::new(u64::MAX))),
    ("a lane that cannot be", |f| {
        f.entry(2, |entry| (entry.state, entry.lane) = (STATE_W, U32::new(5000)));
    }),
    ("a lane without space", |f| {
        f.entry(2, |entry| (entry.state, entry.lane) = (STATE_W, U32::new(99)));
    }),
    ("addresses of others", |f| f.entry(3, |entry| entry.address = U64::new(0x1000))),
    ("a lane over everything", |f| {
        f.lane(5, |lane| (lane.offset, lane.len) = (U64::new(0), U64::new(4 << 20)));
    }),
    ("lanes over the data region", |f| {
        for index in 0..u64::from(LANES) {
            f.lane(index, |lane| (lane.offset, lane.len) = (U64::new(DATA), U64::new((4 << 20) - DATA)));
        }
    }),
    ("free space without end", |f| {
        for (tree, key) in [(TreeId::FreeByPage, (u64::MAX, 0)), (TreeId::FreeBySize, (u64::MAX, u64::MAX))] {
            f.node(f.top(tree), |node| {
                let at = node.len();
                node.insert(at, Slot::new(key, u64::MAX));
            });
        }
    }),
    ("free addresses without end", |f| {
        f.node(f.top(TreeId::FreeByAddress), |node| {
            node.slots[0].value = U64::new(u64::MAX);
            node.count = U16::new(1);
        });
    }),
    ("names that lead nowhere", |f| {
        f.node(f.top(TreeId::Names), |node| {
            let len = node.len();
            node.slots[..len]
                .iter_mut()
                .enumerate()
                .for_each(|(at, slot)| slot.value = U64::new(at as u64 * 1000));
        });
    }),
    ("a table batch over the superblock", |f| table_batch(f, 0)),
    ("a table batch over its own lane", |f| table_batch(f, TABLE_LANE)),
];

fn table_batch(forge: &Forge, target: u64) {
    let mut log = LaneLog::read(&forge.medium, forge.seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    scan(&forge.medium, forge.seed, &mut log, &mut |_| Ok(())).unwrap();
    let section = Section { kind: U16::new(kind::TABLE), runs: U32::new(1), ..Section::default() };
    let run = Run { target: U64::new(target), lines: U64::new(1) };
    let mut body = vec![7; LINE as usize];
    body.extend_from_slice(section.as_bytes());
    body.extend_from_slice(run.as_bytes());
    let mut header = Header {
        magic: U32::new(MAGIC),
        sections: U32::new(1),
        body_sum: U64::new(checksum(forge.seed, &[&body])),
        generation: U64::new(log.generation),
        sequence: U64::new(log.sequence),
        len: U64::new(LINE + body.len() as u64),
        runs: U32::new(1),
        lines: U32::new(1),
        ..Header::default()
    };
    header.head_sum = U64::new(header.sum(forge.seed));
    forge.medium.write(log.position(), header.as_bytes()).unwrap();
    forge.medium.write(log.position() + LINE, &body).unwrap();
}

#[test]
fn forged_structures_are_reported() {
    let (medium, _) = settled(6);
    for (name, forge) in FORGERIES {
        let forged = Forge { medium: copy(&medium), seed: seed_of(&medium), map: map(&medium) };
        forge(&forged);
        forged.medium.settle();
        let report = check(&forged.medium);
        assert!(report.worst() >= Some(Severity::Warning), "{name}: {report:#?}");
        for drop_damaged in [false, true] {
            let medium = copy(&forged.medium);
            let first = try_repair(&medium, drop_damaged);
            let second = try_repair(&medium, drop_damaged);
            if let (Ok(first), Ok(second)) = (&first, &second) {
                let done = second.iter().filter(|action| action.done).collect::<Vec<_>>();
                assert!(done.is_empty(), "{name}: a second repair did {done:#?} after {first:#?}");
            }
            check(&medium);
        }
    }
}

#[test]
fn noise_is_survived() {
    let (medium, expected) = sample(6);
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for round in 0..120 {
        let noisy = copy(&medium);
        for _ in 0..1 + random(6) {
            let at = PAGE + random((1 << 20) - 2 * PAGE);
            let len = [1, 8, 64, 700, 4096][random(5) as usize];
            noisy.scribble(at..at + len, random(1 << 30));
        }
        let report = check(&noisy);
        let _ = judge(&copy(&noisy), &expected);
        let actions = try_repair(&noisy, round % 2 == 0).unwrap();
        let left = check(&noisy);
        let errors = left.findings.iter().any(|finding| finding.severity == Severity::Error);
        assert_eq!(errors, actions.iter().any(|action| !action.done), "{report:#?}\n{actions:#?}\n{left:#?}");
        if round % 2 == 0 {
            assert!(!errors, "{report:#?}\n{actions:#?}\n{left:#?}");
            let store = open(&noisy, 3).unwrap();
            for object in indelible_testing::pool::objects(&store).unwrap() {
                assert_eq!(expected[&object.entry.name()].0, object.entry.id);
            }
        }
    }
}

#[test]
fn other_things_than_pools() {
    let refused = |medium: SimMedium| {
        let device: Arc<dyn Device> = Arc::new(medium.handle());
        assert!(Store::check(device, &mut |_, _| {}).is_err());
        assert!(try_repair(&medium, true).is_err());
    };
    for len in [0, 1, 4096, 8192, 1 << 20] {
        refused(SimMedium::new(len, super::sample::config()));
    }
    let (medium, _) = settled(6);
    let superblock: Superblock = read_struct(&medium, SLOTS[0]).unwrap();
    let forge = |change: fn(&mut Superblock)| {
        let forged = copy(&medium);
        let mut made = superblock;
        change(&mut made);
        for slot in SLOTS {
            forged.write(slot, made.sealed().as_bytes()).unwrap();
        }
        forged.settle();
        forged
    };
    refused(forge(|superblock| superblock.version = U32::new(1)));
    refused(forge(|superblock| superblock.version = U32::new(3)));
    refused(forge(|superblock| superblock.features = U32::new(FEATURE_UPGRADING)));
    refused(forge(|superblock| superblock.features = U32::new(4)));
    refused(forge(|superblock| superblock.length = U64::new(1 << 50)));
    let mut bytes = medium.to_bytes();
    bytes.truncate(1 << 20);
    let cut = SimMedium::from_bytes(&bytes, super::sample::config());
    assert!(!super::sample::check(&cut).is_clean());
    assert!(matches!(try_repair(&cut, true), Err(StoreError::Truncated { .. })));
}

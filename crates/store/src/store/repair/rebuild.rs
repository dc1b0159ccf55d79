//! A new table from the entries, built in free space and put in force by one batch.

use super::nodes::{Pair, build, nodes_for};
use super::plan::{Plan, next_binding};
use super::settled::{SettledRepair, TOGETHER};
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{Entry, SIZE};
use crate::format::lane::Directory;
use crate::format::root::{self, Root, TreeId};
use crate::format::{DATA, LANE_DIRECTORY, LINE, PAGE, TABLE_ROOT};
use crate::medium::{read_struct, zero_fresh};
use crate::mutant::Mutant;
use crate::store::check::{Claim, Owner, Survey, gaps, is_clean};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

const SPARE: u64 = 64;

struct Site {
    pieces: Vec<(u64, u64)>,
}

impl Site {
    fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pieces.iter().flat_map(|(first, end)| *first..*end).map(|page| page * PAGE)
    }
}

impl SettledRepair<'_> {
    pub(super) fn rebuild(&mut self, survey: &Survey, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let Some(plan) = self.plan(survey, progress)? else {
            let what = "the table's structures are not built anew: because of damaged entries it is unknown which space is free";
            self.leave(Part::Root, TABLE_ROOT, what);
            return Ok(());
        };
        if !self.salvage_lanes(survey, &plan)? {
            return Ok(());
        }
        self.distrust_disputed(survey, &plan)?;
        let (names, ids) = name_keys(&plan);
        let (from, len) = survey.window;
        let addresses = gaps(&plan.addresses, from, from.saturating_add(len));
        let site = self.choose_site(survey, &plan, names.len(), addresses.len())?;
        let mut pages = plan.pages.clone();
        pages.extend(site.pieces.iter().map(|(first, end)| Claim::new(*first, end - first, Owner::Chunk)));
        pages.sort_unstable();
        let free = gaps(&pages, DATA / PAGE, self.len / PAGE);

        let mut root = self.new_root(survey, &plan, &pages);
        root.objects = U64::new(names.len() as u64);
        root.free_pages = U64::new(free.iter().map(|(first, end)| end - first).sum());
        let mut at = site.pages();
        let medium = self.medium.clone();
        self.spoil_site(survey, &site)?;
        for &(first, end) in &site.pieces {
            zero_fresh(&*medium, first * PAGE, (end - first) * PAGE, 0)?;
        }
        let by_start = |extents: &[(u64, u64)]| -> Vec<Pair> {
            extents.iter().map(|(first, end)| ((*first, 0), end - first)).collect()
        };
        let by_size = |extents: &[(u64, u64)]| -> Vec<Pair> {
            let mut keys: Vec<_> = extents.iter().map(|(first, end)| ((end - first, *first), 0)).collect();
            keys.sort_unstable();
            keys
        };
        let trees = [
            (TreeId::Names, names),
            (TreeId::Ids, ids),
            (TreeId::FreeByPage, by_start(&free)),
            (TreeId::FreeBySize, by_size(&free)),
            (TreeId::FreeByAddress, by_start(&addresses)),
            (TreeId::FreeByReach, by_size(&addresses)),
        ];
        for (tree, keys) in &trees {
            root.trees[*tree as usize] = build(&*medium, self.seed, keys, &mut at)?;
        }
        self.list_pages(&mut root, at.map(|page| page / PAGE).collect())?;
        if !plan.keeps_free_slots {
            self.clear_slots(&plan)?;
            root.free_slot = U64::new(0);
        }
        medium.barrier()?;
        self.put_in_force(survey, root)?;
        if !plan.keeps_free_slots {
            self.list_slots(&plan)?;
        }
        let what = format!("built anew for {} objects; {} free extents", root.objects, free.len());
        self.did(Part::Root, TABLE_ROOT, None, what);
        match survey.root.map(|before| before.objects.get().saturating_sub(root.objects.get())) {
            None => self.losing("the number of boots that wrote to the pool"),
            Some(0) => {}
            Some(lost) => {
                self.losing(format!("{lost} objects, which cannot be named: their entries are lost"))
            }
        }
        Ok(())
    }

    fn choose_site(&self, survey: &Survey, plan: &Plan, names: usize, addresses: usize) -> Result<Site> {
        let (from, to) = (DATA / PAGE, self.len / PAGE);
        let open = gaps(&plan.pages, from, to);
        let mut spared = plan.pages.clone();
        spared.extend(survey.table_pages());
        spared.sort_unstable();
        let apart = gaps(&spared, from, to);
        let mut needed = 0;
        for (candidates, spare) in [(&apart, SPARE), (&open, SPARE), (&open, 0)] {
            let mut largest = candidates.clone();
            largest.sort_unstable_by_key(|(first, end)| (std::cmp::Reverse(end - first), *first));
            let mut pieces: Vec<(u64, u64)> = Vec::new();
            let mut have = 0;
            for (first, end) in largest {
                let extents = open.len() + 2 * (pieces.len() + 1);
                let nodes = 2 * (nodes_for(names) + nodes_for(extents) + nodes_for(addresses));
                needed = nodes as u64 + spare;
                let take = (needed - have.min(needed)).min(end - first);
                pieces.push((first, first + take));
                have += take;
                if have >= needed {
                    return Ok(Site { pieces });
                }
            }
        }
        let free = open.iter().map(|(first, end)| (end - first) * PAGE);
        let (largest, free) = (free.clone().max().unwrap_or(0), free.sum());
        Err(StoreError::NoRoom { needed: needed * PAGE, largest, free })
    }

    /// The old fields if intact, else safe values.
    fn new_root(&self, survey: &Survey, plan: &Plan, claimed: &[Claim]) -> Root {
        let next = next_binding(survey, &plan.objects);
        let end = claimed.iter().map(|claim| claim.end).max().unwrap_or(0) * PAGE;
        let mut root = Root::new_zeroed();
        root.magic = U32::new(root::MAGIC);
        root.length = U64::new(self.len);
        root.next_binding = U64::new(next);
        root.virgin = U64::new(self.len);
        if let Some(old) = &survey.root {
            root.boots = old.boots;
            root.boot = old.boot;
            root.next_binding = U64::new(next.max(old.next_binding.get()));
            root.virgin = U64::new(old.virgin.get().max(end));
            root.free_slot = old.free_slot;
        }
        root
    }

    fn list_pages(&mut self, root: &mut Root, mut left: Vec<u64>) -> Result<()> {
        let tail = left.windows(2).rev().take_while(|pair| pair[0] + 1 == pair[1]).count();
        let chunk = left.split_off(left.len() - (tail + 1).min(left.len()));
        if let (Some(first), Some(last)) = (chunk.first(), chunk.last()) {
            root.chunk_next = U64::new(first * PAGE);
            root.chunk_end = U64::new((last + 1) * PAGE);
        }
        for page in left {
            self.medium.write(page * PAGE, root.free_page.as_bytes())?;
            root.free_page = U64::new(page * PAGE);
            root.free_page_count = U64::new(root.free_page_count.get() + 1);
        }
        Ok(())
    }

    /// The old table stays sound: its free slots stay listed.
    fn clear_slots(&mut self, plan: &Plan) -> Result<()> {
        let mut unclean = Vec::new();
        for offset in unused_slots(plan) {
            if !is_clean(&read_struct(&*self.medium, offset)?, offset) {
                unclean.push(offset);
            }
        }
        for part in unclean.chunks(TOGETHER) {
            self.publish(|batch| {
                part.iter().for_each(|offset| batch.copy_lines(*offset, Entry::free(*offset, 0).as_bytes()));
            })?;
        }
        Ok(())
    }

    /// After the new table is in force. Check reports what a death leaves unlisted.
    fn list_slots(&mut self, plan: &Plan) -> Result<()> {
        let mut free: Vec<_> = unused_slots(plan).collect();
        free.reverse();
        for part in free.chunks(TOGETHER) {
            self.update(|table| part.iter().try_for_each(|slot| table.give_slot(*slot)))?;
        }
        Ok(())
    }

    /// Users of the old table must not take the site for zeros.
    fn spoil_site(&mut self, survey: &Survey, site: &Site) -> Result<()> {
        let end = site.pieces.iter().map(|(_, end)| end * PAGE).max().unwrap_or(0);
        let Some(mut root) = survey.root.filter(|root| root.virgin.get() < end) else { return Ok(()) };
        if Mutant::UnsaidSite.is_on() {
            return Ok(());
        }
        root.virgin = U64::new(end);
        let sealed = root.sealed(self.seed);
        self.publish(|batch| batch.copy_lines(TABLE_ROOT, sealed.as_bytes()))
    }

    /// Ends the old table.
    fn put_in_force(&mut self, survey: &Survey, root: Root) -> Result<()> {
        let sealed = root.sealed(self.seed);
        self.publish(|batch| {
            for index in &survey.lost_lanes {
                batch.copy_lines(LANE_DIRECTORY + u64::from(*index) * LINE, Directory::default().as_bytes());
            }
            batch.copy_lines(TABLE_ROOT, sealed.as_bytes());
        })?;
        for index in &survey.lost_lanes {
            let offset = LANE_DIRECTORY + u64::from(*index) * LINE;
            self.did(
                Part::LaneDirectory,
                offset,
                None,
                format!("lane {index} was given up; it gets space again when it is needed"),
            );
        }
        Ok(())
    }
}

fn unused_slots(plan: &Plan) -> impl Iterator<Item = u64> + '_ {
    let slots =
        plan.slot_pages.iter().flat_map(|page| (0..PAGE / SIZE).map(move |index| page + index * SIZE));
    slots.filter(|slot| !plan.uses(*slot))
}

fn name_keys(plan: &Plan) -> (Vec<Pair>, Vec<Pair>) {
    let mut names: Vec<Pair> = plan.objects.iter().map(|o| ((o.hash, o.offset), o.offset)).collect();
    let mut ids: Vec<Pair> = plan.objects.iter().map(|o| (o.id, o.offset)).collect();
    names.extend(plan.kept.iter().filter_map(|kept| Some(((kept.hash?, kept.offset), kept.offset))));
    ids.extend(plan.kept.iter().filter_map(|kept| Some((kept.id?, kept.offset))));
    names.sort_unstable();
    ids.sort_unstable();
    // Check reports the other.
    ids.dedup_by_key(|(id, _)| *id);
    (names, ids)
}

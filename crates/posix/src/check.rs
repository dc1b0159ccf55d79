//! Checks the invariants of the format and of the heap.

use crate::format::{BLOCK, Content, Inode, ROOT, Tree, check_name};
use crate::volume::Volume;
use std::collections::HashMap;

impl Volume {
    /// All findings: wrong counts of links, inodes without a name, blocks behind a file's end,
    /// damage. Examines each inode and name.
    pub fn check(&mut self) -> Vec<String> {
        let mut wrong = self.check_heap();
        match self.look(|tree| Ok(findings(tree))) {
            Ok(found) => wrong.extend(found),
            Err(error) => wrong.push(error.to_string()),
        }
        wrong
    }
}

fn findings(tree: &Tree<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut names: HashMap<u64, u32> = HashMap::new();
    let mut directories: HashMap<u64, u32> = HashMap::new();
    let orphans = orphans(tree, &mut wrong);
    for (number, inode) in tree.inodes.iter() {
        if *number == 0 || *number > tree.last {
            wrong.push(format!("inode {number} was never given"));
        }
        if let Content::Names(entries) = &inode.content {
            for (name, entry) in entries.iter() {
                *names.entry(*entry).or_insert(0) += 1;
                if check_name(name).is_err() {
                    let name = String::from_utf8_lossy(name);
                    wrong.push(format!("{name:?} in directory {number} is no name"));
                }
                match tree.inodes.get(entry) {
                    None => {
                        wrong.push(format!("{:?} leads nowhere", String::from_utf8_lossy(name)));
                    }
                    Some(below) if below.is_directory() => {
                        *directories.entry(*number).or_insert(0) += 1;
                        if below.parent != *number {
                            wrong.push(format!("directory {entry} does not know its parent {number}"));
                        }
                    }
                    Some(_) => {}
                }
            }
        }
        wrong.extend(bytes(*number, inode));
    }
    for (number, inode) in tree.inodes.iter() {
        let named = names.get(number).copied().unwrap_or(0) + u32::from(*number == ROOT);
        let links = match (inode.is_directory(), orphans.contains(number)) {
            (_, true) => 0,
            (true, false) => 2 + directories.get(number).copied().unwrap_or(0),
            (false, false) => named,
        };
        let lost = named != u32::from(!orphans.contains(number)) && inode.is_directory();
        if inode.links != links || lost || (named == 0) != orphans.contains(number) {
            wrong.push(format!("inode {number} has {named} names, {} links", inode.links));
        }
    }
    wrong
}

fn orphans(tree: &Tree<'_>, wrong: &mut Vec<String>) -> Vec<u64> {
    let (mut all, mut before, mut next) = (Vec::new(), 0, tree.orphans);
    while next != 0 && all.len() <= tree.inodes.len() {
        let Some(inode) = tree.inodes.get(&next) else {
            wrong.push(format!("orphan {next} does not exist"));
            break;
        };
        if inode.before != before {
            wrong.push(format!("orphan {next} does not know its neighbour"));
        }
        all.push(next);
        (before, next) = (next, inode.behind);
    }
    all
}

fn bytes(number: u64, inode: &Inode<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Content::Blocks(blocks) = &inode.content {
        let held: u64 = blocks.values().map(|block| block.capacity() as u64).sum();
        if held != inode.held {
            wrong.push(format!("inode {number} has blocks of {held} bytes, and says {}", inode.held));
        }
        for (index, block) in blocks.iter() {
            let end = index.saturating_mul(BLOCK) + block.len() as u64;
            if block.len() as u64 > BLOCK || (!block.is_empty() && end > inode.size) {
                wrong.push(format!("inode {number} has {} bytes in block {index}", block.len()));
            }
        }
    }
    wrong
}

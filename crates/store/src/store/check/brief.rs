//! The check of a sound pool in little memory: sums of hashes under a random seed replace a
//! [`Survey`](super::Survey), some 300 bytes per object. If sums differ, a survey tells why.

use super::objects::Object;
use super::space::Claim;
use crate::entropy::random;
use crate::error::Result;
use crate::format::checksum;
use zerocopy::IntoBytes;

pub(super) struct Brief {
    seed: u64,
    /// Slots that the tree of names leads to.
    pub offsets: Vec<u64>,
    last: Option<u64>,
    names: u64,
    ids: u64,
    pages: u64,
    addresses: u64,
    bindings: Vec<u64>,
    limits: [(u64, u64); 2],
    unsure: bool,
}

impl Brief {
    pub(super) fn new() -> Result<Brief> {
        Ok(Brief {
            seed: u64::from_le_bytes(random()?),
            offsets: Vec::new(),
            last: None,
            names: 0,
            ids: 0,
            pages: 0,
            addresses: 0,
            bindings: Vec::new(),
            limits: [(0, 0); 2],
            unsure: false,
        })
    }

    fn hash(&self, member: &[u64]) -> u64 {
        checksum(self.seed, &[member.as_bytes()])
    }

    fn ends(&self, first: u64, end: u64) -> u64 {
        self.hash(&[first]).wrapping_sub(self.hash(&[end]))
    }

    /// Keys come in order.
    pub(super) fn name(&mut self, (hash, low): (u64, u64), offset: u64) {
        self.unsure |= low != offset || self.last == Some(hash);
        self.last = Some(hash);
        self.names = self.names.wrapping_add(self.hash(&[hash, offset]));
        self.offsets.push(offset);
    }

    pub(super) fn id(&mut self, (high, low): (u64, u64), offset: u64) {
        self.ids = self.ids.wrapping_add(self.hash(&[high, low, offset]));
    }

    pub(super) fn expect_objects(&mut self, pages: (u64, u64), addresses: (u64, u64)) {
        self.limits = [pages, addresses];
        self.offsets.sort_unstable();
        self.unsure |= self.offsets.windows(2).any(|pair| pair[0] == pair[1]);
    }

    pub(super) fn object(&mut self, object: &Object) -> bool {
        let (high, low) = object.id;
        self.names = self.names.wrapping_sub(self.hash(&[object.hash, object.offset]));
        self.ids = self.ids.wrapping_sub(self.hash(&[high, low, object.offset]));
        let [pages, addresses] = self.limits;
        for claim in object.claims() {
            self.unsure |= !lies_in(&claim, pages);
            self.pages = self.pages.wrapping_add(self.ends(claim.first, claim.end));
        }
        if let Some(claim) = object.addresses() {
            self.unsure |= !lies_in(&claim, addresses);
            self.addresses = self.addresses.wrapping_add(self.ends(claim.first, claim.end));
        }
        if object.binding != 0 {
            self.bindings.push(object.binding);
        }
        self.unsure |= object.ties.1 > 0;
        object.bound || object.hidden || object.is_base || object.base != 0
    }

    /// `others` and objects should fill the range.
    pub(super) fn judge_pages(&mut self, others: &[Claim], range: (u64, u64)) {
        self.unsure |= !self.fill(self.pages, others, range);
    }

    pub(super) fn judge_addresses(&mut self, others: &[Claim], range: (u64, u64)) {
        self.unsure |= !self.fill(self.addresses, others, range);
    }

    /// At each place as many ranges begin as end.
    fn fill(&self, sum: u64, others: &[Claim], range: (u64, u64)) -> bool {
        let add = |sum: u64, claim: &Claim| sum.wrapping_add(self.ends(claim.first, claim.end));
        let sum = others.iter().fold(sum, add);
        others.iter().all(|claim| lies_in(claim, range)) && sum == self.ends(range.0, range.1)
    }

    pub(super) fn agrees(mut self) -> bool {
        self.bindings.sort_unstable();
        let doubled = self.bindings.windows(2).any(|pair| pair[0] == pair[1]);
        !(self.unsure || doubled) && (self.names, self.ids) == (0, 0)
    }
}

fn lies_in(claim: &Claim, (first, end): (u64, u64)) -> bool {
    first <= claim.first && claim.first < claim.end && claim.end <= end
}

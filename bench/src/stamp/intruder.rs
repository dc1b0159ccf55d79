//! intruder: finds known patterns in flows of unordered fragments. Short transactions capture and
//! reassemble; detection is outside.

use super::arena::Arena;
use super::list::List;
use super::map::Map;
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::queue::Queue;
use super::{Kernel, Part};
use crate::pattern::Random;

const NEXT: u64 = LINE;
/// Incomplete flows, each with a word that names its fragment list.
const FLOWS: Map = Map(2 * LINE);
const WHOLE: Queue = Queue(3 * LINE);
/// The finding per flow: 1 nothing, 2 a pattern.
const FOUND: u64 = 4 * LINE;
const KNOWN: [&[u8]; 4] = [b"attack one", b"another attack", b"a third, longer attack", b"last"];
/// Percentage of flows with a pattern; most fragments and bytes of a flow.
const ATTACKS: u64 = 10;
const FRAGMENTS: u64 = 16;
const BYTES: u64 = 128;

struct Packet {
    flow: usize,
    number: u64,
    of: u64,
    bytes: Vec<u8>,
}

pub struct Intruder {
    packets: Vec<Packet>,
    attacks: Vec<bool>,
}

impl Intruder {
    fn arena(&self, threads: usize) -> Arena {
        Arena::new(FOUND + self.attacks.len() as u64, WORDS as u64, threads)
    }

    fn reassemble<W: Worker>(
        &self,
        worker: &mut W,
        arena: Arena,
        part: &Part<'_>,
        number: u64,
    ) -> Outcome<()> {
        let (packet, heap) = (&self.packets[number as usize], arena.heap(part.number));
        worker.atomically(|tx| {
            let list = match FLOWS.find(tx, packet.flow as u64)? {
                Some(at) => tx.get(at)?,
                None => {
                    let list = heap.alloc(tx, 2)?;
                    tx.set(list, 0)?;
                    tx.set(list + 1, 0)?;
                    FLOWS.insert(tx, heap, packet.flow as u64, list)?;
                    list
                }
            };
            ensure(List(list).insert(tx, heap, packet.number, number)?, || {
                format!("intruder: packet {number} came twice")
            })?;
            if tx.add(list + 1, 1)? == packet.of {
                FLOWS.remove(tx, heap, packet.flow as u64)?;
                WHOLE.push(tx, heap, list)?;
            }
            Ok(())
        })
    }

    fn detect<W: Worker>(&self, worker: &mut W, arena: Arena, part: &Part<'_>) -> Outcome<()> {
        let heap = arena.heap(part.number);
        let Some(fragments) = worker.atomically(|tx| {
            let Some(list) = WHOLE.pop(tx, heap)? else { return Ok(None) };
            let fragments = List(list).entries(tx)?;
            List(list).clear(tx, heap)?;
            heap.free(tx, list, 2)?;
            Ok(Some(fragments))
        })?
        else {
            return Ok(());
        };
        let packets = || fragments.iter().map(|(_, number)| &self.packets[*number as usize]);
        let flow = packets().next().map_or(0, |packet| packet.flow);
        ensure(
            packets().enumerate().all(|(n, packet)| packet.flow == flow && packet.number == n as u64),
            || format!("intruder: flow {flow} consists of {fragments:?}"),
        )?;
        let bytes: Vec<u8> = packets().flat_map(|packet| packet.bytes.iter().copied()).collect();
        let is_in = |pattern: &&[u8]| bytes.windows(pattern.len()).any(|window| window == *pattern);
        let found = 1 + u64::from(KNOWN.iter().any(is_in));
        worker.atomically(|tx| tx.add(FOUND + flow as u64, found).map(drop))
    }
}

impl Kernel for Intruder {
    const NAME: &'static str = "intruder";

    fn new(size: usize) -> Self {
        let (mut random, mut packets, mut attacks) = (Random::new(1), Vec::new(), Vec::new());
        for flow in 0..64 * size {
            let mut bytes: Vec<u8> =
                (0..1 + random.below(BYTES)).map(|_| random.below(26) as u8 + b'A').collect();
            let attacked = random.below(100) < ATTACKS;
            if attacked {
                let at = random.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(at..at, KNOWN[random.below(KNOWN.len() as u64) as usize].iter().copied());
            }
            attacks.push(attacked);
            let of = 1 + random.below(FRAGMENTS.min(bytes.len() as u64));
            let cut = |number: u64| (bytes.len() as u64 * number / of) as usize;
            packets.extend((0..of).map(|number| Packet {
                flow,
                number,
                of,
                bytes: bytes[cut(number)..cut(number + 1)].to_vec(),
            }));
        }
        random.shuffle(&mut packets);
        Intruder { packets, attacks }
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        self.arena(threads).load(worker)
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let arena = self.arena(part.threads);
        loop {
            let number = worker.atomically(|tx| Ok(tx.add(NEXT, 1)? - 1))?;
            if number >= self.packets.len() as u64 {
                return Ok(());
            }
            self.reassemble(worker, arena, part, number)?;
            self.detect(worker, arena, part)?;
        }
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let found = worker.read(FOUND..FOUND + self.attacks.len() as u64)?;
        for (flow, (found, attacked)) in found.into_iter().zip(&self.attacks).enumerate() {
            ensure(found == 1 + u64::from(*attacked), || {
                format!("intruder: flow {flow}: {found}, {attacked}")
            })?;
        }
        worker.atomically(|tx| {
            let (left, whole) = (FLOWS.entries(tx)?, tx.get(WHOLE.0)?);
            ensure(left.is_empty() && whole == 0, || format!("intruder: left over: {left:?}"))
        })
    }
}

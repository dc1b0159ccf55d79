use indelible::heap::HeapStats;
use indelible::{Error, Plain, Pool, Result, Tx, TxCell, TxHeap, TxPtr};

#[derive(Plain)]
#[repr(C)]
pub struct Node {
    pub next: TxCell<TxPtr<Node>>,
    pub value: TxCell<u64>,
}

pub type Top = TxCell<TxPtr<Node>>;

pub fn push(tx: &mut Tx<'_>, heap: &TxHeap, top: &Top, value: u64) -> Result<TxPtr<Node>> {
    let next = tx.read(top)?;
    let node = tx.alloc(heap, Node { next: TxCell::new(next), value: TxCell::new(value) })?;
    tx.write(top, node)?;
    Ok(node)
}

pub fn values(heap: &TxHeap, top: &Top) -> Vec<u64> {
    let read = heap.transaction(|tx| {
        let (mut values, mut at) = (Vec::new(), tx.read(top)?);
        while let Some(node) = at.some() {
            let node = tx.at(node)?;
            values.push(tx.read(&node.value)?);
            at = tx.read(&node.next)?;
        }
        Ok::<_, Error>(values)
    });
    read.unwrap()
}

pub fn blocks(heap: &TxHeap) -> u64 {
    sound(heap).blocks
}

pub fn sound(heap: &TxHeap) -> HeapStats {
    assert_eq!(heap.check().unwrap(), []);
    heap.stats().unwrap()
}

pub fn stop() -> Error {
    Pool::open("/none/there").unwrap_err()
}

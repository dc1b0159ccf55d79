//! Size classes: multiples of 16 up to 128, then eight per doubling up to 32 KiB, which waste at
//! most an eighth of a block (or 15 bytes). Larger blocks are whole pages.

use super::layout::{CLASSES, PAGE, SPAN_BLOCKS, SpanHeader};

pub const SMALL_MAX: usize = 32 << 10;

#[inline]
pub fn class_of(size: usize) -> Option<usize> {
    if size <= TABLE_MAX {
        return Some(usize::from(TABLE[size.div_ceil(16)]));
    }
    (size <= SMALL_MAX).then(|| compute(size))
}

const TABLE_MAX: usize = 1024;

static TABLE: [u8; TABLE_MAX / 16 + 1] = {
    let mut table = [0; TABLE_MAX / 16 + 1];
    let mut at = 1;
    while at < table.len() {
        table[at] = compute(at * 16) as u8;
        at += 1;
    }
    table
};

const fn compute(size: usize) -> usize {
    let below = size - 1;
    if size <= 128 {
        return below / 16;
    }
    let log = below.ilog2() as usize;
    8 + (log - 7) * 8 + ((below >> (log - 3)) & 7)
}

pub const fn size_of_class(class: usize) -> usize {
    if class < 8 { (class + 1) * 16 } else { (class % 8 + 9) << (class / 8 + 3) }
}

/// Class whose blocks hold `size` bytes at multiples of `align`, at most a page.
pub fn aligned_class(size: usize, align: usize) -> Option<usize> {
    let size = size.max(align);
    (class_of(size)?..CLASSES).find(|class| size_of_class(*class).is_multiple_of(align))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub size: usize,
    pub count: usize,
    /// Offset of block 0, a multiple of a line and of the largest power of two in `size`, at most
    /// of a page.
    pub data: usize,
}

impl Geometry {
    /// Varies against cache conflicts.
    pub fn allocation(&self, page: u64) -> usize {
        let places = (self.data - size_of::<SpanHeader>() - self.count) / 64 + 1;
        let scattered = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        size_of::<SpanHeader>() + 64 * (scattered as usize % places)
    }

    /// `None` if no block fits.
    pub const fn of(class: usize, pages: u64) -> Option<Geometry> {
        let size = size_of_class(class);
        let align = match 1 << size.trailing_zeros() {
            align if align < 64 => 64,
            align if align > PAGE as usize => PAGE as usize,
            align => align,
        };
        let room = (pages * PAGE) as usize;
        let mut count = if room / size < SPAN_BLOCKS { room / size } else { SPAN_BLOCKS };
        while count > 0 {
            let data = (size_of::<SpanHeader>() + count + room / 128).next_multiple_of(align);
            if data + count * size <= room {
                return Some(Geometry { size, count, data });
            }
            let over = (data + count * size - room) / (size + 1);
            count -= if over > 1 { over } else { 1 };
        }
        None
    }
}

/// For the next span of `class` after `have` pages.
pub fn span_pages(class: usize, have: usize) -> u64 {
    let (least, most) = (u64::from(LEAST[class].0), u64::from(LEAST[class].1));
    (least << have.min(6)).min(most)
}

/// Fewest pages with a block of `class`, where a better span has no room.
pub fn fewest_pages(class: usize) -> u64 {
    let block = (size_of_class(class) as u64).div_ceil(PAGE);
    if Geometry::of(class, block).is_some() { block } else { block + 1 }
}

static LEAST: [(u8, u8); CLASSES] = {
    let mut table = [(0, 0); CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let size = size_of_class(class);
        let mut pages = 1;
        loop {
            match Geometry::of(class, pages) {
                Some(Geometry { count, .. })
                    if count >= 4 && count * size * 8 >= pages as usize * 4096 * 7 =>
                {
                    break;
                }
                _ => pages += 1,
            }
        }
        let most = match (size * 8 + 4096) / 4096 {
            eight if eight > 16 => eight,
            _ if size < 64 => size * SPAN_BLOCKS / 4096,
            _ => 16,
        };
        table[class] = (pages as u8, most as u8);
        class += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        for size in 0..=SMALL_MAX {
            let class = class_of(size).unwrap();
            assert!(size_of_class(class) >= size, "{size}");
            assert!(class == 0 || size_of_class(class - 1) < size, "{size}");
        }
        assert_eq!((class_of(SMALL_MAX), class_of(SMALL_MAX + 1)), (Some(CLASSES - 1), None));
    }

    #[test]
    fn waste_is_an_eighth_at_most() {
        for size in 1..=SMALL_MAX {
            let waste = size_of_class(class_of(size).unwrap()) - size;
            assert!(waste <= 15 || waste * 8 <= size, "{size}: {waste}");
        }
    }

    #[test]
    fn spans_hold_their_blocks_and_waste_little() {
        for class in 0..CLASSES {
            for have in 0..8 {
                let pages = span_pages(class, have);
                let geometry = Geometry::of(class, pages).unwrap();
                let Geometry { size, count, data } = geometry;
                assert!(data >= size_of::<SpanHeader>() + count && count <= SPAN_BLOCKS);
                assert!(data + count * size <= (pages * PAGE) as usize && data <= PAGE as usize);
                for page in 0..100 {
                    let allocation = geometry.allocation(page);
                    assert!(allocation >= size_of::<SpanHeader>() && allocation + count <= data);
                }
                assert!(count * size * 8 >= (pages * PAGE) as usize * 7, "{size}: {geometry:?} on {pages}");
            }
        }
    }

    #[test]
    fn the_smallest_span_has_a_block_and_a_page_less_has_none() {
        for class in 0..CLASSES {
            let pages = fewest_pages(class);
            assert!(Geometry::of(class, pages).is_some_and(|geometry| geometry.count > 0), "{class}");
            assert!(pages <= span_pages(class, 0) && Geometry::of(class, pages - 1).is_none(), "{class}");
        }
    }

    #[test]
    fn aligned_blocks_lie_at_multiples() {
        for align in (4..=12).map(|log| 1_usize << log) {
            for size in [1, 16, 17, 100, 1000, 5000, SMALL_MAX] {
                let class = aligned_class(size, align).unwrap();
                let geometry = Geometry::of(class, span_pages(class, 0)).unwrap();
                assert!(geometry.size >= size);
                assert!(geometry.data.is_multiple_of(align) && geometry.size.is_multiple_of(align));
            }
        }
    }
}

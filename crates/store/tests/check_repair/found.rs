//! Defects found by fuzzing; the inputs are also in `fuzz/corpus`.

use indelible_store::error::{Part, StoreError};
use indelible_store::store::Store;
use indelible_testing::hostile::edit;
use indelible_testing::hostile::whole::{self, Sight};
use indelible_testing::pool::process;
use std::sync::Arc;

/// Arithmetic overflowed.
#[test]
fn a_free_extent_larger_than_the_pool_is_damage() {
    let forged = edit::forged(&[0, 7, 7, 3, 0x83, 0, 0x24, 0, 7, 0, 2, 8, 0, 0, 0, 0, 0, 0]);
    let store = Store::open(Arc::new(forged.image), process(5)).unwrap();
    let error = store.info().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { part: Part::FreeSpace, .. }), "{error}");
}

/// Mending a damaged node redid batches before a damaged one, which had attached an object.
#[test]
fn repair_takes_no_object_back_behind_its_attach_for_the_sake_of_a_node() {
    let forged = edit::damaged(&[
        0x0c, 0x04, 0x04, 0x03, 0x68, 0x89, 0x00, 0x00, 0x21, 0xff, 0x03, 0x00, 0x02, 0x29, 0x00, 0x01, 0x0f,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x03, 0x89, 0x00,
    ]);
    let actions = whole::repaired(&forged.image, false, false).unwrap();
    let shown = whole::shown(&forged.image, forged.pool);
    assert!(shown.iter().all(|(_, sight)| *sight == Sight::Same), "{shown:?} {actions:?}");
}

/// Two free extents beyond the pool's end made a gap whose place overflowed.
#[test]
fn there_is_no_gap_beyond_the_end_of_the_pool() {
    whole::repair(&[
        0x04, 0x05, 0x07, 0x03, 0x89, 0x04, 0x03, 0xf2, 0x00, 0x00, 0x00, 0x31, 0x01, 0x00, 0x73, 0x6d, 0x61,
        0x6c, 0x6c, 0x00, 0x28, 0x20, 0x37, 0x37, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x00,
    ]);
}

/// With keys out of order the next key came before, and the listing went in circles.
#[test]
fn a_list_of_objects_ends_in_a_tree_out_of_order() {
    whole::recover(&[
        0x22, 0x11, 0xf6, 0xf9, 0x2c, 0x07, 0x34, 0x34, 0x34, 0x34, 0x07, 0x03, 0x7e, 0xff, 0xf7, 0xff, 0xfc,
        0xff, 0xf8, 0xff, 0x34, 0x34, 0x3c, 0x14, 0x50, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
        0xf1, 0x66, 0x07,
    ]);
}

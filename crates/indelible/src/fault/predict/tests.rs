use super::*;
use std::collections::BTreeSet;

#[derive(Debug)]
struct Outcome {
    faults: usize,
    touched: usize,
    predicted: usize,
    used: usize,
}

impl Outcome {
    fn accuracy(&self) -> f64 {
        self.used as f64 / self.predicted as f64
    }

    fn coverage(&self) -> f64 {
        self.used as f64 / self.touched as f64
    }
}

fn touch(depth: PredictionDepth, pages: usize, sequence: impl IntoIterator<Item = usize>) -> Outcome {
    let mut predictor = Predictor::new(depth);
    let (mut present, mut predicted, mut touched) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut faults = 0;
    for page in sequence {
        touched.insert(page);
        if !present.insert(page) {
            continue;
        }
        faults += 1;
        let window = predictor.missed(page, pages);
        for page in window.into_iter().flat_map(Window::pages) {
            assert!(page < pages, "page {page} of {pages}");
            if present.insert(page) {
                predicted.insert(page);
            }
        }
    }
    let used = predicted.intersection(&touched).count();
    Outcome { faults, touched: touched.len(), predicted: predicted.len(), used }
}

const FIXED: [u8; 5] = [1, 2, 4, 8, 64];

fn rows(rows: usize, pages_a_row: usize, threads: usize) -> Vec<usize> {
    let piece = rows.div_ceil(threads * 4);
    let work = |thread: usize| {
        (thread * piece..rows)
            .step_by(piece * threads)
            .flat_map(move |first| first..rows.min(first + piece))
            .flat_map(move |row| row * pages_a_row..(row + 1) * pages_a_row)
    };
    let mut threads: Vec<_> = (0..threads).map(work).collect();
    let mut out = Vec::new();
    while out.len() < rows * pages_a_row {
        out.extend(threads.iter_mut().filter_map(Iterator::next));
    }
    out
}

fn tiles(side: usize) -> Vec<usize> {
    let columns = (0..side).step_by(32);
    columns.flat_map(|column| (0..side).map(move |row| (row * side + column) * 4 / 4096)).collect()
}

#[test]
fn a_sequence_has_one_fault_a_window() {
    for depth in FIXED {
        let window = usize::from(depth) + 1;
        for stride in [1, 3, 7, 128] {
            let pages = 2000 * stride;
            let up = || (0..2000).map(move |at| at * stride);
            let least = 2000 / window;
            for outcome in [
                touch(PredictionDepth::Pages(depth), pages, up()),
                touch(PredictionDepth::Pages(depth), pages, up().rev()),
            ] {
                assert_eq!(
                    (outcome.touched, outcome.predicted),
                    (2000, outcome.used),
                    "depth {depth}, {stride}"
                );
                assert!((least..least + 6).contains(&outcome.faults), "depth {depth}, {stride}: {outcome:?}");
            }
        }
    }
    let auto = touch(PredictionDepth::Auto, 100_000, 0..100_000);
    assert!(auto.coverage() > 0.98 && auto.accuracy() == 1.0, "{auto:?}");
}

#[test]
fn a_depth_of_none_predicts_nothing() {
    let outcome = touch(PredictionDepth::Pages(0), 1000, 0..1000);
    assert_eq!((outcome.faults, outcome.predicted), (1000, 0));
}

#[test]
fn one_miss_and_its_neighbour_make_a_stream_and_other_distances_take_three() {
    let mut predictor = Predictor::new(PredictionDepth::Pages(2));
    assert_eq!(predictor.missed(100, 1000), None);
    let window = predictor.missed(101, 1000).unwrap();
    assert_eq!((window.first, window.stride, window.count, window.trigger), (102, 1, 3, 103));
    assert_eq!(window.pages().collect::<Vec<_>>(), [102, 104]);
    for (page, expected) in [(500, None), (510, None), (520, Some(vec![530, 550]))] {
        let window = predictor.missed(page, 1000).map(|window| window.pages().collect::<Vec<_>>());
        assert_eq!(window, expected, "{page}");
    }
    let next =
        |predictor: &mut Predictor, page| predictor.missed(page, 1000).unwrap().pages().collect::<Vec<_>>();
    assert_eq!(next(&mut predictor, 103), [105, 107]);
    assert_eq!(next(&mut predictor, 540), [560, 580]);
    assert_eq!(next(&mut predictor, 106), [108, 110]);
}

#[test]
fn streams_that_alternate_are_followed_each() {
    for streams in [2, 4, 8, 15] {
        let sequence =
            (0..500).flat_map(|at| (0..streams).map(move |stream| stream * 1000 + 37 * stream + at));
        let outcome = touch(PredictionDepth::Pages(8), 20_000, sequence);
        assert!(outcome.coverage() > 0.87 && outcome.accuracy() > 0.98, "{streams}: {outcome:?}");
    }
}

#[test]
fn pages_at_random_are_hardly_predicted() {
    let mut state = 0x5eed_u64;
    let mut random = |pages: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % pages
    };
    for (pages, touches, most) in [(1_000_000, 20_000, 50), (10_000, 1000, 20), (1000, 100, 4)] {
        let sequence: Vec<usize> = (0..touches).map(|_| random(pages)).collect();
        let outcome = touch(PredictionDepth::Auto, pages, sequence);
        assert!(outcome.predicted < outcome.touched / most, "of {pages}: {outcome:?}");
    }
}

#[test]
fn pages_that_come_late_are_predicted_once() {
    for depth in [PredictionDepth::Pages(1), PredictionDepth::Pages(8), PredictionDepth::Auto] {
        let mut predictor = Predictor::new(depth);
        let mut predicted = BTreeSet::new();
        for page in 0..5000 {
            for page in predictor.missed(page, 5000).into_iter().flat_map(Window::pages) {
                assert!(predicted.insert(page), "{depth:?}: page {page}");
            }
        }
        assert!(predicted.len() > 2400, "{depth:?}: {}", predicted.len());
        assert_eq!(predictor.streams.len(), 1, "{depth:?}");
    }
}

#[test]
fn a_stream_passes_pages_that_are_there_already() {
    // Every tenth page was touched before, triggers among them.
    for depth in FIXED {
        let before = (0..3000).step_by(10);
        let outcome = touch(PredictionDepth::Pages(depth), 3000, before.chain(0..3000));
        assert_eq!(outcome.touched, 3000);
        let most = 3000 / (usize::from(depth) + 1) * 2 + 320;
        assert!(outcome.faults < most, "depth {depth}: {outcome:?}");
    }
}

// S3.4, S3.9
#[test]
fn nine_of_ten_pages_of_the_kernels_are_predicted_and_used() {
    // Includes an array whose order is not that of its pages: the left matrix of a product.
    let kernels: [(&str, Vec<usize>); 6] = [
        ("2dConv", rows(512, 1, 2)),
        ("Gauss", rows(1536, 3, 1)),
        ("LU", rows(2048, 4, 2)),
        ("TMM, the product", rows(1536, 2, 2)),
        ("TMM of 1536, by tiles", tiles(1536)),
        ("TMM of 3072, by tiles", tiles(3072)),
    ];
    for (kernel, sequence) in kernels {
        let pages = sequence.iter().max().unwrap() + 1;
        let outcome = touch(PredictionDepth::Auto, pages, sequence);
        assert!(outcome.accuracy() >= 0.9, "{kernel}: {outcome:?}");
        assert!(outcome.coverage() >= 0.9, "{kernel}: {outcome:?}");
    }
}

#[test]
fn a_depth_is_auto_or_a_number() {
    assert_eq!(PredictionDepth::parse("auto"), Ok(PredictionDepth::Auto));
    assert_eq!(PredictionDepth::parse("64"), Ok(PredictionDepth::Pages(64)));
    for bad in ["", "65", "-1", "deep", "4 "] {
        let error = PredictionDepth::parse(bad).unwrap_err();
        assert!(error.contains("auto") && error.contains(&format!("{bad:?}")), "{error}");
    }
}

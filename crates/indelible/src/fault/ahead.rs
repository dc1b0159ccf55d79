//! Threads that fill predicted pages before the program touches them. A new window displaces the
//! oldest in the bounded queue.

use std::collections::VecDeque;
use std::ops;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::predict::Window;
use super::range::Range;
use crate::mapping::SecretBuffer;

/// Pages filled together: a thread that touches one waits for all.
const PIECE: usize = 4;
const LONGEST: usize = 256;
const THREADS: usize = 4;

#[derive(Default)]
pub(super) struct Ahead {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<(Arc<Range>, ops::Range<usize>)>,
    threads: usize,
    idle: usize,
}

impl Ahead {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(
        &'static self,
        fill: impl Fn(&Range, ops::Range<usize>, &mut [u8]) + Copy + Send + 'static,
    ) {
        let wanted = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let mut queue = self.queue();
        while queue.threads < wanted {
            let Ok(mut buffer) = SecretBuffer::new(PIECE) else { return };
            let thread = std::thread::Builder::new().name("indelible-ahead".into());
            if thread.spawn(move || self.run(fill, &mut buffer)).is_err() {
                return;
            }
            queue.threads += 1;
        }
    }

    pub(super) fn fill(&self, range: &Arc<Range>, window: Window) {
        let mut queue = self.queue();
        if queue.threads == 0 {
            return;
        }
        let pieces = pieces(window);
        let wanted = pieces.len().min(queue.idle);
        for piece in pieces {
            if queue.pieces.len() == LONGEST {
                queue.pieces.pop_front();
            }
            queue.pieces.push_back((Arc::clone(range), piece));
        }
        drop(queue);
        (0..wanted).for_each(|_| self.more.notify_one());
    }

    fn run(&self, fill: impl Fn(&Range, ops::Range<usize>, &mut [u8]), buffer: &mut SecretBuffer) {
        loop {
            let mut queue = self.queue();
            let (range, pages) = loop {
                if let Some(piece) = queue.pieces.pop_front() {
                    break piece;
                }
                queue.idle += 1;
                queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            };
            drop(queue);
            fill(&range, pages, buffer.bytes());
        }
    }
}

fn pieces(window: Window) -> Vec<ops::Range<usize>> {
    let mut pieces: Vec<ops::Range<usize>> = Vec::new();
    for page in window.pages() {
        match pieces.last_mut() {
            Some(last) if last.end == page && last.len() < PIECE => last.end += 1,
            Some(last) if page + 1 == last.start && last.len() < PIECE => last.start -= 1,
            _ => pieces.push(page..page + 1),
        }
    }
    pieces
}

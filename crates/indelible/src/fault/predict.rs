//! Predicts pages from first-touch faults, by stream buffers.
//!
//! A stream is a sequence of pages at one distance, believed after two misses at distance one,
//! after three at others. Each stream has a *window* of pages to fill ahead, with one unfilled
//! *trigger* in its middle, whose fault opens the next window while half of this one is left.

/// How many pages are filled ahead of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictionDepth {
    /// Half of the stream's length so far, between 2 and 64.
    #[default]
    Auto,
    /// A fixed number, at most 64; 0 disables prediction.
    Pages(u8),
}

impl PredictionDepth {
    /// Parses `auto` or a number.
    ///
    /// # Errors
    /// Neither.
    pub fn parse(text: &str) -> Result<PredictionDepth, String> {
        if text == "auto" {
            return Ok(PredictionDepth::Auto);
        }
        match text.parse() {
            Ok(pages) if usize::from(pages) <= DEEPEST => Ok(PredictionDepth::Pages(pages)),
            _ => Err(format!(
                "a depth of prediction is auto, or a number up to {DEEPEST}; {text:?} is neither"
            )),
        }
    }
}

pub(super) const DEEPEST: usize = 64;
const SHALLOWEST: usize = 2;
const STREAMS: usize = 16;
const RECENT: usize = 16;
const NEWEST: usize = 8;
/// Pages that a program may skip behind a window and still follow its stream.
const PASSED: isize = 2;
const FARTHEST: isize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) first: usize,
    pub(super) stride: isize,
    pub(super) count: usize,
    pub(super) trigger: usize,
}

impl Window {
    pub(super) fn pages(self) -> impl Iterator<Item = usize> {
        (0..self.count)
            .map(move |at| step(self.first, self.stride, at))
            .filter(move |page| *page != self.trigger)
    }
}

fn step(page: usize, stride: isize, count: usize) -> usize {
    page.wrapping_add_signed(stride.wrapping_mul(count as isize))
}

struct Stream {
    stride: isize,
    start: usize,
    count: usize,
    trigger: usize,
    before: usize,
    next: Option<usize>,
    length: usize,
    used: u64,
}

impl Stream {
    /// In the window, or shortly before or behind it (skipped pages).
    fn place_of(&self, page: usize) -> Option<isize> {
        let distance = page as isize - self.start as isize;
        let place = distance / self.stride;
        let near = -(self.before as isize)..=self.count as isize + PASSED;
        let belongs = distance % self.stride == 0 && near.contains(&place);
        belongs.then_some(place)
    }
}

pub(super) struct Predictor {
    depth: PredictionDepth,
    streams: Vec<Stream>,
    recent: Vec<usize>,
    time: u64,
}

impl Predictor {
    pub(super) fn new(depth: PredictionDepth) -> Predictor {
        Predictor { depth, streams: Vec::new(), recent: Vec::new(), time: 0 }
    }

    pub(super) fn missed(&mut self, page: usize, pages: usize) -> Option<Window> {
        if self.depth == PredictionDepth::Pages(0) {
            return None;
        }
        self.time += 1;
        if let Some(at) = self.streams.iter().position(|stream| stream.place_of(page).is_some()) {
            return self.follow(at, page, pages);
        }
        let Some(stride) = self.stride_to(page) else {
            if self.recent.len() == RECENT {
                self.recent.remove(0);
            }
            self.recent.push(page);
            return None;
        };
        // The stream explains the misses that led to it.
        self.recent.retain(|seen| *seen != page.wrapping_add_signed(-stride));
        let length = if stride.abs() == 1 { 2 } else { 3 };
        let used = self.time;
        let stream =
            Stream { stride, start: page, count: 0, trigger: 0, before: 0, next: None, length, used };
        let at = self.place_for(stream);
        let first = page.checked_add_signed(stride).filter(|first| *first < pages);
        self.open_window(at, first, pages)
    }

    fn stride_to(&self, page: usize) -> Option<isize> {
        let seen = |page: isize| page >= 0 && self.recent.contains(&(page as usize));
        let page = page as isize;
        let near = [1, -1].into_iter().find(|stride| seen(page - stride));
        let far = || {
            let newest = &self.recent[self.recent.len().saturating_sub(NEWEST)..];
            let strides = newest.iter().rev().map(|before| page - *before as isize);
            let mut fit = strides.filter(|stride| (2..=FARTHEST).contains(&stride.abs()));
            fit.find(|stride| newest.iter().any(|seen| *seen as isize == page - 2 * stride))
        };
        near.or_else(far)
    }

    fn place_for(&mut self, stream: Stream) -> usize {
        if self.streams.len() < STREAMS {
            self.streams.push(stream);
            return self.streams.len() - 1;
        }
        let used = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used);
        let at = used.map_or(0, |(at, _)| at);
        self.streams[at] = stream;
        at
    }

    fn follow(&mut self, at: usize, page: usize, pages: usize) -> Option<Window> {
        let stream = &mut self.streams[at];
        stream.used = self.time;
        let place = stream.place_of(page)?;
        if place < stream.trigger as isize {
            return None;
        }
        let next = if place < stream.count as isize {
            stream.next
        } else {
            // The trigger was present already, or the program skipped it.
            page.checked_add_signed(stream.stride).filter(|next| *next < pages)
        };
        self.open_window(at, next, pages)
    }

    fn open_window(&mut self, at: usize, first: Option<usize>, pages: usize) -> Option<Window> {
        // A stream at the object's end is kept for its late pages.
        let first = first?;
        let stream = &mut self.streams[at];
        let depth = match self.depth {
            PredictionDepth::Auto => (stream.length / 2).clamp(SHALLOWEST, DEEPEST),
            PredictionDepth::Pages(depth) => usize::from(depth).min(DEEPEST),
        };
        let room = match stream.stride > 0 {
            true => (pages - 1 - first) / stream.stride.unsigned_abs() + 1,
            false => first / stream.stride.unsigned_abs() + 1,
        };
        let count = (depth + 1).min(room);
        stream.before = stream.count - stream.trigger;
        (stream.start, stream.count, stream.trigger) = (first, count, count / 2);
        stream.next = (count < room).then(|| step(first, stream.stride, count));
        stream.length += count;
        Some(Window {
            first,
            stride: stream.stride,
            count,
            trigger: step(first, stream.stride, stream.trigger),
        })
    }
}

#[cfg(test)]
mod tests;

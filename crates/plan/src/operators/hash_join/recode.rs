//! Codes by the values that the build side really has.
//!
//! Packed codes leave room for every value of their types. Once the build side is known, so are
//! the smallest and the largest value of each key column, and a key becomes a number in a mixed
//! radix: two 64-bit columns fit 64 bits nearly always, and often a range short enough for an
//! array. Probe keys outside of the ranges match nothing.

use crate::operators::hash_join::keys::{Codes, KeyBatch};
use crate::operators::hash_join::pack::Code;

/// The smallest and the largest value of each lane (see
/// [`KeyEncoder::lanes`](super::keys::KeyEncoder::lanes)) over rows that may match.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// The spans of `keys`; none without lanes or rows.
    pub(crate) fn of(keys: &KeyBatch, lanes: &[u32]) -> Spans {
        match &keys.codes {
            Codes::Narrow(codes) => spans(codes, keys, lanes),
            Codes::Wide(codes) => spans(codes, keys, lanes),
            Codes::Bytes(..) => Spans::default(),
        }
    }

    /// The spans of both.
    pub(crate) fn union(self, other: &Spans) -> Spans {
        if self.0.is_empty() {
            return other.clone();
        }
        let widen = |(a, b): (&(u64, u64), &(u64, u64))| (a.0.min(b.0), a.1.max(b.1));
        if other.0.is_empty() {
            self
        } else {
            Spans(self.0.iter().zip(&other.0).map(widen).collect())
        }
    }

    /// The span of the only lane.
    pub(crate) fn only(&self) -> Option<(u64, u64)> {
        if let [only] = self.0.as_slice() { Some(*only) } else { None }
    }
}

fn spans<C: Code>(codes: &[C], keys: &KeyBatch, lanes: &[u32]) -> Spans {
    let mut spans = vec![];
    for (shift, mask) in shifts(lanes) {
        let widen = |(low, high): (u64, u64), code: C| {
            let value = code.lane(shift, mask);
            (low.min(value), high.max(value))
        };
        let none = (u64::MAX, 0);
        let span = match &keys.nulls {
            None => codes.iter().fold(none, |span, &code| widen(span, code)),
            Some(nulls) => nulls.valid_indices().fold(none, |span, row| widen(span, codes[row])),
        };
        if span.0 > span.1 {
            return Spans::default();
        }
        spans.push(span);
    }
    Spans(spans)
}

/// Shift and mask of each lane.
fn shifts(lanes: &[u32]) -> Vec<(u32, u64)> {
    let mut shift: u32 = lanes.iter().sum();
    lanes
        .iter()
        .map(|&bits| {
            shift -= bits;
            (shift, if bits == 64 { u64::MAX } else { (1 << bits) - 1 })
        })
        .collect()
}

/// How packed codes become numbers below [`Recode::count`].
#[derive(Debug)]
pub(crate) struct Recode {
    lanes: Vec<Lane>,
    count: u64,
}

#[derive(Debug)]
struct Lane {
    shift: u32,
    mask: u64,
    low: u64,
    values: u64,
}

/// The number of a key that is outside of the build side's ranges.
const OUTSIDE: u64 = u64::MAX;

impl Recode {
    /// The recoding for values within `spans`; `None` when it does not fit 64 bits.
    pub(crate) fn try_new(spans: &Spans, lanes: &[u32]) -> Option<Recode> {
        let mut count = 1u64;
        let mut out = vec![];
        for (&(low, high), (shift, mask)) in spans.0.iter().zip(shifts(lanes)) {
            let values = (high - low).checked_add(1)?;
            count = count.checked_mul(values)?;
            out.push(Lane { shift, mask, low, values });
        }
        (!out.is_empty() && count < OUTSIDE).then_some(Recode { lanes: out, count })
    }

    /// One more than the largest number of a build row.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The numbers of packed codes.
    pub(crate) fn apply<C: Code>(&self, codes: &[C]) -> Vec<u64> {
        codes.iter().map(|&code| self.number(code)).collect()
    }

    #[inline]
    fn number<C: Code>(&self, code: C) -> u64 {
        let mut number = 0u64;
        for lane in &self.lanes {
            let value = code.lane(lane.shift, lane.mask).wrapping_sub(lane.low);
            if value >= lane.values {
                return OUTSIDE;
            }
            number = number * lane.values + value;
        }
        number
    }

    /// `keys` recoded; rows that are NULL may get any number.
    pub(crate) fn rebuild(&self, keys: KeyBatch) -> KeyBatch {
        let codes = match &keys.codes {
            Codes::Narrow(codes) => self.apply(codes),
            Codes::Wide(codes) => self.apply(codes),
            Codes::Bytes(..) => return keys,
        };
        KeyBatch { codes: Codes::Narrow(codes), nulls: keys.nulls }
    }
}

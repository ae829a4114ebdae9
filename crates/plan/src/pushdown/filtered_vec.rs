//! [`FilteredVec`]: a list from which items were taken out, and which still knows where each of
//! the others stood.

use datafusion_common::{Result, internal_err};

/// Some items of a list, with their positions in it.
///
/// A negotiation takes filters out (volatile ones, ones a node cannot offer), asks about the
/// rest, and owes an answer for *every* filter of the list it began with, in its order. Filtering
/// may be repeated; positions always refer to the first list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteredVec<T> {
    items: Vec<T>,
    /// Position of each item in the first list; ascending.
    positions: Vec<usize>,
    /// Length of the first list.
    original_len: usize,
}

impl<T> FilteredVec<T> {
    /// All items of `items`.
    pub fn new(items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        let original_len = items.len();
        FilteredVec { items, positions: (0..original_len).collect(), original_len }
    }

    /// The items still in, in order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Where each item of [`Self::items`] stood in the first list.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// How many items the first list had.
    pub fn original_len(&self) -> usize {
        self.original_len
    }

    /// Without the items for which `keep` is false.
    #[must_use]
    pub fn filter(self, mut keep: impl FnMut(&T) -> bool) -> Self {
        self.filter_map(|item| keep(&item).then_some(item))
    }

    /// Each item replaced by what `f` says; those for which it says nothing are out.
    #[must_use]
    pub fn filter_map<U>(self, mut f: impl FnMut(T) -> Option<U>) -> FilteredVec<U> {
        let (items, positions) = self
            .items
            .into_iter()
            .zip(self.positions)
            .filter_map(|(item, position)| Some((f(item)?, position)))
            .unzip();
        FilteredVec { items, positions, original_len: self.original_len }
    }

    /// One answer per item of the *first* list: `answers` for those still in, `otherwise` for
    /// those taken out.
    ///
    /// # Errors
    /// An internal error when there is not one answer per item.
    pub fn answers<A: Clone>(
        &self,
        answers: impl IntoIterator<Item = A>,
        otherwise: A,
    ) -> Result<Vec<A>> {
        let mut out = vec![otherwise; self.original_len];
        let mut answers = answers.into_iter();
        for &position in &self.positions {
            let Some(answer) = answers.next() else {
                return internal_err!("fewer answers than the {} questions", self.items.len());
            };
            out[position] = answer;
        }
        if answers.next().is_some() {
            return internal_err!("more answers than the {} questions", self.items.len());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_of_every_short_list_keeps_its_positions() {
        for len in 0..=6usize {
            for mask in 0..1usize << len {
                let kept: Vec<usize> = (0..len).filter(|i| mask >> i & 1 == 1).collect();
                let list = FilteredVec::new(0..len).filter(|i| mask >> i & 1 == 1);
                assert_eq!(list.items(), kept);
                assert_eq!(list.positions(), kept);
                assert_eq!(list.original_len(), len);
                let answers = list.answers(kept.iter().map(|i| Some(*i)), None).unwrap();
                let expected: Vec<_> =
                    (0..len).map(|i| (mask >> i & 1 == 1).then_some(i)).collect();
                assert_eq!(answers, expected);
            }
        }
    }

    #[test]
    fn filtering_twice_still_refers_to_the_first_list() {
        for len in 0..=5usize {
            for first in 0..1usize << len {
                for second in 0..1usize << len {
                    let list = FilteredVec::new(0..len)
                        .filter(|i| first >> i & 1 == 1)
                        .filter_map(|i| (second >> i & 1 == 1).then_some(i * 10));
                    let both = first & second;
                    let answers = list.answers(list.items().to_vec(), usize::MAX).unwrap();
                    for (i, answer) in answers.into_iter().enumerate() {
                        let expected = if both >> i & 1 == 1 { i * 10 } else { usize::MAX };
                        assert_eq!(answer, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn equal_items_are_told_apart_by_position() {
        let mut seen = 0;
        let list = FilteredVec::new(["p", "p", "p"]).filter(|_| {
            seen += 1;
            seen != 2
        });
        assert_eq!(list.answers([1, 3], 0).unwrap(), [1, 0, 3]);
    }

    #[test]
    fn a_wrong_number_of_answers_is_an_error() {
        let list = FilteredVec::new([1, 2, 3]).filter(|i| *i != 2);
        assert!(list.answers([0], 9).is_err());
        assert!(list.answers([0, 0, 0], 9).is_err());
        assert!(list.answers([0, 0], 9).is_ok());
    }
}

//! The quasi-identifiers as points: one row of coordinates in [0, 1] per record.

use super::bucket::Slot;

/// Coordinates of the records, row by row.
pub struct Space<'a> {
    pub points: &'a [f32],
    pub axes: usize,
}

impl Space<'_> {
    pub fn at(&self, slot: &Slot, axis: usize) -> f32 {
        self.points[slot.donor as usize * self.axes + axis]
    }

    pub fn point(&self, row: u32) -> &[f32] {
        &self.points[row as usize * self.axes..(row as usize + 1) * self.axes]
    }

    /// Width of the slots along each axis.
    pub fn widths<'s>(&self, slots: impl Iterator<Item = &'s Slot>) -> Vec<f32> {
        let mut low = vec![f32::INFINITY; self.axes];
        let mut high = vec![f32::NEG_INFINITY; self.axes];
        for slot in slots {
            for (axis, &x) in self.point(slot.donor).iter().enumerate() {
                low[axis] = low[axis].min(x);
                high[axis] = high[axis].max(x);
            }
        }
        low.iter()
            .zip(&high)
            .map(|(l, h)| (h - l).max(0.0))
            .collect()
    }

    /// The split score of equation (4): size of a part times its widths relative to the whole.
    pub fn score<'s>(&self, part: impl ExactSizeIterator<Item = &'s Slot>, whole: &[f32]) -> f32 {
        let size = part.len() as f32;
        let widths = self.widths(part);
        size * widths
            .iter()
            .zip(whole)
            .filter(|(_, w)| **w > 0.0)
            .map(|(l, w)| l / w)
            .sum::<f32>()
    }
}

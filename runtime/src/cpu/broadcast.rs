//! The axes along which two values that broadcast to one shape are walked.

use plimsoll_plan::shape::ValueType;

/// An axis of the result, or several neighbouring ones that both values treat alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Its extent.
    pub extent: usize,
    /// For each of the two values, whether it has an element for each place along the axis rather than one for all.
    pub varies: [bool; 2],
}

/// The axes of a result, outermost first, with the batch as one of them. There is at least one.
pub struct Axes {
    axes: [Axis; Axes::MOST],
    count: usize,
}

impl Axes {
    /// Neighbouring axes count once where both values treat them alike, so that this many are alternations.
    const MOST: usize = 16;

    /// The axes of two values and their result.
    pub fn of(values: &[ValueType], result: &ValueType, batch: usize) -> Axes {
        let none = Axis { extent: 1, varies: [true; 2] };
        let mut axes = Axes { axes: [none; Axes::MOST], count: 1 };
        if result.batched {
            axes.push(Axis { extent: batch, varies: [0, 1].map(|i| values[i].batched) });
        }
        let rank = result.shape.rank();
        for (i, &extent) in result.shape.0.iter().enumerate() {
            let varies = [0, 1].map(|value| {
                let shape = &values[value].shape;
                // Shapes agree from the last axis on.
                (i + shape.rank()).checked_sub(rank).is_some_and(|i| shape.0[i] == extent)
            });
            axes.push(Axis { extent: extent as usize, varies });
        }
        axes
    }

    fn push(&mut self, axis: Axis) {
        let last = &mut self.axes[self.count - 1];
        if axis.extent == 1 {
            // It changes nothing, however the values treat it.
        } else if last.extent == 1 {
            *last = axis;
        } else if last.varies == axis.varies {
            last.extent *= axis.extent;
        } else {
            assert!(
                self.count < Axes::MOST,
                "values that broadcast against each other along more than {} axes",
                Axes::MOST
            );
            self.axes[self.count] = axis;
            self.count += 1;
        }
    }
}

impl std::ops::Deref for Axes {
    type Target = [Axis];

    fn deref(&self) -> &[Axis] {
        &self.axes[..self.count]
    }
}

/// The elements of a value, one for every place along those of the axes where it varies.
pub fn elements(axes: &[Axis], value: usize) -> usize {
    axes.iter().filter(|axis| axis.varies[value]).map(|axis| axis.extent).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unbatched(shape: &[u64]) -> ValueType {
        ValueType { batched: false, ..ValueType::f32(shape) }
    }

    #[test]
    fn alike_neighbours_are_one_axis() {
        let (image, factors) = (ValueType::f32(&[4, 5, 6]), ValueType::f32(&[4, 1, 1]));
        let axes = Axes::of(&[image.clone(), factors], &image, 2);
        assert_eq!(*axes, [Axis { extent: 8, varies: [true; 2] }, Axis { extent: 30, varies: [true, false] }]);
        assert_eq!([0, 1].map(|value| elements(&axes, value)), [240, 8]);
    }

    #[test]
    fn a_value_without_batch_is_the_same_for_every_sample() {
        let axes = Axes::of(&[ValueType::f32(&[3]), unbatched(&[3])], &ValueType::f32(&[3]), 7);
        assert_eq!(*axes, [Axis { extent: 7, varies: [true, false] }, Axis { extent: 3, varies: [true; 2] }]);
    }

    #[test]
    fn one_element_has_one_axis() {
        let axes = Axes::of(&[unbatched(&[]), unbatched(&[1, 1])], &unbatched(&[1, 1]), 7);
        assert_eq!(axes.len(), 1);
        assert_eq!(elements(&axes, 0), 1);
    }
}

//! What counts as equal.

/// The largest error of an element, relative to the largest magnitude in its tensor.
pub const TOLERANCE: f32 = 1e-5;

/// A tensor of a case: what was computed, and what PyTorch says.
pub struct Comparison {
    pub name: String,
    pub got: Vec<f32>,
    pub expected: Vec<f32>,
}

impl Comparison {
    /// The largest error, relative to the largest magnitude (absolute, where all is zero), and where it is.
    fn error(&self) -> (f32, usize) {
        let largest = self.expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let errors = self.got.iter().zip(&self.expected).map(|(got, expected)| (got - expected).abs() / unit);
        let worst = |worst: (f32, usize), (i, error): (usize, f32)| {
            // NaN is no small error.
            if error <= worst.0 { worst } else { (if error.is_nan() { f32::INFINITY } else { error }, i) }
        };
        errors.enumerate().fold((0.0, 0), worst)
    }
}

/// What became of the cases of a group.
#[derive(Default)]
pub struct Report {
    cases: usize,
    tensors: usize,
    failures: Vec<String>,
    worst: (f32, String),
}

impl Report {
    /// Takes up the outcome of a case.
    pub fn case(&mut self, name: &str, outcome: Result<Vec<Comparison>, String>) {
        self.cases += 1;
        let comparisons = match outcome {
            Ok(comparisons) => comparisons,
            Err(error) => return self.failures.push(format!("{name}: {error}")),
        };
        for comparison in comparisons {
            let tensor = format!("{name}: {}", comparison.name);
            self.tensors += 1;
            let (got, expected) = (comparison.got.len(), comparison.expected.len());
            if got != expected {
                self.failures.push(format!("{tensor}: {got} elements instead of {expected}"));
                continue;
            }
            let (error, at) = comparison.error();
            if error > TOLERANCE {
                let (got, expected) = (comparison.got[at], comparison.expected[at]);
                self.failures.push(format!("{tensor}: off by {error:.1e}: element {at} is {got}, not {expected}"));
            } else if error > self.worst.0 {
                self.worst = (error, tensor);
            }
        }
    }

    /// Fails if a case has failed.
    pub fn finish(self) {
        let (error, tensor) = &self.worst;
        println!(
            "{} cases, {} tensors; the largest error that passes is {error:.1e}: {tensor}",
            self.cases, self.tensors
        );
        let count = self.failures.len();
        assert!(count == 0, "{count} differences from PyTorch:\n{}", self.failures.join("\n"));
    }
}

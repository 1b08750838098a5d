//! How far a training run has come: the numbers beside its tensors, as words in the header.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// What a run needs, beside its tensors, to go on as if it had never stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Batches trained on: the counter of random masks, and the place within an accumulation.
    pub batches: u64,
    /// Updates made: the optimizer's count, and the place in a schedule of the learning rate.
    pub updates: u64,
    /// The seed of random masks.
    pub seed: u64,
    /// The learning rate of the last update.
    pub learning_rate: f64,
    /// How many batches make an update.
    pub accumulate: u64,
    /// The optimizer's name.
    pub optimizer: String,
}

/// The version of what is written.
const VERSION: u64 = 1;
const KEYS: [&str; 7] = ["version", "batches", "updates", "seed", "learning_rate", "accumulate", "optimizer"];

/// Counts beyond this are no counts, but could overflow.
const MOST: u64 = 1 << 53;

impl Progress {
    /// As words. Rust writes the shortest decimal from which a float reads back as the same bits.
    pub fn words(&self) -> impl Iterator<Item = (String, String)> {
        let Progress { batches, updates, seed, learning_rate, accumulate, optimizer } = self;
        let values: [&dyn Display; 7] = [&VERSION, batches, updates, seed, learning_rate, accumulate, optimizer];
        let words: Vec<_> = KEYS.iter().zip(values).map(|(key, value)| (word(key), value.to_string())).collect();
        words.into_iter()
    }

    /// From words.
    ///
    /// # Errors
    /// The problem, in words.
    pub fn parse(words: &BTreeMap<String, String>) -> Result<Progress, String> {
        if !words.contains_key(&word("version")) {
            return Err("there are weights in it, but no state of training".into());
        }
        let version: u64 = number(words, "version")?;
        if version != VERSION {
            return Err(format!(
                "its state of training is of version {version}, and this is a reader of version {VERSION}"
            ));
        }
        let progress = Progress {
            batches: number(words, "batches")?,
            updates: number(words, "updates")?,
            seed: number(words, "seed")?,
            learning_rate: number(words, "learning_rate")?,
            accumulate: number(words, "accumulate")?,
            optimizer: number(words, "optimizer")?,
        };
        match progress {
            Progress { batches, updates, accumulate, .. } if batches > MOST || updates > batches || accumulate == 0 => {
                Err(format!("{updates} updates with {batches} batches, {accumulate} for each, can't be"))
            }
            Progress { learning_rate, .. } if !learning_rate.is_finite() => {
                Err(format!("its learning rate is {learning_rate}"))
            }
            progress => Ok(progress),
        }
    }

    /// Whether gradients wait for more batches.
    pub fn is_between_updates(&self) -> bool {
        !self.batches.is_multiple_of(self.accumulate)
    }
}

fn word(key: &str) -> String {
    format!("plimsoll.{key}")
}

fn number<T: FromStr>(words: &BTreeMap<String, String>, key: &str) -> Result<T, String> {
    let name = word(key);
    let text = words.get(&name).ok_or_else(|| format!("`{name}` is missing in its header"))?;
    text.parse().map_err(|_| format!("`{name}` in its header is {:?}", text.chars().take(100).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        for learning_rate in [0.1, 1e-300, 4e-7 / 3.0] {
            let progress = Progress {
                batches: 7,
                updates: 3,
                seed: u64::MAX,
                learning_rate,
                accumulate: 2,
                optimizer: "adam".into(),
            };
            assert!(progress.is_between_updates());
            let mut words: BTreeMap<_, _> = progress.words().collect();
            assert_eq!(Progress::parse(&words).unwrap(), progress);
            words.insert("plimsoll.batches".into(), u64::MAX.to_string());
            assert!(Progress::parse(&words).unwrap_err().ends_with("can't be"));
            words.insert("plimsoll.batches".into(), "many".into());
            assert_eq!(Progress::parse(&words).unwrap_err(), "`plimsoll.batches` in its header is \"many\"");
        }
    }
}

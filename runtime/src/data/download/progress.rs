//! How far a download has come, on standard error.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

use super::Progress;

/// A bar on a terminal; a line at the start and one at the end where the output goes to a file or a pipe.
pub(super) enum Display {
    Bar(ProgressBar),
    Lines(String),
    Nothing,
}

impl Display {
    pub(super) fn new(progress: Progress, name: &str) -> Display {
        match progress {
            Progress::Hidden => Display::Nothing,
            Progress::Shown if stderr().is_terminal() => {
                let bar = ProgressBar::no_length().with_prefix(name.to_owned());
                let template = "{prefix} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
                // The template is right or wrong for good; a wrong one would show indicatif's own bar.
                Display::Bar(ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style)))
            }
            Progress::Shown => Display::Lines(name.to_owned()),
        }
    }

    /// A connection is there: `have` bytes of `total` are already on disk.
    pub(super) fn start(&self, url: &str, have: u64, total: Option<u64>) {
        match self {
            Display::Bar(bar) => {
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(have);
                // What came before does not count for the speed.
                bar.reset_eta();
            }
            Display::Lines(name) => {
                let size = total.map_or(String::new(), |total| format!(" ({:.1} MB)", total as f64 / 1e6));
                let rest = if have > 0 { format!(", continuing after {have} bytes") } else { String::new() };
                eprintln!("{name}: fetching {url}{size}{rest}");
            }
            Display::Nothing => {}
        }
    }

    pub(super) fn advance(&self, bytes: u64) {
        if let Display::Bar(bar) = self {
            bar.inc(bytes);
        }
    }

    /// The file is complete and right.
    pub(super) fn done(&self) {
        match self {
            Display::Bar(bar) => bar.finish(),
            Display::Lines(name) => eprintln!("{name}: done"),
            Display::Nothing => {}
        }
    }
}

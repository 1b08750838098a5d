//! One file from the network to its place on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

use super::progress::Display;
use crate::data::Error;

/// Whether a download says how far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// On standard error: a bar on a terminal, plain lines elsewhere.
    #[default]
    Shown,
    /// Not at all.
    Hidden,
}

/// A file to be fetched: addresses, to be tried in order, and the MD5 sum that tells whether it is the right one.
#[derive(Clone, Debug)]
pub struct Download {
    urls: Vec<String>,
    md5: String,
    progress: Progress,
    patience: Duration,
}

/// Tries of one address that bring nothing further.
const TRIES: u32 = 3;
/// Longer than this no server may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a try ended.
enum Failure {
    /// It may go on from where it is.
    Broken(String),
    /// This address is of no use.
    Refused(String),
    /// No address helps.
    Fatal(Error),
}

impl Download {
    /// A file at one of some addresses.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>, md5: &str) -> Download {
        let urls = urls.into_iter().map(Into::into).collect();
        Download { urls, md5: md5.to_ascii_lowercase(), progress: Progress::default(), patience: PATIENCE }
    }

    /// Whether to say how far it has come.
    pub fn progress(mut self, progress: Progress) -> Download {
        self.progress = progress;
        self
    }

    /// How long a server may be silent: 30 seconds, unless set.
    pub fn patience(mut self, patience: Duration) -> Download {
        self.patience = patience;
        self
    }

    /// Fetches the file to `path`, unless it is there with the right checksum; a file with another one is replaced. Folders
    /// are made as needed.
    ///
    /// # Errors
    /// No network, a wrong checksum, a full disk: with the remedy.
    pub fn to(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        if self.is_there(path)? {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(Error::io(folder, "create"))?;
        let part = folder.join(format!("{name}.part"));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)
            .map_err(Error::io(&part, "open"))?;
        // Another process may be fetching the same file: then this one waits and finds it done.
        match file.lock() {
            // Not every file system has locks.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            result => result.map_err(Error::io(&part, "lock"))?,
        }
        if self.is_there(path)? {
            return fs::remove_file(&part).or_else(|error| match error.kind() {
                // The other process has given it the file's own name.
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(Error::io(&part, "remove")(error)),
            });
        }
        self.fetch(&mut file, &part, &Display::new(self.progress, &name))?;
        file.sync_all().map_err(Error::io(&part, "write"))?;
        fs::rename(&part, path).map_err(Error::io(path, "rename a download to"))?;
        // The new name survives a loss of power, too, where folders can be synced.
        #[cfg(unix)]
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder, "write"))?;
        Ok(())
    }

    fn is_there(&self, path: &Path) -> Result<bool, Error> {
        match File::open(path) {
            Ok(mut file) => Ok(sum(&mut file).map_err(Error::io(path, "read"))? == self.md5),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(path, "open")(error)),
        }
    }

    /// Fills the temporary file, from one address or another, with what has the right checksum.
    fn fetch(&self, file: &mut File, part: &Path, display: &Display) -> Result<(), Error> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(self.patience))
            .timeout_recv_response(Some(self.patience))
            .timeout_per_read(Some(self.patience))
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::new_with_config(config);
        let mut failures: Vec<(&str, String)> = Vec::new();
        for url in &self.urls {
            match self.fetch_from(&agent, url, file, part, display) {
                Ok(()) => {
                    display.done();
                    return Ok(());
                }
                Err(Failure::Fatal(error)) => return Err(error),
                Err(Failure::Refused(problem) | Failure::Broken(problem)) => failures.push((url, problem)),
            }
        }
        let Some((url, mut problem)) = failures.pop() else {
            return Err(Error::argument("a download has no address", "give one or more"));
        };
        for (url, before) in failures {
            problem = format!("{problem}\nbefore, {url}: {before}");
        }
        let kept = match file.metadata().map_or(0, |metadata| metadata.len()) {
            0 => String::new(),
            kept => format!(" ({kept} bytes are kept, and the next try continues from there)"),
        };
        Err(Error::Download {
            url: url.to_owned(),
            path: part.to_owned(),
            problem,
            help: format!(
                "check the network and try again{kept}; or fetch the file by other means and put it at {}",
                part.with_extension("").display()
            ),
        })
    }

    fn fetch_from(
        &self,
        agent: &Agent,
        url: &str,
        file: &mut File,
        part: &Path,
        display: &Display,
    ) -> Result<(), Failure> {
        let mut tries = 0;
        let mut furthest = length(file, part)?;
        loop {
            let continued = length(file, part)? > 0;
            let problem = match self.attempt(agent, url, file, part, display) {
                Ok(()) => {
                    let found = sum(file).map_err(|error| Failure::Fatal(Error::io(part, "read")(error)))?;
                    if found == self.md5 {
                        return Ok(());
                    }
                    // What is wrong is of no use for the next try either.
                    empty(file, part)?;
                    furthest = 0;
                    let problem = format!("the file has the MD5 sum {found}, where {} is published", self.md5);
                    if !continued {
                        return Err(Failure::Refused(problem));
                    }
                    problem
                }
                Err(Failure::Broken(problem)) => problem,
                Err(other) => return Err(other),
            };
            // A slow or shaky connection may take as many tries as it likes as long as each brings it further.
            let reached = length(file, part)?;
            tries = if reached > furthest { 0 } else { tries + 1 };
            furthest = furthest.max(reached);
            if tries >= TRIES {
                return Err(Failure::Broken(problem));
            }
            std::thread::sleep(Duration::from_millis(200) * tries);
        }
    }

    /// One request, which continues the file where it ends.
    fn attempt(
        &self,
        agent: &Agent,
        url: &str,
        file: &mut File,
        part: &Path,
        display: &Display,
    ) -> Result<(), Failure> {
        let have = length(file, part)?;
        let mut request = agent.get(url);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        let response = request.call().map_err(|error| match error {
            // What no repetition mends.
            error @ (ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects | ureq::Error::Tls(_)) => {
                Failure::Refused(error.to_string())
            }
            error => Failure::Broken(error.to_string()),
        })?;
        let status = response.status();
        let have = match status {
            StatusCode::PARTIAL_CONTENT if have > 0 && starts_at(&response, have) => have,
            // The server does not know ranges, or sends another one: all over again.
            StatusCode::OK => {
                empty(file, part)?;
                0
            }
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                // Perhaps it was complete already, and the process ended before it got its name.
                if sum(file).is_ok_and(|found| found == self.md5) {
                    return Ok(());
                }
                empty(file, part)?;
                return Err(Failure::Broken(format!("the server can't continue after {have} bytes ({status})")));
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(Failure::Broken(format!("the server answers {status}")));
            }
            status => return Err(Failure::Refused(format!("the server answers {status}"))),
        };
        let rest = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let total = rest.and_then(|rest: u64| rest.checked_add(have));
        display.start(url, have, total);
        self.copy(&mut response.into_body().into_with_config().limit(u64::MAX).reader(), file, part, display)?;
        let reached = length(file, part)?;
        match total.filter(|total| *total != reached) {
            Some(total) => Err(Failure::Broken(format!("the connection ended after {reached} of {total} bytes"))),
            None => Ok(()),
        }
    }

    fn copy(&self, body: &mut impl Read, file: &mut File, part: &Path, display: &Display) -> Result<(), Failure> {
        let write = |error: io::Error| Failure::Fatal(Error::io(part, "write")(error));
        file.seek(SeekFrom::End(0)).map_err(write)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    file.write_all(&buffer[..read]).map_err(write)?;
                    display.advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Broken(format!("the connection broke: {error}"))),
            }
        }
    }
}

/// Whether a partial answer begins where it was asked to.
fn starts_at(response: &Response<Body>, have: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}

fn length(file: &File, part: &Path) -> Result<u64, Failure> {
    file.metadata().map(|metadata| metadata.len()).map_err(|error| Failure::Fatal(Error::io(part, "read")(error)))
}

fn empty(file: &mut File, part: &Path) -> Result<(), Failure> {
    if length(file, part)? == 0 {
        return Ok(());
    }
    file.set_len(0).map_err(|error| Failure::Fatal(Error::io(part, "write")(error)))
}

/// The MD5 sum of a whole file, in hexadecimal.
fn sum(file: &mut File) -> io::Result<String> {
    let mut context = md5::Context::new();
    let mut buffer = vec![0; 1 << 16];
    file.seek(SeekFrom::Start(0))?;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(format!("{:x}", context.finalize())),
            Ok(read) => context.consume(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

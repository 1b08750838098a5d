//! Files inside a `.tar.gz`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::Error;
use super::bytes::Source;

/// Calls `each` for the files in an archive, with the last part of their names. Nothing is written to disk, so that names in
/// an archive can do no harm.
pub(super) fn read(path: &Path, mut each: impl FnMut(&str, &mut Source) -> Result<(), Error>) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let length = file.metadata().map_err(Error::io(path, "open"))?.len();
    let mut file = BufReader::with_capacity(1 << 16, file);
    let packed = file.fill_buf().map_err(Error::io(path, "read"))?.starts_with(&[0x1f, 0x8b]);
    if !packed {
        return Err(Error::Format {
            path: path.to_owned(),
            offset: 0,
            unpacked: false,
            problem: "this is no gzip file: it does not begin with 0x1f8b".into(),
            help: "check that it is the published .tar.gz, and fetch it again".into(),
        });
    }
    let whole = Source::part(path.to_owned(), std::io::empty(), length.saturating_mul(1032));
    let mut archive = tar::Archive::new(MultiGzDecoder::new(file));
    let entries = archive.entries().map_err(|error| whole.failure(error))?;
    for entry in entries {
        let entry = entry.map_err(|error| broken(&whole, error))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = name.rsplit('/').next().unwrap_or_default();
        // The entry ends where its header says or where the archive does, whichever comes first.
        let size = entry.size();
        let mut source = Source::part(path.join(name), BufReader::new(entry), size.min(whole.most()));
        each(name, &mut source)?;
    }
    Ok(())
}

/// The tar reader's errors have a kind of their own; what lies beneath is the decoder's.
fn broken(whole: &Source, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::Other => whole.error(0, format!("the archive is damaged: {error}"), "fetch the file again"),
        _ => whole.failure(error),
    }
}

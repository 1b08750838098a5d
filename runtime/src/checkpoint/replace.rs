//! A file replaced in one step: its name stands for the old content or for the new, whole, whenever the process or the
//! machine should stop.
//!
//! The new content is written under a temporary name in the same folder, brought to the disk, and given its own name, which
//! file systems do in one step; then the folder is brought to the disk. What a process that was killed has left behind is
//! removed when the file is next saved: a writer keeps its temporary file locked, so that one without a lock is nobody's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Error;

/// Replaces the file at `path` with what `write` writes.
pub fn replace<E: From<Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    let io = |action| Error::io(path, action);
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
        return Err(io("write")(io::ErrorKind::IsADirectory.into()).into());
    };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep(folder, name);
    let mut temporary = Temporary::create(folder, name).map_err(io("write"))?;
    write(&mut temporary.file)?;
    temporary.file.sync_all().map_err(io("write"))?;
    fs::rename(&temporary.path, &target).map_err(io("replace"))?;
    temporary.is_renamed = true;
    sync_folder(folder).map_err(io("write"))?;
    Ok(())
}

/// A file under a temporary name, removed when dropped.
struct Temporary {
    path: PathBuf,
    file: File,
    is_renamed: bool,
}

impl Temporary {
    fn create(folder: &Path, name: &OsStr) -> io::Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut temporary = prefix(name);
            temporary.push(format!("{}-{count}{SUFFIX}", std::process::id()));
            let path = folder.join(temporary);
            let file = match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            };
            // Some file systems know no locks. Nothing is then swept, either.
            let _ = file.lock();
            // Before it was locked, another process may have taken it for one that was left behind.
            if path.exists() {
                return Ok(Temporary { path, file, is_renamed: false });
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_renamed {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

const SUFFIX: &str = ".tmp";

/// `.NAME.`
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes temporary files that nobody writes any more. Where that fails, there is only some space lost.
fn sweep(folder: &Path, name: &OsStr) {
    let prefix = prefix(name);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(prefix.as_encoded_bytes())
            && name.ends_with(SUFFIX.as_bytes())
            && let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder can't be opened as a file; the file system does as much by itself.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_disk_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.safetensors");
        replace::<Error>(&path, |file| file.write_all(b"old").map_err(Error::io(&path, "write"))).unwrap();
        let error = replace(&path, |file| {
            file.write_all(b"ne").unwrap();
            Err(Error::io(&path, "write")(io::ErrorKind::StorageFull.into()))
        });
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("net.safetensors: can't write") && message.contains("help: the disk is full"),
            "{message}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["net.safetensors"]);
    }

    #[test]
    fn what_was_left_behind_is_swept_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net");
        fs::write(folder.path().join(".net.1-1.tmp"), "left behind").unwrap();
        fs::write(folder.path().join(".other.1-1.tmp"), "not ours").unwrap();
        replace::<Error>(&path, |_| {
            // Another thread saves the same file meanwhile.
            replace::<Error>(&path, |_| Ok(())).unwrap();
            assert_eq!(names(folder.path()).len(), 3);
            Ok(())
        })
        .unwrap();
        assert_eq!(names(folder.path()), [".other.1-1.tmp", "net"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace::<Error>(&link, |file| file.write_all(b"new").map_err(Error::io(&link, "write"))).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn no_folder_and_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| replace::<Error>(path, |_| Ok(())).unwrap_err().to_string();
        let text = message(&folder.path().join("nowhere/net"));
        assert!(text.contains("nowhere/net: can't write") && text.contains("help: check the path"), "{text}");
        assert!(message(folder.path()).contains("help: this is a folder"), "{}", message(folder.path()));
        assert!(message(Path::new("")).contains("can't write"));
    }
}

//! Where downloads are kept.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::data::Error;

/// The folder for downloads: that in the environment variable `PLIMSOLL_DATA`, or else `plimsoll` in the platform's folder
/// for caches (`~/.cache` on Linux, `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows). It need not exist yet.
///
/// # Errors
/// No variable and no home folder.
pub fn cache_folder() -> Result<PathBuf, Error> {
    if let Some(folder) = std::env::var_os("PLIMSOLL_DATA").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let strategy = etcetera::base_strategy::choose_native_strategy().map_err(|_| {
        Error::argument("there is no home folder to keep downloads in", "set PLIMSOLL_DATA to the folder for them")
    })?;
    Ok(strategy.cache_dir().join("plimsoll"))
}

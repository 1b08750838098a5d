//! The names and texts of errors. A text has the last report, so that it stands in whatever message an application prints.

use std::ffi::{CString, c_char, c_uint};

use super::{Code, Needs, Status, call, give};

/// The name of a code.
///
/// # Safety
/// `name` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: c_uint, name: *mut *const c_char) -> Status {
    call(Needs::Nothing, |_| {
        let (_, found, _) = Code::numbered(code).ok_or(Code::InvalidValue)?;
        // SAFETY: as the caller promises.
        unsafe { give(name, found.as_ptr()) }
    })
}

/// The meaning of a code, and the last report.
///
/// # Safety
/// `text` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: c_uint, text: *mut *const c_char) -> Status {
    call(Needs::Nothing, |driver| {
        let (code, _, meaning) = Code::numbered(code).ok_or(Code::InvalidValue)?;
        let told = driver.reports.last().filter(|_| code != Code::Success);
        let full = told.map_or(meaning.to_owned(), |report| format!("{meaning} ({report})"));
        // A caller keeps the pointer for as long as it likes, so that the text is never freed. There are few.
        let full = CString::new(full.replace('\0', " ")).map_err(|_| Code::Unknown)?.into_raw();
        // SAFETY: as the caller promises.
        unsafe { give(text, full.cast_const()) }
    })
}

//! The results of driver calls, with the numbers and names of `cuda.h`.

/// A result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum Code {
    Success = 0,
    InvalidValue = 1,
    OutOfMemory = 2,
    NotInitialized = 3,
    NoDevice = 100,
    InvalidDevice = 101,
    InvalidImage = 200,
    InvalidContext = 201,
    NoBinaryForGpu = 209,
    EccUncorrectable = 214,
    InvalidPtx = 218,
    UnsupportedPtxVersion = 222,
    FileNotFound = 301,
    InvalidHandle = 400,
    NotFound = 500,
    IllegalAddress = 700,
    LaunchOutOfResources = 701,
    LaunchTimeout = 702,
    MisalignedAddress = 716,
    LaunchFailed = 719,
    NotSupported = 801,
    Unknown = 999,
}

/// Each code with its name and what it means.
const TEXTS: [(Code, &std::ffi::CStr, &str); 22] = [
    (Code::Success, c"CUDA_SUCCESS", "no error"),
    (Code::InvalidValue, c"CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    (Code::OutOfMemory, c"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    (Code::NotInitialized, c"CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    (Code::NoDevice, c"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    (Code::InvalidDevice, c"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    (Code::InvalidImage, c"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    (Code::InvalidContext, c"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    (Code::NoBinaryForGpu, c"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    (Code::EccUncorrectable, c"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"),
    (Code::InvalidPtx, c"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    (
        Code::UnsupportedPtxVersion,
        c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the provided PTX was compiled with an unsupported toolchain",
    ),
    (Code::FileNotFound, c"CUDA_ERROR_FILE_NOT_FOUND", "file not found"),
    (Code::InvalidHandle, c"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    (Code::NotFound, c"CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    (Code::IllegalAddress, c"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    (Code::LaunchOutOfResources, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    (Code::LaunchTimeout, c"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    (Code::MisalignedAddress, c"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    (Code::LaunchFailed, c"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    (Code::NotSupported, c"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    (Code::Unknown, c"CUDA_ERROR_UNKNOWN", "unknown error"),
];

impl Code {
    /// The code with a number, its name and its meaning.
    pub fn numbered(number: u32) -> Option<(Code, &'static std::ffi::CStr, &'static str)> {
        TEXTS.into_iter().find(|(code, ..)| *code as u32 == number)
    }
}

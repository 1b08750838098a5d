//! Neural networks whose memory is planned at compile time.

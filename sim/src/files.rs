//! Files that a user names, read within a bound: a device or a flood ends in an error, not in all of the memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Bytes beyond which no file is read: far above any settings file, tool list or transcript that was seen.
pub const LIMIT: u64 = 256 * 1024 * 1024;

/// The bytes of a file.
///
/// # Errors
/// When it cannot be read, or holds more than [`LIMIT`] bytes.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_within(path, LIMIT)
}

/// The text of a file.
///
/// # Errors
/// As [`read`]; and when it is not UTF-8, with the byte where that begins.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("byte {at} is not UTF-8, expected a text in UTF-8"))
    })
}

/// The text of a file as the harness reads settings: what is not UTF-8 becomes U+FFFD.
///
/// # Errors
/// As [`read`].
pub fn read_lossy(path: &Path) -> Result<String> {
    Ok(match String::from_utf8(read(path)?) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn read_within(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    // What a device or a pipe says of its length means nothing: count what comes.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("more than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_device_ends_in_an_error() {
        let error = read_within(Path::new("/dev/zero"), 1000).expect_err("it has no end");
        assert_eq!(error.to_string(), "more than 1000 bytes");
    }

    #[test]
    fn what_fits_is_read_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"ab\xff").expect("written");
        assert_eq!(read_within(&path, 3).expect("it fits"), b"ab\xff");
        assert!(read_within(&path, 2).is_err());
        assert_eq!(read_lossy(&path).expect("it is read"), "ab\u{fffd}");
        let error = read_text(&path).expect_err("it is not UTF-8");
        assert!(error.to_string().starts_with("byte 2 is not UTF-8"), "{error}");
    }
}

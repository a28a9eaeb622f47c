//! Whether bytes are a value in its one canonical form. Nothing reads a value that was not checked.

use super::UINT;
use super::{
    BLOB, BLOB_HEAD, DEPTH_MAX, FALSE, FLOAT, INLINE_MAX, INT, LIST, MAP, NULL, STRING, TRUE,
};

/// Reads an unsigned LEB128 number in its shortest form.
#[inline]
pub(crate) fn read_varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    // Nearly every length and number is one byte.
    if let Some((&byte, tail)) = rest.split_first()
        && byte < 0x80
    {
        *rest = tail;
        return Ok(u64::from(byte));
    }
    read_long_varint(rest)
}

fn read_long_varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0u64;
    for (place, &byte) in rest.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if place == 9 && byte > 1 {
            return Err("a number over 64 bits");
        }
        number |= part << (7 * place);
        if byte < 0x80 {
            if byte == 0 {
                return Err("a number that is not in its shortest form");
            }
            *rest = &rest[place + 1..];
            return Ok(number);
        }
    }
    Err("a number without an end")
}

/// Reads a text: its length, then UTF-8.
pub(crate) fn read_str<'a>(rest: &mut &'a [u8]) -> Result<&'a str, &'static str> {
    let bytes = read_section(rest)?;
    std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")
}

/// Checks a text and passes over it. Gives its bytes.
#[inline]
pub(crate) fn check_str<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let bytes = read_section(rest)?;
    // Nearly every text is ASCII, which is checked many times faster.
    if is_ascii(bytes) || std::str::from_utf8(bytes).is_ok() {
        Ok(bytes)
    } else {
        Err("a text that is not UTF-8")
    }
}

/// As `[u8]::is_ascii`, but for texts of a few words, which most are.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().fold(0, |all, byte| all | byte) < 0x80;
    };
    let (words, _) = bytes.as_chunks::<8>();
    let all =
        words.iter().fold(u64::from_le_bytes(*last), |all, word| all | u64::from_le_bytes(*word));
    all & HIGH == 0
}

/// Reads a length and that many bytes.
#[inline]
pub(crate) fn read_section<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let length = read_varint(rest)?;
    let length = usize::try_from(length).map_err(|_| "a length over the end")?;
    read_bytes(rest, length)
}

#[inline]
pub(crate) fn read_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], &'static str> {
    let (head, tail) = rest.split_at_checked(count).ok_or("a length over the end")?;
    *rest = tail;
    Ok(head)
}

/// Checks that one value begins `rest`, and passes over it.
pub(crate) fn check_value(rest: &mut &[u8], depth: usize) -> Result<(), &'static str> {
    match read_bytes(rest, 1)?[0] {
        NULL | FALSE | TRUE => Ok(()),
        INT => read_varint(rest).map(drop),
        UINT => match read_varint(rest)? {
            0..=0x7fff_ffff_ffff_ffff => Err("a small number written as a large one"),
            _ => Ok(()),
        },
        FLOAT => {
            let bytes = read_bytes(rest, 8)?.try_into().expect("eight bytes were read");
            if f64::from_le_bytes(bytes).is_finite() { Ok(()) } else { Err("a number not finite") }
        }
        STRING => match check_str(rest)?.len() {
            0..=INLINE_MAX => Ok(()),
            _ => Err("a long text that is not a blob"),
        },
        LIST => {
            let mut items = read_section(rest)?;
            if depth == 0 {
                return Err("nested too deep");
            }
            while !items.is_empty() {
                check_value(&mut items, depth - 1)?;
            }
            Ok(())
        }
        MAP => {
            let entries = read_section(rest)?;
            if depth == 0 {
                return Err("nested too deep");
            }
            check_entries(entries, depth - 1)
        }
        BLOB => {
            read_bytes(rest, 32)?;
            let size = read_varint(rest)?;
            let head = check_str(rest)?.len();
            let fits = size > INLINE_MAX as u64 && head <= BLOB_HEAD;
            if fits { Ok(()) } else { Err("a blob of the wrong size") }
        }
        _ => Err("a value of an unknown type"),
    }
}

/// Checks the entries of an object that is not itself inside a value.
pub(crate) fn check_map(entries: &[u8]) -> Result<(), &'static str> {
    check_entries(entries, DEPTH_MAX - 1)
}

fn check_entries(mut entries: &[u8], depth: usize) -> Result<(), &'static str> {
    let mut last: Option<&[u8]> = None;
    while !entries.is_empty() {
        let key = check_str(&mut entries)?;
        if last.is_some_and(|last| !precedes(last, key)) {
            return Err("keys out of order");
        }
        last = Some(key);
        check_value(&mut entries, depth)?;
    }
    Ok(())
}

/// Whether `last < key`, which the first byte most often tells.
#[inline]
fn precedes(last: &[u8], key: &[u8]) -> bool {
    match (last.first(), key.first()) {
        (Some(last), Some(key)) if last != key => last < key,
        _ => last < key,
    }
}

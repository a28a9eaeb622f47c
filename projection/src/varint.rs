//! Numbers of seven bits a byte, the least first: as the log writes lengths.

/// Writes a number.
pub(crate) fn write_varint(bytes: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Writes a length and that many bytes.
pub(crate) fn write_section(bytes: &mut Vec<u8>, section: &[u8]) {
    write_varint(bytes, section.len() as u64);
    bytes.extend_from_slice(section);
}

/// Reads a number; `None` where there is none.
pub(crate) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10 {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        if place == 9 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Reads a length and that many bytes.
pub(crate) fn read_section<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_varint(rest)?).ok()?;
    let (section, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::{read_section, read_varint, write_section, write_varint};

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = Vec::new();
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX];
        numbers.into_iter().for_each(|number| write_varint(&mut bytes, number));
        write_section(&mut bytes, b"text");
        let mut rest = bytes.as_slice();
        for number in numbers {
            assert_eq!(read_varint(&mut rest), Some(number));
        }
        assert_eq!(read_section(&mut rest), Some(&b"text"[..]));
        assert_eq!(read_varint(&mut rest), None);
        assert_eq!(read_section(&mut &[200, 1, 7][..]), None);
        assert_eq!(read_varint(&mut &[0xff; 11][..]), None);
    }
}

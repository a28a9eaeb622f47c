//! The ids of new elements, derived from the event without allocating: `log::element_id`, spelled
//! out for the fold, which derives one for nearly every event.

use log::{EventId, Hex};

/// The longest `["<32 digits>",<number>]`.
const JSON_MAX: usize = 64;

/// Appends `type#` and the digits derived from an event and the number of one of its changes.
pub(super) fn write_element_id(
    bytes: &mut Vec<u8>,
    type_name: &str,
    event: &EventId,
    index: usize,
) {
    let mut json = [0u8; JSON_MAX];
    let mut length = 0;
    let mut put = |part: &[u8]| {
        json[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    };
    put(b"[\"");
    put(event.hex().as_str().as_bytes());
    put(b"\",");
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    let mut rest = index;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    put(&digits[first..]);
    put(b"]");
    let hash = blake3::hash(&json[..length]);
    let derived = EventId::from_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"));
    bytes.extend_from_slice(type_name.as_bytes());
    bytes.push(b'#');
    let digits: Hex<32> = derived.hex();
    bytes.extend_from_slice(digits.as_str().as_bytes());
}

#[cfg(test)]
mod tests {
    use log::{EventId, element_id};

    use super::write_element_id;

    #[test]
    fn it_is_the_id_that_the_log_derives() {
        for index in [0, 1, 9, 10, 99, 1_234_567, usize::MAX] {
            for byte in [0, 7, 255] {
                let event = EventId::from_bytes([byte; 16]);
                let mut bytes = Vec::new();
                write_element_id(&mut bytes, "Täsk", &event, index);
                assert_eq!(bytes, element_id("Täsk", &event, index).into_bytes());
            }
        }
    }
}

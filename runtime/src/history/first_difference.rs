//! Where two lines of history part, found by their chains: the links agree up to an offset exactly
//! if all events before it are the same, so nothing but a few blocks is read.

use log::{BranchId, Head, Log, LogError, Offset, link_at};

/// The first offset at which two lines of history, each up to its head, hold other events or only
/// one of them an event; `None` if they are the same.
///
/// # Errors
/// The store is damaged or cannot be read.
pub fn first_difference(
    log: &dyn Log,
    one: (BranchId, Head),
    other: (BranchId, Head),
) -> Result<Option<Offset>, LogError> {
    let shared = one.1.min(other.1);
    let agree = |count: u64| -> Result<bool, LogError> {
        let head = Head::of_count(count);
        Ok(one.0 == other.0 || link_at(log, one.0, head)? == link_at(log, other.0, head)?)
    };
    if agree(shared.count())? {
        return Ok((one.1 != other.1).then(|| shared.next()));
    }
    // So many events are the same, and so many are not.
    let (mut same, mut differ) = (0, shared.count());
    while differ - same > 1 {
        let middle = same + (differ - same) / 2;
        if agree(middle)? {
            same = middle;
        } else {
            differ = middle;
        }
    }
    Ok(Some(Offset::new(same)))
}

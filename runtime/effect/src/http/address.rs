//! Which addresses are out in the world, and which are of this machine or of a network around it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::{Blame, EffectError};

/// Checks every address of a host: one that is not out in the world refuses them all.
pub(super) fn check(host: &str, found: &[SocketAddr], local: bool) -> Result<(), EffectError> {
    let refuse = |what: String| {
        let action = "fetch from the world outside; a local service is allowed as HOST:PORT";
        Err(EffectError::new("http.address", Blame::Policy, what, action))
    };
    if found.is_empty() {
        return refuse(format!("{host} has no address"));
    }
    for address in found.iter().map(SocketAddr::ip) {
        let fine = if local { is_near(address) || is_global(address) } else { is_global(address) };
        if !fine {
            return refuse(format!("{host} leads to {address}, which is not out in the world"));
        }
    }
    Ok(())
}

/// This machine or a private network: what a person can allow by name and port.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

/// Whether an address is out in the world.
pub(super) fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = match a {
        0 | 10 | 127 | 224..=255 => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        _ => false,
    };
    !reserved
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only this eighth of the space is given out; the rest is local, mapped or reserved. Of it,
    // what wraps another address or documents something is left out too.
    let given_out = a & 0xe000 == 0x2000;
    let special = match a {
        0x2001 => b < 0x0200 || b == 0x0db8,
        0x2002 => true,
        0x3fff => b < 0x1000,
        _ => false,
    };
    given_out && !special
}

//! Removes a lease when the clock passes its end: a claim that its holder did not renew.
//!
//! A lease is a node `Lease` whose `expires_ms` is the time of its end, in milliseconds since 1970.
//! The clock is an event `clock.ticked`; its recorded time is what counts, so that a replay removes
//! the same leases.

use serde_json::json;

use crate::{Firing, MetadataError, Proposals, ReactError, RustBehavior};

pub(super) fn behavior() -> Result<RustBehavior, MetadataError> {
    RustBehavior::new(
        &json!({
            "name": "expire_lease",
            "description": "Removes each lease that the clock has passed.",
            "on": "clock.ticked",
            "match": "(lease:Lease)",
            "each": true,
            "emits": ["lease.expired"],
            "writes": ["Lease"],
        }),
        react,
    )
}

fn react(firing: &Firing<'_>, out: &mut Proposals<'_>) -> Result<(), ReactError> {
    let lease = firing.element("lease")?;
    let Some(end_ms) = lease.integer("expires_ms") else {
        return Err(ReactError::new(format!(
            "the lease {} has no whole number `expires_ms`, so it would never end",
            lease.id
        )));
    };
    if end_ms <= firing.now.ms() {
        out.emit("lease.expired", json!({"lease": lease.id, "expires_ms": end_ms}))
            .remove(lease.id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    fn check_at(now_ms: i64, properties: serde_json::Value, expected: &str) {
        let lease = json!({"id": "l", "type": "Lease", "properties": properties});
        let scene = json!({"bound": {"lease": lease}, "now": now_ms});
        check(&behavior().expect("metadata"), scene, expected);
    }

    #[test]
    fn a_lease_goes_at_its_end_and_not_before() {
        check_at(999, json!({"expires_ms": 1000}), "");
        check_at(
            1000,
            json!({"expires_ms": 1000}),
            r#"
            lease.expired {"expires_ms":1000,"lease":"l"}
              {"remove":"l"}
            "#,
        );
    }

    #[test]
    fn a_lease_without_an_end_is_an_error() {
        let error = "error: the lease l has no whole number `expires_ms`, so it would never end";
        check_at(1000, json!({}), error);
    }
}

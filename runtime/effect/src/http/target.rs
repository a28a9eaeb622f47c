//! Where a URL leads, and whether the person allowed it. There is one parser of URLs, the one that
//! also sends the request.

use std::net::IpAddr;

use reqwest::Url;

use crate::error::{Blame, EffectError};

/// The hosts that may be reached.
#[derive(Debug)]
pub(super) struct Allowed {
    hosts: Vec<String>,
    local: Vec<String>,
}

/// Where a request goes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    /// The host's address, if the URL names it by that.
    pub(super) literal: Option<IpAddr>,
    pub(super) trust: Trust,
}

/// What a person said of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is out in the world.
    World,
    /// It is a service of this machine or network, named with its port.
    Local,
}

/// A URL without anything that one parser might read differently from another.
pub(super) fn parse(text: &str) -> Result<Url, EffectError> {
    check_letters(text)?;
    finish(Url::parse(text).map_err(|error| no_url(&error.to_string()))?)
}

/// The same for a redirect, which may be relative.
pub(super) fn parse_from(base: &Url, text: &str) -> Result<Url, EffectError> {
    check_letters(text)?;
    finish(base.join(text).map_err(|error| no_url(&error.to_string()))?)
}

fn check_letters(text: &str) -> Result<(), EffectError> {
    let strange = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if text.contains(strange) {
        return Err(no_url("it has a blank, a backslash or a control character in it"));
    }
    Ok(())
}

fn finish(url: Url) -> Result<Url, EffectError> {
    if !["http", "https"].contains(&url.scheme()) {
        return Err(no_url("it is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(no_url("it names a user; give a header instead"));
    }
    let host = url.host_str().unwrap_or("");
    if host.is_empty() || host.ends_with('.') || host.contains('%') {
        return Err(no_url("its host is no plain name"));
    }
    Ok(url)
}

pub(super) fn no_url(why: &str) -> EffectError {
    let what = format!("the URL cannot be used: {why}");
    EffectError::new("arguments.url", Blame::Caller, what, "give a plain http or https URL")
}

impl Allowed {
    pub(super) fn new(hosts: &[String], local: &[String]) -> Self {
        let small = |list: &[String]| list.iter().map(|host| host.to_ascii_lowercase()).collect();
        Allowed { hosts: small(hosts), local: small(local) }
    }

    /// Where the URL leads.
    ///
    /// # Errors
    /// Its host is not on the list.
    pub(super) fn target(&self, url: &Url) -> Result<Target, EffectError> {
        let host = url.host_str().unwrap_or("").to_ascii_lowercase();
        let port = url.port_or_known_default().unwrap_or(0);
        let with_port = format!("{host}:{port}");
        let is_usual = url.port().is_none();
        let fits = |rule: &String| match rule.strip_prefix("*.") {
            Some(domain) => {
                let below =
                    |name: &str| name.strip_suffix(domain).is_some_and(|n| n.ends_with('.'));
                (is_usual && below(&host)) || below(&with_port)
            }
            None => (is_usual && *rule == host) || *rule == with_port,
        };
        let trust = if self.local.contains(&with_port) {
            Trust::Local
        } else if self.hosts.iter().any(fits) {
            Trust::World
        } else {
            return Err(EffectError::new(
                "http.host",
                Blame::Policy,
                format!("{with_port} is not among the hosts that may be reached"),
                "let the person who runs the flock allow the host",
            ));
        };
        // The brackets of an address are the URL's, not the host's.
        let host = host.trim_matches(['[', ']']).to_owned();
        let literal = host.parse().ok();
        Ok(Target { host, port, literal, trust })
    }
}

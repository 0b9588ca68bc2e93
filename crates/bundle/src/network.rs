//! The `network` block (AIP-26): which hosts a body may reach.

use std::{collections::BTreeSet, num::NonZeroU16};

use serde_json::Value;

use crate::{
    field::FieldError,
    object::{MOST_ITEMS, Object, PASTED, Shape},
    quote::Quoted,
};

const FIELD: &str = "network";

const SHAPE: Shape = Shape {
    fields: &["egress"],
    hints: &[
        ("kind", PASTED),
        ("name", PASTED),
        ("ingress", "nothing can be reached from outside"),
    ],
};

/// The hosts that a body may reach; nothing else can be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// `host`, `*.host` or `*`, each with an optional `:port`, in lower case and in the order of the manifest.
    pub egress: Vec<String>,
}

/// Reads a `network` block, and finds every fault in it. Without `egress`, nothing can be reached.
pub fn define_network(block: &Value) -> Result<Network, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    let egress = read_egress(&object, &mut issues);
    if issues.is_empty() {
        Ok(Network { egress })
    } else {
        Err(issues)
    }
}

/// Reads the list `egress` of a block.
pub(crate) fn read_egress(block: &Object<'_>, issues: &mut Vec<FieldError>) -> Vec<String> {
    let mut egress = block.strings("egress", issues, wrong_host);
    for host in &mut egress {
        host.make_ascii_lowercase();
    }
    egress
}

impl Network {
    /// The entries that stand for every host, which only the operator's owner may permit. `*.example.com` is none of them: it stands
    /// for the hosts at any depth below `example.com`, and not for `example.com` itself.
    pub fn entries_for_every_host(&self) -> impl Iterator<Item = &str> {
        self.egress
            .iter()
            .map(String::as_str)
            .filter(|entry| *entry == "*" || entry.starts_with("*:"))
    }

    /// Adds what is not there yet; nothing can be taken away (AIP-26, "Inheritance semantics").
    pub(crate) fn add(&mut self, more: &[String]) {
        join(&mut self.egress, more);
    }
}

/// Adds what a list does not have yet, in order, up to one more than a list may have: lists of many manifests come together.
pub(crate) fn join(list: &mut Vec<String>, more: &[String]) {
    let mut known: BTreeSet<&str> = list.iter().map(String::as_str).collect();
    let room = (MOST_ITEMS + 1).saturating_sub(list.len());
    let new = more.iter().filter(|entry| known.insert(entry.as_str()));
    let new: Vec<String> = new.take(room).cloned().collect();
    list.extend(new);
}

fn wrong_host(text: &str) -> Option<String> {
    let message = |what: &str| Some(format!("{} {what}", Quoted(text)));
    if text.contains("://") || text.contains('/') {
        return message("is a URL: write only the host, as in `api.example.com` or `*.example.com:8443`");
    }
    let (host, port) = match text.split_once(':') {
        None => (text, None),
        Some((host, port)) => (host, Some(port)),
    };
    if port.is_some_and(|port| port.contains(':')) {
        return message("is an IPv6 address: write a host name");
    }
    if port.is_some_and(|port| {
        !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<NonZeroU16>().is_err()
    }) {
        return message("has no port from 1 to 65535 after the `:`");
    }
    if host == "*" || is_name(host.strip_prefix("*.").unwrap_or(host)) {
        return None;
    }
    if host.contains('*') {
        return message("has a `*` that is not the whole first label, as in `*.example.com`");
    }
    if !host.is_ascii() {
        return message("has letters beyond ASCII: write the name in its `xn--` form");
    }
    message("is no host name: labels of letters, digits and `-`, separated by `.`")
}

/// RFC 1123, 2.1, with the underscores that occur in practice.
fn is_name(host: &str) -> bool {
    (1..=253).contains(&host.len())
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn egress(hosts: &[&str]) -> Result<Vec<String>, Vec<String>> {
        define_network(&json!({ "egress": hosts }))
            .map(|network| network.egress)
            .map_err(|errors| errors.iter().map(FieldError::to_string).collect())
    }

    #[test]
    fn hosts_wildcards_and_ports_are_kept_in_lower_case_and_order() {
        let hosts = [
            "api.Stripe.com",
            "*.competitor.com",
            "localhost:8080",
            "*",
            "*:443",
            "_sip.x",
            "10.0.0.1",
            "a-b.c",
        ];
        let expected = hosts.map(str::to_ascii_lowercase);
        assert_eq!(egress(&hosts), Ok(expected.to_vec()));
    }

    #[test]
    fn without_egress_nothing_can_be_reached() {
        assert_eq!(define_network(&json!({})), Ok(Network::default()));
        assert_eq!(define_network(&json!({ "egress": [] })), Ok(Network::default()));
    }

    #[test]
    fn a_list_has_at_most_256_hosts() {
        let hosts: Vec<_> = (0..257).map(|index| format!("h{index}")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        assert_eq!(egress(&hosts[..256]).map(|hosts| hosts.len()), Ok(256));
        let message = "network.egress: has 257 entries; at most 256 are allowed";
        assert_eq!(egress(&hosts), Err(vec![message.to_owned()]));
    }

    #[test]
    fn only_a_bare_star_stands_for_every_host() {
        let network = Network {
            egress: ["a.b", "*.com", "*", "*:443", "*.x.y:1"]
                .map(str::to_owned)
                .to_vec(),
        };
        assert_eq!(
            network.entries_for_every_host().collect::<Vec<_>>(),
            ["*", "*:443"]
        );
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_to_write() {
        let long_label = "x".repeat(64);
        let long_name = "x.".repeat(127);
        for (host, part) in [
            ("https://api.stripe.com", "is a URL"),
            ("api.stripe.com/v1", "is a URL"),
            ("10.0.0.0/8", "is a URL"),
            ("::1", "is an IPv6 address"),
            ("a.b:0", "has no port"),
            ("a.b:65536", "has no port"),
            ("a.b:+80", "has no port"),
            ("a.b:", "has no port"),
            ("a.b:https", "has no port"),
            ("api.*.com", "has a `*`"),
            ("*x.com", "has a `*`"),
            ("*.*.com", "has a `*`"),
            ("bücher.de", "has letters beyond ASCII"),
            ("", "is no host name"),
            (".", "is no host name"),
            ("a..b", "is no host name"),
            ("a.b.", "is no host name"),
            ("-a.b", "is no host name"),
            ("a b", "is no host name"),
            ("a.b\n", "is no host name"),
            ("user@a.b", "is no host name"),
            (&long_label, "is no host name"),
            (&long_name, "is no host name"),
        ] {
            let [error] = &egress(&[host]).expect_err(host)[..] else {
                panic!("one error for {host}")
            };
            assert!(
                error.starts_with("network.egress[0]: ") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn every_fault_of_the_block_is_named_with_its_field() {
        let errors = |block: &Value| -> Vec<String> {
            define_network(block)
                .unwrap_err()
                .iter()
                .map(FieldError::to_string)
                .collect()
        };
        assert_eq!(
            errors(&json!(null)),
            ["network: must be an object (`egress`), not null"]
        );
        assert_eq!(
            errors(&json!({ "egres": [], "egress": "a.b" })),
            [
                "network.egres: is unknown here: did you mean `egress`? Allowed: `egress`",
                "network.egress: must be a list of strings, not a string",
            ]
        );
        assert_eq!(
            errors(&json!({ "egress": ["a.b", 443, null] })),
            [
                "network.egress[1]: must be a string, not a number: write it in quotes, \"443\"",
                "network.egress[2]: must be a string, not null: give it a value, or leave it out",
            ]
        );
    }
}

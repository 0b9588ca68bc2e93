//! The addresses of one cluster: a /16 of the private 10/8 that neither the machine nor another checkout's cluster uses.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use super::instance::Instance;

/// The network `10.NUMBER.0.0/16` and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    number: u8,
}

impl Network {
    /// The lowest number that is given out.
    pub(super) const FIRST: u8 = 100;
    /// How many numbers are given out, from [`Self::FIRST`] on.
    pub(super) const COUNT: u8 = 128;

    fn address(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.number, third, fourth)
    }

    pub(super) fn number(self) -> u8 {
        self.number
    }

    /// All addresses of the cluster.
    pub(super) fn all(self) -> String {
        format!("{}/16", self.address(0, 0))
    }

    /// The machine's end of the cable.
    pub(super) fn machine(self) -> Ipv4Addr {
        self.address(0, 1)
    }

    /// The node, and so the API server.
    pub(super) fn node(self) -> Ipv4Addr {
        self.address(0, 2)
    }

    pub(super) fn services(self) -> String {
        format!("{}/18", self.address(64, 0))
    }

    /// The Service `kubernetes`: the API server gives it the first address of the range.
    pub(super) fn api_service(self) -> Ipv4Addr {
        self.address(64, 1)
    }

    pub(super) fn dns_service(self) -> Ipv4Addr {
        self.address(64, 10)
    }

    pub(super) fn pods(self) -> String {
        format!("{}/17", self.address(128, 0))
    }

    /// The range that the controller manager gives to the first, and here the only, node.
    pub(super) fn node_pods(self) -> String {
        format!("{}/24", self.address(128, 0))
    }
}

/// The number of a cluster's network as it is kept in its folder.
impl std::str::FromStr for Network {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let number: u8 = text
            .trim()
            .parse()
            .with_context(|| format!("not the number of a network: {text:?}"))?;
        anyhow::ensure!(
            (Self::FIRST..Self::FIRST + Self::COUNT).contains(&number),
            "network number {number} is outside the range that is given out"
        );
        Ok(Self { number })
    }
}

/// Picks the network for `instance`: its preferred one, or the next that overlaps none of `taken` (networks and addresses in use).
pub(super) fn choose(instance: &Instance, taken: &[Range]) -> Result<Network> {
    let start = instance.preferred_network() - Network::FIRST;
    (0..Network::COUNT)
        .map(|step| Network { number: Network::FIRST + (start + step) % Network::COUNT })
        .find(|network| {
            let range = Range { address: u32::from(network.address(0, 0)), prefix: 16 };
            !taken.iter().any(|other| range.overlaps(*other))
        })
        .context(
            "no free network between 10.100.0.0/16 and 10.227.0.0/16: remove a route to them, or run `cargo xtask cluster down` in another checkout",
        )
}

/// An IPv4 range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    address: u32,
    prefix: u8,
}

impl Range {
    /// The whole network of another cluster.
    pub(super) fn of(network: Network) -> Self {
        Self {
            address: u32::from(network.address(0, 0)),
            prefix: 16,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        let prefix = self.prefix.min(other.prefix);
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        self.address & mask == other.address & mask
    }
}

/// Reads the ranges out of `ip -4 route show table all`. The default route is no use of an address and is left out.
pub(super) fn routed(routes: &str) -> Vec<Range> {
    routes
        .lines()
        .filter_map(|line| {
            line.split_whitespace()
                .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        })
        .filter_map(|destination| {
            let (address, prefix) = destination.split_once('/').unwrap_or((destination, "32"));
            let address: Ipv4Addr = address.parse().ok()?;
            let prefix: u8 = prefix.parse().ok().filter(|prefix| (1..=32).contains(prefix))?;
            Some(Range {
                address: u32::from(address),
                prefix,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn instance() -> Instance {
        Instance::of(Path::new("/home/a/codeworkspace"))
    }

    fn network(number: u8) -> Network {
        number.to_string().parse().unwrap()
    }

    #[test]
    fn the_parts_lie_inside_the_network_and_apart_from_each_other() {
        let network = network(150);
        assert_eq!(network.all(), "10.150.0.0/16");
        assert_eq!(network.machine().to_string(), "10.150.0.1");
        assert_eq!(network.node().to_string(), "10.150.0.2");
        assert_eq!(network.services(), "10.150.64.0/18");
        assert_eq!(network.api_service().to_string(), "10.150.64.1");
        assert_eq!(network.dns_service().to_string(), "10.150.64.10");
        assert_eq!(network.pods(), "10.150.128.0/17");
        assert_eq!(network.node_pods(), "10.150.128.0/24");
    }

    #[test]
    fn a_free_machine_gives_the_preferred_network() {
        let chosen = choose(
            &instance(),
            &routed("default via 192.0.2.1 dev eth0\n192.0.2.0/24 dev eth0 scope link\n"),
        )
        .unwrap();
        assert_eq!(chosen.number(), instance().preferred_network());
    }

    #[test]
    fn a_network_in_use_is_passed_over() {
        let preferred = network(instance().preferred_network());
        let chosen = choose(&instance(), &[Range::of(preferred)]).unwrap();
        assert_ne!(chosen, preferred);
        let one_address = format!("local {} dev eth0 table local", preferred.node());
        assert_ne!(choose(&instance(), &routed(&one_address)).unwrap(), preferred);
    }

    #[test]
    fn a_machine_that_routes_all_of_them_elsewhere_is_refused() {
        let error = choose(&instance(), &routed("10.0.0.0/8 via 192.0.2.1 dev eth0")).unwrap_err();
        assert!(error.to_string().starts_with("no free network"), "{error}");
    }

    #[test]
    fn numbers_that_are_not_given_out_are_refused() {
        assert!("99".parse::<Network>().is_err());
        assert!("228".parse::<Network>().is_err());
        assert!("".parse::<Network>().is_err());
        assert_eq!("100\n".parse::<Network>().unwrap().number(), 100);
    }
}

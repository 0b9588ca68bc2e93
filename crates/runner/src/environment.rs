//! The variables that a body gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use codeworkspace_protocol::layout;

/// What a body finds programs by when its image names no path; the usual default of container runtimes.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The base variables over what the container was given (the image's variables and the declared ones), without what Kubernetes
/// added by itself.
///
/// A cluster's addresses are nothing that a manifest declared, and `HOSTNAME` is the pod's name, which differs from run to run;
/// a body that wants it can still ask the kernel.
pub(crate) fn body_environment(
    given: impl IntoIterator<Item = (OsString, OsString)>,
    workdir: &str,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = given.into_iter().collect();
    let services = services(&environment);
    environment.retain(|name, value| {
        name.to_str().is_none_or(|name| {
            name != "HOSTNAME"
                && !name.starts_with("KUBERNETES_")
                && !services
                    .iter()
                    .any(|service| describes_service(service, name, value))
        })
    });
    let mut set = |name: &str, value: &str| environment.insert(name.into(), value.into());
    set("HOME", layout::HOME);
    set("TMPDIR", layout::TEMPORARY_DIRECTORY);
    set("PWD", workdir);
    environment
        .entry("PATH".into())
        .or_insert_with(|| DEFAULT_PATH.into());
    environment
        .entry("LANG".into())
        .or_insert_with(|| "C.UTF-8".into());
    environment
}

/// The services that are described in an environment, as prefixes of variables' names: kubelet always writes host and port.
fn services(environment: &BTreeMap<OsString, OsString>) -> Vec<String> {
    environment
        .keys()
        .filter_map(|name| name.to_str()?.strip_suffix("_SERVICE_HOST"))
        .filter(|service| environment.contains_key(OsStr::new(&format!("{service}_SERVICE_PORT"))))
        .map(str::to_owned)
        .collect()
}

/// Whether kubelet, or Docker's links that it imitates, would have written this variable about `service`.
fn describes_service(service: &str, name: &str, value: &OsStr) -> bool {
    let Some(rest) = name.strip_prefix(service) else {
        return false;
    };
    let Some(port) = rest.strip_prefix("_PORT") else {
        return rest == "_SERVICE_HOST" || rest == "_SERVICE_PORT" || rest.starts_with("_SERVICE_PORT_");
    };
    // `X_PORT` is a URL when it comes from a service; an image's own `X_PORT` is a number.
    if port.is_empty() {
        return value.to_str().is_some_and(|value| value.contains("://"));
    }
    let Some(port) = port.strip_prefix('_') else {
        return false;
    };
    let mut words = port.split('_');
    let number = words
        .next()
        .is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    let protocol = words
        .next()
        .is_some_and(|word| ["TCP", "UDP", "SCTP"].contains(&word));
    let detail = words
        .next()
        .is_none_or(|word| ["PROTO", "PORT", "ADDR"].contains(&word));
    number && protocol && detail && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = given
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        body_environment(given, "/workspace")
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn expected(values: &[(&str, &str)]) -> Vec<(String, String)> {
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn an_image_without_variables_gets_the_base() {
        assert_eq!(
            environment(&[]),
            expected(&[
                ("HOME", "/home/codeworkspace"),
                ("LANG", "C.UTF-8"),
                (
                    "PATH",
                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                ),
                ("PWD", "/workspace"),
                ("TMPDIR", "/tmp"),
            ])
        );
    }

    #[test]
    fn the_images_own_path_and_language_are_kept_and_its_home_is_not() {
        assert_eq!(
            environment(&[
                ("PATH", "/opt/python/bin:/bin"),
                ("LANG", "de_DE.UTF-8"),
                ("HOME", "/root"),
                ("PWD", "/"),
                ("TMPDIR", "/var/tmp"),
                ("PYTHON_VERSION", "3.13"),
            ]),
            expected(&[
                ("HOME", "/home/codeworkspace"),
                ("LANG", "de_DE.UTF-8"),
                ("PATH", "/opt/python/bin:/bin"),
                ("PWD", "/workspace"),
                ("PYTHON_VERSION", "3.13"),
                ("TMPDIR", "/tmp"),
            ])
        );
    }

    #[test]
    fn what_kubernetes_injects_is_removed_and_what_only_looks_like_it_is_kept() {
        let kept = [
            ("CACHE_PORT", "6379"),
            ("DATABASE_SERVICE_HOST", "db.example"),
            ("KUBERNETES", "yes"),
            ("WEB_API_PORT", "tcp"),
            ("WEB_PORT_NUMBER", "1"),
        ];
        let injected = [
            ("HOSTNAME", "run-7f9c"),
            ("KUBERNETES_PORT", "tcp://10.0.0.1:443"),
            ("KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
            ("CACHE_SERVICE_HOST", "10.0.0.2"),
            ("CACHE_SERVICE_PORT", "6379"),
            ("WEB_API_SERVICE_HOST", "10.0.0.3"),
            ("WEB_API_SERVICE_PORT", "80"),
            ("WEB_API_PORT_80_TCP", "tcp://10.0.0.3:80"),
            ("WEB_SERVICE_HOST", "10.0.0.4"),
            ("WEB_SERVICE_PORT", "80"),
            ("WEB_SERVICE_PORT_HTTP", "80"),
            ("WEB_PORT", "tcp://10.0.0.4:80"),
            ("WEB_PORT_80_TCP", "tcp://10.0.0.4:80"),
            ("WEB_PORT_80_TCP_PROTO", "tcp"),
            ("WEB_PORT_80_TCP_PORT", "80"),
            ("WEB_PORT_80_TCP_ADDR", "10.0.0.4"),
        ];
        let base = ["HOME", "LANG", "PATH", "PWD", "TMPDIR"];
        let left: Vec<_> = environment(&[&kept[..], &injected[..]].concat())
            .into_iter()
            .filter(|(name, _)| !base.contains(&name.as_str()))
            .collect();
        assert_eq!(left, expected(&kept));
    }

    #[test]
    fn a_variable_that_is_not_unicode_passes_unchanged() {
        use std::os::unix::ffi::OsStringExt;
        let name = OsString::from_vec(b"ODD\xff".to_vec());
        let value = OsString::from_vec(b"\xfe".to_vec());
        let environment = body_environment([(name.clone(), value.clone())], "/workspace");
        assert_eq!(environment.get(&name), Some(&value));
    }
}

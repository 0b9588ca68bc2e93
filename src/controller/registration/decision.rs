//! Who may register which key. Pure.

use std::net::IpAddr;

use axum::http::StatusCode;
use codeworkspace_api::labels;
use codeworkspace_bundle::Digest;
use codeworkspace_protocol::session::REGISTRATION_AUDIENCE;
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::pod::PREPARE;

/// Keys under which the API server tells which pod a token is bound to.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// The pod that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// Its uid: another pod of that name is another pod.
    pub uid: String,
}

/// What is done for a caller that may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The digest is recorded.
    Record,
    /// It is recorded already: an earlier answer was lost.
    Recorded,
}

/// Why a key is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request means nothing.
    Invalid(String),
    /// Nobody knows who calls.
    Unauthorized(&'static str),
    /// The caller may not.
    Forbidden(String),
    /// The pod has another key.
    OtherKey,
    /// Not now; the caller tries again.
    Unavailable(String),
}

impl Refusal {
    /// The answer's status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::OtherKey => StatusCode::CONFLICT,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A label of a closed set, for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Unauthorized(_) => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::OtherKey => "other-key",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// For people.
    pub fn message(&self) -> &str {
        match self {
            Self::Invalid(message) | Self::Forbidden(message) | Self::Unavailable(message) => message,
            Self::Unauthorized(message) => message,
            Self::OtherKey => "this pod has registered another key: it must be replaced",
        }
    }
}

/// Whether a digest has the form that the protocol gives it.
pub fn well_formed(digest: &str) -> bool {
    digest.parse::<Digest>().is_ok()
}

/// Who the API server says that a token belongs to.
pub fn caller(review: &TokenReviewStatus) -> Result<Caller, Refusal> {
    if review.authenticated != Some(true) {
        return Err(Refusal::Unauthorized("the API server does not know this token"));
    }
    // An API server that knows nothing of audiences would let through tokens that were given to somebody else.
    if !review
        .audiences
        .iter()
        .flatten()
        .any(|audience| audience == REGISTRATION_AUDIENCE)
    {
        return Err(Refusal::Unauthorized("this token was made for another audience"));
    }
    let user = review.user.as_ref();
    let namespace = user
        .and_then(|user| user.username.as_deref())
        .and_then(|name| name.strip_prefix("system:serviceaccount:"))
        .and_then(|name| name.split_once(':'))
        .map(|(namespace, _)| namespace.to_owned());
    let extra = |key: &str| match user?.extra.as_ref()?.get(key)?.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    match (namespace, extra(POD_NAME), extra(POD_UID)) {
        (Some(namespace), Some(pod), Some(uid)) => Ok(Caller { namespace, pod, uid }),
        _ => Err(Refusal::Forbidden("this token is not bound to a pod".to_owned())),
    }
}

/// What becomes of a digest that this caller sent from this address.
pub fn judge(caller: &Caller, pod: Option<&Pod>, peer: IpAddr, digest: &str) -> Result<Verdict, Refusal> {
    let forbidden = |why: &str| Err(Refusal::Forbidden(format!("pod {}: {why}", caller.pod)));
    let unavailable = |why: &str| Err(Refusal::Unavailable(format!("pod {}: {why}", caller.pod)));
    let Some(pod) = pod.filter(|pod| pod.uid().as_deref() == Some(&caller.uid)) else {
        return forbidden("it does not exist any more");
    };
    let labelled = |key: &str, value: &str| pod.labels().get(key).is_some_and(|there| there == value);
    if !labelled(labels::MANAGED_BY, labels::MANAGER) || !labelled(labels::CLASS, labels::CLASS_SESSION) {
        return forbidden("it is not the pod of a session");
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return forbidden("it is being deleted");
    }
    let status = pod.status.as_ref();
    // The kubelet tells of a container and of the address a moment after they are there.
    let state = status
        .and_then(|status| status.init_container_statuses.as_ref())
        .and_then(|containers| containers.iter().find(|container| container.name == PREPARE))
        .and_then(|prepare| prepare.state.as_ref());
    match state {
        Some(state) if state.terminated.is_some() => return forbidden("its preparation has ended"),
        Some(state) if state.running.is_some() => {}
        _ => return unavailable("its node has not told yet that it is prepared"),
    }
    let mut addresses = status
        .into_iter()
        .flat_map(|status| {
            let more = status.pod_ips.iter().flatten().map(|address| &address.ip);
            status.pod_ip.iter().chain(more)
        })
        .filter_map(|address| address.parse::<IpAddr>().ok())
        .peekable();
    if addresses.peek().is_none() {
        return unavailable("its node has not told its address yet");
    }
    if !addresses.any(|address| address.to_canonical() == peer.to_canonical()) {
        return forbidden("the request comes from another address than the pod's");
    }
    match pod.annotations().get(labels::KEY_DIGEST) {
        None => Ok(Verdict::Record),
        Some(there) if there == digest => Ok(Verdict::Recorded),
        Some(_) => Err(Refusal::OtherKey),
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;

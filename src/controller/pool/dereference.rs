//! The only step that reads: what the watches know of one namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use codeworkspace_api::{CodeSession, CodeSessionStatus, RunnerTemplateSpec, SessionState, labels};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::member::{Member, Standing};
use super::memory::Expected;
use crate::controller::interpreter::validate;
use crate::controller::{Context, Readable, Stores};

/// What interpreters want of one template's pods.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Name of the template.
    pub name: String,
    /// The template.
    pub template: RunnerTemplateSpec,
    /// Pods that wait, as all interpreters together want them.
    pub size: usize,
    /// Sessions that have no pod.
    pub pending: usize,
    /// The least of their limits.
    pub most: Option<usize>,
    /// The least of their ages.
    pub maximum_age: Option<SignedDuration>,
}

/// A namespace.
#[derive(Debug)]
pub struct World {
    /// Pools by the label of their template: those that are wanted, and those that have pods.
    pub pools: BTreeMap<String, Pool>,
}

/// One pool.
#[derive(Debug, Default)]
pub struct Pool {
    /// Nobody wants it without this.
    pub wanted: Option<Wanted>,
    /// Its pods.
    pub members: Vec<Member>,
    /// Pods that were made and are not among the members yet.
    pub unseen: usize,
}

impl Pool {
    /// Pods that take a place.
    pub fn alive(&self) -> usize {
        self.members.iter().filter(|member| member.is_alive()).count() + self.unseen
    }
}

/// Reads. `expected` was taken before.
pub fn dereference(
    context: &Context,
    namespace: &str,
    expected: &Expected,
    now: Timestamp,
    start_budget: SignedDuration,
) -> World {
    let sessions = sessions(&context.stores, namespace);
    let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
    let pool_of = wanted(context, namespace, &mut pools);

    let candidates: BTreeSet<&str> = read(&sessions)
        .filter_map(|session| session.spec.pod_name.as_deref())
        .collect();
    let mut seen = BTreeSet::new();
    let pods = context
        .stores
        .session_pods
        .state_filter(|pod| pod.namespace().as_deref() == Some(namespace));
    for pod in pods {
        let name = pod.name_any();
        let mut member = Member::of(&pod, candidates.contains(name.as_str()), now, start_budget);
        if expected.deleted.contains(&member.uid) {
            member.standing = Standing::Going;
        }
        let pool = pod.labels().get(labels::TEMPLATE).cloned().unwrap_or_default();
        pools.entry(pool).or_default().members.push(member);
        seen.insert(name);
    }
    for (name, pool) in &expected.created {
        if !seen.contains(name) {
            pools.entry(pool.clone()).or_default().unseen += 1;
        }
    }

    let members: HashMap<&str, &Member> = pools
        .values()
        .flat_map(|pool| &pool.members)
        .map(|member| (member.name.as_str(), member))
        .collect();
    let pending: Vec<String> = read(&sessions)
        .filter(|session| waits(session, &members))
        .filter_map(|session| pool_of.get(&session.spec.interpreter_ref.name).cloned())
        .collect();
    for pool in pending {
        if let Some(wanted) = pools.get_mut(&pool).and_then(|pool| pool.wanted.as_mut()) {
            wanted.pending += 1;
        }
    }
    World { pools }
}

/// What the interpreters of a namespace want, and the pool of each.
fn wanted(context: &Context, namespace: &str, pools: &mut BTreeMap<String, Pool>) -> HashMap<String, String> {
    let interpreters = context
        .stores
        .interpreters
        .state_filter(|interpreter| interpreter.namespace().as_deref() == Some(namespace));
    let mut pool_of = HashMap::new();
    if interpreters.is_empty() {
        return pool_of;
    }
    let templates = context.templates();
    for interpreter in &interpreters {
        let Ok(interpreter) = &interpreter.0 else { continue };
        if interpreter.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Ok(resolved) = validate(interpreter, &templates) else {
            continue;
        };
        let label = labels::value(&resolved.name);
        let pool = pools.entry(label.clone()).or_default();
        let wanted = pool.wanted.get_or_insert_with(|| Wanted {
            name: resolved.name.clone(),
            template: resolved.template.spec.clone(),
            size: 0,
            pending: 0,
            most: None,
            maximum_age: None,
        });
        let warm_pool = &interpreter.spec.warm_pool;
        wanted.size += usize::try_from(warm_pool.size).unwrap_or_default();
        let most = warm_pool.max.and_then(|most| usize::try_from(most).ok());
        wanted.most = least(wanted.most, most);
        wanted.maximum_age = least(wanted.maximum_age, resolved.maximum_age);
        pool_of.insert(interpreter.name_any(), label);
    }
    pool_of
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    [one, other].into_iter().flatten().min()
}

/// The sessions that have not ended. Records of ended ones are many.
fn sessions(stores: &Stores, namespace: &str) -> Vec<Arc<Readable<CodeSession>>> {
    let open = |session: &CodeSession| {
        let status = session.status.as_ref();
        !status.is_some_and(CodeSessionStatus::has_ended)
    };
    stores.sessions.state_filter(|session| {
        session.namespace().as_deref() == Some(namespace) && session.0.as_ref().is_ok_and(open)
    })
}

fn read(sessions: &[Arc<Readable<CodeSession>>]) -> impl Iterator<Item = &CodeSession> {
    sessions.iter().filter_map(|session| session.0.as_ref().ok())
}

/// Whether a session needs a pod that is not there: it has none in view, or lost the one that it wanted to another.
fn waits(session: &CodeSession, members: &HashMap<&str, &Member>) -> bool {
    let state = session.status.as_ref().and_then(|status| status.state);
    if session.spec.stop
        || session.metadata.deletion_timestamp.is_some()
        || matches!(state, Some(SessionState::Ready | SessionState::Terminated))
    {
        return false;
    }
    let Some(candidate) = &session.spec.pod_name else {
        return true;
    };
    match members.get(candidate.as_str()) {
        Some(member) if member.session.is_some() => member.session != session.metadata.name,
        Some(member) => member.standing != Standing::Reserved,
        None => true,
    }
}

//! One look at all pools of a namespace.

use std::time::Duration;

use codeworkspace_api::{CodeSession, labels};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::runtime::reflector::ObjectRef;

use super::apply::{self, Created};
use super::dereference::{Pool, Wanted, World, dereference};
use super::member::{Member, Standing};
use super::plan::{Demand, MOST_CREATED, plan};
use super::trouble::Trouble;
use crate::controller::{Context, Error, Sessions};
use crate::pod::SessionPod;

/// Longest time between two looks: each of them finds what others have left behind.
const SWEEP: Duration = Duration::from_mins(5);
/// Delay until more pods are made than one look may, or until one is tried again that was changed while it was to be deleted.
const SOON: Duration = Duration::from_secs(1);

/// What a look has found.
#[derive(Debug, PartialEq, Eq)]
pub struct Looked {
    /// When to look again.
    pub again: Duration,
    /// Whether other things are to be told of its pods than before.
    pub news: bool,
}

/// Brings the pools of a namespace closer to what its interpreters want.
pub async fn reconcile(context: &Context, sessions: &Sessions, namespace: &str) -> Result<Looked, Error> {
    let now = context.clock.now();
    let budget = SignedDuration::from_secs(sessions.configuration.start_budget_seconds);
    let expected = sessions.memory.expected(namespace, now);
    let mut world = dereference(context, namespace, &expected, now, budget);
    if world.pools.is_empty() {
        sessions.memory.forget(namespace);
    }
    remove_leaked(context, sessions, namespace, &world).await?;
    let mut looked = Looked {
        again: SWEEP,
        news: false,
    };
    let limit = usize::try_from(sessions.configuration.maximum_pods_per_namespace).unwrap_or_default();
    let labels: Vec<String> = world.pools.keys().cloned().collect();
    for label in labels {
        let others: usize = world
            .pools
            .iter()
            .filter(|(other, _)| **other != label)
            .map(|(_, pool)| pool.alive())
            .sum();
        let Some(pool) = world.pools.get_mut(&label) else {
            continue;
        };
        let look = Look {
            context,
            sessions,
            namespace,
            label: &label,
            now,
        };
        look.at(pool, limit.saturating_sub(others), &mut looked).await?;
    }
    // Whatever starts is given up a moment after its time.
    let given_up = world
        .pools
        .values()
        .flat_map(|pool| &pool.members)
        .filter(|member| member.standing == Standing::Starting)
        .map(|member| budget - now.duration_since(member.created) + SignedDuration::from_secs(1))
        .min();
    looked.soon(given_up);
    Ok(looked)
}

impl Looked {
    fn soon(&mut self, delay: Option<SignedDuration>) {
        if let Some(delay) = delay {
            self.again = self
                .again
                .min(Duration::try_from(delay).unwrap_or(SOON))
                .max(SOON);
        }
    }
}

/// One pool that is looked at.
struct Look<'a> {
    context: &'a Context,
    sessions: &'a Sessions,
    namespace: &'a str,
    label: &'a str,
    now: Timestamp,
}

impl Look<'_> {
    async fn at(&self, pool: &mut Pool, most: usize, looked: &mut Looked) -> Result<(), Error> {
        let built = pool.wanted.as_ref().map(|wanted| self.pod(wanted));
        let hash = built.as_ref().map(SessionPod::hash).unwrap_or_default();
        let trouble = self.trouble(&hash, &pool.members);
        let demand = self.demand(hash, pool.wanted.as_ref(), most);
        let plan = plan(self.now, &demand, &pool.members, pool.unseen, trouble.as_ref());

        for member in &plan.delete {
            if !self.delete(member).await? {
                looked.soon(Some(SignedDuration::ZERO));
            }
        }
        let mut made = 0;
        let mut refused = None;
        if let Some(built) = built.filter(|_| plan.create > 0) {
            refused = self.create(&built, plan.create, &mut made).await?;
        }
        if plan.create == MOST_CREATED {
            looked.soon(Some(SignedDuration::ZERO));
        }
        let mut report = plan.report;
        report.starting += i32::try_from(made).unwrap_or_default();
        let mut again = plan.again;
        if let Some(message) = refused {
            let trouble = Trouble::after(trouble.as_ref(), &demand.hash, &message, self.now, self.now);
            report.last_error = Some(message);
            again = Some(trouble.retry_at);
            self.sessions
                .memory
                .set_trouble(self.namespace, self.label, Some(trouble));
        }
        looked.soon(again.map(|at| at.duration_since(self.now)));
        looked.news |= self
            .sessions
            .memory
            .set_report(self.namespace, self.label, &report);
        pool.unseen += made;
        Ok(())
    }

    fn pod<'a>(&'a self, wanted: &'a Wanted) -> SessionPod<'a> {
        SessionPod {
            namespace: self.namespace,
            template_name: &wanted.name,
            template: &wanted.template,
            operator: &self.sessions.operator,
            authority: &self.sessions.authority,
            start_seconds: self.sessions.configuration.kernel_start_seconds,
            runner_image: &self.context.configuration.runner_image,
        }
    }

    fn demand(&self, hash: String, wanted: Option<&Wanted>, most: usize) -> Demand {
        let maximum_age = SignedDuration::from_secs(self.sessions.configuration.maximum_age_seconds);
        Demand {
            hash,
            size: wanted.map_or(0, |wanted| wanted.size),
            pending: wanted.map_or(0, |wanted| wanted.pending),
            most: wanted
                .and_then(|wanted| wanted.most)
                .map_or(most, |own| own.min(most)),
            maximum_age: wanted
                .and_then(|wanted| wanted.maximum_age)
                .unwrap_or(maximum_age),
        }
    }

    /// What keeps pods from starting, with the failures that are seen for the first time.
    fn trouble(&self, hash: &str, members: &[Member]) -> Option<Trouble> {
        let memory = &self.sessions.memory;
        let former = memory.trouble(self.namespace, self.label);
        let mut trouble = former.and_then(|trouble| trouble.still(hash, members));
        let mut failed: Vec<(&Member, &str)> = members
            .iter()
            .filter(|member| member.hash == hash)
            .filter_map(|member| match &member.standing {
                Standing::Failed(why) => Some((member, why.as_str())),
                _ => None,
            })
            .filter(|(member, _)| memory.blame(self.namespace, &member.uid))
            .collect();
        failed.sort_by_key(|(member, _)| member.created);
        if let Some((newest, why)) = failed.last() {
            tracing::warn!(
                namespace = self.namespace,
                pod = newest.name,
                reason = why,
                "the pod of a session did not start, or ended before it had one"
            );
            trouble = Some(Trouble::after(
                trouble.as_ref(),
                hash,
                why,
                newest.created,
                self.now,
            ));
        }
        memory.set_trouble(self.namespace, self.label, trouble.clone());
        trouble
    }

    async fn delete(&self, member: &Member) -> Result<bool, Error> {
        let memory = &self.sessions.memory;
        memory.will_delete(self.namespace, &member.uid, self.now);
        let deleted = apply::delete_warm(self.context, self.namespace, member).await;
        if !matches!(deleted, Ok(true)) {
            memory.not_deleted(self.namespace, &member.uid);
        }
        deleted
    }

    /// Makes pods until one is refused, and says why it was.
    async fn create(
        &self,
        pod: &SessionPod<'_>,
        number: usize,
        made: &mut usize,
    ) -> Result<Option<String>, Error> {
        let (memory, namespace) = (&self.sessions.memory, self.namespace);
        if memory.policies_are_due(namespace, self.now) {
            let release = &self.sessions.configuration.release;
            if let Err(message) = apply::policies(self.context, namespace, release).await? {
                return Ok(Some(message));
            }
            memory.policies_stand(namespace, self.now);
        }
        for _ in 0..number {
            let pod = pod.build(&lot()?);
            let name = pod.metadata.name.clone().unwrap_or_default();
            memory.will_create(namespace, self.label, &name, self.now);
            // After an error without an answer, the pod may be there: it stays expected.
            if let Created::Refused(message) = apply::create(self.context, &pod).await? {
                memory.not_created(namespace, &name);
                return Ok(Some(message));
            }
            *made += 1;
        }
        Ok(None)
    }
}

/// Deletes claimed pods whose session is gone. Such a pod is leaked unless somebody deleted the session.
async fn remove_leaked(
    context: &Context,
    sessions: &Sessions,
    namespace: &str,
    world: &World,
) -> Result<(), Error> {
    let taken = world
        .pools
        .values()
        .flat_map(|pool| &pool.members)
        .filter(|member| matches!(member.standing, Standing::Claimed | Standing::Ended));
    for member in taken {
        let session = member.session.as_deref();
        if let Some(session) = session {
            if context
                .stores
                .sessions
                .get(&ObjectRef::new(session).within(namespace))
                .is_some()
            {
                continue;
            }
            // The watch of sessions may lag behind that of pods.
            let api: Api<CodeSession> = Api::namespaced(context.client.clone(), namespace);
            if api.get_metadata_opt(session).await?.is_some() {
                continue;
            }
        }
        let on_purpose = session.is_some_and(|session| sessions.memory.has_departed(namespace, session));
        if !on_purpose {
            context.metrics.leaked();
            tracing::warn!(
                namespace,
                pod = member.name,
                session,
                label = labels::SESSION,
                "a claimed pod has no session: it is deleted"
            );
        }
        sessions
            .memory
            .will_delete(namespace, &member.uid, context.clock.now());
        apply::delete_pod(context, namespace, &member.name, &member.uid).await?;
    }
    Ok(())
}

/// Digits that no other pod has.
fn lot() -> Result<String, Error> {
    let mut bytes = [0; 8];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Error::NoRandomness)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

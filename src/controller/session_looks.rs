//! What a change of an interpreter, a session or one of their pods makes worth a look.

use std::collections::BTreeSet;
use std::sync::Arc;

use codeworkspace_api::{CodeInterpreter, CodeSession, labels};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};

use super::looks::Generations;
use super::watches::{Change, Wanted, Wants, all};
use super::{Context, Readable};

/// Turns changes into looks at those whom they concern.
pub struct SessionLooks {
    interpreters: Wants<Readable<CodeInterpreter>>,
    sessions: Wants<Readable<CodeSession>>,
    namespaces: Wants<PartialObjectMeta<Namespace>>,
    context: Arc<Context>,
    /// What interpreters write into their own status concerns nobody here.
    generations: Generations<CodeInterpreter>,
}

/// Objects that the controllers of sessions shall look at, as they wait for them.
pub struct WantedSessions {
    /// Interpreters.
    pub interpreters: Wanted<Readable<CodeInterpreter>>,
    /// Sessions.
    pub sessions: Wanted<Readable<CodeSession>>,
    /// Namespaces, for their pools.
    pub namespaces: Wanted<PartialObjectMeta<Namespace>>,
}

impl SessionLooks {
    /// Makes both ends.
    pub fn new(context: Arc<Context>) -> (Self, WantedSessions) {
        let (interpreters, wanted_interpreters) = Wants::new();
        let (sessions, wanted_sessions) = Wants::new();
        let (namespaces, wanted_namespaces) = Wants::new();
        let wants = Self {
            interpreters,
            sessions,
            namespaces,
            context,
            generations: Generations::default(),
        };
        let wanted = WantedSessions {
            interpreters: wanted_interpreters,
            sessions: wanted_sessions,
            namespaces: wanted_namespaces,
        };
        (wants, wanted)
    }

    /// An interpreter changed: it and the pools of its namespace.
    pub fn interpreter(&self, change: &Change<'_, Readable<CodeInterpreter>>) {
        match *change {
            Change::Any => {
                self.generations.forget();
                self.interpreters.look_at(all(&self.context.stores.interpreters));
                self.all_namespaces();
                self.sessions.look_at(all(&self.context.stores.sessions));
            }
            Change::Of(interpreter) | Change::Gone(interpreter) => {
                if self.generations.is_news(change) {
                    self.interpreters.look_at([ObjectRef::from_obj(interpreter)]);
                    self.waiting_sessions(interpreter);
                    self.namespace(interpreter.meta().namespace.as_deref());
                }
            }
        }
    }

    /// Sessions without a pod end when their interpreter opens none any more.
    fn waiting_sessions(&self, interpreter: &Readable<CodeInterpreter>) {
        let (namespace, name) = (interpreter.namespace(), interpreter.name_any());
        let waits = |session: &CodeSession| {
            session.spec.interpreter_ref.name == name
                && session
                    .status
                    .as_ref()
                    .is_none_or(|status| status.pod_uid.is_none() && !status.has_ended())
        };
        let waiting =
            self.context.stores.sessions.state_filter(|session| {
                session.namespace() == namespace && session.0.as_ref().is_ok_and(waits)
            });
        self.sessions.look_at(
            waiting
                .iter()
                .map(|session| ObjectRef::from_obj(session.as_ref())),
        );
    }

    /// A session changed: it, its interpreter's count, and the pools, which may owe it a pod.
    pub fn session(&self, change: &Change<'_, Readable<CodeSession>>) {
        match *change {
            Change::Any => {
                self.sessions.look_at(all(&self.context.stores.sessions));
                self.all_namespaces();
            }
            Change::Of(session) | Change::Gone(session) => {
                let namespace = session.namespace().unwrap_or_default();
                if matches!(change, Change::Gone(_)) {
                    self.left_behind(&namespace, &session.name_any());
                }
                self.sessions.look_at([ObjectRef::from_obj(session)]);
                if let Ok(read) = &session.0 {
                    let interpreter = ObjectRef::new(&read.spec.interpreter_ref.name).within(&namespace);
                    self.interpreters.look_at([interpreter]);
                }
                self.namespace(Some(&namespace));
            }
        }
    }

    /// The pod of a deleted session is not leaked: somebody wanted it gone with the session.
    fn left_behind(&self, namespace: &str, session: &str) {
        let has_pod = self.context.stores.session_pods.find(|pod| {
            pod.namespace().as_deref() == Some(namespace)
                && pod.labels().get(labels::SESSION).map(String::as_str) == Some(session)
        });
        if let (Some(sessions), Some(_)) = (&self.context.sessions, has_pod) {
            sessions.memory.departed(namespace, session);
        }
    }

    /// A pod changed: the pools of its namespace, and the session that has it.
    pub fn pod(&self, change: &Change<'_, Pod>) {
        if let Some(sessions) = &self.context.sessions {
            sessions.memory.seen(change);
        }
        match *change {
            Change::Any => {
                self.all_namespaces();
                self.sessions.look_at(all(&self.context.stores.sessions));
            }
            Change::Of(pod) | Change::Gone(pod) => {
                if let Some(session) = pod.labels().get(labels::SESSION) {
                    let namespace = pod.namespace().unwrap_or_default();
                    self.sessions
                        .look_at([ObjectRef::new(session).within(&namespace)]);
                }
                self.namespace(pod.meta().namespace.as_deref());
            }
        }
    }

    /// Any template may be the one that an interpreter lacks, or the one that it shall no longer have.
    pub fn template(&self) {
        self.interpreters.look_at(all(&self.context.stores.interpreters));
        self.all_namespaces();
    }

    /// Other things are to be told of the pools of a namespace than before.
    pub fn news(&self, namespace: &str) {
        let of_namespace = self
            .context
            .stores
            .interpreters
            .state_filter(|interpreter| interpreter.namespace().as_deref() == Some(namespace));
        self.interpreters.look_at(
            of_namespace
                .iter()
                .map(|interpreter| ObjectRef::from_obj(interpreter.as_ref())),
        );
    }

    fn namespace(&self, name: Option<&str>) {
        self.namespaces.look_at(name.map(ObjectRef::new));
    }

    /// Every namespace that has interpreters, or pods.
    fn all_namespaces(&self) {
        let stores = &self.context.stores;
        let with_interpreters = stores.interpreters.state();
        let with_pods = stores.session_pods.state();
        let names: BTreeSet<String> = with_interpreters
            .iter()
            .filter_map(|interpreter| interpreter.namespace())
            .chain(with_pods.iter().filter_map(|pod| pod.namespace()))
            .collect();
        self.namespaces
            .look_at(names.iter().map(|name| ObjectRef::new(name)));
    }
}
